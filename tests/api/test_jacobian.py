"""`jacfwd` and `jacrev`: products with matrices at the ends, which cost nothing, against differences and NumPy."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

W = np.random.default_rng(0).normal(size=(4, 3))
X = np.array([0.3, -1.1, 2.0])

PROGRAMS = {
    "a product": lambda x: W @ x,
    "from the left": lambda x: x @ W.T,
    "last": lambda x: W @ fnp.tanh(x),
    "first": lambda x: fnp.tanh(W @ x),
    "both": lambda x: W.T @ fnp.tanh(W @ x),
    "twice, and beside it": lambda x: (W @ x, x, W[:2] @ x),
    "a result that is used again": lambda x: (lambda y: (y, fnp.sum(y), 2 * y))(W @ fnp.sin(x)),
    "one result twice": lambda x: (lambda y: (y, y))(W @ x),
    "of three axes": lambda x: fnp.tensordot(x, np.arange(12.0).reshape(3, 2, 2), 1),
    "of itself": lambda x: x @ x,
    "of two that vary": lambda x: fnp.outer(x, x) @ x,
    "of a matrix that varies": lambda x: fnp.stack([x, x * x]) @ np.ones(3),
    "a number": lambda x: (x @ np.ones(3)) * x,
    "under a branch": lambda x: ft.lax.cond(x[0] > 0, lambda x: W @ x, lambda x: -W @ x, x),
    "under jit": ft.jit(lambda x: W @ x),
}


def flat(values):
    return np.concatenate([np.ravel(v) for v in (values if isinstance(values, tuple) else (values,))])


def differences(f, x, eps=1e-6):
    ahead, behind = ([flat(f(x + s * eps * d)) for d in np.eye(x.size)] for s in (1, -1))
    return np.transpose((np.array(ahead) - behind) / (2 * eps))


@pytest.mark.parametrize("transform", [ft.jacfwd, ft.jacrev])
@pytest.mark.parametrize("name", PROGRAMS)
def test_against_differences(name, transform):
    f = PROGRAMS[name]
    expected = differences(f, X)
    for jacobian in (transform(f), ft.jit(transform(f))):
        np.testing.assert_allclose(flat(jacobian(X)), expected.ravel(), rtol=1e-8, atol=1e-8)
    several = ft.vmap(transform(f))(np.stack([X, 0.5 * X]))
    for k, x in enumerate([X, 0.5 * X]):
        rows = tuple(v[k] for v in several) if isinstance(several, tuple) else several[k]
        np.testing.assert_allclose(flat(rows), differences(f, x).ravel(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("transform", [ft.jacfwd, ft.jacrev])
@pytest.mark.parametrize("name", ["a product", "from the left"])
def test_the_jacobian_of_a_product_is_its_matrix(name, transform):
    """Also where the matrix is not finite: no element is multiplied by zero."""
    odd = np.array([[1.0, np.inf, -0.0], [np.nan, 2.0, 3.0]])
    f = {"a product": lambda x: odd @ x, "from the left": lambda x: x @ odd.T}
    result = transform(f[name])(X)
    np.testing.assert_array_equal(result, odd)
    assert not np.shares_memory(result, odd)
    assert "dot_general" not in str(ft.make_jaxpr(transform(lambda x: W @ x))(X))


def test_complex_and_low_precision():
    matrix = W + 1j * W[::-1]
    z = X + 0.5j
    for transform in (ft.jacfwd, ft.jacrev):
        np.testing.assert_array_equal(transform(lambda z: matrix @ z, holomorphic=True)(z), matrix)
        for dtype in ("float32", "float16"):
            result = transform(lambda x: W.astype(x.dtype) @ x)(X.astype(dtype))
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, W.astype(dtype))
        with ft.autocast("float16"):
            result = transform(lambda x: W.astype("float32") @ x)(X.astype("float32"))
        np.testing.assert_array_equal(result, W.astype("float16"))


def test_the_hessian_has_one_product_of_matrices():
    """Of a logistic regression: ``X.T @ (s * X)``, after the product that gives `s`."""
    data, labels = np.random.default_rng(1).normal(size=(50, 3)), np.arange(50) % 2

    def loss(w):
        return fnp.sum(fnp.logaddexp(0.0, data @ w) - labels * (data @ w))

    text = str(ft.make_jaxpr(ft.hessian(loss))(X))
    assert text.count("dot_general[") == 2
    p = 1 / (1 + np.exp(-(data @ X)))
    for hessian in (ft.hessian(loss), ft.jit(ft.hessian(loss))):
        np.testing.assert_allclose(hessian(X), data.T @ ((p * (1 - p))[:, None] * data), rtol=1e-12)
