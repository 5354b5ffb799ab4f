"""functrans.lax.linalg: eigenvalues and singular values against their equations, and JAX's conventions."""

import numpy as np
import pytest
import scipy.linalg

import functrans as ft
from functrans import lax
from functrans.errors import ArgumentValueError
from functrans.testing import jvp_is_slope, vjp_is_adjoint


def draw(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, shape)
    return (x + 1j * rng.uniform(-2, 2, shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


DTYPES = [np.float64, np.complex128]


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh_gives_vectors_first(dtype):
    x = draw((2, 4, 4), dtype)
    symmetric = (x + x.swapaxes(-1, -2).conj()) / 2
    v, w = ft.jit(lax.linalg.eigh)(x)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(symmetric))
    np.testing.assert_allclose(symmetric @ v, v * w[:, None], atol=1e-12)
    for lower, uplo in ((True, "L"), (False, "U")):
        _, w = lax.linalg.eigh(x, lower=lower, symmetrize_input=False)
        np.testing.assert_allclose(w, np.linalg.eigvalsh(x, uplo))
    whole = lax.linalg.eigh(x)
    part = lax.linalg.eigh(x, subset_by_index=(1, 3))
    np.testing.assert_array_equal(part[0], whole[0][..., 1:3])
    np.testing.assert_array_equal(part[1], whole[1][..., 1:3])


def test_the_gradient_of_the_symmetrised_problem_is_symmetric():
    x = draw((3, 3))
    slope = ft.grad(lambda x: lax.linalg.eigh(x)[1][2])(x)
    top = np.linalg.eigh((x + x.T) / 2)[1][:, 2]
    np.testing.assert_allclose(slope, np.outer(top, top), atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_svd(dtype):
    x = draw((4, 3), dtype)
    for full in (True, False):
        expected = np.linalg.svd(x, full)
        for got, y in zip(lax.linalg.svd(x, full_matrices=full), expected):
            np.testing.assert_allclose(got, y, atol=1e-12)
    np.testing.assert_allclose(lax.linalg.svd(x, compute_uv=False, subset_by_index=(0, 2)), expected[1][:2])
    u, s, vh = lax.linalg.svd(x, full_matrices=False, subset_by_index=(1, 3))
    np.testing.assert_allclose((u * s) @ vh, (expected[0] * expected[1])[:, 1:] @ expected[2][1:], atol=1e-12)
    for wrong in ({"subset_by_index": (0, 1)}, {"subset_by_index": (2, 5), "full_matrices": False}):
        with pytest.raises(ArgumentValueError, match="subset_by_index"):
            lax.linalg.svd(x, **wrong)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype):
    x = draw((4, 4), dtype)
    w, left, right = ft.jit(lax.linalg.eig)(x)
    expected, s_left, s_right = scipy.linalg.eig(x, left=True)
    np.testing.assert_allclose(w, expected)
    np.testing.assert_allclose(right, s_right, atol=1e-12)
    np.testing.assert_allclose(np.abs(left), np.abs(s_left), atol=1e-12)
    np.testing.assert_allclose(left.conj().T @ x, w[:, None] * left.conj().T, atol=1e-12)
    assert len(lax.linalg.eig(x, compute_left_eigenvectors=False)) == 2
    (alone,) = lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    np.testing.assert_allclose(alone, expected)
    for law in (jvp_is_slope, vjp_is_adjoint):
        law(lambda x: lax.linalg.eig(x), x)
    assert [y.shape for y in lax.linalg.eig(np.zeros((0, 0)))] == [(0,), (0, 0), (0, 0)]


def test_symmetric_product():
    a, c = draw((2, 3, 4)), draw((2, 3, 3))
    c = c + c.swapaxes(-1, -2)
    expected = 0.5 * a @ a.swapaxes(-1, -2) + 2 * c
    got = lax.linalg.symmetric_product(a, c, alpha=0.5, beta=2.0)
    np.testing.assert_allclose(got, expected)
    got = lax.linalg.symmetric_product(a, np.tril(c), alpha=0.5, beta=2.0, symmetrize_output=True)
    np.testing.assert_allclose(got, expected)
