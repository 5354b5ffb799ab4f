"""Derivatives of jitted functions, of any order, are one compiled program."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

X = np.array([0.3, -0.7, 1.1])


def function(x):
    return fnp.sum(fnp.sin(x) * x[0])


def vector(x):
    return fnp.stack([x[0] * x[1], fnp.sin(x[2]), x[0] ** 2])


@pytest.mark.parametrize(
    ("of", "f"),
    [
        (ft.hessian, function),
        (lambda f: ft.jacfwd(ft.grad(f)), function),
        (lambda f: ft.jacrev(ft.grad(f)), function),
        (ft.jacfwd, vector),
        (ft.jacrev, vector),
        (lambda f: ft.jacfwd(ft.jacfwd(f)), vector),
    ],
    ids=["hessian", "jacfwd of grad", "jacrev of grad", "jacfwd", "jacrev", "jacfwd twice"],
)
def test_one_program(of, f):
    jitted = ft.jit(f)
    before = jitted.cache_info().compiles
    result = of(jitted)(X)
    of(jitted)(X + 1)  # another wrapper, the same program
    assert jitted.cache_info().compiles <= before + 1
    np.testing.assert_allclose(result, of(f)(X), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(result, ft.jit(of(f))(X), rtol=1e-13, atol=1e-15)


def test_options_have_programs_of_their_own():
    @ft.jit
    def f(x, y):
        return fnp.sum(x * x * y), y

    two_y, two_x = 2 * np.diag(X), 2 * np.diag(X)
    jacobian = ft.jacfwd(ft.grad(f, 0, has_aux=True), 0)(X, X)
    np.testing.assert_allclose(jacobian[0], two_y)
    np.testing.assert_allclose(jacobian[1], np.zeros((3, 3)))
    np.testing.assert_allclose(ft.jacfwd(ft.grad(f, 0, has_aux=True), 1)(X, X)[0], two_x)
    (dx, dy), aux = ft.jacrev(ft.grad(f, 0, has_aux=True), (0, 1), has_aux=True)(X, X)
    np.testing.assert_allclose(dx, two_y)
    np.testing.assert_allclose(dy, two_x)
    np.testing.assert_array_equal(aux, X)


def test_inside_other_transformations():
    jitted = ft.jit(function)
    many = np.stack([X, 2 * X])
    np.testing.assert_allclose(
        ft.vmap(ft.hessian(jitted))(many), [ft.hessian(function)(x) for x in many], rtol=1e-13
    )
    np.testing.assert_allclose(
        ft.grad(lambda x: fnp.sum(ft.hessian(jitted)(x)))(X),
        ft.grad(lambda x: fnp.sum(ft.hessian(function)(x)))(X),
        rtol=1e-12,
    )


def test_errors_are_those_of_the_function():
    with pytest.raises(
        ft.errors.GradientError, match=r"jacrev of function: argument 0 \('x'\) has dtype int64"
    ):
        ft.jacrev(ft.jit(function))(np.arange(3))
    with pytest.raises(ft.errors.ArgumentValueError, match="argnums=3"):
        ft.hessian(ft.jit(function), 3)(X)
