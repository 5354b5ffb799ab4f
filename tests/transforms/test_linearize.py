"""`linearize`, by itself: the tape, the residuals, and agreement with `jvp`."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.aval import Zero, aval_of
from functrans.core.evaluation import evaluate
from functrans.core.primitive import Linear
from functrans.core.trace import eval_trace
from functrans.passes.check import check_jaxpr
from functrans.primitives.elementwise.arithmetic import gt_p, mul_p, select_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.elementwise.trig import sin_p
from functrans.primitives.structure.linear import add_p, reduce_sum_p
from functrans.transforms.jvp import jvp
from functrans.transforms.linearize import TangentTrace, linearize, replay
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


# --- the tape of each operation -----------------------------------------------------------------------------

C = np.array([1.0, 2.0, 3.0])
#: Functions, how many operands have a tangent, and the entries of the tape: no more than the derivative has terms.
TAPES = {
    "a unary factor": (lambda x, y: fnp.sin(x), 1, ["mul"]),
    "two factors": (lambda x, y: x * y, 2, ["mul", "mul", "add"]),
    "the first of two": (lambda x, y: x * y, 1, ["mul"]),
    "the second of two": (lambda x, y: y * x, 1, ["mul"]),
    "an array before": (lambda x, y: C * x, 1, ["mul"]),
    "a square": (lambda x, y: x * x, 1, ["mul", "mul", "add"]),
    "a maximum": (fnp.maximum, 2, ["mul", "mul", "add"]),
    "a maximum with a constant": (fnp.maximum, 1, ["mul"]),
    "three factors": (lambda x, y: fnp.clip(x, y, 2.0), 2, ["mul", "mul", "add"]),
    "steps": (lambda x, y: fnp.floor(x), 1, []),
    "a comparison": (lambda x, y: x < y, 2, []),
    "of integers": (lambda x, y: fnp.floor(x).astype(int) + 1, 1, []),
    "to integers": (lambda x, y: x.astype(int), 1, []),
    "to float32": (lambda x, y: x.astype(np.float32), 1, ["convert_element_type"]),
    "a negative": (lambda x, y: -x, 1, ["neg"]),
    "a shape": (lambda x, y: fnp.reshape(x, (3, 1)), 1, ["reshape"]),
    "a part": (lambda x, y: x[1:], 1, ["getitem"]),
    "a part at a place": (lambda x, y: lax.dynamic_slice(x, (1,), (2,)), 1, ["dynamic_slice"]),
    "elements": (lambda x, y: x[np.array([2, 0, 0])], 1, ["gather"]),
    "a sum": (lambda x, y: x + y, 2, ["add"]),
    "with itself": (lambda x, y: x + x, 1, ["add"]),
    "a difference": (lambda x, y: x - y, 2, ["neg", "add"]),
    "a number minus": (lambda x, y: 1 - x, 1, ["neg"]),
    "an array minus": (lambda x, y: y - x, 1, ["neg"]),
    "a number spread": (lambda x, y: fnp.sum(x) + C, 1, ["reduce_sum", "broadcast_in_dim"]),
    "a number spread behind": (lambda x, y: C - fnp.sum(x), 1, ["reduce_sum", "neg", "broadcast_in_dim"]),
    "a number times an array": (lambda x, y: C * fnp.sum(x), 1, ["reduce_sum", "mul"]),
    "a number times the array": (lambda x, y: fnp.sum(x) * x, 1, ["reduce_sum", "mul", "mul", "add"]),
    "a choice": (lambda x, y: fnp.where(x > 0, x, y), 2, ["select"]),
    # Not a product with a coefficient: transposed, both operands' cotangents begin with the same division.
    "a quotient": (lambda x, y: x / y, 2, ["div", "neg", "mul", "div", "add"]),
    "by a constant": (lambda x, y: x / y, 1, ["div"]),
    "of a constant": (lambda x, y: C / x, 1, ["neg", "mul", "div"]),
    "a stopped gradient": (lambda x, y: lax.stop_gradient(x), 1, []),
}
#: The tangent of the result is that of the operand; a hook on the result needs a variable of its own.
SHIFTS = {
    "plus one": lambda x, y: x + 1,
    "one plus": lambda x, y: 1 + x,
    "minus one": lambda x, y: x - 1,
    "plus an array": lambda x, y: x + y,
    "an array plus": lambda x, y: y + x,
    "minus an array": lambda x, y: x - y,
}


@pytest.mark.parametrize("name", TAPES)
def test_the_entries_of_an_operation(name):
    f, count, names = TAPES[name]
    direction = [np.cos(3 * X), np.sin(2 * C)][:count]
    for options in ({}, {"distinct": False}, {"retain": True}):
        linear = linearize(lambda x, y: [f(x, y)], [X, C], [True, count > 1], **options)
        assert [e.primitive.name for e in linear.tape] == names
        np.testing.assert_array_equal(linear.outs[0], f(X, C))
        (tangent,) = replay(linear, [*direction, None][:2])
        if not names:
            assert type(tangent) is Zero
            continue
        ahead, behind = (
            f(*[p + e * d for p, d in zip((X, C), direction)], *[C] * (2 - count)) for e in (1e-6, -1e-6)
        )
        np.testing.assert_allclose(tangent, (ahead - behind) / 2e-6, rtol=0.2 if "float32" in name else 1e-6)
        assert tangent.dtype == np.asarray(linear.outs[0]).dtype
        assert all(v.aval == aval_of(x) for v, x in zip(linear.tangents, linear.outs))
        if options.get("retain"):
            residuals = [a for e in linear.tape for a in e.args if isinstance(a, np.ndarray)]
            assert not any(a.flags.writeable for a in residuals)


@pytest.mark.parametrize("name", SHIFTS)
def test_a_shift_has_the_tangent_of_its_operand(name):
    f = SHIFTS[name]
    for distinct, names in ((True, ["name"]), (False, [])):
        linear = linearize(lambda x, y: [f(x, y), x], [X, C], [True, False], distinct=distinct)
        assert [e.primitive.name for e in linear.tape] == names
        assert (linear.tangents[0] is linear.tangents[1]) != distinct
        assert linear.tangents[1] is linear.inputs[0]
        np.testing.assert_array_equal(linear.outs[0], f(X, C))
        np.testing.assert_array_equal(replay(linear, [2 * X, None])[0], 2 * X)


def test_a_rule_that_hands_on_its_tangent():
    """As the shifts: the result has a variable of its own where hooks may be."""

    @ft.custom_jvp
    def f(x):
        return x + 0.0, fnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), (t[0], t[0] * fnp.cos(p[0]))))
    linear = linearize(lambda x: list(f(x)), [X], [True])
    assert linear.tangents[0] is not linear.inputs[0]
    same = linearize(lambda x: list(f(x)), [X], [True], distinct=False)
    for one in (linear, same):
        a, b = replay(one, [np.ones(3)])
        np.testing.assert_array_equal(a, np.ones(3))
        np.testing.assert_allclose(b, np.cos(X), rtol=1e-14)


@pytest.mark.parametrize("name", [*TAPES, *SHIFTS])
def test_values_of_an_outer_derivative_are_constants(name):
    """The operands are traced by an outer `linearize`; the inner one differentiates a third value."""
    f = TAPES[name][0] if name in TAPES else SHIFTS[name]

    def product(x, y):
        inner = linearize(lambda s: [mul_p.bind(s, s), f(x, y)], [2.0], [True])
        assert [e.primitive.name for e in inner.tape] == ["mul", "mul", "add"]
        assert type(inner.tangents[1]) is Zero
        return [inner.outs[1]]

    outer = linearize(product, [X, C], [True, True])
    plain = linearize(lambda x, y: [f(x, y)], [X, C], [True, True])
    assert [e.primitive.name for e in outer.tape] == [e.primitive.name for e in plain.tape]
    for a, b in zip(replay(outer, [X, C]), replay(plain, [X, C]), strict=True):
        assert (type(a) is Zero) == (type(b) is Zero)
        assert type(a) is Zero or np.array_equal(a, b)


def test_what_has_the_tangent_of_an_outer_trace_is_recorded_there():
    outer = TangentTrace(eval_trace)
    inner = TangentTrace(outer)
    t, u = outer.input(VECTOR), inner.input(VECTOR)
    passed_on = inner.process(mul_p, (t, X), {})
    assert [len(outer.tape), len(inner.tape)] == [1, 0]
    assert passed_on._trace is outer
    own = inner.process(mul_p, (u, X), {})
    assert [len(outer.tape), len(inner.tape)] == [1, 1]
    assert own._trace is inner
    number = inner.process(mul_p, (X, X), {})
    assert [len(outer.tape), len(inner.tape)] == [1, 1]
    np.testing.assert_array_equal(number, X * X)


@pytest.mark.parametrize("results", [2, 3])
def test_a_call_with_tangents_of_two_traces_is_divided(results):
    """Each result of the call is recorded where its tangent is; a third has none."""
    f = ft.jit(lambda a, b, c: (2.0 * a, 3.0 * b, 4.0 * c)[:results])
    call = ft.make_jaxpr(f)(X, X, X).eqns[0]
    outer = TangentTrace(eval_trace)
    inner = TangentTrace(outer)
    operands = [outer.input(VECTOR), inner.input(VECTOR), X][: len(call.invars)]
    a, b, *others = inner.process(call.primitive, operands, call.params)
    assert (a._trace, b._trace) == (outer, inner)
    for c in others:
        np.testing.assert_array_equal(c, 4.0 * X)
    assert [len(outer.tape), len(inner.tape)] == [1, 1]


def test_a_call_whose_results_all_have_tangents_is_one_entry():
    call = ft.make_jaxpr(ft.jit(lambda a, b: (2.0 * a + b, 3.0 * b - a)))(X, X).eqns[0]
    trace = TangentTrace(eval_trace)
    outs = trace.process(call.primitive, (trace.input(VECTOR), trace.input(VECTOR)), call.params)
    assert [e.primitive for e in trace.tape] == [call.primitive]
    assert [x.linear for x in outs] == list(trace.tape[0].outs)


def test_only_what_is_retained_is_marked():
    """Fresh results are read-only on a tape that outlives its call: users' arrays are not."""
    for retain in (False, True):
        trace = TangentTrace(eval_trace, retain)
        own = X.copy()
        fresh = trace.process(mul_p, (own, 2.0), {})
        assert fresh.flags.writeable is not retain
        assert own.flags.writeable


def test_residuals_and_their_memory():
    x = np.linspace(0.0, 1.0, 100)
    linear = linearize(lambda x: [fnp.sin(x), x * x], [x], [True], retain=True)
    assert linear.residual_bytes() == x.nbytes  # cos(x); the argument itself does not count
    assert linear.holds_residuals
    plain = linearize(lambda x: [-x + 1], [x], [True], retain=True)
    assert not plain.holds_residuals
    assert plain.residual_bytes() == 0
    twice = linearize(lambda x: [fnp.sin(x[:50]) * fnp.sin(x[50:])], [x], [True], retain=True)
    assert twice.residual_bytes() == 4 * x.nbytes // 2
    w = np.ones(100)
    other = linearize(lambda x: [x * w, x * w[::-1]], [x], [True], retain=True)
    assert other.residual_bytes() == 2 * w.nbytes


def test_an_empty_residual_takes_no_memory():
    linear = linearize(lambda x: [fnp.sin(x)], [np.zeros(0)], [True], retain=True)
    assert linear.residual_bytes() == 0
    assert linear.holds_residuals


def test_a_linear_operation_with_an_integer_result_has_no_tangent():
    def whole_parts(x):
        return x.astype(int) * x

    x = np.array([1.5, 2.25])
    for f in (whole_parts, ft.jit(whole_parts)):
        np.testing.assert_array_equal(ft.vjp(f, x)[1](np.ones(2))[0], [1.0, 2.0])
        np.testing.assert_array_equal(ft.linearize(f, x)[1](np.ones(2)), [1.0, 2.0])


def test_entries_that_no_output_needs_are_dropped_with_retain():
    def f(x):
        unused = fnp.exp(fnp.sin(x))
        return [fnp.cos(x) + lax.stop_gradient(unused)]

    assert len(linearize(f, [X], [True], retain=True).tape) < len(linearize(f, [X], [True]).tape)
    np.testing.assert_allclose(
        replay(linearize(f, [X], [True], retain=True), [np.ones(3)])[0], -np.sin(X), rtol=1e-14
    )


def test_linear_operations_with_more_operands():
    x = np.linspace(0.1, 0.8, 8)
    rows = lambda x: lax.dynamic_slice(fnp.sin(x).reshape(2, 4), (1, 2), (1, 2))
    for f, expected in (
        (lambda x: lax.dynamic_slice(fnp.sin(x), (3,), (2,)), [3, 4]),
        (rows, [6, 7]),
        (lambda x: fnp.sin(x)[np.array([5, 1])], [5, 1]),
        (lambda x: fnp.sin(x).at[np.array([0, 2, 3, 4, 5, 6])].set(3.0), [1, 7]),
    ):
        slope = np.where(np.isin(np.arange(8), expected), np.cos(x), 0.0)
        np.testing.assert_allclose(ft.grad(lambda x, f=f: fnp.sum(f(x)))(x), slope, rtol=1e-14)
        np.testing.assert_allclose(fnp.sum(ft.linearize(f, x)[1](np.ones(8))), slope.sum(), rtol=1e-14)
