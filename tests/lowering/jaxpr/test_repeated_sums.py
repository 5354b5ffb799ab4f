"""Sums of equal elements are products, with the values, signs of zero, infinities and overflows of sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.jaxpr.simplify import simplify

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5])


def summed_sizes(f, *args):
    """How many elements each sum of the simplified program reads."""
    jaxpr = simplify(ft.jit(f).lower(*args).jaxpr)
    return [e.invars[0].aval.size for e in jaxpr.eqns if e.primitive.name == "reduce_sum"]


@st.composite
def repeated(draw):
    """An array, how it is repeated, and the axes of a sum."""
    dtype = draw(st.sampled_from([np.float64, np.float32, np.int8, np.uint8, np.int64, np.complex128]))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    floats, integers = st.sampled_from([*SPECIAL.tolist(), 2.0, -3.0]), st.integers(0, 100)
    elements = floats if dtype in (np.float64, np.float32) else integers
    x = draw(hnp.arrays(dtype, shape, elements=elements))
    how = draw(st.sampled_from(["tile", "repeat", "broadcast", "transposed", "last"]))
    n = draw(st.integers(1, 12))
    axis = draw(st.integers(0, max(x.ndim - 1, 0)))

    def spread(m, x):
        if how == "tile":
            return m.tile(x, (n, 2))
        if how == "repeat":
            return m.repeat(x, n, axis=min(axis, x.ndim - 1)) if x.ndim else m.repeat(x, n)
        if how == "broadcast":
            return m.broadcast_to(x, (n, *x.shape)).reshape(-1, 1)
        if how == "transposed":
            return m.broadcast_to(x.T, (n, *x.shape[::-1])).T
        return m.broadcast_to(x[..., None], (*x.shape, n))

    result = np.asarray(spread(np, x))
    axes = draw(st.sets(st.integers(0, result.ndim - 1)))
    return x, spread, tuple(sorted(axes))


@given(repeated())
@settings(max_examples=150, deadline=None)
def test_sums_of_repeated_elements_are_numpys(case):
    x, spread, axes = case

    def total(m, x):
        y = spread(m, x)
        return m.sum(y * y - y, axis=axes, dtype=x.dtype), y

    with np.errstate(all="ignore"):
        expected, copies = total(np, x)
    result, other = ft.jit(lambda x: total(fnp, x))(x)
    np.testing.assert_allclose(result, expected, rtol=1e-5 if x.dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(other, copies)
    if x.dtype.kind == "f":
        zero = np.asarray(expected) == 0
        np.testing.assert_array_equal(np.signbit(result)[zero], np.signbit(expected)[zero])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("x", SPECIAL, ids=str)
def test_special_values(x, dtype):
    x = np.full((2, 3), x, dtype)
    result = ft.jit(lambda x: fnp.broadcast_to(x[:, None], (2, 4, 3)).sum(1))(x)
    with np.errstate(invalid="ignore"):
        expected = np.broadcast_to(x[:, None], (2, 4, 3)).sum(1)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


@pytest.mark.parametrize(
    "spread",
    [
        lambda x: fnp.tile(x, (2, 3)),
        lambda x: fnp.repeat(x, 3, axis=0),
        lambda x: fnp.repeat(x, 3, axis=1),
        lambda x: fnp.repeat(fnp.tile(x, (3, 1)), 2, axis=1),
        lambda x: fnp.broadcast_to(x.T[:, None], (5, 2, 4)),
    ],
    ids=["tile", "repeat rows", "repeat columns", "both", "transposed"],
)
def test_gradients_add_nothing(spread):
    x = np.random.default_rng(0).normal(size=(4, 5))
    gradient = ft.grad(lambda x: fnp.sum(fnp.sin(spread(x)) ** 2))
    assert summed_sizes(gradient, x) == []
    with ft.config.patch(without={"repeated_sums"}):
        expected = ft.jit(gradient)(x)
        assert summed_sizes(gradient, x) != []
    np.testing.assert_allclose(ft.jit(gradient)(x), expected, rtol=1e-13)


def test_the_sum_of_all_reads_each_element_once():
    x = np.random.default_rng(0).normal(size=(4, 5))
    f = lambda x: fnp.sum(fnp.tile(x, (9, 1)) ** 2)
    assert summed_sizes(f, x) == [20]
    np.testing.assert_allclose(ft.jit(f)(x), 9 * np.sum(x**2), rtol=1e-14)


def test_elements_that_are_needed_otherwise_are_not_computed_again_for_few_copies():
    x = np.random.default_rng(0).normal(size=(4, 5))

    def f(x, n):
        y = fnp.exp(fnp.broadcast_to(x[:, None], (4, n, 5)))
        return y, y.sum(1)

    assert summed_sizes(lambda x: f(x, 2), x) == [40]
    assert summed_sizes(lambda x: f(x, 50), x) == []


def test_sums_of_more_copies_than_the_dtype_counts_stay():
    x, n = np.ones(1, np.float32), (1 << 24) + 1
    assert summed_sizes(lambda x: fnp.broadcast_to(x, (n,)).sum(), x) == [n]
    assert summed_sizes(lambda x: fnp.broadcast_to(x, (n - 1,)).sum(), x) == []
    zeros = np.zeros(3, np.float16)  # 70,000 is no float16
    assert ft.jit(lambda x: fnp.broadcast_to(x, (70_000, 3)).sum(0))(zeros).tolist() == [0, 0, 0]


def test_small_integers_overflow_as_sums_do():
    x = np.array([100, 7], np.uint8)
    result = ft.jit(lambda x: fnp.broadcast_to(x, (300, 2)).sum(0, dtype=np.uint8))(x)
    np.testing.assert_array_equal(result, np.broadcast_to(x, (300, 2)).sum(0, dtype=np.uint8))


def test_long_chains_are_not_followed():
    def f(x):
        y = fnp.broadcast_to(x, (9, 3))
        for _ in range(1500):
            y = y * 1.01
        return y.sum(0)

    np.testing.assert_allclose(ft.jit(f)(np.ones(3)), 9 * 1.01**1500 * np.ones(3))
