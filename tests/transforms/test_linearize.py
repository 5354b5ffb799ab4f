"""`linearize`, by itself: the tape, the residuals, and agreement with `jvp`."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.core.aval import Zero, aval_of
from functrans.core.evaluation import evaluate
from functrans.core.primitive import Linear
from functrans.passes.check import check_jaxpr
from functrans.primitives.elementwise.arithmetic import gt_p, mul_p, select_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.elementwise.trig import sin_p
from functrans.primitives.structure.linear import add_p, reduce_sum_p
from functrans.transforms.jvp import jvp
from functrans.transforms.linearize import linearize, replay
from functrans.transforms.linearize_jaxpr import linearize_jaxpr
from functrans.transforms.stage import stage

X = np.array([0.3, -1.1, 2.0])
VECTOR = aval_of(X)


Y = np.array([1.5, 0.4, -0.7])


def folded(x, y):
    """A value used three times, and a sum."""
    e = exp_p.bind(mul_p.bind(x, y))
    total = reduce_sum_p.bind(mul_p.bind(e, x), axes=(0,))
    return [add_p.bind(e, mul_p.bind(x, x)), total]


def branched(x, y):
    """A selection between two functions."""
    return [select_p.bind(gt_p.bind(x, y), sin_p.bind(x), mul_p.bind(x, mul_p.bind(y, y)))]


def wave(x, y):
    s = sin_p.bind(x)
    return [mul_p.bind(s, y), s]


def staged(f=wave, *avals):
    return stage(f, avals or (VECTOR, VECTOR), "wave")


def test_linearize_records_linear_operations_only():
    actual = linearize(wave, [X, X], [True, False])
    assert [e.primitive.name for e in actual.tape] == ["mul", "mul"]
    t, ts = replay(actual, [np.ones(3), None])
    np.testing.assert_allclose(t, np.cos(X) * X)
    np.testing.assert_allclose(ts, np.cos(X))
    assert all(type(v) is Linear for v in actual.tangents)
    unused = linearize(lambda x: [sin_p.bind(x), 1.0][1:], [X], [True], retain=True)
    assert unused.tape == []


def test_linearize_copies_mutable_arrays_only_with_retain():
    x, w = X.copy(), X.copy()
    stored = linearize(lambda x: [mul_p.bind(x, w)], [x], [True], retain=True)
    loose = linearize(lambda x: [mul_p.bind(x, w)], [x], [True])
    w[:] = 0
    np.testing.assert_array_equal(replay(stored, [np.ones(3)])[0], X)
    np.testing.assert_array_equal(replay(loose, [np.ones(3)])[0], np.zeros(3))


def test_linearized_jaxpr_forwards_residuals():
    def f(x, y):
        e = exp_p.bind(x)
        return [mul_p.bind(e, y), e]

    jaxpr = staged(f)
    parts = linearize_jaxpr(jaxpr, (True, True))
    check_jaxpr(parts.primal)
    check_jaxpr(parts.linear)
    places = set(parts.residuals)
    assert places <= {("in", 1), ("out", 1)}  # y is an input, exp(x) an output: nothing is handed over twice
    assert len(parts.primal.outvars) == 2
    actual = evaluate(parts.primal, [X, X])
    residuals = [X if where == "in" else actual[i] for where, i in parts.residuals]
    t, ts = evaluate(parts.linear, [*residuals, np.ones(3), np.ones(3)])
    np.testing.assert_allclose(t, np.exp(X) * (X + 1))
    np.testing.assert_allclose(ts, np.exp(X))
    parts = linearize_jaxpr(staged(), (False, True))
    assert parts.nonzero == (True, False)


@pytest.mark.parametrize("f", [wave, folded, branched], ids=lambda f: f.__name__)
def test_replayed_tapes_are_jvps(f):
    direction = np.cos(3 * X)
    linear = linearize(f, [X, Y], [True, False])
    outs, tangents = jvp(f, [X, Y], [direction, Zero(Y)])
    for got, want in zip(linear.outs, outs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    for got, want in zip(replay(linear, [direction, None]), tangents, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


@pytest.mark.parametrize("f", [wave, folded, branched], ids=lambda f: f.__name__)
def test_linear_programs_are_linear(f):
    parts = linearize_jaxpr(staged(f), (True, True))
    outs = evaluate(parts.primal, [X, Y])
    residuals = [(X, Y)[i] if where == "in" else outs[i] for where, i in parts.residuals]

    def push(u, v):
        return evaluate(parts.linear, [*residuals, u, v])

    u, v = np.cos(X), np.sin(2 * X)
    for once, both, twice in zip(push(u, v), push(3 * u, 3 * v), push(u + v, v + u), strict=True):
        np.testing.assert_allclose(both, 3 * np.asarray(once), rtol=1e-12)
        assert np.shape(twice) == np.shape(once)
    for a, b, total in zip(push(u, v), push(v, u), push(u + v, v + u), strict=True):
        np.testing.assert_allclose(np.add(a, b), total, rtol=1e-12)


def test_results_of_a_call_that_no_tangent_reaches_have_none():
    inner = ft.jit(lambda x, c: (fnp.sin(x), fnp.cos(c)))
    actual = linearize(lambda x, c: list(inner(x, c)), [X, X], [True, False])
    assert [type(v) is Linear for v in actual.tangents] == [True, False]
    np.testing.assert_allclose(replay(actual, [np.ones(3), None])[0], np.cos(X))


def test_a_compiled_rule_that_computes_the_value_as_well():
    """Its value does not depend on the tangent, and is no linear variable."""

    @ft.custom_jvp
    def f(x):
        return fnp.sin(x)

    @ft.jit
    def rule(x, t):
        y = fnp.sin(x)
        return y, fnp.cos(x) * t, fnp.exp(y) * fnp.cos(x) * t, 2.0 * y

    @f.defjvp
    def _(primals, tangents):
        y, t, _, twice = rule(primals[0], tangents[0])
        return y, t * twice / (2.0 * y)

    for g in (ft.grad(lambda x: f(x) ** 2), ft.jit(ft.grad(lambda x: f(x) ** 2))):
        np.testing.assert_allclose(g(0.3), np.sin(0.6), rtol=1e-14)
    np.testing.assert_allclose(ft.grad(ft.grad(lambda x: f(x) ** 2))(0.3), 2 * np.cos(0.6), rtol=1e-13)
    linear = ft.linearize(f, 0.3)[1]
    np.testing.assert_allclose(linear(1.0), np.cos(0.3), rtol=1e-14)
