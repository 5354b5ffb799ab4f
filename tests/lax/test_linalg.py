"""functrans.lax.linalg against LAPACK through NumPy and SciPy."""

import numpy as np
import pytest
import scipy.linalg

import functrans as ft
from functrans import lax
from functrans.testing import check

RNG = np.random.default_rng(0)
A = RNG.standard_normal((4, 4))
C = A + 1j * RNG.standard_normal((4, 4))
TALL, WIDE = A[:, :3], A[1:3] + 2 * np.eye(2, 4)
RUNS = [lambda f: f, ft.jit]
MATRICES = [
    A,
    C,
    TALL,
    WIDE,
    A.astype(np.float32),
    np.zeros((0, 0)),
    np.zeros((2, 0)),
    np.stack([A, A[::-1]]),
]


@pytest.mark.parametrize("run", RUNS)
def test_lu(run):
    for x in MATRICES:
        lu, pivots, permutation = run(lax.linalg.lu)(x)
        assert (pivots.dtype, permutation.dtype, lu.dtype) == (np.int32, np.int32, x.dtype)
        *batch, m, n = x.shape
        assert (pivots.shape, permutation.shape) == ((*batch, min(m, n)), (*batch, m))
        tolerance = 1e-5 if x.dtype == np.float32 else 1e-13
        for place in np.ndindex(*batch):
            if x.size:
                expected, swaps = scipy.linalg.lu_factor(x[place])
                np.testing.assert_allclose(lu[place], expected, rtol=tolerance, atol=tolerance)
                np.testing.assert_array_equal(pivots[place], swaps)
            k = min(m, n)
            lower, upper = np.tril(lu[place], -1)[:, :k] + np.eye(m, k), np.triu(lu[place])[:k]
            np.testing.assert_allclose(
                lower @ upper, x[place][permutation[place]], rtol=tolerance, atol=tolerance
            )
        again = run(lambda p, size=m: lax.linalg.lu_pivots_to_permutation(p, size))(pivots)
        np.testing.assert_array_equal(again, permutation)
    with pytest.raises(np.linalg.LinAlgError):
        lax.linalg.lu(np.ones(3))
    with pytest.raises(ValueError, match="at most 2 integers"):
        lax.linalg.lu_pivots_to_permutation(np.arange(3), 2)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("full", [True, False])
def test_qr(run, full):
    for x in MATRICES:
        q, r = run(lambda x: lax.linalg.qr(x, full_matrices=full))(x)
        expected = np.linalg.qr(x, "complete" if full else "reduced")
        for got, e in zip((q, r), expected):
            np.testing.assert_allclose(got, e, rtol=1e-5, atol=1e-5 if x.dtype == np.float32 else 1e-12)
    for x in (A, C, TALL, WIDE):
        q, r, order = run(lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=full))(x)
        expected = scipy.linalg.qr(x, mode="full" if full else "economic", pivoting=True)
        for got, e in zip((q, r, order), expected):
            np.testing.assert_allclose(got, e, atol=1e-12)


@pytest.mark.parametrize("run", RUNS)
def test_householder_product(run):
    for x in (A, C, TALL, TALL.astype(np.float32)):
        h, taus = np.linalg.qr(x, "raw")
        got = run(lax.linalg.householder_product)(h.T, taus)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got, np.linalg.qr(x).Q, atol=1e-5 if x.dtype == np.float32 else 1e-12)
        fewer = run(lax.linalg.householder_product)(h.T, taus[:1])
        v = np.append(1, h.T[1:, 0])[:, None]
        reflection = np.eye(4) - taus[0] * (v @ v.conj().T)
        np.testing.assert_allclose(fewer, reflection[:, : x.shape[1]], atol=1e-5)
    with pytest.raises(np.linalg.LinAlgError, match="k <= n <= m"):
        lax.linalg.householder_product(WIDE, np.ones(2))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("x", [A, C])
def test_cholesky_update(run, x):
    definite = x @ x.conj().T + np.eye(4)
    w = x[0] + 1
    factor = np.linalg.cholesky(definite).conj().T
    got = run(lax.linalg.cholesky_update)(factor, w)
    expected = np.linalg.cholesky(definite + np.outer(w, w.conj())).conj().T
    np.testing.assert_allclose(got, expected, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        lax.linalg.cholesky_update(factor, w[:2])


@pytest.mark.wide(3)
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: lax.linalg.lu(x)[0], (A,)),
        (lambda x: lax.linalg.lu(x)[0], (C[:, :2],)),
        (lambda x: lax.linalg.qr(x, full_matrices=False), (TALL,)),
        (lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=False)[:2], (TALL,)),
        (lax.linalg.householder_product, (0.5 * TALL, np.array([1.1, 0.9, 0.4]))),
        (lambda r, w: lax.linalg.cholesky_update(r + 3 * np.eye(4), w), (A, A[0])),
    ],
    ids=["lu", "lu, tall", "qr", "qr, pivoted", "householder_product", "cholesky_update"],
)
def test_transformations(f, args):
    check(f, *args)
