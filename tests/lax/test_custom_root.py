"""`lax.custom_root`: roots by solvers of all kinds, whose derivatives come from the equation."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax
from functrans.testing import check
from functrans.testing.finite_difference import jacobian


def newton(f, x):
    return lax.while_loop(lambda x: fnp.abs(f(x)) > 1e-12, lambda x: x - f(x) / ft.grad(f)(x), x)


def divide(g, y):
    return y / g(1.0)


def square_root(a, guess=1.0):
    return lax.custom_root(lambda x: x * x - a, guess, newton, divide)


#: Derivatives of the square root at 2.
SQRT = [2**0.5, 0.5 * 2**-0.5, -0.25 * 2**-1.5, 0.375 * 2**-2.5]
WAYS = {
    "eager": (lambda f: f, 0),
    "jit": (ft.jit, 0),
    "disable_jit": (lambda f: without_jit(f), 0),
    "grad": (ft.grad, 1),
    "jacfwd": (ft.jacfwd, 1),
    "grad without jit": (lambda f: without_jit(ft.grad(f)), 1),
    "jit(grad)": (lambda f: ft.jit(ft.grad(f)), 1),
    "grad(jit)": (lambda f: ft.grad(ft.jit(f)), 1),
    "linearize(jit)": (lambda f: lambda a: ft.linearize(ft.jit(f), a)[1](1.0), 1),
    "checkpoint": (lambda f: ft.grad(ft.checkpoint(f)), 1),
    "hessian": (ft.hessian, 2),
    "reverse twice": (lambda f: ft.grad(ft.grad(f)), 2),
    "forward twice": (lambda f: ft.jacfwd(ft.jacfwd(f)), 2),
    "jit(hessian)": (lambda f: ft.jit(ft.hessian(f)), 2),
    "hessian(jit)": (lambda f: ft.hessian(ft.jit(f)), 2),
    "third": (lambda f: ft.grad(ft.grad(ft.grad(f))), 3),
    "third, mixed": (lambda f: ft.jacfwd(ft.grad(ft.jacfwd(f))), 3),
    "jit(third)": (lambda f: ft.jit(ft.grad(ft.grad(ft.grad(f)))), 3),
}


def without_jit(f):
    def run(*args):
        with ft.disable_jit():
            return f(*args)

    return run


@pytest.mark.parametrize("way", WAYS)
def test_derivatives_of_every_order(way):
    transform, order = WAYS[way]
    assert_allclose(transform(square_root)(2.0), SQRT[order], rtol=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_under_vmap_each_lane_runs_its_own_iterations(way):
    transform, order = WAYS[way]
    a = np.array([2.0, 98.0, 0.0002])  # 5, 8 and 11 iterations
    wanted = SQRT[order] * (a / 2) ** (0.5 - order)
    assert_allclose(ft.vmap(transform(square_root))(a), wanted, rtol=1e-5)
    if order == 0:
        assert_allclose(transform(ft.vmap(square_root))(a), wanted, rtol=1e-5)
        assert_allclose(ft.vmap(transform(square_root), (None, 0))(2.0, a[:2]), [SQRT[0]] * 2)
    if order == 1:
        assert_allclose(transform(lambda t: fnp.sum(ft.vmap(square_root)(a * t)))(1.0), wanted @ a, rtol=1e-5)


def test_laws():
    check(square_root, np.float64(2.0))
    check(lambda a: square_root(fnp.sum(a)), np.array([0.3, 1.2]))


# --- systems -------------------------------------------------------------------------------------------------


def by_jacobian(g, y):
    return fnp.linalg.solve(ft.jacfwd(g)(y), y)


def newton_system(f, x):
    def step(x):
        return x - fnp.linalg.solve(ft.jacfwd(f)(x), f(x))

    return lax.while_loop(lambda x: fnp.max(fnp.abs(f(x))) > 1e-13, step, x)


M = np.array([[2.0, 0.5, -0.3], [0.1, 1.5, 0.7], [-0.6, 0.2, 1.8]])


def equations(p, x):
    """With one root, and a Jacobian that is not symmetric."""
    return M @ x + 0.4 * fnp.sin(p[0] * fnp.roll(x, 1)) - p[1] * fnp.arange(1.0, 4.0) * p[0]


P = np.array([2.0, 0.6])
START = np.zeros(3)


def fsolve(f, x):
    return scipy.optimize.fsolve(f, x, xtol=1e-13)


def gmres(g, y):
    operator = scipy.sparse.linalg.LinearOperator(
        (y.size, y.size), matvec=lambda x: np.array(g(x)), dtype=y.dtype
    )
    return scipy.sparse.linalg.gmres(operator, np.array(y), rtol=1e-13)[0]


def richardson(g, y):
    """Iterations on ``g^T g``, which is positive definite."""
    transposed = lambda z: ft.linear_transpose(g, y)(z)[0]
    return lax.fori_loop(0, 3000, lambda i, x: x + 0.1 * transposed(y - g(x)), fnp.zeros_like(y))


def of_system(solve, tangent_solve):
    return lambda p: lax.custom_root(lambda x: equations(p, x), START, solve, tangent_solve)


def reference(p):
    return scipy.optimize.fsolve(lambda x: np.asarray(equations(p, x)), START, xtol=1e-13)


SYSTEMS = {
    "Newton": of_system(newton_system, by_jacobian),
    "fsolve": of_system(fsolve, by_jacobian),
    "fsolve, gmres": of_system(fsolve, gmres),
    "Newton, loop": of_system(newton_system, richardson),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems(name):
    f = SYSTEMS[name]
    assert_allclose(f(P), reference(P), rtol=1e-8)
    slopes = jacobian(lambda x: [reference(x[0])], [P])[0][0][0]
    assert_allclose(ft.jvp(f, (P,), (P,))[1], slopes @ P, rtol=1e-6)
    for i, w in enumerate(np.eye(3)):
        assert_allclose(ft.grad(lambda p, w=w: fnp.dot(f(p), w))(P), slopes[i], rtol=1e-6)


def test_higher_orders_of_systems():
    f = SYSTEMS["Newton"]
    curve = jacobian(lambda x: [np.asarray(ft.jacrev(f)(x[0]))], [P])[0][0][0]
    for second in (lambda f: ft.jacrev(ft.jacrev(f)), lambda f: ft.jit(ft.hessian(f))):
        assert_allclose(second(f)(P), curve, rtol=1e-5, atol=1e-8)
    assert_allclose(ft.jacfwd(ft.jacrev(SYSTEMS["Newton, loop"]))(P), curve, rtol=1e-5, atol=1e-8)
    stacked = np.stack([P, 1.1 * P])
    assert_allclose(ft.vmap(ft.jacrev(f))(stacked), [ft.jacrev(f)(p) for p in stacked], rtol=1e-7)


def test_by_numbers_alone():
    """Solvers with Python's ``while`` work in eager derivatives of any order."""
    f = SYSTEMS["fsolve, gmres"]
    direction = lambda t: fnp.sum(f(P * t))
    other = lambda t: fnp.sum(SYSTEMS["Newton"](P * t))
    slope = lambda f: lambda t: ft.jvp(f, (t,), (1.0,))[1]
    for d in (ft.grad, lambda f: ft.grad(ft.grad(f)), lambda f: slope(ft.grad(slope(f)))):
        assert_allclose(d(direction)(1.0), d(other)(1.0), rtol=1e-6)


# --- the tangent system ---------------------------------------------------------------------------------------

A = np.array([[4.0, 1.0], [2.0, 5.0]])
TANGENT_SOLVES = {
    "captured matrix": lambda g, y: fnp.linalg.solve(A, y),
    "Jacobian": by_jacobian,
    "inverse": lambda g, y: fnp.linalg.inv(ft.jacrev(g)(y)) @ y,
    "fori_loop": lambda g, y: lax.fori_loop(0, 90, lambda i, x: x + 0.2 * (y - g(x)), 0 * y),
    "while_loop": lambda g, y: lax.while_loop(
        lambda x: fnp.max(fnp.abs(y - g(x))) > 1e-13, lambda x: x + 0.2 * (y - g(x)), 0 * y
    ),
    "cond": lambda g, y: lax.cond(y[0] > 0.5, lambda y: by_jacobian(g, y), lambda y: by_jacobian(g, y), y),
    "chosen": lambda g, y: fnp.nan_to_num(by_jacobian(g, y)),
    "custom_linear_solve": lambda g, y: lax.custom_linear_solve(g, y, by_jacobian, by_jacobian),
    "numbers": lambda g, y: np.linalg.solve(np.stack([g(e) for e in np.eye(2)], 1), np.asarray(y)),
}


def linear(tangent_solve):
    solve = lambda f, x: x - fnp.linalg.solve(A, f(x))
    return lambda b: lax.custom_root(lambda x: A @ x - b, np.zeros(2), solve, tangent_solve)


@pytest.mark.parametrize("name", TANGENT_SOLVES)
def test_reverse_mode_transposes_the_tangent_solver(name):
    f = linear(TANGENT_SOLVES[name])
    b = np.array([1.0, 2.0])
    inverse = np.linalg.inv(A)
    for i in (0, 1):
        assert_allclose(ft.grad(lambda b, i=i: f(b)[i])(b), inverse[i], rtol=1e-9)
    assert_allclose(ft.jvp(f, (b,), (b,))[1], inverse @ b, rtol=1e-9)
    if name != "numbers":
        assert_allclose(ft.jit(ft.jacrev(f))(b), inverse, rtol=1e-9)
        assert_allclose(ft.jacrev(ft.jit(f))(b), inverse, rtol=1e-9)
        assert_allclose(ft.vmap(ft.grad(lambda b: f(b)[0]))(np.stack([b, b])), [inverse[0]] * 2, rtol=1e-9)


def test_a_loop_that_does_not_ask_for_the_matrix():
    def own(g, y):
        return lax.while_loop(
            lambda x: fnp.max(fnp.abs(y - A @ x)) > 1e-13, lambda x: x + 0.2 * (y - A @ x), 0 * y
        )

    f = linear(own)
    b = np.array([1.0, 2.0])
    assert_allclose(ft.jvp(f, (b,), (b,))[1], np.linalg.solve(A, b))
    with pytest.raises(errors.MissingRuleError, match="custom_linear_solve"):
        ft.grad(lambda b: f(b)[0])(b)


def test_parts_of_the_equation_that_do_not_depend_on_the_root():
    """The Jacobian of the second equation in the second unknown alone."""

    def f(a):
        def g(x):
            return {"u": x["u"] - a * x["v"], "v": x["v"] - a**2}

        def solve(f, x):
            return {"u": a**3, "v": a**2}

        def tangent_solve(g, y):
            return {"u": y["u"] + g({"u": 0.0, "v": -y["v"]})["u"], "v": y["v"]}

        return lax.custom_root(g, {"u": 0.0, "v": 0.0}, solve, tangent_solve)["u"]

    for i, d in enumerate([f, ft.grad(f), ft.hessian(f), ft.grad(ft.grad(ft.grad(f)))]):
        assert_allclose(d(2.0), [8.0, 12.0, 12.0, 6.0][i])


# --- where it stands -------------------------------------------------------------------------------------------


def test_inside_loops_and_branches():
    def iterated(root):
        return lambda a: lax.scan(lambda c, x: (root(c + x), c), a, np.arange(3.0))[0]

    for way in (ft.grad, ft.hessian, lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(ft.jit(f))):
        assert_allclose(way(iterated(square_root))(2.0), way(iterated(fnp.sqrt))(2.0))
    a = np.array([2.0, 30.0])
    assert_allclose(ft.vmap(ft.grad(iterated(square_root)))(a), ft.vmap(ft.grad(iterated(fnp.sqrt)))(a))

    def counted(root):
        return lambda a: lax.while_loop(lambda c: c[1] < 3, lambda c: (root(c[0]), c[1] + 1), (a, 0))[0]

    assert_allclose(ft.grad(counted(square_root))(2.0), 2 ** (1 / 8 - 1) / 8)
    either = lambda root: lambda a: lax.cond(a > 1, root, lambda a: 2 * a, a)
    for x in (0.5, 3.0):
        assert_allclose(ft.grad(either(square_root))(x), ft.grad(either(fnp.sqrt))(x))


def test_roots_of_roots():
    """``x = sqrt(a)`` found from an equation with a root in it: ``sqrt(x) = a ** 0.25``."""

    def f(a):
        return lax.custom_root(lambda x: square_root(x) - square_root(square_root(a)), 1.0, newton, divide)

    for i, d in enumerate([f, ft.grad(f), ft.grad(ft.grad(f))]):
        assert_allclose(d(2.0), SQRT[i], rtol=1e-8)
    assert_allclose(ft.jit(ft.grad(f))(2.0), SQRT[1], rtol=1e-8)
    assert_allclose(ft.vmap(ft.grad(f))(np.array([2.0, 8.0])), [SQRT[1], SQRT[1] / 2], rtol=1e-8)


def test_the_guess_and_the_solver_have_no_derivatives():
    assert ft.grad(square_root, argnums=1)(2.0, 1.0) == 0.0
    assert_allclose(ft.jvp(square_root, (2.0, 1.0), (1.0, 5.0))[1], SQRT[1])

    def damped(a, rate):
        solve = lambda f, x: lax.fori_loop(0, 200, lambda i, x: x - rate * f(x) * a / a, x)
        return lax.custom_root(lambda x: x * x - a, 1.0, solve, divide)

    for way in (ft.grad, lambda f, **k: ft.jit(ft.grad(f, **k)), lambda f, **k: ft.grad(ft.jit(f), **k)):
        assert_allclose(way(damped, argnums=(0, 1))(2.0, 0.2), (SQRT[1], 0.0))
    assert_allclose(ft.vmap(ft.grad(damped), (0, None))(np.array([2.0, 3.0]), 0.2)[0], SQRT[1])


def test_solvers_see_arrays_in_eager_derivatives():
    seen = []

    def solve(f, x):
        while abs(f(x)) > 1e-12:
            seen.append(type(x))
            x = x - f(x) / (2 * x)
        return x

    f = lambda a: lax.custom_root(lambda x: x * x - a, 1.0, solve, divide)
    for i, d in enumerate([f, ft.grad(f), ft.hessian(f)]):
        assert_allclose(d(2.0), SQRT[i])
    assert ft.Array in seen
    assert not any(t is not ft.Array for t in seen)
    with pytest.raises(errors.TracerBoolConversionError):
        ft.jit(f)(2.0)


def test_auxiliary_data():
    def solve(f, x):
        x, n = lax.while_loop(
            lambda s: fnp.abs(f(s[0])) > 1e-12, lambda s: (0.5 * (s[0] + 2 / s[0]), s[1] + 1), (x, 0)
        )
        return x, {"iterations": n, "method": "Heron"}

    f = lambda a: lax.custom_root(lambda x: x * x - a, 1.0, solve, divide, has_aux=True)
    for way in (lambda f: f, ft.jit):
        root, aux = way(lambda a: (f(a)[0], f(a)[1]["iterations"]))(2.0)
        assert_allclose(root, SQRT[0])
        assert aux == 5
    assert f(2.0)[1]["method"] == "Heron"
    gradient, aux = ft.grad(f, has_aux=True)(2.0)
    assert_allclose(gradient, SQRT[1])
    assert aux["iterations"] == 5
    assert_allclose(ft.vmap(ft.grad(lambda a: f(a)[0]))(np.full(2, 2.0)), [SQRT[1]] * 2)


def test_dtypes_and_complex_roots():
    assert square_root(2.0, 1).dtype == np.float64
    single = lambda a: lax.custom_root(
        lambda x: x * x - a,
        np.float32(1),
        lambda f, x: lax.fori_loop(0, 9, lambda i, x: 0.5 * (x + a / x), x),
        divide,
    )
    assert single(np.float32(2)).dtype == np.float32
    assert ft.grad(single)(np.float32(2)).dtype == np.float32

    def solve(f, z):
        return lax.fori_loop(0, 30, lambda i, z: z - f(z) / ft.grad(f, holomorphic=True)(z), z)

    f = lambda a: lax.custom_root(lambda z: z**3 - a, 1 + 1j, solve, lambda g, y: y / g(1.0 + 0j))
    a = 0.3 + 2j
    assert_allclose(f(a) ** 3, a)
    for way in (ft.grad, lambda f, **k: ft.jit(ft.grad(f, **k))):
        assert_allclose(way(f, holomorphic=True)(a), f(a) / (3 * a))
        real = way(lambda a: f(a).real, holomorphic=False)(a)
        assert_allclose(real, (f(a) / (3 * a)))


def test_results_are_the_callers_own():
    x = np.ones(2)
    root = lax.custom_root(lambda y: y - y, x, lambda f, y: x, by_jacobian)
    x[0] = 5.0
    assert_array_equal(root, [1.0, 1.0])


WRONG = {
    "f structure": (lambda x: (x,), newton, errors.ArgumentError, "f .*structure of initial_guess"),
    "f shape": (lambda x: x * np.ones(2), newton, errors.ShapeError, r"f .*\(2,\)"),
    "f dtype": (lambda x: (x * x).astype("float32"), newton, errors.DtypeError, "f .*float32"),
    "solve structure": (lambda x: x, lambda f, x: [f(x)], errors.ArgumentError, "solve"),
    "solve shape": (lambda x: x, lambda f, x: f(x) * np.ones(2), errors.ShapeError, r"solve .*\(2,\)"),
    "solve dtype": (lambda x: x, lambda f, x: f(x) + 1j, errors.DtypeError, r"solve .*complex"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_types(case):
    f, solve, error, message = WRONG[case]
    call = lambda a: lax.custom_root(f, a, solve, divide)
    for way in (call, ft.jit(call), ft.grad(call)):
        with pytest.raises(error, match=message):
            way(1.0)


@pytest.mark.parametrize(
    ("tangent_solve", "error"),
    [
        (lambda g, y: y * np.ones(2), errors.ShapeError),
        (lambda g, y: (y,), errors.ArgumentError),
        (lambda g, y: y * 1j, errors.DtypeError),
    ],
)
def test_wrong_tangent_solver(tangent_solve, error):
    f = lambda a: lax.custom_root(lambda x: x - a, 1.0, lambda f, x: x - f(x), tangent_solve)
    assert f(2.0) == 2.0
    for way in (ft.grad(f), lambda a: ft.jvp(f, (a,), (1.0,)), ft.jit(ft.grad(f))):
        with pytest.raises(error, match="tangent_solve"):
            way(2.0)


def test_wrong_arguments():
    for args in [(3, 1.0, newton, divide), (divide, 1.0, 3, divide), (divide, 1.0, newton, 3)]:
        with pytest.raises(errors.ArgumentError, match="function"):
            lax.custom_root(*args)
    with pytest.raises(errors.ArgumentError, match="initial_guess"):
        lax.custom_root(lambda x: x, "x", newton, divide)
    with pytest.raises(errors.ArgumentError, match="pair"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: x, divide, has_aux=True)


def test_functions_that_the_solver_does_not_call_are_checked():
    for f in (lambda x: (x, x), lambda x: fnp.ones(3)):
        with pytest.raises((errors.ArgumentError, errors.ShapeError), match="custom_root: f"):
            lax.custom_root(f, 1.0, lambda f, x: x, lambda g, y: y)
    with pytest.raises(errors.ArgumentError, match="custom_linear_solve: matvec"):
        lax.custom_linear_solve(lambda x: [x, x], 1.0, lambda mv, b: b)
