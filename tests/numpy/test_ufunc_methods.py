"""Methods of ufuncs on traced values: same numbers and dtypes as of arrays, eagerly differentiated and compiled."""

import numpy as np
import pytest

import functrans as ft
from functrans import errors
from functrans.testing import check

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2, (3, 5))
N = RNG.integers(0, 100, (4, 3))
FLOATS = [
    np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.minimum, np.fmax, np.fmin, np.hypot,
    np.logaddexp, np.logaddexp2, np.arctan2, np.copysign, np.fmod, np.remainder,
]  # fmt: skip
INTEGERS = [np.gcd, np.lcm, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.add, np.multiply, np.maximum]
LOGICAL = [np.logical_and, np.logical_or, np.logical_xor]


def equal(got, expected):
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def traced(method, x, *args, **kwargs):
    """On values of `jit`, and on those of eager differentiation."""
    out = ft.jit(lambda x: method(x, *args, **kwargs))(x)
    if x.dtype.kind == "f":
        eager, _ = ft.vjp(lambda x: method(x, *args, **kwargs), x)
        np.testing.assert_allclose(eager, out, rtol=1e-13)
    return out


@pytest.mark.parametrize(
    ("ufunc", "x"),
    [(u, X) for u in FLOATS] + [(u, N) for u in INTEGERS] + [(u, N % 3) for u in LOGICAL],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_reduce_and_accumulate(ufunc, x):
    equal(traced(ufunc.reduce, x), ufunc.reduce(x))
    # NumPy is wrong along contiguous axes, where its vector loop reads what it has not written yet.
    if ufunc not in (np.power, np.arctan2):
        equal(traced(ufunc.reduce, x, axis=1, keepdims=True), ufunc.reduce(x, axis=1, keepdims=True))
    equal(traced(ufunc.accumulate, x), ufunc.accumulate(x))
    equal(traced(ufunc.accumulate, x, 1), ufunc.accumulate(x, 1))
    equal(traced(ufunc.reduceat, x, [0, 2, 1], axis=0), ufunc.reduceat(x, [0, 2, 1], axis=0))
    equal(traced(ufunc.outer, x, x[0]), ufunc.outer(x, x[0]))


@pytest.mark.parametrize("ufunc", FLOATS[:13], ids=lambda u: u.__name__)
def test_derivatives(ufunc):
    check(ufunc.reduce, X.T.copy(), order=1)
    check(ufunc.accumulate, X.T.copy(), order=1)


def test_options():
    for axis in (None, (0, 1), -1, ()):
        for ufunc in (np.add, np.maximum, np.hypot):
            equal(traced(ufunc.reduce, X, axis=axis), np.asarray(ufunc.reduce(X, axis=axis)))
    mask = X > 1
    equal(traced(np.add.reduce, X, where=mask), np.add.reduce(X, where=mask))
    equal(traced(np.multiply.reduce, X, initial=3.0), np.multiply.reduce(X, initial=3.0))
    equal(
        traced(np.maximum.reduce, X, initial=1.5, where=mask), np.maximum.reduce(X, initial=1.5, where=mask)
    )
    equal(traced(np.hypot.reduce, X, initial=1.5), np.hypot.reduce(X, initial=1.5))
    equal(traced(np.logaddexp.reduce, X, where=mask), np.logaddexp.reduce(X, where=mask))
    equal(
        traced(np.add.reduce, X.astype(np.float32), dtype=float),
        np.add.reduce(X.astype(np.float32), dtype=float),
    )
    equal(traced(np.add.reduce, N.astype(np.int8)), np.add.reduce(N.astype(np.int8)))
    equal(traced(np.add.accumulate, N > 3), np.add.accumulate(N > 3))
    equal(traced(np.maximum.reduce, N, dtype=float), np.maximum.reduce(N, dtype=float))
    equal(traced(np.maximum.accumulate, N > 3), np.maximum.accumulate(N > 3))
    equal(traced(np.logical_and.reduce, X, axis=None), np.asarray(np.logical_and.reduce(X, axis=None)))
    equal(traced(np.add.outer, N, 2), np.add.outer(N, 2))
    equal(traced(np.add.outer, N, [1.5, 2]), np.add.outer(N, [1.5, 2]))


def test_of_nothing():
    nothing = np.zeros((0, 3))
    for ufunc in (np.add, np.multiply, np.hypot, np.logaddexp, np.logical_or, np.logical_xor):
        equal(traced(ufunc.reduce, nothing), ufunc.reduce(nothing))
        equal(traced(ufunc.accumulate, nothing), ufunc.accumulate(nothing))
    for ufunc in (np.maximum, np.fmax, np.subtract):
        with pytest.raises(errors.ArgumentValueError):
            ft.jit(ufunc.reduce)(nothing)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: np.add.at(x, 0, 1.0), errors.ImmutableArrayError, r"x\.at\[i\]\.add"),
        (lambda x: np.hypot.at(x, 0, 1.0), errors.ImmutableArrayError, r"x\.at\[i\]\.set"),
        (lambda x: np.add.reduce(x, out=np.zeros(5)), errors.ImmutableArrayError, "returned value"),
        (lambda x: np.add(x, 1.0, out=np.zeros((3, 5))), errors.ImmutableArrayError, "returned value"),
        (lambda x: np.subtract.reduce(x, axis=(0, 1)), ValueError, "not reorderable"),
        (lambda x: np.fmax.reduce(x, where=x > 1), ValueError, "no identity"),
        (lambda x: np.add.reduceat(x, [0, 9]), IndexError, "out-of-bounds"),
        (lambda x: np.add.reduceat(x, x[0].astype(int)), errors.ConcretizationTypeError, "segment"),
        (lambda x: np.subtract.reduce(np.concatenate([x] * 100)), NotImplementedError, "lax.scan"),
        (lambda x: np.add.reduce(x, axis=2), errors.AxisError, "axis 2"),
    ],
)
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        ft.jit(call)(X)
    assert isinstance(caught.value, errors.FunctransError)
