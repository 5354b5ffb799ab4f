"""``call``: a jaxpr as one equation; its derivatives are calls, derived once."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.control.call import call_p
from functrans.core.aval import aval_of
from functrans.core.ir import subjaxprs
from functrans.core.primitive import Effect
from functrans.testing.finite_difference import directional_derivative
from functrans.transforms.stage import stage

X = np.array([0.3, -1.1, 2.0])


@pytest.fixture
def body():
    return stage(lambda x, y: [fnp.sin(x) * y, x, y * y], [aval_of(X), aval_of(2.0).strong()], "body")


def call(jaxpr):
    return lambda *args: call_p.bind(*args, jaxpr=jaxpr)


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


def test_value(body):
    actual = call(body)(X, 2.0)
    for out, expected in zip(actual, (np.sin(X) * 2, X, 4.0)):
        np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_derivatives_by_differences(body):
    f = call(body)
    slopes, _ = directional_derivative(lambda v: [np.sin(v[0]) * v[1], v[0], v[1] ** 2], [X, 2.0], [X, 1.0])
    ts = ft.jvp(f, (X, 2.0), (X, 1.0))[1]
    for t, slope in zip(ts, slopes):
        np.testing.assert_allclose(t, slope, rtol=1e-9)
    _, pull = ft.vjp(f, X, 2.0)
    cts = [np.cos(X), np.sin(X), 0.7]
    dx, dy = pull(cts)
    np.testing.assert_allclose(dx @ X + dy, sum(np.sum(c * s) for c, s in zip(cts, slopes)), rtol=1e-9)


def test_derived_calls_are_made_once(body):
    f = lambda x: fnp.sum(call(body)(x, 2.0)[0])
    first, second = (ft.make_jaxpr(ft.value_and_grad(f))(X) for _ in range(2))
    calls = [[e.params["jaxpr"] for e in j.eqns if e.primitive is call_p] for j in (first, second)]
    assert len(calls[0]) == 2
    assert all(a is b for a, b in zip(*calls))
    assert [j.name for j in calls[0]] == ["body", "transpose(linear(body))"]


def test_unused_outputs_and_inputs_cost_nothing(body):
    jaxpr = ft.make_jaxpr(ft.grad(lambda y: call(body)(X, y)[2]))(2.0)
    back = next(e for e in jaxpr.eqns if "transpose" in str(getattr(e.params.get("jaxpr"), "name", "")))
    assert "sin" not in str(back.params["jaxpr"])
    assert len(back.params["jaxpr"].outvars) == 1


def test_batching_leaves_unbatched_outputs_alone(body):
    f = lambda x, y: tuple(call(body)(x, y))
    out, x, square = ft.vmap(f, (None, 0), (0, None, 0))(X, np.array([1.0, 2.0]))
    np.testing.assert_allclose(out, np.sin(X) * [[1.0], [2.0]])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(square, [1.0, 4.0])


def test_effects_of_the_body_are_those_of_the_call():
    gather = stage(lambda x, i: [x[i]], [aval_of(X), aval_of(np.array([1]))], "gather")
    outer = ft.make_jaxpr(lambda x, i: (call(gather)(x, i), x)[1])(X, np.array([1]))
    assert outer.effects == Effect.RAISE
    assert names(outer) == ["call"]  # nobody reads it, but it may raise
    assert [list(subjaxprs(e.params)) for e in outer.eqns] == [[gather]]
    with pytest.raises(IndexError):
        call(gather)(X, np.array([3]))


def test_captured_tracers_become_operands():
    def f(x):
        return ft.jit(lambda y: x * y)(2.0)

    jaxpr = ft.make_jaxpr(f)(X)
    (eqn,) = jaxpr.eqns
    assert eqn.invars[0] is jaxpr.invars[0]
    assert eqn.params["jaxpr"].consts == ()


@pytest.mark.parametrize("which", ["first", "second", "both", "none"])
def test_large_operands_of_a_call_receive_what_others_have_added(which):
    """Cotangents of large arrays are handed to the call, which adds to them in place."""
    n = 4096
    inner = ft.jit(lambda x, y: fnp.sin(x[1:]) * y[:-1] + x[3] * y[5])

    def f(x, y):
        inside = fnp.sum(inner(x, y))
        beside = fnp.sum(x[10:20] ** 2) * (which in ("first", "both"))
        beside += fnp.sum(y[30:50] ** 3) * (which in ("second", "both"))
        return inside * 0.5 + beside if which != "none" else inside * 0.5

    x, y = np.linspace(-1, 1, n), np.linspace(0.5, 2, n)
    dx, dy = np.zeros(n), np.zeros(n)
    dx[1:], dy[:-1] = 0.5 * np.cos(x[1:]) * y[:-1], 0.5 * np.sin(x[1:])
    dx[3] += 0.5 * (n - 1) * y[5]
    dy[5] += 0.5 * (n - 1) * x[3]
    if which in ("first", "both"):
        dx[10:20] += 2 * x[10:20]
    if which in ("second", "both"):
        dy[30:50] += 3 * y[30:50] ** 2
    for g in (ft.grad(f, (0, 1)), ft.jit(ft.grad(f, (0, 1)))):
        for found, expected in zip(g(x, y), (dx, dy), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    for k, expected in enumerate((dx, dy)):
        np.testing.assert_allclose(ft.grad(f, k)(x, y), expected, rtol=1e-12)
