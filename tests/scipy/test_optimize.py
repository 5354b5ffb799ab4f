"""Roots by SciPy's solvers: derivatives against closed forms and finite differences."""

import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.scipy.optimize import bisect, brenth, brentq, fsolve, ridder, root, root_scalar

GRADIENTS = {
    "grad": ft.grad,
    "jacfwd": ft.jacfwd,
    "jit of grad": lambda f: ft.jit(ft.grad(f)),
    "grad of jit": lambda f: ft.grad(ft.jit(f)),
    "vmap of grad": lambda f: lambda x: ft.vmap(ft.grad(f))(np.stack([x, x]))[0],
}
SECOND = {
    "reverse over reverse": lambda f: ft.jacrev(ft.jacrev(f)),
    "forward over reverse": lambda f: ft.jacfwd(ft.jacrev(f)),
    "reverse over forward": lambda f: ft.jacrev(ft.jacfwd(f)),
    "jit": lambda f: ft.jit(ft.hessian(f)),
}
gradients = pytest.mark.parametrize("way", GRADIENTS)
seconds = pytest.mark.parametrize("way", SECOND)


def square(x, a):
    return x**2 - a


#: What finds the square root of a number.
SOLVERS = {
    "bisect": lambda a: bisect(square, 0, 5, args=(a,)),
    "brentq": lambda a: brentq(lambda x: square(x, a), 0, 5),
    "brenth": lambda a: brenth(lambda x: square(x, a), 0, 5),
    "ridder": lambda a: ridder(square, 0, 5, args=a),
    "traced bracket": lambda a: brentq(square, a / 9, 1 + a, args=(a,)),
    "full output": lambda a: brentq(square, 0, 5, args=(a,), full_output=True)[1].root,
    "root_scalar": lambda a: root_scalar(square, bracket=(0, 5), args=(a,)).root,
    "newton": lambda a: root_scalar(square, x0=1.0, fprime=lambda x, a: 2 * x, args=(a,)).root,
    "newton of a pair": lambda a: root_scalar(lambda x: (x**2 - a, 2 * x), x0=a, fprime=True).root,
    "secant": lambda a: root_scalar(lambda x: x**2 - a, x0=1.0, x1=2.0).root,
    "halley": lambda a: (
        root_scalar(
            lambda x: x**2 - a, x0=1.0, fprime=lambda x: 2 * x, fprime2=lambda x: 2.0, method="halley"
        ).root
    ),
    "fsolve": lambda a: fsolve(square, 1.0, args=(a,), xtol=1e-13)[0],
    "fsolve with a Jacobian": lambda a: fsolve(square, a, args=(a,), fprime=lambda x, a: 2 * x, xtol=1e-13)[
        0
    ],
    "root": lambda a: root(square, [1.0], args=(a,), tol=1e-13).x[0],
    "lm": lambda a: root(square, 1.0, args=(a,), method="lm", tol=1e-13).x[0],
    "krylov": lambda a: root(lambda x: square(x, a), [1.0], method="krylov", tol=1e-13).x[0],
    "root with a Jacobian": lambda a: root(
        square, 1.0, args=(a,), jac=lambda x, a: [[2 * x[0]]], tol=1e-13
    ).x[0],
    "root of a pair": lambda a: root(lambda x: (x**2 - a, 2 * x[:, None]), 1.0, jac=True, tol=1e-13).x[0],
    "brentq as it is": lambda a: scipy.optimize.brentq(square, 0, 5, args=(a,)),
    "fsolve as it is": lambda a: scipy.optimize.fsolve(square, 1.0, args=(a,), xtol=1e-13)[0],
    "root as it is": lambda a: scipy.optimize.root(square, 1.0, args=(a,), tol=1e-13).x[0],
    "root_scalar as it is": lambda a: scipy.optimize.root_scalar(square, bracket=(0, 5), args=(a,)).root,
    "bisect as it is": lambda a: scipy.optimize.bisect(square, 0, 5, args=(a,)),
}


@gradients
@pytest.mark.parametrize("name", SOLVERS)
def test_the_square_root(name, way):
    found = GRADIENTS[way](SOLVERS[name])(2.5)
    np.testing.assert_allclose(found, 0.5 / math.sqrt(2.5), rtol=1e-9)


@seconds
@pytest.mark.parametrize("name", ["brentq", "fsolve", "root"])
def test_second_derivatives(name, way):
    found = SECOND[way](SOLVERS[name])(2.5)
    np.testing.assert_allclose(found, -0.25 * 2.5**-1.5, rtol=1e-8)


def test_third_derivatives():
    third = ft.grad(ft.grad(ft.grad(SOLVERS["brentq"])))
    np.testing.assert_allclose(third(2.5), 0.375 * 2.5**-2.5, rtol=1e-8)


def system(x, a, b):
    return [x[0] + a * x[1] - b[0], fnp.sin(x[0]) * x[1] - b[1]]


@pytest.mark.parametrize(
    "solve",
    [
        lambda *args: root(*args, tol=1e-12).x,
        lambda *args: root(*args, method="lm", tol=1e-12).x,
        lambda *args: root(*args, method="broyden1", tol=1e-12).x,
        lambda *args: fsolve(*args, xtol=1e-12),
    ],
)
@gradients
def test_systems_against_finite_differences(solve, way):
    def total(p):
        return fnp.sum(solve(system, [1.0, 1.0], (p[0], p[1:])) ** 2)

    p = np.array([0.5, 2.0, 0.9])
    expected = [(total(p + 1e-5 * e) - total(p - 1e-5 * e)) / 2e-5 for e in np.eye(3)]
    np.testing.assert_allclose(GRADIENTS[way](total)(p), expected, rtol=1e-7)


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_linear_systems(n, seed):
    """Against the inverse: a root is a solution, of any size, and so are its derivatives."""
    rng = np.random.default_rng(seed)
    matrix, b, weights = rng.normal(size=(n, n)) + 3 * np.eye(n), rng.normal(size=n), rng.normal(size=n)
    fun = lambda m, b: weights @ fsolve(lambda x: m @ x - b, np.zeros(n), xtol=1e-10)
    in_matrix, in_b = ft.grad(fun, argnums=(0, 1))(matrix, b)
    back, x = np.linalg.solve(matrix.T, weights), np.linalg.solve(matrix, b)
    np.testing.assert_allclose(in_b, back, atol=1e-7)
    np.testing.assert_allclose(in_matrix, -np.outer(back, x), atol=1e-7)


def test_shapes_of_roots():
    """As SciPy's: in one axis by MINPACK, else as the guess."""
    guess = np.ones((2, 1))
    for method in ("hybr", "broyden1"):
        solve = lambda a, method=method: root(lambda x: x**2 - a, guess, method=method).x
        assert ft.jacfwd(solve)(2.0).shape == solve(2.0).shape


def test_what_else_is_returned():
    kept = []

    def fun(a):
        x, found = brentq(square, 0, 5, args=(a,), full_output=True)
        kept.extend([found, root_scalar(square, bracket=(0, 5), args=(a,)), root(square, 1.0, args=(a,))])
        return x

    ft.grad(fun)(2.0)
    plain = [
        brentq(square, 0, 5, args=(2.0,), full_output=True)[1],
        scipy.optimize.root(square, 1.0, args=(2.0,)),
    ]
    assert kept[0].iterations == kept[1].iterations == plain[0].iterations
    assert kept[0].converged
    assert type(kept[0]) is type(plain[0])
    assert kept[2].nfev == plain[1].nfev
    assert kept[2].success
    kept.clear()
    ft.jit(fun)(2.0)
    assert [list(found) for found in kept] == [["root"], ["root"], ["x"]]


def test_without_traced_values_it_is_scipy():
    assert brentq(square, 0, 5, args=(2.0,)) == scipy.optimize.brentq(square, 0, 5, args=(2.0,))
    assert type(brentq(square, 0, 5, args=(2.0,))) is float
    assert type(fsolve(square, 1.0, args=(2.0,))) is np.ndarray
    assert fsolve(square, 1.0, args=(2.0,), full_output=True)[2] == 1
    assert not root(lambda x: x**2 + 1, 1.0).success
    assert not root_scalar(lambda x: x**2 + 1, x0=0.7, fprime=lambda x: 2 * x).converged
    with pytest.raises(RuntimeError, match="converge"):
        brentq(square, 0, 5, args=(2.0,), maxiter=2)


@pytest.mark.parametrize(
    ("fun", "says"),
    [
        (lambda a: brentq(square, 0, 5, args=(a,), maxiter=2), "brentq: no root"),
        (lambda a: brentq(square, 0, 5, args=(a,), maxiter=2, disp=False), "brentq: no root"),
        (lambda a: root_scalar(square, bracket=(0, 5), args=(a,), maxiter=2).root, "root_scalar: no root"),
        (lambda a: fsolve(lambda x: x**2 + a, 0.3)[0], "fsolve: no root"),
        (lambda a: root(lambda x: x**2 + a, 0.3).x[0], "root: no root"),
    ],
)
def test_no_root_no_derivative(fun, says):
    with pytest.raises(ft.errors.SolverError, match=f"^{says} was found: ") as met:
        ft.grad(fun)(2.0)
    assert isinstance(met.value, RuntimeError)
    assert met.value.source.filename == __file__


def test_errors_of_scipy_pass():
    with pytest.raises(ValueError, match="different signs"):
        ft.grad(lambda a: brentq(square, 3, 5, args=(a,)))(2.0)
    with pytest.raises(ft.errors.ArgumentError, match=r"^fsolve: full_output"):
        ft.grad(lambda a: fsolve(square, 1.0, args=(a,), full_output=True)[0][0])(2.0)
    with pytest.raises(ft.errors.LinAlgError):
        ft.grad(
            lambda a: root(lambda x: [x[0] + x[1] - a, 2 * (x[0] + x[1] - a)], [0.0, 0.0], method="lm").x[0]
        )(1.0)


def test_math_of_traced_values_is_refused():
    with pytest.raises(ft.errors.TracerScalarConversionError, match=r"Write functrans\.numpy\.exp"):
        ft.grad(lambda a: brentq(lambda x: math.exp(x) - a, 0, 5))(2.0)


def test_solvers_in_solvers():
    """The inner root is a function of what the outer one looks for."""
    inner = lambda y, a: brentq(lambda x: x**3 + y * x - a, 0, 5)
    outer = lambda a: brentq(lambda y: y + inner(y, a) - 2, 0, 5)
    a, h = 3.0, 1e-5
    np.testing.assert_allclose(ft.grad(outer)(a), (outer(a + h) - outer(a - h)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(ft.jacfwd(outer)(a), ft.grad(outer)(a), rtol=1e-9)
