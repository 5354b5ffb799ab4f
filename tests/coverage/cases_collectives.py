"""Coverage of functrans.lax: collectives over the rows of a matrix, beside NumPy along axis 0."""

import numpy as np
from coverage_table import Call, Entry, R

import functrans as ft


def over_rows(f, x, *args):
    """The function for each row, under the name "i"; an oracle for the whole matrix."""
    if not f.__module__.startswith("functrans"):
        return f(x)
    return ft.vmap(lambda row: f(row, "i", *args), axis_name="i")(x)


def as_varying(f, x):
    if not f.__module__.startswith("functrans"):
        return f(x)
    return ft.vmap(lambda row: f(row, "i", to="varying"), axis_name="i")(x)


def numbered(f, x):
    """The same for functions of a name alone."""
    if not f.__module__.startswith("functrans"):
        return f(x)
    return ft.vmap(lambda row: row * f("i"), axis_name="i")(x)


def spread(reduce):
    return lambda x: np.broadcast_to(reduce(x), x.shape)


def shifted(x):
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


SKIP = {"0-d": "no rows"}
SQUARE = {**SKIP, "empty": "one element a row and example", "vmap": "one element a row and example"}

TABLES = {
    "functrans.lax": [
        *[
            Entry(name, Call(R(3, 3)), oracle=spread(reduce), through=over_rows, skip={**SKIP, **skip})
            for name, reduce, skip in (
                ("psum", lambda x: x.sum(0), {}),
                ("pmean", lambda x: x.mean(0), {"int": "a mean is a float"}),
                ("pmax", lambda x: x.max(0), {"empty": "no maximum"}),
                ("pmin", lambda x: x.min(0), {"empty": "no minimum"}),
            )
        ],
        Entry(
            "all_gather",
            Call(R(3, 2)),
            oracle=lambda x: np.broadcast_to(x, (len(x), *x.shape)),
            through=over_rows,
            skip=SKIP,
        ),
        Entry("psum_scatter", Call(R(3, 3)), oracle=lambda x: x.sum(0), through=over_rows, skip=SQUARE),
        Entry("all_to_all", Call(R(3, 3), 0, 0), oracle=lambda x: x.T, through=over_rows, skip=SQUARE),
        Entry("pvary", Call(R(3, 2)), oracle=lambda x: x, through=over_rows, skip=SKIP),
        Entry("pcast", Call(R(3, 2)), oracle=lambda x: x, through=as_varying, skip=SKIP),
        Entry("pswapaxes", Call(R(3, 3), 0), oracle=lambda x: x.T, through=over_rows, skip=SQUARE),
        Entry(
            "ppermute",
            Call(R(3, 2), [(0, 1), (1, 2)]),
            oracle=shifted,
            through=over_rows,
            skip={**SKIP, "empty": "three rows"},
        ),
        Entry(
            "pshuffle",
            Call(R(3, 2), [2, 0, 1]),
            oracle=lambda x: x[[2, 0, 1]],
            through=over_rows,
            skip={**SKIP, "empty": "three rows"},
        ),
        Entry(
            "pbroadcast",
            Call(R(3, 2), 1),
            oracle=spread(lambda x: x[1]),
            through=over_rows,
            skip={**SKIP, "empty": "three rows"},
        ),
        Entry(
            "axis_index",
            Call(R(3, 2)),
            oracle=lambda x: x * np.arange(len(x), dtype=np.int32)[:, None],
            through=numbered,
            skip={**SKIP, "float32": "an integer array widens it"},
        ),
        Entry("axis_size", Call(R(3, 2)), oracle=lambda x: x * len(x), through=numbered, skip=SKIP),
    ]
}
