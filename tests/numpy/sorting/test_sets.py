"""Sets against NumPy, with known numbers and with `size`."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from versions import has

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentValueError, ConcretizationTypeError

RANDOM = np.random.default_rng(2)
FLAGS = [
    (False, False, False),
    (True, False, False),
    (False, True, False),
    (False, False, True),
    (True, True, True),
]
FLOATS = st.sampled_from([0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf])
VALUES = arrays.arrays(
    np.float64, arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=6), elements=FLOATS
)
INTEGERS = arrays.arrays(np.int64, st.integers(0, 8), elements=st.integers(-3, 3))


def identical(got, expected):
    got = got if isinstance(got, tuple) else (got,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.dtype
        np.testing.assert_array_equal(np.asarray(g), e)


@settings(max_examples=50)
@given(VALUES, st.sampled_from(FLAGS), st.booleans())
def test_unique(x, flags, equal_nan):
    # The order of several NaN that are not equal is left open by NumPy.
    assume(equal_nan or not flags[1] or np.isnan(x).sum() < 2)
    identical(fnp.unique(x, *flags, equal_nan=equal_nan), np.unique(x, *flags, equal_nan=equal_nan))


@pytest.mark.parametrize(
    "x", [np.array(3.0), [[1, 1], [0, 1]], np.array([True, False, True]), np.array([1j, 0, 1j])]
)
def test_unique_of_other_kinds(same, x):
    for flags in FLAGS:
        same("unique", x, *flags)
    for name in ("unique_counts", "unique_inverse", "unique_all"):
        identical(tuple(getattr(fnp, name)(x)), tuple(getattr(np, name)(x)))
    identical(fnp.unique_values(x), np.sort(np.unique_values(x)))


def test_unique_along_an_axis(same):
    x = RANDOM.integers(0, 2, (5, 3, 2))
    for axis in (0, 1, -1):
        for flags in FLAGS:
            same("unique", x, *flags, axis=axis)
    same("unique", x, axis=3)
    same("unique", np.zeros((2, 0)), axis=0)
    same("unique", [3, 1, 3], axis=0)


@pytest.mark.slow
@settings(max_examples=6)
@given(VALUES, st.booleans())
def test_unique_of_a_size(x, equal_nan):
    values, indices, inverse, counts = np.unique(x, True, True, True, equal_nan=equal_nan)
    n = len(values)
    for size in {n, n + 2, max(n - 1, 0)}:
        f = ft.jit(lambda x: fnp.unique(x, True, True, True, equal_nan=equal_nan, size=size, fill_value=-9.0))  # noqa: B023
        got = f(x)
        pad = max(size - n, 0)
        np.testing.assert_array_equal(got[0], [*values[:size], *[-9.0] * pad])
        np.testing.assert_array_equal(got[1][:n], indices[:size])
        np.testing.assert_array_equal(got[2], inverse)
        np.testing.assert_array_equal(got[3], [*counts[:size], *[0] * pad])


def test_unique_fills_with_the_least():
    np.testing.assert_array_equal(fnp.unique([3, 1, 3], size=4), [1, 3, 1, 1])
    np.testing.assert_array_equal(fnp.unique(np.zeros(0), size=2), [0, 0])
    x = RANDOM.integers(0, 2, (6, 2))
    want = np.unique(x, axis=0)
    got = ft.jit(lambda x: fnp.unique(x, axis=0, size=len(want)))(x)
    np.testing.assert_array_equal(got, want)
    got = ft.vmap(lambda x: fnp.unique(x, size=2, fill_value=7))(x)
    np.testing.assert_array_equal(got, [[*np.unique(r), *[7] * (2 - len(np.unique(r)))] for r in x])


def test_derivative_of_unique_is_that_of_the_first():
    x = np.array([2.0, 1.0, 2.0])
    for f in (
        ft.grad(lambda x: (fnp.unique(x) ** 2).sum()),
        ft.jit(ft.grad(lambda x: (fnp.unique(x, size=2) ** 2).sum())),
    ):
        np.testing.assert_array_equal(f(x), [4, 2, 0])


TWO = ["union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"]


@settings(max_examples=60)
@given(st.sampled_from(TWO), st.sampled_from([VALUES, INTEGERS]), st.data())
def test_two_sets(name, kind, data):
    x, y = data.draw(kind), data.draw(kind)
    # Before NumPy 2.3, union1d has one NaN.
    assume(name != "union1d" or has("numpy>=2.3") or np.isnan([*x.flat, *y.flat]).sum() < 2)
    identical(getattr(fnp, name)(x, y), getattr(np, name)(x, y))
    if name == "intersect1d":
        identical(fnp.intersect1d(x, y, return_indices=True), np.intersect1d(x, y, return_indices=True))
    if name == "isin":
        identical(fnp.isin(x, y, invert=True), np.isin(x, y, invert=True))


@pytest.mark.slow
@settings(max_examples=6)
@given(st.sampled_from(TWO[:-1]), INTEGERS, INTEGERS)
def test_two_sets_of_a_size(name, x, y):
    want = getattr(np, name)(x, y)
    n = len(want)
    for size in {n + 1, max(n - 1, 0)}:
        f = ft.jit(lambda x, y: getattr(fnp, name)(x, y, size=size, fill_value=9))  # noqa: B023
        np.testing.assert_array_equal(f(x, y), [*want[:size], *[9] * (size - n)])
    if name == "intersect1d":
        f = ft.jit(lambda x, y: fnp.intersect1d(x, y, return_indices=True, size=n + 1))
        values, *at = np.intersect1d(x, y, return_indices=True)
        for got, a, beyond in zip(f(x, y)[1:], at, (len(x), len(y))):
            np.testing.assert_array_equal(got, [*a, beyond])
        if n:
            assert f(x, y)[0][n] == values[0]


def test_mixed_dtypes_and_options(same):
    for name in TWO:
        same(name, [1, 2, 3], [2.5, 3.0])
        same(name, np.float32([1, 2]), 2)
        same(name, [True, False], [1, 5])
    same("isin", [1.0, np.nan], [np.nan], kind="table")
    same("isin", [1, 2], [2], kind="table")
    with pytest.raises(ArgumentValueError, match="kind"):
        fnp.isin([1], [1], kind="hash")


@pytest.mark.needs("numpy>=2.1", reason="setxor1d of matrices")
@pytest.mark.parametrize("name", TWO[1:])
def test_matrices_of_different_numbers(same, name):
    same(name, [[1, 2], [3, 4]], [4, 1], assume_unique=True)


@pytest.mark.parametrize("name", TWO[:-1])
def test_unknown_numbers_want_a_size(name):
    x = np.array([1.0, 2.0])
    with pytest.raises(ConcretizationTypeError, match="size="):
        ft.jit(getattr(np, name))(x, x)
    with pytest.raises(ConcretizationTypeError, match="size="):
        ft.jit(lambda y: getattr(fnp, name)(x, y))(x)


def test_isin_is_compiled_and_mapped():
    x, y = RANDOM.integers(0, 5, (3, 4)), RANDOM.integers(0, 5, (3, 2))
    np.testing.assert_array_equal(ft.jit(np.isin)(x, y), np.isin(x, y))
    np.testing.assert_array_equal(ft.vmap(fnp.isin)(x, y), [np.isin(a, b) for a, b in zip(x, y)])


def test_results_are_named_like_numpys():
    assert fnp.unique_all([1])._fields == np.unique_all([1])._fields
    assert fnp.unique_counts([1])._fields == np.unique_counts([1])._fields
    assert fnp.unique_inverse([1])._fields == np.unique_inverse([1])._fields
