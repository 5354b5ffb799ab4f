"""Each interpreter by itself, on flat values and jaxprs: evaluate, stage, jvp, linearize, transpose, batch."""

import numpy as np
import pytest

from functrans.core.aval import Aval, Zero, aval_of
from functrans.core.config import config
from functrans.core.errors import NoRuleError, UnexpectedTracerError
from functrans.core.ir import Literal
from functrans.core.primitive import Effect, Linear, Primitive
from functrans.core.source import user_source
from functrans.core.trace import current_trace, eval_trace
from functrans.passes.check import check_jaxpr
from functrans.passes.toolkit import evaluate
from functrans.primitives.elementwise.arithmetic import mul_p, stop_gradient_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.elementwise.trig import cos_p, sin_p
from functrans.primitives.indexing.gather_scatter import gather_p
from functrans.primitives.structure.linear import add_p, reduce_sum_p
from functrans.transforms.batch import batch, batch_jaxpr
from functrans.transforms.jvp import jvp, jvp_jaxpr
from functrans.transforms.linearize import linearize, linearize_jaxpr, replay
from functrans.transforms.stage import stage
from functrans.transforms.transpose import backward, transpose_jaxpr

X = np.array([0.3, -1.1, 2.0])
VECTOR = aval_of(X)


def wave(x, y):
    s = sin_p.bind(x)
    return [mul_p.bind(s, y), s]


def staged(f=wave, *avals):
    return stage(f, avals or (VECTOR, VECTOR), "wave")


def test_evaluate_computes_and_keeps_no_state():
    jaxpr = staged()
    out, s = evaluate(jaxpr, [X, X])
    np.testing.assert_array_equal(out, np.sin(X) * X)
    np.testing.assert_array_equal(s, np.sin(X))
    assert current_trace.get() is eval_trace


def test_replayed_equations_keep_their_line():
    jaxpr = staged()
    again = stage(lambda *xs: evaluate(jaxpr, xs), jaxpr.in_avals, "again")
    assert [e.source for e in again.eqns] == [e.source for e in jaxpr.eqns]
    assert "sin_p.bind(x)" in again.eqns[0].source.text
    assert "user_source()" in user_source().text


def test_stage_makes_an_equation_of_everything_bound():
    w = np.ones(3)

    def f(x):
        known = exp_p.bind(np.zeros(3))
        dead = cos_p.bind(x)  # noqa: F841
        return [mul_p.bind(mul_p.bind(x, known), w), 2.0, x, w]

    jaxpr = stage(f, [VECTOR])
    assert [e.primitive.name for e in jaxpr.eqns] == ["exp", "mul", "mul"]
    assert len(jaxpr.consts) == 2
    assert jaxpr.consts[1] is not w
    assert type(jaxpr.outvars[1]) is Literal
    assert jaxpr.outvars[2] is jaxpr.invars[0]
    assert jaxpr.outvars[3] is jaxpr.constvars[1]


def test_stage_keeps_dead_equations_with_effects():
    i = Aval((2,), np.dtype(int))

    def f(x, i):
        for mode in ("raise", "clip"):
            gather_p.bind(x, i, axes=(0,), mode=mode, fill_value=None)
        return [x]

    jaxpr = stage(f, [VECTOR, i])
    assert [e.effects for e in jaxpr.eqns] == [Effect.RAISE]


def test_stage_refuses_tracers_of_traces_that_are_over():
    kept = []
    stage(lambda x: kept.append(x) or [x], [VECTOR], "first")
    with pytest.raises(UnexpectedTracerError, match="a leak from jit of first"):
        stage(lambda x: [mul_p.bind(x, kept[0])], [VECTOR])
    with pytest.raises(UnexpectedTracerError, match="first"):
        sin_p.bind(kept[0])
    assert current_trace.get() is eval_trace


def test_jvp_with_symbolic_zeros():
    (_out, _s), (t, ts) = jvp(wave, [X, X], [np.ones(3), Zero(X)])
    np.testing.assert_allclose(t, np.cos(X) * X)
    np.testing.assert_allclose(ts, np.cos(X))
    _, (t, ts) = jvp(wave, [X, X], [Zero(X), np.ones(3)])
    np.testing.assert_allclose(t, np.sin(X))
    assert type(ts) is Zero
    _, (t,) = jvp(lambda x: [stop_gradient_p.bind(x)], [X], [X])
    assert type(t) is Zero


def test_jvp_of_a_jaxpr_is_kept_on_it():
    jaxpr = staged()
    pushed, mask = jvp_jaxpr(jaxpr, (False, True))
    assert mask == (True, False)
    check_jaxpr(pushed)
    np.testing.assert_allclose(evaluate(pushed, [X, X, X])[2], np.sin(X) * X)
    assert jvp_jaxpr(jaxpr, (False, True))[0] is pushed
    with config.patch(strict=not config.strict):  # other options, other programs
        assert jvp_jaxpr(jaxpr, (False, True))[0] is not pushed


def test_linearize_records_linear_operations_only():
    found = linearize(wave, [X, X], [True, False])
    assert [e.primitive.name for e in found.tape] == ["mul", "mul"]
    t, ts = replay(found, [np.ones(3), None])
    np.testing.assert_allclose(t, np.cos(X) * X)
    np.testing.assert_allclose(ts, np.cos(X))
    assert all(type(v) is Linear for v in found.tangents)
    unused = linearize(lambda x: [sin_p.bind(x), 1.0][1:], [X], [True], retain=True)
    assert unused.tape == []


def test_linearize_copies_what_may_change_only_when_told_to():
    x, w = X.copy(), X.copy()
    kept = linearize(lambda x: [mul_p.bind(x, w)], [x], [True], retain=True)
    loose = linearize(lambda x: [mul_p.bind(x, w)], [x], [True])
    w[:] = 0
    np.testing.assert_array_equal(replay(kept, [np.ones(3)])[0], X)
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
    found = evaluate(parts.primal, [X, X])
    residuals = [X if where == "in" else found[i] for where, i in parts.residuals]
    t, ts = evaluate(parts.linear, [*residuals, np.ones(3), np.ones(3)])
    np.testing.assert_allclose(t, np.exp(X) * (X + 1))
    np.testing.assert_allclose(ts, np.exp(X))
    parts = linearize_jaxpr(staged(), (False, True))
    assert parts.nonzero == (True, False)


def test_backward_adds_cotangents_of_values_used_twice():
    found = linearize(lambda x: [mul_p.bind(x, x), add_p.bind(x, x)], [X], [True])
    (ct,) = backward(found.tape, found.tangents, [np.ones(3), np.ones(3)], found.inputs)
    np.testing.assert_allclose(ct, 2 * X + 2)
    (ct,) = backward(found.tape, found.tangents, [Zero(X), np.ones(3)], found.inputs)
    np.testing.assert_allclose(ct, [2.0, 2.0, 2.0])
    (ct,) = backward(found.tape, found.tangents, [Zero(X), Zero(X)], found.inputs)
    assert type(ct) is Zero


def test_transposed_jaxpr():
    def f(x, w, y):
        return [reduce_sum_p.bind(mul_p.bind(x, sin_p.bind(w)), axes=(0,)), y]

    jaxpr = staged(f, VECTOR, VECTOR, VECTOR)
    back, mask = transpose_jaxpr(jaxpr, (True, False, True), (True, False))
    check_jaxpr(back)
    assert mask == (True, False)
    np.testing.assert_allclose(evaluate(back, [X, 2.0])[0], 2 * np.sin(X))


def test_batch_leaves_alone_what_is_not_batched():
    rows = np.stack([X, 2 * X])
    outs, dims = batch(wave, 2, [X, rows], [None, 0])
    np.testing.assert_allclose(outs[0], np.sin(X) * rows)
    assert dims[1] is None
    np.testing.assert_allclose(outs[1], np.sin(X))
    outs, dims = batch(wave, 2, [rows.T, X], [1, None])
    np.testing.assert_allclose(np.moveaxis(outs[0], dims[0], 0), np.sin(rows) * X)


def test_batched_jaxpr():
    jaxpr = staged()
    rows = np.stack([X, 2 * X])
    body, dims = batch_jaxpr(jaxpr, 2, (None, 1))
    check_jaxpr(body)
    assert dims == (0, None)
    np.testing.assert_allclose(evaluate(body, [X, rows.T])[0], np.sin(X) * rows)


def test_a_missing_rule_names_the_file_to_open():
    bare = Primitive("bare", lambda a: a, lambda x: x)
    for run in (
        lambda: jvp(lambda x: [bare.bind(x)], [X], [X]),
        lambda: batch(lambda x: [bare.bind(x)], 3, [X], [0]),
        lambda: backward([(bare, (v := Linear(VECTOR),), {}, (w := Linear(VECTOR),))], [w], [X], [v]),
    ):
        with pytest.raises(
            NoRuleError, match=r"primitive 'bare' has no (jvp|batch|transpose) rule; .*test_interpreters"
        ):
            run()
        assert current_trace.get() is eval_trace
