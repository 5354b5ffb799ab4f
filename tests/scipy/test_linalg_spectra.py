"""functrans.scipy.linalg: eigenvalues and singular values against SciPy."""

import warnings

import numpy as np
import pytest
import scipy.linalg

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentValueError, LinAlgError
from functrans.runtime.config import config
from functrans.scipy import linalg
from functrans.testing import jvp_is_slope, vjp_is_adjoint


def draw(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, shape)
    return (x + 1j * rng.uniform(-2, 2, shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def symmetric(dtype, seed=0):
    x = draw((4, 4), dtype, seed)
    return x + x.conj().T


def definite(dtype, seed=1):
    x = draw((4, 4), dtype, seed)
    return x @ x.conj().T + 4 * np.eye(4)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("type", [1, 2, 3])
@pytest.mark.parametrize("lower", [True, False])
def test_generalised_problems(dtype, type, lower):
    a, b = symmetric(dtype), definite(dtype)
    expected = scipy.linalg.eigh(a, b, type=type)[0]
    keep = np.tril if lower else np.triu
    for run in (lambda f: f, ft.jit):
        w, v = run(lambda a, b: linalg.eigh(a, b, type=type, lower=lower))(keep(a), keep(b))
        np.testing.assert_allclose(w, expected)
        left = {1: a @ v, 2: a @ b @ v, 3: b @ a @ v}[type]
        np.testing.assert_allclose(left, (b @ v if type == 1 else v) * w, atol=1e-10)
        metric = np.linalg.inv(b) if type == 3 else b
        np.testing.assert_allclose(v.conj().T @ metric @ v, np.eye(4), atol=1e-12)
        np.testing.assert_allclose(run(lambda a, b: linalg.eigvalsh(a, b, type=type))(a, b), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_derivatives_of_a_generalised_problem(dtype):
    def f(a, b):
        a, b = ((x + fnp.conj(x.T)) / 2 for x in (a, b))
        w, v = linalg.eigh(a, b)
        return w, v[:, :2] @ fnp.conj(v[:, :2].T)

    for law in (jvp_is_slope, vjp_is_adjoint):
        law(f, symmetric(dtype), definite(dtype))


def test_ordinary_problems():
    a = symmetric(float)
    w, v = linalg.eigh(a)
    np.testing.assert_allclose((v * w) @ v.T, a, atol=1e-12)
    part = linalg.eigh(a, subset_by_index=(1, 2))
    np.testing.assert_array_equal(part[0], w[1:3])
    np.testing.assert_array_equal(part[1], v[:, 1:3])
    expected = scipy.linalg.eigvalsh(a, subset_by_index=(1, 2))
    np.testing.assert_allclose(linalg.eigvalsh(a, subset_by_index=(1, 2)), expected)
    batch = np.stack([a, 2 * a])
    np.testing.assert_allclose(linalg.eigvalsh(batch, definite(float)), np.stack(
        [scipy.linalg.eigvalsh(x, definite(float)) for x in batch]
    ))  # fmt: skip
    np.testing.assert_array_equal(linalg.eigvalsh([[2, 0], [0, 1]]), [1.0, 2.0])


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_singular_values(shape, dtype):
    x = draw(shape, dtype)
    eps = 1e-5 if dtype == np.complex64 else 1e-12
    for full in (True, False):
        expected = scipy.linalg.svd(x, full)
        u, s, vh = linalg.svd(x, full)
        assert [y.shape for y in (u, s, vh)] == [y.shape for y in expected]
        assert [y.dtype for y in (u, s, vh)] == [y.dtype for y in expected]
        k = min(shape)
        np.testing.assert_allclose((u[:, :k] * s) @ vh[:k], x, atol=eps)
    for got in (linalg.svdvals(x), linalg.svd(x, compute_uv=False)):
        np.testing.assert_allclose(got, scipy.linalg.svdvals(x), rtol=eps)
    for options in ({}, {"rtol": 0.5}, {"atol": 1.0}, {"atol": 0.3, "rtol": 0.1}):

        def inverse(x, options=options):
            return linalg.pinv(x, **options)

        expected, rank = scipy.linalg.pinv(x, return_rank=True, **options)
        got, found = linalg.pinv(x, return_rank=True, **options)
        np.testing.assert_allclose(got, expected, atol=10 * eps)
        assert found == rank
        np.testing.assert_allclose(ft.jit(inverse)(x), expected, atol=10 * eps)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_polar(side, dtype, shape):
    x = draw(shape, dtype)
    for got, expected in zip(linalg.polar(x, side), scipy.linalg.polar(x, side)):
        np.testing.assert_allclose(got, expected, atol=1e-12)
    for law in (jvp_is_slope, vjp_is_adjoint):
        law(lambda x: linalg.polar(x, side), x)
        law(lambda x: linalg.polar(x, side), np.eye(*shape, dtype=dtype), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("x", [np.zeros((1, 1)), np.zeros((2, 2)), np.ones((3, 3)), np.diag([2.0, 1.0, 0.0])])
def test_singular_matrices_have_no_derivative_where_none_is_determined(x):
    for f in (lambda x: linalg.sqrtm(x).real, lambda x: linalg.polar(x)[0]):
        for slope in (ft.grad(lambda x, f=f: fnp.sum(f(x))), ft.jit(ft.jacfwd(lambda x, f=f: fnp.sum(f(x))))):
            assert np.isnan(slope(x)).any()
    assert np.isnan(linalg.solve_sylvester(x, -x, np.ones(x.shape))).all()


@pytest.mark.parametrize("x", [np.zeros((2, 2)), np.ones((3, 3)), np.eye(2)], ids=["zeros", "ones", "eye"])
def test_square_roots_warn_as_scipy_does_and_change_no_filters(x, monkeypatch):
    with warnings.catch_warnings(record=True) as expected:
        warnings.simplefilter("always")
        scipy.linalg.sqrtm(x)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        # It exchanges the filters of the whole process, also for other threads.
        monkeypatch.setattr(warnings, "catch_warnings", None)
        linalg.sqrtm(x)
    assert [(w.category, str(w.message)) for w in seen] == [(w.category, str(w.message)) for w in expected]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_square_roots(dtype):
    for x in (definite(dtype), draw((3, 3), dtype), -np.eye(2, dtype=dtype), np.stack([definite(dtype)] * 2)):
        # Stacks are of SciPy 1.16.
        expected = scipy.linalg.sqrtm(x) if x.ndim == 2 else np.stack([scipy.linalg.sqrtm(y) for y in x])
        for run in (lambda f: f, ft.jit):
            root = run(linalg.sqrtm)(x)
            assert root.dtype == np.complex128
            np.testing.assert_allclose(root, expected, atol=1e-12)
    for x in (definite(dtype), np.eye(3, dtype=dtype), np.diag([1.0, 1.0, 4.0]).astype(dtype)):
        for law in (jvp_is_slope, vjp_is_adjoint):
            law(linalg.sqrtm, x)
    assert linalg.sqrtm(np.eye(2, dtype=np.float32)).dtype == np.complex64
    assert np.isnan(linalg.sqrtm(np.full((2, 2), np.nan))).all()
    with pytest.raises(LinAlgError, match="square"):
        linalg.sqrtm(np.ones((2, 3)))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_sylvester(dtype):
    a, b, q = definite(dtype), draw((3, 3), dtype) + 4 * np.eye(3), draw((4, 3), dtype)
    for run in (lambda f: f, ft.jit):
        x = run(linalg.solve_sylvester)(a, b, q)
        np.testing.assert_allclose(x, scipy.linalg.solve_sylvester(a, b, q))
        np.testing.assert_allclose(a @ x + x @ b, q, atol=1e-12)
    for law in (jvp_is_slope, vjp_is_adjoint):
        law(linalg.solve_sylvester, a, b, q)
    with pytest.raises(LinAlgError, match="do not match"):
        linalg.solve_sylvester(a, b, q.T)
    with pytest.raises(LinAlgError, match="three matrices"):
        linalg.solve_sylvester(a, b, q[0])


def test_failures():
    nan = np.full((2, 2), np.nan)
    for f in (linalg.eigh, linalg.svd, linalg.pinv, linalg.svdvals):
        with pytest.raises(ArgumentValueError, match="must not contain infs or NaNs"):
            f(nan)
    with pytest.raises(LinAlgError, match="not positive definite"):
        linalg.eigh(np.eye(2), -np.eye(2))
    with config.patch(linalg_errors="nan"):
        assert np.isnan(linalg.eigvalsh(np.eye(2), -np.eye(2))).all()
    with pytest.raises(LinAlgError, match="do not match"):
        linalg.eigh(np.eye(2), np.eye(3))
    with pytest.raises(LinAlgError, match="square"):
        linalg.eigh(np.ones((2, 3)))
    with pytest.raises(ArgumentValueError, match="type must be"):
        linalg.eigh(np.eye(2), np.eye(2), type=4)
    with pytest.raises(ArgumentValueError, match="subset_by_index"):
        linalg.eigh(np.eye(2), subset_by_index=(1, 2))
    with pytest.raises(ArgumentValueError, match="side"):
        linalg.polar(np.eye(2), "up")
