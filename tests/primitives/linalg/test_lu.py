"""LU factors of matrices of two rows, which are written out."""

import platform

import numpy as np
import pytest
from scipy.linalg.lapack import get_lapack_funcs

import functrans as ft
import functrans.numpy as fnp
from functrans.primitives.linalg import lu


def matrices_of_two_rows(dtype):
    """Singular to the last bit or nearly so; of any size; with zeros, infinities and NaN."""
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    low, high = np.log10(info.smallest_subnormal), np.log10(info.max)
    sizes = 10.0 ** rng.integers(int(low), int(high), (2000, 2, 2))
    special = [0.0, -0.0, 1.0, -1.0, 2.0, np.inf, np.nan]
    rows, columns = rng.integers(1, 50, (2, 2000, 2))
    parts = [rows[..., None] * columns[:, None], rng.normal(size=(2000, 2, 2)) * sizes]
    return np.concatenate([*parts, rng.choice(special, (2000, 2, 2))]).astype(dtype)


#: Elsewhere LAPACK may round a product and a difference once, and so has other last digits.
like_lapack = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="LAPACK rounds otherwise"
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_rows_are_the_product_of_their_factors(dtype):
    a = matrices_of_two_rows(dtype)
    usual = (a == 0) | ((np.abs(a) > 1e-9) & (np.abs(a) < 1e9))
    a = a[usual.all((1, 2)) & (np.abs(a[:, 0, 0]) != np.abs(a[:, 1, 0]))].astype(float)
    found, pivots, _ = ft.jit(lambda x: lu.lu_p.bind(x))(a.astype(dtype))
    swapped = np.abs(a[:, 1, 0]) > np.abs(a[:, 0, 0])
    np.testing.assert_array_equal(pivots, np.stack([swapped, np.ones_like(swapped)], 1))
    rows = np.where(swapped[:, None, None], a[:, ::-1], a)
    u, factor = np.asarray(found, float), np.asarray(found, float)[:, 1, 0]
    np.testing.assert_array_equal(u[:, 0], rows[:, 0])
    again = np.stack([factor * u[:, 0, 0], factor * u[:, 0, 1] + u[:, 1, 1]], 1)
    bound = (
        4
        * np.finfo(dtype).eps
        * np.stack([np.abs(rows[:, 1, 0]), np.abs(factor * u[:, 0, 1]) + np.abs(rows[:, 1, 1])], 1)
    )
    assert np.all(np.abs(again - rows[:, 1]) <= bound)


@like_lapack
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_of_two_rows_are_lapacks(dtype):
    getrf = get_lapack_funcs("getrf", dtype=dtype)
    a = matrices_of_two_rows(dtype)
    with np.errstate(all="ignore"):
        expected = [getrf(x)[:2] for x in a]
    found, pivots, _ = ft.jit(lambda x: lu.lu_p.bind(x))(a)
    for got, want in ((found, [x for x, _ in expected]), (pivots, [p for _, p in expected])):
        np.testing.assert_array_equal(got, np.array(want))
    numbers = ~np.isnan(found)
    np.testing.assert_array_equal(
        np.signbit(np.asarray(found))[numbers], np.signbit([x for x, _ in expected])[numbers]
    )


@like_lapack
def test_slogdet_of_two_rows_is_singular_where_numpys_is():
    a = matrices_of_two_rows(np.float64)[:4000]
    with np.errstate(all="ignore"):
        expected = np.linalg.slogdet(a)
    sign, size = ft.jit(fnp.linalg.slogdet)(a)
    assert 100 < np.sum(expected.sign == 0) < 3900
    np.testing.assert_array_equal(sign, expected.sign)
    np.testing.assert_allclose(size, expected.logabsdet, rtol=1e-14, atol=1e-14)
