"""`linear_call`: a linear function with a transpose of its own, in every transformation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax
from functrans.testing import check

A = np.array([[4.0, 1.0, 0.5], [2.0, 5.0, -1.0]])
X = np.array([0.3, -1.2, 0.8])


def times(a, x):
    return ft.linear_call(lambda a, x: a @ x, lambda a, ct: a.T @ ct, a, x)


def marked(r, x):
    """Multiplication whose transpose tells itself from the true one: it is ten times too large."""
    return ft.linear_call(lambda r, x: r * x, lambda r, ct: 10.0 * r * ct, r, x)


@pytest.mark.parametrize("wrt", [0, 1, None])
def test_all_laws_hold_where_the_two_belong_together(wrt):
    check(times, A, X, wrt=wrt)


def test_values_and_derivatives_are_those_of_the_matrix():
    assert_allclose(times(A, X), A @ X)
    assert_allclose(ft.jit(times)(A, X), A @ X)
    for jac in (ft.jacrev, ft.jacfwd):
        assert_allclose(jac(times, argnums=1)(A, X), A)
    gradient = ft.grad(lambda a, x: fnp.sum(times(a, x) ** 2), argnums=(0, 1))(A, X)
    assert_allclose(gradient[0], 2 * np.outer(A @ X, X))
    assert_allclose(gradient[1], 2 * A.T @ A @ X)


WAYS = {
    "eager": lambda f: ft.grad(f),
    "jit(grad)": lambda f: ft.jit(ft.grad(f)),
    "grad(jit)": lambda f: ft.grad(ft.jit(f)),
    "vmap(grad)": lambda f: lambda x: ft.vmap(ft.grad(f))(fnp.stack([x, x]))[1],
    "grad(vmap)": lambda f: ft.grad(lambda x: ft.vmap(f)(fnp.stack([x, x]))[0]),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(f)),
    "vjp": lambda f: lambda x: ft.vjp(f, x)[1](1.0)[0],
    "linear_transpose": lambda f: lambda x: ft.linear_transpose(f, x)(1.0)[0],
}


@pytest.mark.parametrize("way", WAYS)
def test_reverse_mode_uses_the_transpose_given(way):
    assert_allclose(WAYS[way](lambda x: marked(2.0, x))(fnp.asarray(3.0)), 20.0)


def test_forward_mode_uses_the_function():
    for f in (lambda x: marked(2.0, x), ft.jit(lambda x: marked(2.0, x))):
        assert_allclose(ft.jvp(f, (3.0,), (5.0,)), (6.0, 10.0))
        assert_allclose(ft.linearize(f, 3.0)[1](5.0), 10.0)
    y, t = ft.jvp(ft.vmap(lambda x: marked(2.0, x)), (X,), (A[0],))
    assert_allclose((y, t), (2 * X, 2 * A[0]))


def test_transposing_twice_gives_the_function():
    def transposed(f):
        return lambda y: ft.linear_transpose(f, 1.0)(y)[0]

    f = lambda x: marked(2.0, x)
    found = []
    for _ in range(4):
        found.append(f(1.0))
        f = transposed(f)
    assert_allclose(found, [2.0, 20.0, 2.0, 20.0])


def test_residuals_are_differentiated_as_of_any_function():
    f = lambda r, x: ft.linear_call(lambda r, x: fnp.sin(r) * x, lambda r, ct: fnp.sin(r) * ct, r, x)
    r, x = 0.7, 1.3
    assert_allclose(ft.grad(f)(r, x), np.cos(r) * x)
    assert_allclose(ft.jvp(f, (r, x), (1.0, 2.0))[1], np.cos(r) * x + 2 * np.sin(r))
    assert_allclose(ft.grad(ft.grad(f))(r, x), -np.sin(r) * x)
    assert_allclose(ft.grad(ft.grad(f, argnums=1))(r, x), np.cos(r))  # through the transposed call
    assert_allclose(ft.jit(ft.grad(ft.grad(ft.grad(f), argnums=1)))(r, x), -np.sin(r))


def test_inside_loops():
    def f(x):
        return lax.scan(lambda c, r: (marked(r, c), None), x, fnp.asarray([2.0, 3.0]))[0]

    assert_allclose(f(1.5), 9.0)
    for way in (ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(ft.jit(f))):
        assert_allclose(way(f)(1.5), 600.0)


def test_vmap_of_one_argument_or_both():
    rows = np.stack([X, 2 * X])
    assert_allclose(ft.vmap(times, (None, 0))(A, rows), rows @ A.T)
    assert_allclose(ft.vmap(times, (0, None))(np.stack([A, -A]), X), np.stack([A @ X, -A @ X]))
    shared = ft.grad(lambda x: fnp.sum(ft.vmap(times, (0, None))(np.stack([A, 3 * A]), x)))(X)
    assert_allclose(shared, 4 * A.sum(0))


def test_trees_and_integers():
    def fun(res, lin):
        return {"y": lin[0] * res["w"], "n": lin[1]}

    def fun_transpose(res, ct):
        return ct["y"] * res["w"], None

    f = lambda x, w: ft.linear_call(fun, fun_transpose, {"w": w}, (x, 3))["y"]
    assert_allclose(ft.grad(f, argnums=(0, 1))(2.0, 5.0), (5.0, 2.0))
    assert ft.linear_call(fun, fun_transpose, {"w": 5.0}, (2.0, 3))["n"] == 3


def test_partly_perturbed_arguments_and_missing_cotangents():
    f = lambda x: ft.linear_call(lambda _, x: x[0] + 2 * x[1], lambda _, ct: (ct, 2 * ct), (), (1.0, x))
    assert_allclose(ft.grad(f)(3.0), 2.0)
    g = lambda x: ft.linear_call(lambda _, x: (x, 3 * x), lambda _, ct: ct[0] + 3 * ct[1], (), x)[1]
    assert_allclose(ft.grad(g)(3.0), 3.0)
    assert_allclose(ft.grad(lambda x: ft.linear_call(lambda _, x: x, lambda _, ct: None, (), x))(3.0), 0.0)


def test_complex_functions_are_transposed_without_conjugation():
    w, z = 1 + 2j, 0.3 - 0.8j
    f = lambda z: ft.linear_call(lambda w, z: w * z, lambda w, ct: w * ct, w, z)
    assert_allclose(ft.grad(lambda z: f(z).real)(z), ft.grad(lambda z: (w * z).real)(z))
    assert_allclose(ft.grad(f, holomorphic=True)(z), w)


def test_dtypes_are_converted():
    f = lambda x: ft.linear_call(lambda _, x: x, lambda _, ct: ct.astype("float64"), (), x)
    assert ft.grad(f)(np.float32(1)).dtype == np.float32


@pytest.mark.parametrize(
    ("transposed", "error"),
    [
        (lambda _, ct: (ct,), errors.GradientStructureError),
        (lambda _, ct: fnp.ones(2) * ct, errors.GradientShapeError),
        (lambda _, ct: 1j * ct, errors.GradientDtypeError),
        (lambda _, ct: "ct", errors.BackwardError),
    ],
)
def test_what_the_transpose_returns_is_checked(transposed, error):
    for way in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        with pytest.raises(error, match=r"fun_transpose of linear_call[\s\S]*lambda _, ct"):
            way(lambda x: ft.linear_call(lambda _, x: x, transposed, (), x))(3.0)


def test_captured_values():
    def f(w, x):
        return ft.linear_call(lambda _, x: w * x, lambda _, ct: w * ct, (), x)

    assert_allclose(ft.vmap(ft.grad(f, argnums=1), (0, None))(X, 2.0), X)
    assert_allclose(ft.jit(ft.grad(f, argnums=1))(3.0, 2.0), 3.0)
    with pytest.raises(errors.CapturedTracerError, match="'w'"):
        ft.grad(f)(3.0, 2.0)


def test_it_is_not_linear_in_residuals():
    with pytest.raises(errors.GradientError, match="not in residual_args"):
        ft.linear_transpose(lambda r: marked(r, 2.0), 1.0)(1.0)
    with pytest.raises(errors.ArgumentError, match="function"):
        ft.linear_call(3, lambda r, ct: ct, (), 1.0)
