"""Rules in JAX's form around code that needs numbers: eagerly they get them, and elsewhere the error says what does."""

import math

import numpy as np
import pytest
import scipy.interpolate
import scipy.optimize
import scipy.special

import functrans as ft
import functrans.numpy as fnp

KNOTS, X = np.linspace(0.0, 1.0, 6), np.linspace(0.1, 0.9, 5)
SPLINE = scipy.interpolate.CubicSpline(KNOTS, np.sin(KNOTS))
WEIGHTS = np.array([scipy.interpolate.CubicSpline(KNOTS, e)(0.3) for e in np.eye(6)])


def squares(x):
    x = np.array(x)
    out = np.zeros_like(x)
    for i in range(len(x)):
        out[i] = x[i] ** 2
    return out.sum()


def root(a):
    return scipy.optimize.brentq(lambda x: x**3 - float(a), 0, 10)


#: A function, its derivative (times a cotangent or summed with a tangent), the argument, and the derivative there.
PROGRAMS = {
    "asarray": (lambda x: np.sin(np.asarray(x)).sum(), lambda x: np.cos(np.asarray(x)), X, np.cos(X)),
    "evaluates a spline": (lambda x: SPLINE(x), lambda x: SPLINE(x, 1), 0.3, SPLINE(0.3, 1)),
    "makes a spline": (
        lambda y: scipy.interpolate.CubicSpline(KNOTS, y)(0.3),
        lambda y: WEIGHTS,
        KNOTS**2,
        WEIGHTS,
    ),
    "float": (
        lambda x: math.erf(float(x)),
        lambda x: 2 / math.sqrt(math.pi) * math.exp(-(float(x) ** 2)),
        0.3,
        2 / math.sqrt(math.pi) * math.exp(-0.09),
    ),
    "a number as an array": (
        lambda x: scipy.special.gammaln(np.asarray(x)),
        lambda x: scipy.special.digamma(np.asarray(x)),
        2.5,
        scipy.special.digamma(2.5),
    ),
    "searches": (root, lambda a: 1 / (3 * root(a) ** 2), 8.0, 1 / 12),
    "writes": (squares, lambda x: 2 * np.array(x), X, 2 * X),
}


def of_jax(fun, derivative, kind):
    if kind == "custom_vjp":
        f = ft.custom_vjp(fun)
        f.defvjp(lambda x: (fun(x), x), lambda x, ct: (ct * derivative(x),))
    else:
        f = ft.custom_jvp(fun)
        f.defjvp(lambda primals, tangents: (fun(*primals), fnp.sum(derivative(*primals) * tangents[0])))
    return f


@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_get_numbers(name, kind):
    fun, derivative, x, expected = PROGRAMS[name]
    f = of_jax(fun, derivative, kind)
    np.testing.assert_allclose(f(x), fun(x))
    for gradient in (ft.grad(f)(x), ft.value_and_grad(f)(x)[1], ft.vjp(f, x)[1](1.0)[0]):
        np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    np.testing.assert_allclose(ft.grad(lambda y: f(y * 1.0) * 3)(x), 3 * expected, rtol=1e-12)
    np.testing.assert_allclose(ft.jvp(f, (x,), (np.ones_like(x),))[1], np.sum(expected), rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "searches"])  # the solver takes traced values
def test_under_jit_the_error_names_what_works(name):
    fun, derivative, x, _ = PROGRAMS[name]
    f = of_jax(fun, derivative, "custom_vjp")
    for compiled in (ft.jit(f), ft.jit(ft.grad(f))):
        with pytest.raises(
            ft.errors.ConcretizationTypeError, match=r"pure_callback.*Function` with `host = True`"
        ):
            compiled(x)


def test_derivatives_that_are_numbers_are_arrays_inside_other_derivatives():
    f = ft.custom_vjp(lambda x: x if x > 0 else -x)
    f.defvjp(lambda x: (x, 1.0) if x > 0 else (-x, -1.0), lambda s, ct: (ct * s,))
    assert ft.grad(lambda x: ft.grad(f)(x).sum() * x)(-2.0) == -1
    assert ft.grad(lambda x: ft.grad(lambda y: y * 3.0)(x).sum() * x)(2.0) == 3
    assert ft.jit(lambda x: ft.grad(lambda y: y * 3.0)(x).sum() * x)(2.0) == 6
