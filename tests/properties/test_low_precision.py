"""Random programs of float16 and bfloat16: compiled, they compute what they compute uncompiled, and no less exactly.

A compiled program leaves out roundings, so it may differ from the uncompiled one by these. None of the functions drawn
here enlarges an error, so that is at most the unit in the last place of a number below 1, for each operation. In strict
mode there is no difference.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

try:
    DTYPES = [np.dtype(np.float16), np.dtype(ft.bfloat16)]
except ft.errors.MissingLibraryError:
    DTYPES = [np.dtype(np.float16)]

SHAPES = [(), (1,), (0,), (5,), (40,), (3, 5), (5, 1), (1, 5), (5, 5), (2, 3, 5)]
#: Functions with values and derivatives in [-1, 1], of numbers in [-1, 1].
UNARY = {
    "sin": fnp.sin,
    "cos": fnp.cos,
    "tanh": fnp.tanh,
    "neg": lambda x: -x,
    "half": lambda x: x * 0.5,
    "relu": lambda x: fnp.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + fnp.exp(-x)),
    "sort": lambda x: fnp.sort(x, axis=-1) if x.ndim else x,
    "flip": fnp.flip,
    "transpose": fnp.transpose,
    "flat": lambda x: fnp.ravel(x)[: 2 * SHAPES[-1][-1]],
    "strided": lambda x: x[::-2] if x.ndim else x,
    "rows": lambda x: x[np.array([0, -1, 0])] if x.ndim and len(x) else x,
    "mean": lambda x: fnp.mean(x, axis=0) if x.ndim and len(x) else x,
    "max": lambda x: fnp.max(x, axis=-1, keepdims=True) if x.size and x.ndim else x,
    "scan": lambda x: lax.scan(lambda c, r: (0.5 * c + 0.5 * r, c), x[0], x)[1] if x.ndim and len(x) else x,
    "gram": lambda x: (x.T @ x) * (1 / max(len(x), 1)) if x.ndim == 2 else x,
    "put": lambda x: x.at[..., 0].set(0.25) if x.ndim and x.size else x,
}
BINARY = {
    "average": lambda x, y: 0.5 * x + 0.5 * y,
    "max": fnp.maximum,
    "where": lambda x, y: fnp.where(x > y, x, y),
    "product": lambda x, y: 0.5 * x * y,
    "wide": lambda x, y: (0.5 * (x.astype(np.float32) + y)).astype(x.dtype),
}
#: What NumPy rounds correctly, and functions with steps: the same numbers in strict mode.
EXACT = {
    "square": lambda x: x * x,
    "affine": lambda x: x * 1.7 - 0.3,
    "ratio": lambda x: x / (x * x + 1),
    "root": lambda x: fnp.sqrt(fnp.abs(x)),
    "floor": lambda x: fnp.floor(x * 7) / 7,
    "remainder": lambda x: x % 0.3,
    "sign": lambda x: fnp.where(x > 0.1, x, fnp.sign(x) + 0.0),  # ml_dtypes: sign(-0.0) is -0.0
    "argmax": lambda x: x - 0.1 * fnp.argmax(x * 1.1, axis=-1, keepdims=True) if x.size and x.ndim else x,
    "integers": lambda x: (x * 9).astype(np.int8) * x,
    "equal": lambda x: fnp.where(x * 1.3 == fnp.max(x * 1.3), 0.5, x) if x.size else x,
    "bits": lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x * 1.1, np.int16) ^ 1, x.dtype),
}


def fits(x, y):
    try:
        return np.broadcast_shapes(x.shape, y.shape) in SHAPES
    except ValueError:
        return False


@st.composite
def programs(draw, unary, binary):
    """A list of steps: a function, and the numbers of earlier values."""
    dtype = draw(st.sampled_from(DTYPES))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=2, max_size=2))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    args = [rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes]
    values = [fnp.asarray(x) for x in args]
    steps = []
    for _ in range(draw(st.integers(1, 7))):
        i = draw(st.integers(max(0, len(values) - 3), len(values) - 1))
        partners = [j for j, y in enumerate(values) if fits(values[i], y)]
        if binary and partners and draw(st.booleans()):
            steps.append(
                (binary[draw(st.sampled_from(sorted(binary)))], (i, draw(st.sampled_from(partners))))
            )
        else:
            steps.append((unary[draw(st.sampled_from(sorted(unary)))], (i,)))
        f, places = steps[-1]
        values.append(f(*[values[k] for k in places]))

    def run(*args):
        found = [fnp.asarray(x) for x in args]
        for f, places in steps:
            found.append(f(*[found[k] for k in places]))
        return found[2:]

    return run, args, len(steps), fnp.finfo(dtype).eps


def wide(x):
    return np.asarray(x).astype(np.float64)


def check_closeness(program):
    run, args, count, eps = program
    exact = run(*[wide(x) for x in args])
    for y, z, limit in zip(ft.jit(run)(*args), run(*args), exact, strict=True):
        assert y.dtype == z.dtype == args[0].dtype
        assert y.shape == z.shape
        np.testing.assert_allclose(wide(y), limit, rtol=0, atol=4 * (count + 1) * float(eps))
        np.testing.assert_allclose(wide(y), wide(z), rtol=0, atol=4 * (count + 1) * float(eps))


def check_equality(program):
    run, args, _, _ = program
    with ft.config.patch(strict=True), np.errstate(all="ignore"):
        for y, z in zip(ft.jit(run)(*args), run(*args), strict=True):
            assert y.dtype == z.dtype
            np.testing.assert_array_equal(wide(y), wide(z))


def check_gradient(program):
    run, args, count, eps = program

    def loss(*args):
        return sum([fnp.mean(y.astype(np.float32)) for y in run(*args) if y.size], fnp.zeros((), np.float32))

    compiled = ft.jit(ft.grad(loss, argnums=(0, 1)))(*args)
    exact = ft.grad(loss, argnums=(0, 1))(*[wide(x) for x in args])
    for g, limit, x in zip(compiled, exact, args, strict=True):
        assert g.dtype == x.dtype
        size = max(1.0, np.max(np.abs(limit), initial=0))
        np.testing.assert_allclose(wide(g), limit, rtol=0, atol=8 * (count + 1) * size * float(eps))


SMOOTH = {k: f for k, f in UNARY.items() if k not in ("sort", "relu", "max")}
near = settings(max_examples=12, deadline=None)
many = settings(max_examples=60, deadline=None)
CHECKS = {
    "close": (check_closeness, programs(UNARY, BINARY)),
    "strict": (check_equality, programs(EXACT, {})),
    "gradient": (check_gradient, programs(SMOOTH, {k: BINARY[k] for k in ("average", "product", "wide")})),
}


def checked(name, data):
    check, strategy = CHECKS[name]
    check(data.draw(strategy))


@pytest.mark.parametrize("name", CHECKS)
@near
@given(data=st.data())
def test_compiled_programs(name, data):
    checked(name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
@many
@given(data=st.data())
def test_many_compiled_programs(name, data):
    checked(name, data)
