"""where, select, clip, round, nan_to_num, parts and nearness against NumPy."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.arrays.array import Array
from functrans.core.dtypes import SUPPORTED
from functrans.errors import ArgumentError, ArgumentValueError, ImmutableArrayError

rng = np.random.default_rng(0)
X = np.array([[1.25, -2.5, np.nan, np.inf], [-np.inf, 0.0, -0.0, 3.75]])
Z = np.array([1 + 2j, -1.0, 0, complex(np.nan, 1), complex(np.inf, -np.inf)])


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert type(ours) is Array
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)


def test_where_of_every_pair_of_dtypes():
    values = [*[np.array([1, 0, 1]).astype(d) for d in SUPPORTED], True, 2, 0.5, 1j]
    c = np.array([True, False, True])
    for x, y in itertools.product(values, values):
        same(fnp.where(c, x, y), np.where(c, x, y))


def test_where_broadcasts_and_takes_any_condition():
    same(fnp.where(X > 0, X, 0), np.where(X > 0, X, 0))
    same(fnp.where([[1], [0]], [1, 2], 3.5), np.where([[1], [0]], [1, 2], 3.5))
    same(fnp.where(True, 1, 2), np.where(True, 1, 2))
    same(fnp.where(X > 0)[0], np.where(X > 0)[0])
    with pytest.raises(ArgumentValueError, match="both"):
        fnp.where(X > 0, X)


def test_select():
    x = np.arange(6)
    same(fnp.select([x < 2, x < 4], [x * 2, x + 0.5], -1), np.select([x < 2, x < 4], [x * 2, x + 0.5], -1))
    same(fnp.select([x < 2], [x]), np.select([x < 2], [x]))
    with pytest.raises(ArgumentValueError):
        fnp.select([x < 2], [x, x])
    with pytest.raises(ArgumentError, match="bool"):
        fnp.select([x], [x])


def test_clip():
    for low, high in ((-1, 1), (None, 1), (0.5, None), (1, -1), ([0, 1, 0, 1], 2)):
        same(fnp.clip(X, low, high), np.clip(X, low, high))
    same(fnp.clip(np.arange(5, dtype=np.int8), 1, 3), np.clip(np.arange(5, dtype=np.int8), 1, 3))
    same(fnp.clip(X, min=0, max=1), np.clip(X, 0, 1))
    y = X.copy()
    assert not np.shares_memory(fnp.clip(y, None, None), y)
    with pytest.raises(ImmutableArrayError):
        fnp.clip(X, 0, 1, X)


def test_round():
    x = np.array([1.25, 2.5, -3.5, 123.456, np.nan, np.inf])
    for d in (0, 1, 2, -1, -2):
        same(fnp.round(x, d), np.round(x, d))
        same(fnp.round(x.astype(np.float32), d), np.round(x.astype(np.float32), d))
        same(fnp.round(np.array([15, 25, -149]), d), np.round(np.array([15, 25, -149]), d))
    same(fnp.around(1.5 + 2.5j), np.around(1.5 + 2.5j))
    same(fnp.fix(x), np.fix(x))


def test_nan_to_num():
    for x in (X, X.astype(np.float32), Z, np.arange(3), 1.5, np.nan):
        same(fnp.nan_to_num(x), np.nan_to_num(x))
        same(
            fnp.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
            np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
        )


def test_parts():
    for x in (X, Z, np.arange(3), 1j, 2, Z.astype(np.complex64)):
        for f in ("real", "imag", "isreal", "iscomplex", "conj", "isfinite", "isnan"):
            same(getattr(fnp, f)(x), getattr(np, f)(x))
        same(fnp.angle(x), np.angle(x))
    np.testing.assert_allclose(fnp.angle(Z[:2], deg=True), np.angle(Z[:2], deg=True))
    same(fnp.isposinf(X), np.isposinf(X))
    same(fnp.isneginf(X), np.isneginf(X))
    z = Z.copy()
    for f in (fnp.real, fnp.imag, fnp.nan_to_num):
        assert not np.shares_memory(f(z), z)
    x = X.copy()
    assert not np.shares_memory(fnp.real(x), x)


def test_nearness():
    a = np.array([1.0, 1.0, np.nan, np.inf, -np.inf, 0.0, 1e10])
    b = np.array([1.0 + 1e-9, 1.1, np.nan, np.inf, np.inf, 1e-9, 1.00001e10])
    for equal_nan in (False, True):
        same(fnp.isclose(a, b, equal_nan=equal_nan), np.isclose(a, b, equal_nan=equal_nan))
        assert bool(fnp.allclose(a[:3], b[:3], equal_nan=equal_nan)) == np.allclose(
            a[:3], b[:3], equal_nan=equal_nan
        )
        assert bool(fnp.array_equal(a, a, equal_nan)) == np.array_equal(a, a, equal_nan)
    same(fnp.isclose(np.arange(3), [0, 1, 3]), np.isclose(np.arange(3), [0, 1, 3]))
    assert not fnp.array_equal(a, a[:3])
    assert fnp.array_equiv([1, 2], [[1, 2], [1, 2]])
    assert not fnp.array_equiv([1, 2], [1, 2, 3])


@pytest.mark.needs("numpy>=2.1", reason="NumPy 2.0 refuses limits out of the dtype's range")
def test_clip_by_integers_out_of_reach(same):
    x = np.array([1, -5, 100], np.int8)
    for low, high in [(-1, 300), (-999, 999), (-128, 127), (None, 300)]:
        same("clip", x, low, high)
    for low, high in [(200, 300), (0, -300)]:
        with pytest.raises(OverflowError):
            fnp.clip(x, low, high)
    same("clip", np.array([3, 200], np.uint8), -5, 10)
    np.testing.assert_array_equal(ft.jit(lambda x: np.clip(x, -1, 300))(x), np.clip(x, -1, 300))
    for args in [(None, 3), (0, 2)]:
        same("clip", x, *args, min=1)
