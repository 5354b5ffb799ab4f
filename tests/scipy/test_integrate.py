"""Integrals and initial value problems by SciPy's solvers: derivatives against closed forms and finite differences."""

import math
from functools import partial

import numpy as np
import pytest
import scipy.integrate
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.scipy.integrate import quad, solve_ivp

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


class Line:
    """An integrand that is a method, and reads an attribute."""

    def __init__(self, slope):
        self.slope = slope

    def at(self, t):
        return self.slope * t


def branching(a):
    def integrand(t):  # what SciPy gives is a Python float, and the value of `a` is known
        return a * math.sin(t) if t > 0.5 and a > 0 else a * a

    return quad(integrand, 0, 1, points=[0.5])[0]


#: Integrals, with their derivatives in `a` in closed form.
INTEGRALS = {
    "closure": (lambda a: quad(lambda t: a * t, 0, 1)[0], lambda a: 0.5),
    "argument": (lambda a: quad(lambda t, a, n: a**n * t, 0, 1, args=(a, 3))[0], lambda a: 1.5 * a**2),
    "one argument": (lambda a: quad(lambda t, a: a * t, 0, 1, args=a)[0], lambda a: 0.5),
    "upper": (lambda a: quad(lambda t: t**2, 0, a)[0], lambda a: a**2),
    "lower": (lambda a: quad(lambda t: t**2, a, 3)[0], lambda a: -(a**2)),
    "both": (lambda a: quad(lambda t: t**2, a, 2 * a)[0], lambda a: 7 * a**2),
    "all": (lambda a: quad(lambda t: a * t**2, -a, a)[0], lambda a: 8 * a**3 / 3),
    "infinite": (lambda a: quad(lambda t: fnp.exp(-a * t), 0, np.inf)[0], lambda a: -1 / a**2),
    "both infinite": (
        lambda a: quad(lambda t: fnp.exp(-a * t * t), -np.inf, np.inf)[0],
        lambda a: -math.sqrt(math.pi) / 2 * a**-1.5,
    ),
    "tail": (lambda a: quad(lambda t: fnp.exp(-t), a, np.inf)[0], lambda a: -math.exp(-a)),
    "singular": (lambda a: quad(lambda t: a / math.sqrt(t), 0, 1)[0], lambda a: 2.0),
    "singular at a": (
        lambda a: quad(lambda t: abs(t - a) ** 1.5, 0, 3, points=[a])[0],
        lambda a: a**1.5 - (3 - a) ** 1.5,
    ),
    "oscillating": (
        lambda a: quad(lambda t: fnp.exp(-a * t), 0, np.inf, weight="cos", wvar=2.0)[0],
        lambda a: (4 - a * a) / (a * a + 4) ** 2,
    ),
    "principal value": (
        lambda a: quad(lambda t: a * t + 1, -1, 1, weight="cauchy", wvar=0.0)[0],
        lambda a: 2.0,
    ),
    "backwards": (lambda a: quad(lambda t: a * t, 1, 0)[0], lambda a: -0.5),
    "method": (lambda a: quad(Line(a).at, 0, 1)[0], lambda a: 0.5),
    "partial": (lambda a: quad(partial(lambda s, t: s * t, a), 0, 1)[0], lambda a: 0.5),
    "jitted": (lambda a: quad(ft.jit(lambda t: a * t), 0, 1)[0], lambda a: 0.5),
    "nested": (lambda a: quad(lambda y: quad(lambda x: a * x * y, 0, y)[0], 0, a)[0], lambda a: 5 * a**4 / 8),
    "twice": (lambda a: quad(lambda t: a * t, 0, 1)[0] * quad(lambda t: a, 0, 1)[0], lambda a: a),
    "as it is": (lambda a: scipy.integrate.quad(lambda t: a * t, 0, 1)[0], lambda a: 0.5),
}


@gradients
@pytest.mark.parametrize("name", INTEGRALS)
def test_quad(name, way):
    fun, slope = INTEGRALS[name]
    if name == "singular at a" and way != "grad" and way != "jacfwd":
        with pytest.raises(ft.errors.ArgumentError, match="points must be known"):
            GRADIENTS[way](fun)(1.3)
        return
    np.testing.assert_allclose(GRADIENTS[way](fun)(1.3), slope(1.3), rtol=1e-7)


def test_python_conditions_in_integrands():
    exact = 1.3 + math.cos(0.5) - math.cos(1.0)
    for transform in (ft.grad, ft.jacfwd):
        np.testing.assert_allclose(transform(branching)(1.3), exact, rtol=1e-9)


@seconds
@pytest.mark.parametrize("name", ["closure", "argument", "all", "infinite", "nested", "both"])
def test_second_derivatives_of_quad(name, way):
    fun, slope = INTEGRALS[name]
    exact = (slope(1.3 + 1e-6) - slope(1.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(SECOND[way](fun)(1.3), exact, rtol=1e-6, atol=1e-9)


def test_third_derivatives_of_quad():
    fun, _ = INTEGRALS["infinite"]
    np.testing.assert_allclose(ft.grad(ft.grad(ft.grad(fun)))(1.3), -6 / 1.3**4, rtol=1e-7)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(-2, 2), min_size=1, max_size=4),
    st.floats(-2, 2),
    st.floats(-2, 2),
)
def test_integrals_of_polynomials(coefficients, a, b):
    """Of arrays as operands, against the antiderivative, in all arguments at once."""
    c = np.array(coefficients)

    def integral(c, a, b):
        return quad(lambda t: fnp.polyval(c, t), a, b)[0]

    known = np.polynomial.Polynomial(c[::-1])
    found = ft.grad(integral, argnums=(0, 1, 2))(c, a, b)
    powers = np.arange(len(c))[::-1] + 1
    np.testing.assert_allclose(found[0], (b**powers - a**powers) / powers, atol=1e-8)
    np.testing.assert_allclose(found[1:], (-known(a), known(b)), atol=1e-12)


def test_what_quad_returns():
    for f in (lambda t: 2.0 * t, lambda t: np.float64(2.0) * t):
        assert quad(f, 0, 1) == scipy.integrate.quad(f, 0, 1)
        assert len(quad(f, 0, 1, full_output=1)) == len(scipy.integrate.quad(f, 0, 1, full_output=1))
    seen = []
    ft.grad(lambda a: seen.append(quad(lambda t: a * t, 0, 1)[1]) or a)(1.0)
    assert 0 <= seen[0] < 1e-8
    assert ft.grad(lambda a: quad(lambda t: a * t, 0, 1)[1] + a)(1.0) == 1.0
    assert ft.jit(lambda a: a * quad(lambda t: fnp.exp(-t), 0, np.inf)[0])(2.0) == pytest.approx(2.0)


def test_quad_warns_as_scipy():
    with pytest.warns(scipy.integrate.IntegrationWarning):
        ft.grad(lambda a: quad(lambda t: a * math.sin(1 / t) / t, 0, 1, limit=5)[0])(1.0)


@pytest.mark.parametrize(
    ("fun", "says"),
    [
        (lambda a: quad(lambda t: a, 0, 1, full_output=1), "quad: full_output"),
        (lambda a: quad(lambda t: a, 0, 1, complex_func=True), "quad: complex_func"),
        (lambda a: quad(lambda t: t, 0, a, weight="cos", wvar=1.0), "quad: limits with weight='cos'"),
        (lambda a: quad(a, 0, 1), "quad: the function must be callable, got JVPTracer"),
        (lambda a: solve_ivp(lambda t, y: a, (0, 1), [1.0], dense_output=True), "solve_ivp: dense_output"),
        (lambda a: solve_ivp(lambda t, y: a, (0, 1), [1.0], events=lambda t, y: y[0]), "solve_ivp: events"),
        (lambda a: solve_ivp(lambda t, y: a * y, (0, 1), [1j]), "solve_ivp: y0 must be a vector of real"),
        (lambda a: solve_ivp(lambda t, y: a * y, (0, 1), a), "solve_ivp: y0 must be a vector of real"),
    ],
)
def test_what_traced_values_exclude(fun, says):
    with pytest.raises(ft.errors.ArgumentError, match=f"^{says}"):
        ft.grad(fun)(1.0)


def test_one_derivative_serves_all_equations_and_a_wrong_count_is_refused():
    def last(a, count):
        return solve_ivp(lambda t, y: -a * np.ones(count), (0, 1), [1.0, 2.0], t_eval=[1.0]).y[:, -1]

    def number(a):
        return solve_ivp(lambda t, y: -a, (0, 1), [1.0, 2.0], t_eval=[1.0]).y[:, -1]

    for fun in (number, lambda a: last(a, 1), lambda a: last(a, 2)):
        np.testing.assert_allclose(fun(0.5), [0.5, 1.5])  # SciPy itself
        for compiled in (lambda f: f, ft.jit):
            np.testing.assert_allclose(compiled(ft.jacfwd(fun))(0.5), [-1.0, -1.0])
            np.testing.assert_allclose(compiled(ft.jacrev(fun))(0.5), [-1.0, -1.0])
    with pytest.raises(
        ft.errors.ShapeError, match="solve_ivp: the function returned 3 derivatives for 2 equations"
    ):
        ft.jit(ft.jacfwd(lambda a: last(a, 3)))(0.5)
    with pytest.raises(ValueError, match="broadcast"):  # SciPy's own
        ft.jacfwd(lambda a: last(a, 3))(0.5)


def test_math_of_traced_values_is_refused_in_integrands():
    for call in (
        lambda f: quad(f, 0, 1)[0],
        lambda f: solve_ivp(lambda t, y: f(y[0]), (0, 1), [1.0]).y[0, -1],
    ):
        with pytest.raises(ft.errors.TracerScalarConversionError, match=r"Write functrans\.numpy\.exp"):
            ft.grad(lambda a, call=call: call(lambda t: math.exp(a * t)))(0.1)


hidden = []


def test_traced_values_out_of_sight_are_refused():
    def alone(a):
        hidden[:] = [2 * a]
        return quad(lambda t: hidden[0] * t, 0, 1)[0]

    def beside(a):
        hidden[:] = [2 * a]
        return quad(lambda t: a * hidden[0] * t, 0, 1)[0]

    def solved(a):
        hidden[:] = [2 * a]
        return solve_ivp(lambda t, y: -hidden[0] * y, (0, 1), [a]).y[0, -1]

    for f in (alone, beside, solved):
        with pytest.raises(ft.errors.CapturedTracerError, match="functrans cannot see"):
            ft.grad(f)(1.0)


def test_nothing_of_the_callers_is_changed():
    y0, times, args = np.array([1.0, 2.0]), np.linspace(0, 1, 3), (np.array([1.0, 0.5]),)
    kept = [y0.copy(), times.copy(), args[0].copy()]
    fun = lambda p: fnp.sum(solve_ivp(lambda t, y, q: -p * q * y, (0, 1), y0, t_eval=times, args=args).y)
    ft.grad(fun)(1.0)
    for x, before in zip((y0, times, args[0]), kept):
        np.testing.assert_array_equal(x, before)
        assert x.flags.writeable


# --- initial value problems ----------------------------------------------------------------------------------

FINE = {"rtol": 1e-9, "atol": 1e-11}


def decay(a, **options):
    return solve_ivp(lambda t, y: -a * y, (0.0, 1.0), [2.0], **{**FINE, "t_eval": [0.5, 1.0], **options}).y[
        0, -1
    ]


#: Solutions, with their derivatives in `a` in closed form.
FLOWS = {
    "closure": (decay, lambda a: -2 * math.exp(-a)),
    "argument": (
        lambda a: solve_ivp(lambda t, y, b: -b * y, (0, 1), [2.0], t_eval=[1.0], args=(a,), **FINE).y[0, 0],
        lambda a: -2 * math.exp(-a),
    ),
    "initial value": (
        lambda a: solve_ivp(lambda t, y: [-y[1], y[0]], (0, 1), [a, 0 * a], t_eval=[1.0], **FINE).y[1, 0],
        lambda a: math.sin(1.0),
    ),
    "end": (
        lambda a: solve_ivp(lambda t, y: -t * y, (0, a), [2.0], t_eval=[a], **FINE).y[0, -1],
        lambda a: -2 * a * math.exp(-a * a / 2),
    ),
    "start": (
        lambda a: solve_ivp(lambda t, y: -t * y, (a, 2.0), [2.0], t_eval=[2.0], **FINE).y[0, -1],
        lambda a: 2 * a * math.exp((a * a - 4) / 2),
    ),
    "times": (
        lambda a: fnp.sum(solve_ivp(lambda t, y: -t * y, (0, 5), [2.0], t_eval=[a, 2 * a], **FINE).y),
        lambda a: -2 * a * math.exp(-a * a / 2) - 8 * a * math.exp(-2 * a * a),
    ),
    "everything": (
        lambda a: solve_ivp(lambda t, y: -a * y, (a, 2 * a), [a], t_eval=[1.5 * a, 2 * a], **FINE).y[0, -1],
        lambda a: math.exp(-a * a) * (1 - 2 * a * a),
    ),
    "vectorized": (partial(decay, vectorized=True), lambda a: -2 * math.exp(-a)),
    "as it is": (
        lambda a: scipy.integrate.solve_ivp(lambda t, y: -a * y, (0, 1), [2.0], t_eval=[1.0], **FINE).y[0, 0],
        lambda a: -2 * math.exp(-a),
    ),
}


@gradients
@pytest.mark.parametrize("name", FLOWS)
def test_solve_ivp(name, way):
    fun, slope = FLOWS[name]
    np.testing.assert_allclose(GRADIENTS[way](fun)(1.2), slope(1.2), rtol=2e-7)


@seconds
@pytest.mark.parametrize("name", ["closure", "everything"])
def test_second_derivatives_of_solve_ivp(name, way):
    fun, slope = FLOWS[name]
    exact = (slope(1.2 + 1e-6) - slope(1.2 - 1e-6)) / 2e-6
    np.testing.assert_allclose(SECOND[way](fun)(1.2), exact, rtol=1e-6)


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853", "LSODA", "BDF", "Radau"])
def test_methods(method):
    fun = partial(decay, method=method, rtol=1e-6, atol=1e-8, t_eval=None)
    for transform in (ft.grad, ft.jacfwd):
        np.testing.assert_allclose(transform(fun)(1.2), -2 * math.exp(-1.2), rtol=2e-5)


def test_stiff_equations_are_stable_in_reverse_mode():
    def fun(a):
        slope = lambda t, y: -1000 * (y - a * fnp.cos(t))
        jac = lambda t, y: [[-1000.0]]
        return solve_ivp(slope, (0, 1), [0.0], method="Radau", jac=jac, rtol=1e-6, atol=1e-8).y[0, -1]

    exact = (1000 * math.cos(1) + math.sin(1)) * 1000 / (1e6 + 1)
    np.testing.assert_allclose([ft.grad(fun)(1.3), ft.jacfwd(fun)(1.3)], exact, rtol=1e-5)


def test_steps_are_numbers_and_ends_are_traced():
    last = lambda a: solve_ivp(lambda t, y: -y, (0.0, a), [1.0], **FINE)
    assert ft.grad(lambda a: last(a).t[-1])(1.5) == 1.0
    np.testing.assert_allclose(ft.grad(lambda a: last(a).y[0, -1])(1.5), -math.exp(-1.5), rtol=1e-8)
    found = []
    ft.grad(lambda a: found.append(decay_result(a)) or a)(1.0)
    assert found[0].success
    assert found[0].nfev > 6
    plain = decay_result(1.0)
    assert type(plain.y) is np.ndarray


def decay_result(a):
    return solve_ivp(lambda t, y: -a * y, (0.0, 1.0), [2.0])


@pytest.mark.slow
def test_a_system_with_many_parameters_against_finite_differences():
    def total(p):
        def slope(t, y, rates):
            return [rates[0] * y[0] - rates[1] * y[0] * y[1], -rates[2] * y[1] + rates[3] * y[0] * y[1]]

        times = np.linspace(0, 2, 4)
        return fnp.sum(solve_ivp(slope, (0, 2), p[4:], t_eval=times, args=(p[:4],), **FINE).y ** 2)

    p = np.array([1.0, 0.5, 1.2, 0.3, 1.0, 0.8])
    expected = [(total(p + 1e-5 * e) - total(p - 1e-5 * e)) / 2e-5 for e in np.eye(6)]
    for transform in (ft.grad, ft.jacfwd):
        np.testing.assert_allclose(transform(total)(p), expected, rtol=1e-5)


def test_tolerances_for_each_equation():
    fun = lambda a: solve_ivp(
        lambda t, y: [-a * y[0], y[0]], (0, 1), [2.0, 0.0], rtol=[1e-9, 1e-8], atol=[1e-11, 1e-10]
    )
    np.testing.assert_allclose(ft.grad(lambda a: fun(a).y[0, -1])(1.2), -2 * math.exp(-1.2), rtol=1e-7)
    np.testing.assert_allclose(ft.jacfwd(lambda a: fun(a).y[0, -1])(1.2), -2 * math.exp(-1.2), rtol=1e-7)


def test_a_solver_that_fails():
    blow_up = lambda a: solve_ivp(lambda t, y: a * y**2, (0, 2), [1.0])
    assert not blow_up(1.0).success
    with pytest.raises(ft.errors.SolverError, match=r"^solve_ivp: no solution was found: Required step size"):
        ft.grad(lambda a: blow_up(a).y[0, -1])(1.0)


def test_steps_are_not_known_while_tracing():
    for transform in (ft.jit, lambda f: lambda x: ft.vmap(f)(np.array([x]))):
        with pytest.raises(ft.errors.ArgumentError, match=r"^solve_ivp: pass t_eval"):
            transform(lambda a: decay(a, t_eval=None))(1.0)
