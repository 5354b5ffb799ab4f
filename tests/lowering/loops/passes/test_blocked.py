"""Long sums: their error does not grow with the number of elements, and infinities stay what they are."""

import math
import platform
from fractions import Fraction

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

EPS = np.finfo(float).eps
#: Rounding errors: narrower vectors add longer chains.
CHAINS = 24 if platform.machine() in ("x86_64", "AMD64") else 96
#: Sums of a matrix, each with the axes that it reduces.
SHAPES = [
    ((200_000,), None),
    ((40, 5000), 1),
    ((40_000, 5), None),
    ((3, 700, 100), (1, 2)),
    ((2, 30_000), (0, 1)),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_equal_numbers(shape, axis, strict):
    """The hardest case, since all roundings go the same way."""
    x = np.full(shape, 0.1)
    count = x.size // np.sum(x, axis).size
    exact = float(Fraction(0.1) * count)
    with ft.config.patch(strict=strict, without=()):  # without LLVM's passes there are no vectors at all
        for value, of in ((0.1, lambda x: x), (0.1 * (1 + 2j), lambda x: x * (1 + 2j))):
            actual = ft.jit(lambda x, of=of: fnp.sum(of(x), axis))(x)
            np.testing.assert_allclose(actual, exact * (value / 0.1), rtol=CHAINS * EPS)
        mean, square = ft.jit(lambda x: (fnp.mean(x, axis), fnp.sum(x * x, axis)))(x)
        np.testing.assert_allclose(mean, 0.1, rtol=CHAINS * EPS)
        np.testing.assert_allclose(square, float(Fraction(0.1 * 0.1) * count), rtol=CHAINS * EPS)
        np.testing.assert_allclose(ft.jit(lambda x: fnp.var(x, axis))(x), 0.0, atol=1e-30)


@pytest.mark.parametrize("n", [0, 1, 127, 128, 129, 1023, 1024, 1025, 2048, 5000])
@pytest.mark.parametrize("strict", [False, True])
def test_every_element_counts_once(n, strict):
    x = np.random.default_rng(n).integers(-1000, 1000, (3, n)).astype(float)
    with ft.config.patch(strict=strict):
        total, rows, shifted = ft.jit(lambda x: (fnp.sum(x), fnp.sum(x, 1), fnp.sum(x[:, ::-1] + 1.0)))(x)
    assert total == x.sum()
    assert shifted == x.sum() + x.size
    np.testing.assert_array_equal(rows, x.sum(1))


def test_random_numbers_of_many_magnitudes():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300_000) * 10.0 ** rng.uniform(-8, 8, 300_000)
    exact = math.fsum(x)
    error = abs(ft.jit(fnp.sum)(x) - exact)
    assert error <= 4 * EPS * np.abs(x).sum() / np.sqrt(1000)
    assert error <= 4 * abs(np.sum(x) - exact) + EPS * abs(exact)


@pytest.mark.parametrize(
    "special",
    [[np.inf], [-np.inf], [np.nan], [np.inf, -np.inf], [1.7e308, 1.7e308], [1e300, -1e300]],
    ids=str,
)
def test_infinite_sums(special):
    x = np.ones(10_000)
    x[5:9_000:8_000] = special[0]
    x[[17, 8_017][: len(special) - 1]] = special[1:]
    with np.errstate(all="ignore"):
        expected = np.sum(x)
        by_parts = np.sum(x * (1 + 1j))
    assert ft.jit(fnp.sum)(x) == pytest.approx(expected, rel=1e-12, nan_ok=True)
    np.testing.assert_allclose(ft.jit(lambda x: fnp.sum(x * (1 + 1j)))(x).real, by_parts.real, rtol=1e-12)


def test_derivatives_and_loops():
    """The sum of a gradient, and sums inside of a loop, which begin again in each iteration."""
    x = np.full(5000, 0.1)
    np.testing.assert_array_equal(ft.jit(ft.grad(fnp.sum))(x), np.ones(5000))
    f = lambda x: ft.lax.fori_loop(0, 3, lambda i, c: c + fnp.sum(x * (i + 1.0)), 0.0)
    assert ft.jit(f)(x) == pytest.approx(6 * 500.0, rel=1e-14)


def test_products_overflow_only_where_those_of_numpy_do():
    x = np.array([0.0] + [1e200] * 40)
    for y in (x, x[::-1], x[1:], 1 / x[1:]):
        with np.errstate(all="ignore"):
            expected = np.prod(y)
        np.testing.assert_array_equal(ft.jit(fnp.prod)(y), expected)


@pytest.mark.parametrize("n", [1000, 1024, 1025, 5000, 200_000])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_sums_of_equal_numbers(n, reverse):
    exact = [float(Fraction(0.1) * k) for k in range(1, n + 1)]
    actual = ft.jit(lambda x: ft.lax.cumsum(x, reverse=reverse))(np.full(n, 0.1))
    np.testing.assert_allclose(actual[:: -1 if reverse else 1], exact, rtol=2e-13 if n <= 1024 else 4e-14)
    rows = ft.jit(lambda x: fnp.cumsum(x * (1 - 1j), 1))(np.full((2, n), 0.1))
    np.testing.assert_allclose(rows[1], np.array(exact) * (1 - 1j), rtol=2e-13)
    single = ft.jit(fnp.cumsum)(np.full(n, np.float32(0.1)))
    np.testing.assert_allclose(single, np.arange(1, n + 1) * float(np.float32(0.1)), rtol=4e-5)


def test_cumulative_sums_in_order_are_numpys_to_the_last_bit():
    x = np.random.default_rng(0).normal(size=5000)
    with ft.config.patch(strict=True):
        np.testing.assert_array_equal(ft.jit(fnp.cumsum)(x), np.cumsum(x))


@pytest.mark.parametrize("special", [[np.inf], [np.inf, -np.inf], [np.nan]], ids=str)
def test_infinite_cumulative_sums(special):
    x = np.ones(5000)
    x[[1500, 3500][: len(special)]] = special
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ft.jit(fnp.cumsum)(x), np.cumsum(x))
    np.testing.assert_array_equal(ft.jit(ft.grad(lambda x: fnp.cumsum(x)[-1]))(x), np.ones(5000))
