"""Iterative solvers: SciPy's iterates and dense solutions, derivatives, lanes, trees, sparse matrices, errors."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentError, ArgumentValueError, LinAlgError, ShapeError
from functrans.scipy.sparse import linalg

RANDOM = np.random.default_rng(3)
N = 12
X = RANDOM.normal(size=(N, N))
POSITIVE = X @ X.T / N + np.eye(N)
GENERAL = X / 3 + 2 * np.eye(N)
B = RANDOM.normal(size=N)
NAMES = ["cg", "bicgstab", "gmres"]


def matrix_for(name):
    return POSITIVE if name == "cg" else GENERAL


@pytest.mark.parametrize("steps", [1, 3])
def test_iterates_of_cg_are_scipys(steps):
    got, info = linalg.cg(POSITIVE, B, np.ones(N), maxiter=steps, tol=1e-14)
    expected, _ = scipy.sparse.linalg.cg(POSITIVE, B, np.ones(N), maxiter=steps, rtol=1e-14)
    np.testing.assert_allclose(got, expected, rtol=1e-10)
    assert info == steps


@pytest.mark.wide(3)
@pytest.mark.parametrize("name", NAMES)
def test_tolerance_and_start(name):
    solve, a = getattr(linalg, name), matrix_for(name)
    x, info = solve(a, B, tol=1e-4)
    assert info == 0
    assert 1e-12 < np.linalg.norm(a @ x - B) <= 1e-4 * np.linalg.norm(B)
    exact = np.linalg.solve(a, B)
    np.testing.assert_array_equal(solve(a, B, exact, maxiter=0)[0], exact)
    np.testing.assert_array_equal(solve(a, np.zeros(N))[0], np.zeros(N))
    assert solve(a, B.astype(np.float32))[0].dtype == np.float64
    x, info = solve(a.astype(np.float32), B.astype(np.float32), tol=1e-4)
    assert (x.dtype, info) == (np.float32, 0)


def test_restarts():
    """A space of two dimensions, started again and again; and one that holds the solution."""
    x, info = linalg.gmres(GENERAL, B, tol=1e-10, restart=2)
    np.testing.assert_allclose(GENERAL @ x, B, atol=1e-9)
    assert info == 0
    _, info = linalg.gmres(GENERAL, B, tol=1e-13, restart=2, maxiter=2)
    assert info == 2
    cycle = np.roll(np.eye(5), 1, axis=0)  # no progress before the last step
    x, info = linalg.gmres(cycle, np.eye(5)[0], tol=1e-12, maxiter=1)
    np.testing.assert_allclose(x, cycle.T[:, 0], atol=1e-12)
    assert info == 0


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_the_dense_solution(name):
    """In what the function captured, in both modes, compiled; and with a preconditioner."""
    solve, a = getattr(linalg, name), matrix_for(name)

    def loss(scale, b, solve):
        return fnp.sum(solve(lambda x: scale * x + a @ x, b) ** 2)

    iterative = lambda product, b: solve(product, b, tol=1e-13, M=lambda x: x / np.diag(a))[0]
    dense = lambda product, b: fnp.linalg.solve(ft.jacfwd(product)(b), b)
    got = ft.jit(ft.value_and_grad(lambda s, b: loss(s, b, iterative), (0, 1)))(0.5, B)
    expected = ft.value_and_grad(lambda s, b: loss(s, b, dense), (0, 1))(0.5, B)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-10)
    np.testing.assert_allclose(got[1][0], expected[1][0], rtol=1e-9)
    np.testing.assert_allclose(got[1][1], expected[1][1], rtol=1e-9, atol=1e-11)
    moved = ft.jvp(lambda s: loss(s, B, iterative), (0.5,), (1.0,))[1]
    np.testing.assert_allclose(moved, expected[1][0], rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_lanes_take_their_own_steps(name):
    """One lane is solved at the start, one has an eigenvector as its right-hand side, one needs many steps."""
    solve = getattr(linalg, name)
    lanes = np.stack([np.zeros(N), np.linalg.eigh(POSITIVE)[1][:, 0], B])
    x, info = ft.jit(ft.vmap(lambda b: solve(POSITIVE, b, tol=1e-9, maxiter=1 if name != "gmres" else None)))(
        lanes
    )
    np.testing.assert_allclose(x[:2] @ POSITIVE, lanes[:2], atol=1e-8)
    assert list(info) == ([0, 0, 1] if name != "gmres" else [0, 0, 0])


@pytest.mark.wide(3)
@pytest.mark.parametrize("name", NAMES)
def test_complex_systems(name):
    skew = 1j * (X - X.T) / N
    a = POSITIVE + skew if name == "cg" else GENERAL + 1j * X / 5
    b = B + 1j * X[0]
    x, info = getattr(linalg, name)(a, b, tol=1e-11)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=1e-9)
    assert info == 0


def test_trees():
    b = {"a": B, "b": (np.ones((2, 2)), 3.0)}
    product = lambda t: {"a": POSITIVE @ t["a"], "b": (2.0 * t["b"][0], t["b"][1] * 4.0)}
    for name in NAMES[:2]:
        x, _ = getattr(linalg, name)(product, b, tol=1e-10)
        np.testing.assert_allclose(x["a"], np.linalg.solve(POSITIVE, B), atol=1e-8)
        np.testing.assert_allclose([x["b"][0][0, 0], x["b"][1]], [0.5, 0.75], rtol=1e-8)


@pytest.mark.parametrize("dense_row", [False, True])
def test_sparse_matrices(dense_row):
    """Rows of one length, and of very different lengths."""
    m = 40
    a = scipy.sparse.diags_array([-1.0, 4.0, -1.5], offsets=[-1, 0, 1], shape=(m, m)).tolil()
    if dense_row:
        a[0] = 0.1
        a[0, 0] = 5.0
    b = RANDOM.normal(size=m)
    for form in (a.tocsr(), a.tocoo()):
        x, _ = linalg.bicgstab(form, b, tol=1e-11)
        np.testing.assert_allclose(a @ x, b, atol=1e-9)
    x = linalg.bicgstab(a.tocsr(), b, tol=1e-11, M=scipy.sparse.diags_array(1 / a.diagonal()))[0]
    np.testing.assert_allclose(a @ x, b, atol=1e-9)
    slope = ft.grad(lambda b: fnp.sum(linalg.bicgstab(a.tocsr(), b, tol=1e-12)[0]))(b)
    np.testing.assert_allclose(slope, np.linalg.solve(a.toarray().T, np.ones(m)), rtol=1e-8)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linalg.cg(X[:3], B), LinAlgError, "cg: A must be a square matrix"),
        (lambda: linalg.cg("matrix", B), ArgumentError, "cg: A must be a function"),
        (lambda: linalg.cg(POSITIVE, B, B[:3]), ShapeError, "cg: x0 must have the shapes of b"),
        (lambda: linalg.gmres(POSITIVE, B, {"a": B}), ArgumentError, "gmres: x0 must be a tree like b"),
        (lambda: linalg.gmres(POSITIVE, B, restart=0), ArgumentValueError, "restart must be positive"),
        (lambda: linalg.gmres(POSITIVE, B, solve_method="fast"), ArgumentValueError, "solve_method"),
        (lambda: linalg.cg(POSITIVE, B, maxiter=-1), ArgumentValueError, "maxiter must not be negative"),
        (lambda: linalg.cg(lambda x: x[:3], B), ShapeError, "matvec"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
