"""Coverage of functrans.lax: loops and branches, beside Python's."""

import numpy as np
from coverage_table import Call, Entry, R

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

ROWS = {"0-d": "no rows"}
EMPTY = {"empty": "the body wants elements"}


def step(c, x):
    return 0.5 * c + fnp.sin(x), c * x


def python_scan(f, c, xs):
    ys = []
    for x in xs:
        c, y = f(c, x)
        ys.append(y)
    return np.asarray(c), np.array(ys).reshape(len(xs), *np.shape(c))


def python_fori(lower, upper, f, c):
    for i in range(lower, upper):
        c = f(i, c)
    return np.asarray(c)


def python_while(test, f, c):
    while test(c):
        c = f(c)
    return np.asarray(c)


TABLES = {
    "functrans.lax": [
        Entry(
            "scan",
            Call(step, R(2), R(3, 2)),
            oracle=python_scan,
            skip={
                "0-d": "no rows",
                "empty": "carry and rows have different shapes",
                "float32": "the oracle's carry is a list's",
                "int": "a carry of integers that becomes one of floats is an error",
            },
        ),
        Entry(
            "fori_loop",
            Call(0, 4, lambda i, c: fnp.sin(c) * i + c, R(2, 3)),
            oracle=python_fori,
            skip={"int": "a carry of integers that becomes one of floats is an error"},
        ),
        Entry(
            "while_loop",
            Call(lambda c: fnp.sum(c) < 5.0, lambda c: c * 1.7 + fnp.sin(c), R(2, 3)),
            oracle=python_while,
            skip={
                "empty": "an empty sum is below 5 for ever",
                "int": "a carry of integers that becomes one of floats is an error",
            },
        ),
        Entry(
            "cond",
            Call(True, fnp.sin, fnp.cos, R(2, 3)),
            Call(False, fnp.sin, lambda x: x * x, R(2)),
            oracle=lambda p, f, g, x: np.asarray(f(x) if p else g(x)),
        ),
        Entry(
            "platform_dependent",
            Call(R(2, 3), cpu=fnp.sin, tpu=fnp.cos),
            oracle=lambda x, cpu, tpu: np.sin(x),
        ),
        Entry(
            "composite",
            Call(R(2, 3), fnp.sin),
            oracle=lambda x, f: np.sin(x),
            through=lambda f, x, g: f(g, "a.sine")(x) if f is lax.composite else f(x, g),
        ),
        Entry("with_sharding_constraint", Call(R(2, 3), ft.devices()[0]), oracle=lambda x, device: x),
        Entry(
            "rng_uniform",
            Call(2.0, 3.0, (4, 3)),
            oracle=lambda a, b, shape: np.full(shape, (a + b) / 2),
            through=lambda f, a, b, shape: fnp.logical_and(f(a, b, shape) >= a, f(a, b, shape) < b),
            differentiable=False,
        ),
        Entry(
            "switch",
            Call(1, [fnp.sin, fnp.cos, fnp.exp], R(2, 3)),
            Call(7, [fnp.sin, fnp.cos, fnp.exp], R(2)),
            oracle=lambda i, branches, x: np.asarray(branches[min(i, 2)](x)),
        ),
        Entry(
            "map",
            Call(lambda x: fnp.sin(x) * x, R(3, 2)),
            Call(lambda x: fnp.sin(x) * x, R(5), batch_size=2),
            oracle=lambda f, xs, batch_size=None: np.sin(xs) * xs,
            skip=ROWS,
        ),
        Entry(
            "associative_scan",
            Call(fnp.multiply, R(5)),
            Call(fnp.add, R(2, 7), axis=1, reverse=True),
            oracle=lambda f, x, reverse=False, axis=0: (
                np.cumprod(x) if not reverse else np.cumsum(x[:, ::-1], 1)[:, ::-1]
            ),
            skip=ROWS,
        ),
    ]
}
