"""Schur, Hessenberg and tridiagonal forms, functions of matrices, matrices of a structure: batches, laws, errors."""

import numpy as np
import pytest
import scipy.linalg

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ArgumentValueError, LinAlgError, NoRuleError, ShapeError
from functrans.scipy import linalg
from functrans.testing import gradcheck

RANDOM = np.random.default_rng(11)
A = RANDOM.normal(size=(2, 4, 4))
C = A + 1j * RANDOM.normal(size=A.shape)


@pytest.mark.parametrize("a", [A, C, A.astype(np.float32)], ids=["real", "complex", "single"])
def test_forms_of_batches(a):
    close = {"rtol": 0, "atol": 1e-12 if a.dtype != np.float32 else 2e-5}
    for t, z in (linalg.schur(a), linalg.rsf2csf(*linalg.schur(a)), linalg.schur(a, "complex")):
        np.testing.assert_allclose(z @ t @ z.conj().swapaxes(-1, -2), a, **close)
    assert np.tril(t, -1).any() == np.False_
    h, q = ft.jit(lambda x: linalg.hessenberg(x, calc_q=True))(a)
    np.testing.assert_allclose(q @ h @ q.conj().swapaxes(-1, -2), a, **close)
    assert not np.tril(h, -2).any()
    mapped = ft.vmap(linalg.hessenberg)(a)
    np.testing.assert_array_equal(mapped, h)


def test_sorted_schur_form():
    t, z, count = linalg.schur(A[0], sort="lhp")
    w = np.linalg.eigvals(A[0])
    assert count == (w.real < 0).sum()
    np.testing.assert_allclose(z @ t @ z.T, A[0], atol=1e-12)


def test_tridiagonal_form_has_the_eigenvalues():
    s = A @ A.swapaxes(-1, -2)
    for lower in (True, False):
        _, d, e, _ = lax.linalg.tridiagonal(s, lower=lower)
        np.testing.assert_allclose(linalg.eigvalsh_tridiagonal(d, e), np.linalg.eigvalsh(s), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_tridiagonal_systems(dtype):
    """Small diagonals: rows are exchanged."""
    dl, d, du = (RANDOM.normal(size=(3, 2, 7)) * [[[1.0]], [[1e-3]], [[1.0]]]).astype(dtype)
    b = RANDOM.normal(size=(2, 7, 3)).astype(dtype)
    x = ft.jit(lax.linalg.tridiagonal_solve)(dl, d, du, b)
    np.testing.assert_allclose(
        x, lax.linalg.tridiagonal_solve(dl, d, du, b), rtol=2e-3 if dtype is np.float32 else 1e-9
    )
    matrix = np.stack(
        [np.diag(m) + np.diag(lo[1:], -1) + np.diag(up[:-1], 1) for lo, m, up in zip(dl, d, du)]
    )
    np.testing.assert_allclose(matrix @ x, b, atol=2e-3 if dtype is np.float32 else 1e-10)


def test_singular_tridiagonal_systems():
    ones, zeros, b = np.ones(3), np.zeros(3), np.ones((3, 1))
    for f in (lax.linalg.tridiagonal_solve, ft.jit(lax.linalg.tridiagonal_solve)):
        assert not np.isfinite(f(ones, zeros, ones, b)).any()
    assert np.isfinite(
        lax.linalg.tridiagonal_solve(zeros, np.array([1.0, 0, 1]), zeros, b, perturb_singular=True)
    ).all()
    assert lax.linalg.tridiagonal_solve(ones[:1], 2 * ones[:1], ones[:1], b[:1]) == 0.5


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_only_singular_tridiagonal_systems_are_perturbed(wrap, dtype):
    solve = wrap(lambda *a: lax.linalg.tridiagonal_solve(*a, perturb_singular=True))
    lower, main, upper = (RANDOM.normal(size=(2, 6)).astype(dtype) + shift for shift in (0, 3, 0))
    b = RANDOM.normal(size=(2, 6, 2)).astype(dtype)
    np.testing.assert_array_equal(
        solve(lower, main, upper, b), wrap(lax.linalg.tridiagonal_solve)(lower, main, upper, b)
    )
    zero, ones = np.zeros(3, dtype), np.ones(3, dtype)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(solve(zero, zero, zero, ones[:, None]), np.full((3, 1), 1 / eps), rtol=1e-5)
    stiffness = np.array([1.0, 2.0, 1.0], dtype)  # of a rod that nothing holds: singular
    x = solve(-ones, stiffness, -ones, np.array([[1.0], [0.0], [0.0]], dtype))
    assert np.isfinite(x).all()
    assert np.abs(x).max() > 0.01 / eps


def test_selected_eigenvalues():
    d, e = RANDOM.normal(size=6), RANDOM.normal(size=5)
    w, v = scipy.linalg.eigh_tridiagonal(d, e)
    np.testing.assert_allclose(linalg.eigvalsh_tridiagonal(d, e, "i", (1, 3)), w[1:4], rtol=1e-10)
    got, vectors = linalg.eigh_tridiagonal(d, e, select="v", select_range=(w[1], w[4]))
    np.testing.assert_allclose(got, w[2:5], rtol=1e-10)
    np.testing.assert_allclose(abs(vectors), abs(v[:, 2:5]), atol=1e-10)
    assert gradcheck(lambda d, e: linalg.eigh_tridiagonal(d, e)[1] ** 2, (d[:3], e[:2]))


def test_functions_of_matrices():
    s = A[0] @ A[0].T + np.eye(4)
    np.testing.assert_allclose(linalg.funm(s, fnp.sqrt), scipy.linalg.sqrtm(s), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(linalg.funm(C[0], fnp.exp), scipy.linalg.expm(C[0]), rtol=1e-8)
    np.testing.assert_allclose(
        linalg.funm([[2.0, 1.0], [0.0, 2.0]], fnp.exp), np.exp(2.0) * np.array([[1, 1], [0, 1]]), rtol=1e-12
    )
    block = 2 * np.eye(3) + np.eye(3, k=1)
    assert np.isnan(linalg.funm(block, fnp.exp)).any()
    value, error = linalg.funm(A[0], fnp.exp, disp=False)
    assert error == pytest.approx(scipy.linalg.funm(A[0], np.exp, disp=False)[1])
    got = ft.vmap(lambda a: linalg.funm(a, fnp.exp))(A)
    np.testing.assert_allclose(got[0], value, rtol=1e-12)


def test_derivatives_of_functions_of_matrices():
    """At equal eigenvalues, and in what the function captured."""
    direction = A[1, :2, :2]
    moved = ft.jvp(lambda a: linalg.funm(a, fnp.exp), (2.0 * np.eye(2),), (direction,))[1]
    np.testing.assert_allclose(moved, np.exp(2.0) * direction, rtol=1e-12)
    slope = ft.jit(ft.jacfwd(lambda c: linalg.funm(A[0, :2, :2], lambda w: fnp.exp(c * w)).real))(0.7)
    expected = A[0, :2, :2] @ scipy.linalg.expm(0.7 * A[0, :2, :2])
    np.testing.assert_allclose(slope, expected, rtol=1e-9)
    moved = ft.jvp(lambda a: linalg.funm(a, fnp.exp), (A[0, :2, :2],), (direction,))[1]
    expected = scipy.linalg.expm_frechet(A[0, :2, :2], direction, compute_expm=False)
    np.testing.assert_allclose(moved, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["schur", "hessenberg"])
def test_bases_have_no_derivative(name):
    f = getattr(linalg, name)
    with pytest.raises(NoRuleError, match=f"{name} has no derivative"):
        ft.jvp(lambda a: f(a)[0], (A[0],), (A[1],))
    with pytest.raises(NoRuleError, match=f"{name} has no derivative"):
        ft.grad(lambda a: fnp.sum(f(a)[0]))(A[0])


def test_matrices_with_known_inverses_and_roots():
    n = 5
    np.testing.assert_allclose(linalg.hilbert(n) @ linalg.invhilbert(n), np.eye(n), atol=1e-9)
    np.testing.assert_array_equal(linalg.pascal(n).astype(int) @ linalg.invpascal(n), np.eye(n))
    np.testing.assert_array_equal(linalg.hadamard(8) @ linalg.hadamard(8).T, 8 * np.eye(8))
    helmert = linalg.helmert(n, full=True)
    np.testing.assert_allclose(helmert @ helmert.T, np.eye(n), atol=1e-14)
    x = RANDOM.normal(size=n)
    np.testing.assert_allclose(linalg.dft(n) @ x, np.fft.fft(x), atol=1e-13)
    roots = np.array([[0.5, 1.5, 3.0], [1.0, 2.0, 4.0]])
    coefficients = np.stack([np.poly(r) for r in roots])
    for f in (linalg.companion, linalg.fiedler_companion):
        np.testing.assert_allclose(np.sort(np.linalg.eigvals(f(coefficients)).real), roots, rtol=1e-9)
    y = RANDOM.normal(size=(2, 4))
    for mode in ("full", "same", "valid"):
        got = linalg.convolution_matrix(y, n, mode) @ x
        np.testing.assert_allclose(got, [np.convolve(row, x, mode) for row in y], atol=1e-13)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linalg.schur(A[0, :2]), LinAlgError, "square"),
        (lambda: linalg.schur(A[0], "complx"), ArgumentValueError, "schur: output"),
        (lambda: linalg.schur(A[0] * np.nan), ArgumentValueError, "infs or NaNs"),
        (lambda: ft.jit(linalg.schur)(A[0] * np.nan), LinAlgError, "schur: the matrix: contains NaN"),
        (lambda: linalg.eigh_tridiagonal(A[0, 0], A[0, 0]), ShapeError, r"\(\.\.\., n - 1\)"),
        (lambda: linalg.funm(A, fnp.exp), LinAlgError, "funm: expected a square matrix"),
        (lambda: linalg.funm(A[0], fnp.sum), ShapeError, "func must keep the shape"),
        (lambda: linalg.companion([0.0, 1.0]), ArgumentValueError, "must not be zero"),
        (lambda: linalg.leslie([1.0], [1.0]), ArgumentValueError, "one more element"),
        (lambda: linalg.hadamard(3), ArgumentValueError, "power of 2, got 3"),
        (lambda: linalg.pascal(60), ArgumentValueError, "exact=False"),
        (lambda: linalg.qr_multiply(A[0], np.ones(3)), LinAlgError, "does not match q"),
        (lambda: lax.linalg.tridiagonal_solve(*A[0, :3], np.ones(4)), LinAlgError, "three diagonals"),
        (lambda: lax.linalg.ormqr(A[0], A[0, 0], A[0, :2]), LinAlgError, "ormqr: expected"),
        (lambda: lax.linalg.qdwh(A[0, :2]), LinAlgError, "as many rows"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_nan_instead_of_errors():
    with ft.config.patch(linalg_errors="nan"):
        t, _ = ft.jit(linalg.schur)(np.stack([A[0] * np.nan, A[1]]))
    assert np.isnan(t[0]).all()
    assert np.isfinite(t[1]).all()


def test_names_of_algorithms():
    assert lax.linalg.SvdAlgorithm.QR.value == "QR"
    s = lax.linalg.svd(A, compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.JACOBI)
    np.testing.assert_allclose(s, np.linalg.svd(A, compute_uv=False))
    lax.linalg.eigh(A, implementation=lax.linalg.EighImplementation.QDWH)
    lax.linalg.eig(A, implementation=lax.linalg.EigImplementation.LAPACK)
