"""functrans.lax: gather and scatter, bits, joining."""

import numpy as np
from coverage_table import Call, Entry, I, R, Z

from functrans import lax

ROWS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
PAIRS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
INTO_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
CONSTANT = {"differentiable": False}
SHAPED = dict.fromkeys(("0-d", "empty"), "the dimension numbers do not fit")


def gather(x, indices, numbers, sizes, mode="fill", fill_value=np.nan):
    """Rows of a matrix, or pairs of a vector, which may begin too late."""
    starts, size = indices[:, 0], len(sizes) == 1 and sizes[0]
    if mode == "clip":
        starts = np.clip(starts, 0, len(x) - (size or 1))
    inside = (starts >= 0) & (starts <= len(x) - (size or 1))
    places = np.where(inside, starts, 0)
    taken = x[places[:, None] + np.arange(size)] if size else x[places]
    return np.where(inside[:, None], taken, np.asarray(fill_value, x.dtype) if mode == "fill" else 0).astype(
        x.dtype
    )


def scatter(combine):
    """Rows written one after the other."""

    def reference(x, indices, updates, numbers, mode="fill"):
        out = x.copy()
        for (i,), row in zip(np.clip(indices, 0, len(x) - 1) if mode == "clip" else indices, updates):
            if 0 <= i < len(x):
                out[i] = combine(out[i], row)
        return out

    return reference


def rows(**options):
    """Two calls: with repeated indices and some out of bounds, and in another mode."""
    return (
        Call(R(4, 3), np.array([[1], [5], [1], [-1]]), R(4, 3), INTO_ROWS),
        Call(R(4, 3), I(3, 1, high=6), R(3, 3), INTO_ROWS, mode="clip"),
    )


def reduce_precision(x, exponent_bits, mantissa_bits):
    assert (exponent_bits, mantissa_bits) == (8, 23)
    return x.astype(np.float32).astype(float)


TABLES = {
    "functrans.lax": [
        Entry(
            "gather",
            Call(R(4, 3), np.array([[1], [5], [1]]), ROWS, (1, 3), mode="fill", fill_value=0.5),
            Call(R(5), I(3, 1), PAIRS, (2,), mode="clip"),
            oracle=gather,
            skip={**SHAPED, "int": "0.5 is no integer"},
        ),
        Entry(
            "index_take",
            Call(R(4, 3), (I(3, high=9),), (0,)),
            oracle=lambda x, i, a: x[i[0] % len(x)],
            skip=SHAPED,
        ),
        Entry("scatter", *rows(), oracle=scatter(lambda old, new: new), skip=SHAPED),
        Entry("scatter_add", *rows(), oracle=scatter(np.add), skip=SHAPED),
        Entry("scatter_sub", *rows(), oracle=scatter(np.subtract), skip=SHAPED),
        Entry("scatter_mul", *rows(), oracle=scatter(np.multiply), skip=SHAPED),
        Entry("scatter_min", *rows(), oracle=scatter(np.minimum), skip=SHAPED),
        Entry("scatter_max", *rows(), oracle=scatter(np.maximum), skip=SHAPED),
        Entry(
            "scatter_apply",
            Call(R(4), np.array([[1], [3], [9]]), np.square, lax.ScatterDimensionNumbers((), (0,), (0,))),
            oracle=lambda x, i, f, d: np.where([False, True, False, True], f(x), x),
            skip=SHAPED,
        ),
        # --- bits
        Entry(
            "population_count",
            Call(I(5, low=-9, high=99)),
            oracle=lambda x: np.bitwise_count(x.view(np.uint64)).astype(int),
            **CONSTANT,
            skip={"0-d": "views", "empty": "views"},
        ),
        Entry(
            "clz",
            Call(I(5, low=1, high=99)),
            oracle=lambda x: 63 - np.floor(np.log2(x)).astype(int),
            **CONSTANT,
        ),
        Entry(
            "bitcast_convert_type",
            Call(R(3), np.int64),
            oracle=lambda x, d: x.view(d),
            **CONSTANT,
            skip={"float32": "of another size"},
        ),
        Entry(
            "reduce_precision",
            Call(R(3), 8, 23),
            oracle=reduce_precision,
            skip={
                "derivative": "that of what is rounded",
                "int": "operands are not promoted",
                "float32": "double",
            },
        ),
        Entry(
            "reduce_xor",
            Call(I(2, 3), (0,)),
            oracle=np.bitwise_xor.reduce,
            **CONSTANT,
            skip={"0-d": "NumPy takes axis 0"},
        ),
        # --- joining
        Entry(
            "split", Call(R(4, 2), (1, 3)), oracle=lambda x, n: np.split(x, np.cumsum(n)[:-1]), skip=SHAPED
        ),
        Entry("stack", Call([R(3), R(3)]), Call([R(3), R(3)], 1)),
        Entry(
            "unstack",
            Call(R(2, 3)),
            Call(R(2, 3), 1),
            oracle=lambda x, axis=0: tuple(np.moveaxis(x, axis, 0)),
            skip=SHAPED,
        ),
        Entry("tile", Call(R(2, 3), (2, 2)), skip=SHAPED),
        Entry(
            "broadcast_to_rank", Call(R(3), 2), oracle=lambda x, n: x.reshape((1,) * (n - x.ndim) + x.shape)
        ),
        Entry("empty", Call((2, 3), np.float32), oracle=np.zeros, **CONSTANT),
        Entry("optimization_barrier", Call((R(3), Z(2))), oracle=lambda x: x),
    ]
}
