"""Special functions of our own, in vectors, far out and at their ends."""

import numpy as np
import pytest
from scipy import special

import functrans as ft
import functrans.scipy.special as fsp

INF = np.inf


def test_quantiles_of_small_probabilities_have_all_digits():
    p = 10.0 ** -np.linspace(0.3, 323.3, 1001)
    np.testing.assert_allclose(ft.jit(fsp.ndtri)(p), special.ndtri(p), rtol=2e-15)
    below = 1 - 2.0 ** -np.arange(1.0, 54.0)
    np.testing.assert_allclose(ft.jit(fsp.ndtri)(below), special.ndtri(below), rtol=2e-15)
    np.testing.assert_allclose(ft.jit(fsp.erfinv)(-below), -special.erfinv(below), rtol=2e-15)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("ndtri", [0, 1, -0.1, 1.1, np.nan, 0.5], [-INF, INF, np.nan, np.nan, np.nan, 0]),
        ("erfinv", [-1, 1, -1.1, 1.1, np.nan, 0], [-INF, INF, np.nan, np.nan, np.nan, 0]),
        ("i0", [0, 720, -720, np.nan], [1, INF, INF, np.nan]),
        ("i1", [0, 720, -720, np.nan], [0, INF, -INF, np.nan]),
        ("i0e", [0, INF, -INF, np.nan], [1, 0, 0, np.nan]),
        ("i1e", [0, INF, -INF, np.nan], [0, 0, 0, np.nan]),
    ],
)
def test_ends(name, x, expected):
    np.testing.assert_array_equal(ft.jit(getattr(fsp, name))(np.array(x, float)), expected)


@pytest.mark.parametrize("order", [0, 1])
def test_bessel_functions_where_the_series_meets_the_polynomial_and_before_they_overflow(order):
    x = np.concatenate([np.linspace(7.9, 8.1, 201), np.linspace(-709.0, 709.0, 101)])
    scaled = ft.jit(getattr(fsp, f"i{order}e"))(x)
    np.testing.assert_allclose(scaled, special.ive(order, x), rtol=2e-15, atol=1e-300)
    # DLMF 10.25.2, of which SciPy's function of any order is another implementation.
    plain = ft.jit(getattr(fsp, f"i{order}"))(x)
    np.testing.assert_allclose(plain, special.iv(order, x), rtol=4e-13, atol=1e-300)
