"""Reductions and statistics against NumPy: axes, dtypes, masks, empty arrays, and refusals."""

import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.arrays.array import Array
from functrans.core.dtypes import SUPPORTED
from functrans.errors import ArgumentValueError, AxisError, FunctransError, ImmutableArrayError, ShapeError

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4))
MASK = rng.random((2, 3, 4)) < 0.6
SUMS = ("sum", "prod", "mean", "var", "std")
EXTREMES = ("max", "min", "amax", "amin", "ptp")
TRUTHS = ("any", "all", "count_nonzero")
POSITIONS = ("argmax", "argmin")

#: Relative differences by the character of a dtype: an operation in another order.
ROUNDED = {"e": 1e-3, "f": 1e-5, "F": 1e-5}


def make(dtype, shape=(2, 3, 4)):
    x = rng.integers(0, 4, shape)
    return (x + 1j * rng.integers(0, 2, shape) if dtype.kind == "c" else x).astype(dtype)


def check(name, *args, **kwargs):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = getattr(fnp, name)(*args, **kwargs)
        theirs = np.asarray(getattr(np, name)(*args, **kwargs))
    assert type(ours) is Array
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=ROUNDED.get(theirs.dtype.char, 1e-13))


@pytest.mark.parametrize("name", [*SUMS, *EXTREMES, *TRUTHS, *POSITIONS])
@pytest.mark.parametrize("dtype", SUPPORTED, ids=str)
def test_dtypes(name, dtype):
    if (name == "ptp" and dtype.kind == "b") or (name in ("mean", "var", "std") and dtype.kind == "b"):
        dtype = np.dtype(np.uint8)
    check(name, make(dtype))
    check(name, make(dtype), axis=1)


@pytest.mark.parametrize("name", [*SUMS, *EXTREMES, *TRUTHS])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1, 0), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(name, axis, keepdims):
    if name in (*SUMS, *EXTREMES) or axis != ():
        check(name, X, axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_positions(name, axis, keepdims):
    check(name, X, axis=axis, keepdims=keepdims)
    check(name, np.round(X), axis=axis, keepdims=keepdims)
    y = X.copy()
    y[0, 1, 2] = np.nan
    check(name, y, axis=axis)


@pytest.mark.parametrize(
    "x", [3.0, 2, True, [1, 2, 3], [[1.5, 2.5]], np.float32(2), X[::-1, ::2], X.T, X[:, :, :1]]
)
@pytest.mark.parametrize("name", [*SUMS, "max", "min", *TRUTHS, *POSITIONS])
def test_operands(name, x):
    if name == "min" and x is True:
        x = 1
    check(name, x)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "any", "all"])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_where(name, axis):
    check(name, X, axis=axis, where=MASK)
    check(name, X, axis=axis, where=MASK[0])


@pytest.mark.parametrize("name", ["max", "min"])
def test_where_of_extremes(name):
    check(name, X, axis=1, where=MASK, initial=0.5)
    check(name, make(np.dtype(int)), where=MASK, initial=2)
    with pytest.raises(ArgumentValueError, match="initial"):
        getattr(fnp, name)(X, where=MASK)


def test_initial_and_dtype():
    check("sum", X, axis=0, initial=2.0)
    check("prod", X, axis=0, initial=2.0)
    check("sum", make(np.dtype(np.int8)), dtype=np.int8)
    check("sum", X, dtype=np.float32)
    check("prod", make(np.dtype(np.int32)), dtype=np.float64)
    check("mean", make(np.dtype(np.int32)), dtype=np.float32)
    check("max", X, initial=100.0)


def test_nan_and_infinity():
    y = np.array([[1.0, np.nan, np.inf], [-np.inf, 2.0, 3.0]])
    for name in (*SUMS, "max", "min", *TRUTHS):
        check(name, y, axis=0)
        check(name, y, axis=1)
        check(name, y)


def test_empty():
    for name in ("sum", "prod", "any", "all", "mean", "count_nonzero"):
        check(name, np.zeros((0, 3)), axis=0)
        check(name, np.zeros((0, 3)))
    check("max", np.zeros((0, 3)), axis=1)
    check("max", np.zeros((0, 3)), initial=1.0)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ValueError, match=name):
            getattr(fnp, name)(np.zeros((0, 3)), axis=0)
        with pytest.raises(FunctransError):
            getattr(fnp, name)([])


def test_degrees_of_freedom():
    for name in ("var", "std"):
        check(name, X, ddof=1)
        check(name, X, axis=1, correction=1.5)
        check(name, X[:, :1], axis=1, ddof=1)
        check(name, X + 1j * X[::-1], axis=2)
        check(name, X, axis=0, mean=X.mean(axis=0, keepdims=True))
    with pytest.raises(ArgumentValueError, match="ddof"):
        fnp.var(X, ddof=1, correction=1)


def test_average():
    w = rng.random((2, 3, 4))
    check("average", X)
    check("average", X, axis=1)
    check("average", X, weights=w)
    check("average", X, axis=(0, 1), weights=w)
    check("average", X, axis=2, weights=w[0, 0])
    check("average", [1, 2, 3], weights=[1, 2, 3])
    for ours, theirs in zip(
        fnp.average(X, axis=2, weights=w[0, 0], returned=True), np.average(X, 2, w[0, 0], returned=True)
    ):
        np.testing.assert_allclose(ours, theirs)
    assert fnp.average(X, axis=1, returned=True)[1].shape == (2, 4)
    with pytest.raises(ShapeError, match="weights"):
        fnp.average(X, axis=1, weights=w[0, 0])


def test_refusals():
    with pytest.raises(AxisError, match="axis 3 is out of bounds"):
        fnp.sum(X, axis=3)
    with pytest.raises(ArgumentValueError, match="duplicate axis"):
        fnp.sum(X, axis=(0, 0))
    with pytest.raises(ImmutableArrayError):
        fnp.sum(X, out=np.zeros(()))
    with pytest.raises(TypeError, match="integer"):
        fnp.argmax(X, axis=1.5)


def test_average_with_weights_along_several_axes():
    x, w = rng.random((2, 3, 4)), rng.random((4, 2))
    for axis in [(2, 0), (-1, 0)]:
        np.testing.assert_allclose(fnp.average(x, axis=axis, weights=w), np.average(x, axis=axis, weights=w))
    with pytest.raises(ValueError, match="match neither"):
        fnp.average(x, axis=(0, 2), weights=w)
    with pytest.raises(TypeError, match="pass axis="):
        fnp.average(x, weights=w)


def test_initial_of_nothing():
    np.testing.assert_array_equal(
        ft.jit(lambda s: fnp.max(np.zeros((0, 2)), axis=0, initial=s))(3.0), [3.0, 3.0]
    )


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "any", "all", "argmax", "ptp", "nansum", "count_nonzero", "squeeze"]
)
@pytest.mark.parametrize("axis", [0, -1])
def test_a_number_has_an_axis_to_reduce(name, axis):
    expected = getattr(np, name)(2.0, axis=axis)
    f = getattr(fnp, name)
    for found in (f(2.0, axis=axis), ft.jit(lambda x: f(x, axis=axis))(2.0)):
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(np.exceptions.AxisError):
        f(2.0, axis=1)


NAN = ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin")


@pytest.mark.wide(3)
@pytest.mark.parametrize("hidden", [np.inf, -np.inf, np.nan, 0.0])
@pytest.mark.parametrize("name", [*SUMS, "max", "min", *NAN])
def test_what_is_masked_takes_no_part(name, hidden):
    """Neither in values nor in derivatives, which are those of the reduction of the elements that count."""
    x = np.array([1.5, hidden, -2.0, hidden, 0.5])
    mask = x != hidden if hidden == hidden else x == x
    options = {"initial": -9.0} if "max" in name else {"initial": 9.0} if "min" in name else {}
    if "sum" in name or "prod" in name:
        options = {"initial": 3.0}
    f = lambda x: getattr(fnp, name)(x, where=mask, **options)
    few = lambda x: getattr(fnp, name)(x, **options)
    expected = getattr(np, name)(x, where=mask, **options)
    slope, bend = np.zeros(5), np.zeros((5, 5))
    slope[mask] = ft.grad(few)(x[mask])
    bend[np.ix_(mask, mask)] = ft.hessian(few)(x[mask])
    for g in (f, ft.jit(f)):
        np.testing.assert_allclose(g(x), expected, rtol=1e-15)
        np.testing.assert_allclose(ft.grad(g)(x), slope, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(ft.jacfwd(g)(x), slope, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(ft.hessian(g)(x), bend, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(ft.jacrev(ft.grad(g))(x), bend, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_std_of_one_element_is_constant(wrap):
    for x, axis in (
        (np.array([1.5]), None),
        (np.ones((2, 1)), 1),
        (np.float32([[3.0]]), (0, 1)),
        (np.array([1j]), 0),
    ):
        for std in (fnp.std, fnp.nanstd):
            f = wrap(lambda x, std=std, axis=axis: fnp.sum(std(x, axis)))
            assert f(x) == 0
            np.testing.assert_array_equal(ft.grad(f)(x), np.zeros(x.shape))
    for std in (fnp.std, fnp.nanstd):  # the distance from a known mean is not constant
        f = wrap(lambda x, std=std: std(x, mean=np.ones(1)))
        np.testing.assert_array_equal(ft.grad(f)(np.array([3.0])), [1.0])
    assert np.isnan(wrap(lambda x: fnp.std(x, ddof=1))(np.ones(1)))
    np.testing.assert_allclose(ft.grad(wrap(fnp.std))(np.array([1.0, 2.0])), [-0.5, 0.5])
