"""LU factors of matrices of two rows, which are written out."""

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


def test_slogdet_of_two_rows_is_singular_where_numpys_is():
    a = matrices_of_two_rows(np.float64)[:4000]
    with np.errstate(all="ignore"):
        expected = np.linalg.slogdet(a)
    sign, size = ft.jit(fnp.linalg.slogdet)(a)
    assert 100 < np.sum(expected.sign == 0) < 3900
    np.testing.assert_array_equal(sign, expected.sign)
    np.testing.assert_allclose(size, expected.logabsdet, rtol=1e-14, atol=1e-14)
