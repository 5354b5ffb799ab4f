"""Medians and quantiles against NumPy: all methods, dtypes, odd inputs; derivatives."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentValueError, DtypeError
from functrans.testing import check

RANDOM = np.random.default_rng(11)
METHODS = [
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
]  # fmt: skip
HOLES = np.where(RANDOM.uniform(size=(4, 5)) < 0.3, np.nan, RANDOM.normal(size=(4, 5)))
ARRAYS = [
    RANDOM.normal(size=7),
    RANDOM.normal(size=(3, 4)),
    RANDOM.normal(size=(3, 4)).astype(np.float32),
    RANDOM.integers(-9, 9, (2, 5)),
    RANDOM.integers(0, 9, 6).astype(np.uint8),
    HOLES,
    np.array([[1.0, np.nan], [np.nan, np.nan]]),
    np.array([1.0, np.inf, -np.inf]),
    np.array(3.0),
    np.array([2.0]),
    RANDOM.normal(size=(4, 6))[::-2, ::3],
]
FRACTIONS = [0.3, np.float32(0.3), np.array([0.0, 0.25, 1.0]), [[0.1, 0.5]], np.array([0, 1])]


@pytest.mark.parametrize("x", ARRAYS, ids=lambda x: f"{x.dtype}{x.shape}")
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_every_method(same, name, x):
    for method, q in itertools.product(METHODS, FRACTIONS):
        same(name, x, q, method=method)
    for axis in (0, -1, (0, 1)):
        same(name, x, [0.2, 0.9], axis=axis, method="hazen")
        same(name, x, 0.4, axis=axis, keepdims=True)


@pytest.mark.needs("numpy>=2.4", reason="dtypes for integers, and values beside infinities, for q=0 and q=1")
@pytest.mark.parametrize("x", ARRAYS, ids=lambda x: f"{x.dtype}{x.shape}")
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_every_method_at_the_ends(same, name, x):
    for method, q in itertools.product(METHODS, [0, 1]):
        same(name, x, q, method=method)


@pytest.mark.parametrize("x", ARRAYS, ids=lambda x: f"{x.dtype}{x.shape}")
def test_medians_and_percentiles(same, x):
    for name in ("median", "nanmedian"):
        for axis, keepdims in itertools.product((None, 0, 1, (0, 1)), (False, True)):
            same(name, x, axis=axis, keepdims=keepdims)
    for name in ("percentile", "nanpercentile"):
        same(name, x, 30)
        same(name, x, [0, 12.5, 100], axis=0)


def test_odd_inputs(same):
    same("median", np.array([1 + 1j, 2 - 1j, 0j]))
    same("median", np.array([True, False, True, True]))
    same("median", [])
    same("median", np.zeros((0, 3)), axis=0)
    same("median", np.zeros((0, 3)), axis=1)
    for name in ("quantile", "nanquantile"):
        same(name, np.array([1 + 1j]), 0.5)
        same(name, [1.0], 1.5)
        same(name, [1.0], -0.5)
        same(name, [1.0, 2.0], 0.5, method="best")
        same(name, [1.0, 2.0], np.zeros((1, 1, 1)))
        same(name, [True, False], 0.5)
        same(name, [True, False], 0.5, method="lower")
        same(name, np.zeros((2, 3)), 0.5, axis=2)
        same(name, np.zeros((2, 3)), np.array([]))
    same("quantile", [], 0.5)
    same("percentile", [1.0, 2.0], 101)
    assert fnp.quantile(np.int8([-128, 127]), 0.5) == -0.5  # NumPy's difference of the two wraps


def test_weights(same):
    x, w = RANDOM.normal(size=(3, 4)), RANDOM.uniform(size=(3, 4))
    w[:2, 0] = 0
    inverted = {"method": "inverted_cdf"}
    for name, a in itertools.product(("quantile", "nanquantile"), (x, RANDOM.integers(0, 4, (3, 4)))):
        same(name, a, [0.0, 0.3, 1.0], weights=w, **inverted)
        same(name, a, 0.3, axis=0, weights=w, **inverted)
        same(name, a, [0.3, 0.5], axis=1, weights=w, keepdims=True, **inverted)
    same("quantile", x, 0.3, axis=1, weights=w[0], **inverted)
    same("percentile", x, 30, weights=w, **inverted)
    same("nanquantile", np.where(x > 1, np.nan, x), 0.3, axis=1, weights=w, **inverted)
    same("quantile", x, 0.3, weights=w)
    same("quantile", x, 0.3, weights=-w, **inverted)
    same("quantile", x, 0.3, weights=w[0], **inverted)
    same("quantile", x, 0.3, axis=0, weights=w[0], **inverted)
    f = ft.jit(lambda x, w: fnp.quantile(x, 0.3, axis=1, weights=w, method="inverted_cdf"))
    np.testing.assert_array_equal(f(x, w), np.quantile(x, 0.3, axis=1, weights=w, **inverted))


@pytest.mark.needs("numpy>=2.4", reason="weights that are all zero")
def test_weights_of_zero(same):
    x = RANDOM.normal(size=(3, 4))
    same("quantile", x, 0.3, axis=0, weights=0 * x, method="inverted_cdf")


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_of_every_method(method):
    x = RANDOM.permutation(10).reshape(2, 5) * 0.3 + RANDOM.uniform(0, 0.1, (2, 5))
    check(lambda x: fnp.quantile(x, np.array([0.21, 0.73]), axis=1, method=method) ** 2, x, order=1)


def test_derivatives():
    x = RANDOM.permutation(12).reshape(3, 4) * 0.3
    check(lambda x: fnp.median(x, axis=0) ** 3, x)
    check(lambda x, q: fnp.quantile(x, q) ** 2, x, np.array(0.43))
    holes = np.arange(12).reshape(3, 4) % 5 == 0
    check(lambda x: fnp.nanquantile(fnp.where(holes, np.nan, x), 0.37, axis=0) ** 2, x)
    check(lambda x: fnp.nanmedian(fnp.where(holes, np.nan, x), axis=1) ** 2, x)
    np.testing.assert_array_equal(ft.grad(fnp.median)(np.array([3.0, 1.0, 2.0, 9.0])), [0.5, 0, 0.5, 0])
    weights = np.array([1.0, 1.0, 5.0])
    g = ft.grad(lambda x: fnp.quantile(x, 0.5, weights=weights, method="inverted_cdf"))
    np.testing.assert_array_equal(g(np.array([3.0, 1.0, 2.0])), [0, 0, 1])


def test_compiled_mapped_and_by_numpys_name():
    for f in (
        np.median,
        lambda x: np.quantile(x, [0.1, 0.6]),
        lambda x: np.nanpercentile(x, 20, axis=0),
        np.nanmedian,
    ):
        for x in (RANDOM.normal(size=(3, 4)), HOLES):
            np.testing.assert_allclose(ft.jit(f)(x), f(x), rtol=1e-14)
            stack = np.stack([x, x[::-1] * 2])
            np.testing.assert_allclose(ft.vmap(f)(stack), [f(y) for y in stack], rtol=1e-14)
    q = np.array([0.2, 0.8])
    np.testing.assert_allclose(
        ft.jit(ft.vmap(lambda q: fnp.quantile(HOLES[0], q)))(q), [np.quantile(HOLES[0], p) for p in q]
    )


def test_errors_name_what_was_met():
    with pytest.raises(ArgumentValueError, match=r"quantile: method must be one of .*'best'"):
        fnp.quantile([1.0], 0.5, method="best")
    with pytest.raises(ArgumentValueError, match=r"percentile: q must be in the range \[0, 100\]"):
        fnp.percentile([1.0], 101)
    with pytest.raises(DtypeError, match="complex"):
        fnp.quantile([1j], 0.5)


@pytest.mark.parametrize(
    ("name", "q"), [("percentile", 101), ("percentile", [5, -1]), ("quantile", 1.5), ("nanpercentile", -1)]
)
def test_range_of_q_is_checked_while_tracing(name, q):
    with pytest.raises(ArgumentValueError, match=f"{name}: q must be in the range"):
        ft.jit(lambda x: getattr(np, name)(x, q))(np.arange(4.0))
