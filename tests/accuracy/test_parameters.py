"""Derivatives of incomplete gamma and beta functions in their parameters, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.scipy.special import betainc, betaincc

DIGITS = 110
#: Shapes near which other formulas take over, and arguments on both sides of the mode and far out.
EDGES = [
    (1e-3, 1e-3), (1e-3, 1.49), (1e-3, 1.51), (1e-3, 1e4), (0.3, 1.5), (1.7, 1.5), (2.1, 1.51), (9.99, 30.0),
    (10.01, 0.01), (30.2, 0.003), (2000.0, 1.2), (1e4, 1e4), (1e4, 9e3), (1e4, 1.1e4), (1e4, 1.0),
]  # fmt: skip


def reference(a, x):
    """First and second derivative in `a` by differences with many digits, and the density."""
    with mp.workdps(DIGITS):
        a, x = mp.mpf(a), mp.mpf(x)
        h = a * mp.mpf(10) ** -25
        if x < a + 1:
            values = [mp.gammainc(t, 0, x, regularized=True) for t in (a - h, a, a + h)]
        else:
            values = [-mp.gammainc(t, x, mp.inf, regularized=True) for t in (a - h, a, a + h)]
        below, here, above = values
        density = mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))
        return (above - below) / (2 * h), (above - 2 * here + below) / h**2, density


def check(points):
    a, x = map(np.array, zip(*points))
    first = np.asarray(ft.jit(lax.igamma_grad_a)(a, x))
    sample = np.asarray(ft.jit(lax.random_gamma_grad)(a, x))
    second = ft.jit(ft.grad(lambda a: lax.igamma_grad_a(a, x).sum()))(a)
    for point, *values in zip(points, first, sample, second):
        slope, bend, density = reference(*point)
        spread = abs(mp.log(density)) + abs(point[0] - point[1])  # how much an ulp changes the density
        if density > 1e-290:
            assert abs(values[0] / slope - 1) < 4e-14 + 4e-16 * spread, point
            size = max(abs(bend), abs(slope) * (1 / mp.mpf(point[0]) if point[0] < 1 else 1))
            assert abs(values[2] - bend) / size < 1e-12 + 4e-16 * spread, point
        assert abs(values[1] * density / slope + 1) < 6e-14, point


def test_derivatives_in_the_shape():
    check(EDGES)


@pytest.mark.slow
def test_derivatives_in_the_shape_over_wide_ranges():
    rng = np.random.default_rng(3)
    a = 10 ** rng.uniform(-3, 4, 400)
    near = a * np.exp(rng.normal(size=400) * np.minimum(1, 2 / np.sqrt(a)))
    check([(s, x) for s, x in zip(a, np.where(rng.random(400) < 0.5, near, 10 ** rng.uniform(-3, 4, 400)))])


def test_derivatives_in_the_shape_at_edges():
    slope = ft.grad(lax.igamma)
    assert [float(slope(*p)) for p in [(1.5, 0.0), (1.5, np.inf), (np.inf, 1.5)]] == [0, 0, 0]
    assert float(slope(0.0, 1.5)) == pytest.approx(-float(mp.e1(1.5)), rel=1e-14)
    assert np.isnan([slope(np.nan, 1.0), slope(1.0, np.nan), slope(-1.0, 1.0)]).all()
    single = lax.random_gamma_grad(np.float32(2.5), np.float32(3.0))
    assert single.dtype == np.float32
    assert single == pytest.approx(float(lax.random_gamma_grad(2.5, 3.0)), rel=1e-6)


# --- incomplete beta function --------------------------------------------------------------------------------

#: Both tails, narrow and wide distributions, shapes below 1 where the integrand has long tails.
BETA_EDGES = [
    (2.0, 3.0, 0.4), (0.5, 0.5, 0.5), (1.0, 1.0, 0.999), (1e-3, 2.0, 1e-4), (2.0, 1e-3, 0.9), (0.01, 0.02, 0.3),
    (5.0, 1e3, 0.004), (1e3, 5.0, 0.996), (2e3, 1e3, 0.66), (2e3, 1e3, 0.75), (2e3, 1e3, 0.5), (0.1, 50.0, 0.2),
    (1.5, 0.3, 0.98), (30.0, 40.0, 1e-3),
]  # fmt: skip


def beta_reference(a, b, x):
    """Derivatives in `a` and `b` by differences with many digits, and the density."""
    with mp.workdps(80):
        a, b, x = map(mp.mpf, (a, b, x))

        left = x * (a + b) < a

        def f(a, b):
            if left:
                return mp.betainc(a, b, 0, x, regularized=True)
            return -mp.betainc(b, a, 0, 1 - x, regularized=True)

        h = mp.mpf(10) ** -20
        in_a = (f(a * (1 + h), b) - f(a * (1 - h), b)) / (2 * h * a)
        in_b = (f(a, b * (1 + h)) - f(a, b * (1 - h))) / (2 * h * b)
        return in_a, in_b, x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)


def check_beta(points, rtol):
    a, b, x = map(np.array, zip(*points))
    total = lambda a, b, x: betainc(a, b, x).sum()
    found = ft.jit(ft.grad(total, (0, 1, 2)))(a, b, x)
    for point, *values in zip(points, *map(np.asarray, found)):
        reference = beta_reference(*point)
        spread = (
            1 + abs(mp.log(reference[2])) + abs(point[0] - (point[0] + point[1]) * point[2]) / (1 - point[2])
        )
        for value, exact in zip(values, reference):
            assert abs(value - exact) < (rtol + 4e-16 * spread) * abs(exact) + 1e-300, (point, value, exact)


def test_derivatives_of_the_beta_function():
    check_beta(BETA_EDGES, 1e-13)
    assert ft.grad(betaincc, (0, 1))(2.0, 3.0, 0.4) == pytest.approx(
        tuple([-float(v) for v in beta_reference(2.0, 3.0, 0.4)[:2]]), rel=1e-14
    )


@pytest.mark.slow
def test_derivatives_of_the_beta_function_over_wide_ranges():
    rng = np.random.default_rng(7)
    points = []
    for a, b in 10 ** rng.uniform(-1.5, 3.3, (200, 2)):
        mean = a / (a + b)
        near = mean + 2 * np.sqrt(mean * (1 - mean) / (a + b + 1)) * rng.normal()
        x = rng.choice([rng.uniform(), near, 10 ** rng.uniform(-4, 0), 1 - 10 ** rng.uniform(-4, 0)])
        if 1e-5 < x < 1 - 1e-5:
            points.append((a, b, x))
    check_beta(points, 1e-12)
