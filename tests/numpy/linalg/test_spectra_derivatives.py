"""Derivatives of spectral decompositions, also where eigenvalues or singular values are equal."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.scipy import linalg
from functrans.testing import hessian_is_symmetric, jvp_is_slope, vjp_is_adjoint


def draw(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(-2, 2, shape)
    return (3 * x if np.dtype(dtype).kind == "i" else x).astype(dtype)


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def check_grads(f, args, order, **tolerances):
    """The laws of derivatives, to second order if asked for."""
    jvp_is_slope(f, *args, **tolerances)
    vjp_is_adjoint(f, *args)
    if order > 1:
        hessian_is_symmetric(f, *args)


def projector(x, k=2):
    w, v = fnp.linalg.eigh(x)
    v = v[..., :k]
    return v @ fnp.conj(fnp.matrix_transpose(v)), w


def low_rank(x, full=False, k=2):
    u, s, vh = fnp.linalg.svd(x, full_matrices=full)
    return (u[..., :k] * s[..., None, :k] ** 2) @ vh[..., :k, :]


def polar(x):
    u, _, vh = fnp.linalg.svd(x, full_matrices=False)
    return u @ vh


def null_spaces(x):
    m, n = x.shape
    u, _, vh = fnp.linalg.svd(x)
    k = min(m, n)
    return u[:, k:] @ fnp.conj(u[:, k:].T), fnp.conj(vh[k:].T) @ vh[k:]


SMOOTH = {
    "eigh": (projector, (4, 4)),
    "eigvalsh": (fnp.linalg.eigvalsh, (3, 3)),
    "svd": (low_rank, (3, 3)),
    "svd, tall": (low_rank, (4, 3)),
    "svd, wide": (low_rank, (3, 4)),
    "full svd": (lambda x: low_rank(x, True), (4, 2)),
    "null spaces": (null_spaces, (4, 2)),
    "null spaces, wide": (null_spaces, (2, 4)),
    "polar": (polar, (4, 3)),
    "svdvals": (fnp.linalg.svdvals, (3, 4)),
    "hermitian svd": (
        lambda x: (lambda f: (f[0] * f[1]) @ f[2])(fnp.linalg.svd(x, hermitian=True)),
        (3, 3),
    ),
    "pinv": (fnp.linalg.pinv, (4, 3)),
    "pinv, wide": (fnp.linalg.pinv, (2, 3)),
    "pinv hermitian": (lambda x: fnp.linalg.pinv(x, hermitian=True), (3, 3)),
    "norm 2": (lambda x: fnp.linalg.norm(x, 2), (3, 4)),
    "norm -2": (lambda x: fnp.linalg.norm(x, -2), (3, 4)),
    "norm nuc": (lambda x: fnp.linalg.norm(x, "nuc"), (3, 4)),
    "cond": (fnp.linalg.cond, (3, 4)),
    "cond -2": (lambda x: fnp.linalg.cond(x, -2), (3, 4)),
    "cond 1": (lambda x: fnp.linalg.cond(x, 1), (3, 3)),
    "cond nuc": (lambda x: fnp.linalg.cond(x, "nuc"), (3, 3)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name, dtype):
    f, shape = SMOOTH[name]
    x = draw(shape, dtype, seed=3)
    check_grads(f, (x,), order=2 if dtype == np.float64 else 1)


@pytest.mark.parametrize("name", ["eigh", "svd, tall", "pinv", "cond"])
def test_derivatives_of_batches(name):
    f, shape = SMOOTH[name]
    check_grads(ft.jit(ft.vmap(f)), (draw((2, *shape), seed=3),), order=1)


def in_subspace(values, dtype, seed=0):
    """A symmetric (Hermitian) matrix with the given eigenvalues."""
    q, _ = np.linalg.qr(draw((len(values), len(values)), dtype, seed))
    return (q * np.asarray(values)) @ adjoint(q)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("values", [[1.0, 1.0, 3.0, 4.0], [2.0, 2.0, 5.0, 5.0]])
def test_eigenvalues_alone_have_derivatives_where_they_are_equal(dtype, values):
    x = in_subspace(values, dtype)

    def f(x):
        w, _ = fnp.linalg.eigh((x + fnp.conj(x.T)) / 2)
        return w[0] + w[1], w[2] ** 2 + w[3] ** 2

    check_grads(f, (x,), order=1, rtol=1e-5, atol=1e-6)
    check_grads(ft.jit(f), (x,), order=1, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_equal_singular_values(dtype):
    for x in (np.eye(3).astype(dtype), np.linalg.qr(draw((4, 3), dtype))[0]):
        check_grads(lambda x: fnp.linalg.norm(x, "nuc"), (x,), order=1, rtol=1e-5, atol=1e-6)


def by_eigenvectors(g):
    def f(x):
        w, v = fnp.linalg.eigh((x + x.T) / 2)
        return fnp.sum((v * g(w)) @ v.T * np.arange(x.size).reshape(x.shape))

    return f


def by_singular_vectors(g):
    def f(x):
        u, s, vh = fnp.linalg.svd(x)
        return fnp.sum((u * g(s)) @ vh * np.arange(x.size).reshape(x.shape))

    return f


def by_vectors_of_eig(g):
    def f(x):
        w, v = fnp.linalg.eig(x)
        return fnp.sum(((v * g(w)) @ fnp.linalg.inv(v)).real * np.arange(x.size).reshape(x.shape))

    return f


@pytest.mark.wide(5)
@pytest.mark.parametrize("run", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("g", [fnp.exp, fnp.log, fnp.sqrt])
@pytest.mark.parametrize("of_matrix", [by_eigenvectors, by_singular_vectors, by_vectors_of_eig])
def test_matrix_functions_at_equal_values_are_nan_not_wrong(of_matrix, g, run):
    # g(1) is 0 for the logarithm: cotangents of the vectors vanish, and still the derivative is not zero.
    f = of_matrix(g)
    equal = [np.eye(2), np.diag([2.0, 3.0, 2.0])]
    if of_matrix is by_eigenvectors:
        equal += [in_subspace([1.0, 1.0, 1.0, 2.0], np.float64)]  # equal but for rounding
    for x in equal:
        assert np.isnan(run(ft.grad(f))(x)).any()
        assert np.isnan(run(lambda x: ft.jvp(f, (x,), (x.T + 1,))[1])(x))
    near = np.diag([2.0, 2.0 + 1e-5, 3.0])
    check_grads(run(f), (near,), order=1, rtol=1e-4, atol=1e-4)


def test_vectors_that_are_determined_have_tangents_beside_equal_values():
    x = np.diag([1.0, 1.0, 3.0])
    tangent = ft.jvp(fnp.linalg.eigh, (x,), (np.ones((3, 3)),))[1][1]
    np.testing.assert_allclose(tangent[:, 2], [0.5, 0.5, 0.0])
    assert np.isnan(tangent[:2, :2]).all()
    assert np.isnan(ft.grad(lambda x: fnp.linalg.eigh(x)[1][0, 2])(x)).any()


@pytest.mark.parametrize("run", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_a_gradient_of_some_vectors_beside_equal_values(run):
    points = draw((3, 5))  # fewer points than coordinates: all but three eigenvalues are zero
    sign = np.sign(np.linalg.eigh(points.T @ points)[1][0, 3:])

    def axes(points):
        found = linalg.eigh(points.T @ points, subset_by_index=(3, 4))[1]
        return found * sign / fnp.sign(lax.stop_gradient(found[0]))

    check_grads(run(axes), (points,), order=1)
    v, w = lax.linalg.eigh(points.T @ points, subset_by_index=(3, 5))
    np.testing.assert_allclose(points.T @ points @ v, v * w, atol=1e-12)


@pytest.mark.parametrize("run", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_a_matrix_without_enough_eigenvectors_has_no_derivative(run):
    x = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
    assert np.isnan(run(ft.grad(lambda x: fnp.sum(fnp.linalg.eigvals(x).real)))(x)).any()
    for f in (lambda x: fnp.linalg.eigvals(x).real[2], lambda x: fnp.sum(fnp.linalg.eigvals(x).real)):
        np.testing.assert_allclose(
            run(lambda x, f=f: ft.jvp(f, (x,), (np.diag([0.0, 0.0, 1.0]),))[1])(np.diag([2.0, 2.0, 3.0])), 1
        )


def test_the_nuclear_norm_at_a_zero_singular_value_has_a_subgradient():
    x = np.outer([1.0, 2.0, 2.0], [3.0, 4.0])
    slope = ft.grad(lambda x: fnp.linalg.norm(x, "nuc"))(x)
    part = np.outer([1.0, 2.0, 2.0], [3.0, 4.0]) / 15
    rest = slope - part
    np.testing.assert_allclose(part.T @ rest, 0, atol=1e-12)
    assert np.linalg.norm(rest, 2) <= 1 + 1e-12


def test_second_derivatives_at_equal_values_are_nan_not_wrong():
    for f in (fnp.linalg.eigvalsh, fnp.linalg.svdvals, lambda x: fnp.linalg.eigvals(x).real):
        of_squares = ft.hessian(lambda x, f=f: fnp.sum(f(x) ** 2))
        assert np.isnan(of_squares(np.eye(2))).any()
        assert np.isfinite(of_squares(np.diag([1.0, 2.0]))).all()


def test_the_gradient_lies_in_the_triangle_that_is_read():
    x = in_subspace([1.0, 2.0, 4.0], np.float64)
    top = np.linalg.eigh(x)[1][:, 2]
    lower = ft.grad(lambda x: fnp.linalg.eigvalsh(x)[2])(x)
    both = ft.grad(lambda x: fnp.linalg.eigvalsh((x + x.T) / 2)[2])(x)
    np.testing.assert_allclose(lower, np.tril(np.outer(top, top)) + np.tril(np.outer(top, top), -1))
    np.testing.assert_allclose(both, np.outer(top, top))


def test_pinv_at_constant_rank():
    left, right = draw((4, 2)), draw((2, 3), seed=1)
    check_grads(lambda u, v: fnp.linalg.pinv(u @ v), (left, right), order=2)
    np.testing.assert_allclose(fnp.linalg.pinv(left @ right), np.linalg.pinv(left @ right))
