"""Passes over jaxprs: what each keeps, what it removes, and that each is written once."""

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import functrans
import functrans as ft
from functrans import lax
from functrans.api.compiled.caches import Stats
from functrans.control.call import call_p
from functrans.core.aval import Aval, Zero, aval_of
from functrans.core.evaluation import bind_equation, evaluate
from functrans.core.ir import Eqn, Jaxpr, Literal, Var, has_subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.tape import Tape, TapeAval
from functrans.core.trace import current_trace, eval_trace
from functrans.errors.source import user_source
from functrans.passes.check import check_jaxpr
from functrans.passes.toolkit import (
    backward_slice,
    constants_to_literals,
    drop_unused_constants,
    eliminate_dead_code,
    equation_key,
    forward_slice,
    inline,
    lift_constants,
    lift_tracers,
    live_equations,
    map_subjaxprs,
    new_equation,
    single_equation,
    substitute,
    variables_read,
)
from functrans.primitives.elementwise.arithmetic import mul_p, neg_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.elementwise.trig import sin_p
from functrans.primitives.structure.linear import add_p, empty_tape_p, instantiate, zeros
from functrans.transforms.stage import stage

VECTOR = aval_of(np.ones(3))
PACKAGE = Path(functrans.__file__).parent


def traced(f, *avals, stats=None):
    return stage(lambda *xs: [f(*xs)], avals or [VECTOR], "f", stats)


def nested():
    """A call in a call, each with a captured array; the inner array is captured by both."""
    shared, own = np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0, 11.0])
    for x in shared, own:  # which traces then need not copy
        x.flags.writeable = False
    inner = ft.jit(lambda x: x * shared)
    middle = ft.jit(lambda x: inner(x) + inner(x * own) + shared)
    return lambda x: middle(x) - x * shared


def called(eqn):
    return eqn.params["jaxpr"] if eqn.primitive is call_p else None


def test_replace_keeps_the_other_fields():
    stats = Stats()
    jaxpr = traced(nested(), stats=stats)
    other = jaxpr.replace(name="g")
    assert other.name == "g"
    assert other.stats is stats
    assert (other.invars, other.eqns, other.outvars) == (jaxpr.invars, jaxpr.eqns, jaxpr.outvars)
    assert other.constants == jaxpr.constants
    assert jaxpr.replace(constants=()).consts == ()
    assert jaxpr.replace(invars=()).invars == ()
    assert jaxpr.replace(eqns=[]).eqns == ()
    assert jaxpr.replace(outvars=[]).outvars == ()


def test_an_equation_keeps_its_line():
    eqn = traced(np.exp).eqns[0]
    assert eqn.source is not None
    other = eqn.replace(primitive=neg_p, params={})
    assert other.source is eqn.source
    assert other.invars == eqn.invars
    assert other.outvars == eqn.outvars
    assert eqn.replace(invars=()).invars == ()
    assert eqn.replace(outvars=()).outvars == ()


def test_effects_follow_the_new_parameters():
    jaxpr = stage(lambda x, i: [lax.cond(True, lambda: x[i], lambda: x[i])], [VECTOR, aval_of(np.array([1]))])
    gather = next(e for e in jaxpr.eqns if e.effects)
    pure = gather.replace(primitive=Primitive("pure", gather.primitive.abstract, gather.primitive.impl))
    assert gather.effects
    assert not pure.effects


def test_evaluate_with_a_visitor():
    jaxpr = traced(lambda x: np.exp(x) * 2.0 + x)
    seen = []

    def visit(eqn, args):
        seen.append(eqn.primitive.name)
        assert user_source() == eqn.source  # also for what a visitor traces
        return bind_equation(eqn, args)

    x = np.array([0.1, -2.0, 3.0])
    (out,) = evaluate(jaxpr, [x], visit)
    np.testing.assert_array_equal(out, np.exp(x) * 2.0 + x)
    assert seen == [e.primitive.name for e in jaxpr.eqns]
    np.testing.assert_array_equal(evaluate(jaxpr, [x])[0], out)


def test_evaluate_of_several_results_and_of_literals():
    jaxpr = traced(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2.0, x))
    np.testing.assert_array_equal(evaluate(jaxpr, [np.ones(3)])[0], 8 * np.ones(3))
    x = Var(VECTOR)
    assert evaluate(Jaxpr([x], [], [Literal(2.0), x]), ["x"]) == [2.0, "x"]


def test_a_single_equation():
    jaxpr = single_equation(add_p, [VECTOR, VECTOR], {})
    check_jaxpr(jaxpr)
    assert jaxpr.name == "add"
    assert len(jaxpr.eqns) == 1
    assert jaxpr.eqns[0].source is not None
    np.testing.assert_array_equal(evaluate(jaxpr, [np.ones(3), np.ones(3)])[0], 2 * np.ones(3))


def test_inline_writes_bodies_and_shares_constants():
    f = nested()
    jaxpr = traced(f)
    flat = inline(jaxpr, called)
    check_jaxpr(flat)
    assert not any(e.primitive is call_p for e in flat.eqns)
    assert len(flat.consts) == 2  # one for each array, however often it was captured
    assert all(e.source is not None for e in flat.eqns)
    x = np.array([0.1, -2.0, 3.0])
    np.testing.assert_array_equal(evaluate(flat, [x])[0], f(x))
    assert inline(flat, called) is flat


def test_inline_passes_operands_through():
    same = Jaxpr([x := Var(VECTOR)], [], [x, Literal(1.0)])
    a = Var(VECTOR)
    call = new_equation(call_p, [a], {"jaxpr": same}, None)
    flat = inline(Jaxpr([a], [call], call.outvars), called)
    assert flat.eqns == ()
    assert flat.outvars[0] is a
    assert flat.outvars[1].value == 1.0


def test_constants_become_operands():
    jaxpr = traced(nested())
    lifted, values = lift_constants(jaxpr)
    check_jaxpr(lifted)
    assert not lifted.consts
    assert len(values) == 2
    assert all(not e.params["jaxpr"].consts for e in lifted.eqns if has_subjaxprs(e.params))
    x = np.array([0.1, -2.0, 3.0])
    np.testing.assert_array_equal(evaluate(lifted, [*values, x])[0], evaluate(jaxpr, [x])[0])
    assert lift_constants(lifted) == (lifted, ())


def test_captured_tracers_become_operands_and_arrays_stay():
    array = np.arange(3.0)
    found = []

    def f(x):
        inner = traced(lambda y: y * x + array)
        found.append(lift_tracers(inner))
        return x

    traced(f)
    ((lifted, values),) = found
    assert len(values) == 1
    assert len(lifted.invars) == 2
    (kept,) = lifted.consts
    np.testing.assert_array_equal(kept, array)
    result = evaluate(lifted, [np.full(3, 2.0), np.ones(3)])[0]
    np.testing.assert_array_equal(result, 2.0 + np.arange(3.0))
    same, none = lift_tracers(lifted)
    assert same is lifted  # what is cached on it stays
    assert none == ()


def test_numbers_among_the_constants_become_literals():
    number, vector = np.array(2.0), np.ones(3)
    jaxpr = constants_to_literals(traced(lambda x: x * number + vector))
    check_jaxpr(jaxpr)
    assert [c.shape for c in jaxpr.consts] == [(3,)]
    assert [a.value for e in jaxpr.eqns for a in e.invars if isinstance(a, Literal)] == [2.0]
    assert constants_to_literals(jaxpr) is jaxpr


def test_a_number_that_is_not_known_yet_stays_a_constant():
    found = []

    def f(x):
        number = x[0]
        found.append(constants_to_literals(traced(lambda y: y * number)))
        return x

    traced(f)
    assert len(found[0].constants) == 1


def test_dead_code_goes_and_effects_stay():
    x, i = Var(VECTOR), Var(aval_of(np.array([7])))
    jaxpr = stage(lambda x, i: [x[i], np.exp(x), x * 2.0], [x.aval, i.aval])
    gather = next(e for e in jaxpr.eqns if e.effects)
    small = eliminate_dead_code(jaxpr, jaxpr.outvars[2:])
    check_jaxpr(small)
    assert gather in small.eqns
    assert not any(e.primitive is exp_p for e in small.eqns)
    assert eliminate_dead_code(jaxpr).eqns == jaxpr.eqns
    assert gather not in backward_slice(jaxpr.eqns, jaxpr.outvars[2:])


def test_dead_constants_go():
    jaxpr = traced(nested())
    small = drop_unused_constants(jaxpr.replace(eqns=[], outvars=jaxpr.invars))
    assert small.constants == []
    assert drop_unused_constants(small) is small


def test_a_backward_slice_stops_at_what_is_stored():
    a, b, c, d = [Var(VECTOR) for _ in range(4)]
    eqns = [Eqn(exp_p, [a], [b], {}), Eqn(neg_p, [b], [c], {}), Eqn(mul_p, [b, c], [d], {})]
    assert backward_slice(eqns, [d]) == eqns
    assert backward_slice(eqns, [d], stored={b}) == eqns[1:]
    assert backward_slice(eqns, [d], stored={d}) == []
    assert backward_slice(eqns, [b]) == eqns[:1]
    assert list(variables_read(eqns[1:])) == [b, c]


def test_a_forward_slice():
    a, b, c, d = [Var(VECTOR) for _ in range(4)]
    eqns = [Eqn(exp_p, [a], [c], {}), Eqn(neg_p, [c], [d], {}), Eqn(mul_p, [b, b], [Var(VECTOR)], {})]
    assert forward_slice(eqns, [a]) == {a, c, d}


def test_live_equations_may_be_narrowed():
    jaxpr = traced(np.exp)
    (eqn,) = live_equations(jaxpr.eqns, jaxpr.outvars, lambda e, needed: e.replace(primitive=neg_p))
    assert eqn.primitive is neg_p


def test_substitution_leaves_others_as_they_are():
    a, b, c = [Var(VECTOR) for _ in range(3)]
    first, second = Eqn(exp_p, [a], [b], {}), Eqn(neg_p, [b], [c], {})
    actual = substitute([first, second], {b: a})
    assert actual[0] is first
    assert actual[1].invars == (a,)
    assert actual[1].outvars == (c,)


def test_inner_jaxprs_are_replaced_everywhere():
    jaxpr = traced(lambda x: lax.cond(x[0] > 0, lambda: x, lambda: 2 * x))
    (eqn,) = [e for e in jaxpr.eqns if has_subjaxprs(e.params)]
    assert map_subjaxprs(eqn.params, lambda j: j) is eqn.params
    params = map_subjaxprs(eqn.params, lambda j: j.replace(name="other"))
    assert [b.name for b in params["branches"]] == ["other", "other"]


# --- zeros --------------------------------------------------------------------------------------------------


def test_zeros_of_every_type():
    assert zeros(Aval((), np.dtype("f4"))).dtype == np.float32
    np.testing.assert_array_equal(zeros(VECTOR), np.zeros(3))
    tape = zeros(TapeAval(VECTOR))
    assert isinstance(tape, Tape)
    assert len(tape) == 0
    staged = stage(lambda: [zeros(VECTOR), zeros(TapeAval(VECTOR)), zeros(aval_of(1.0))], [])
    assert [e.primitive.name for e in staged.eqns] == ["broadcast_in_dim", "empty_tape"]
    assert empty_tape_p in [e.primitive for e in staged.eqns]
    assert isinstance(staged.outvars[2], Literal)


@pytest.mark.parametrize("x", [None, Zero(np.ones(3))])
def test_symbolic_zeros_become_values(x):
    np.testing.assert_array_equal(instantiate(x, VECTOR), np.zeros(3))
    assert instantiate("a value", VECTOR) == "a value"


# --- written once -------------------------------------------------------------------------------------------

#: Where jaxprs are made from scratch: in the toolkit, by tracers, from a file. All other code modifies an existing one.
MAKERS = {"api/encoding.py", "core/ir.py", "ir/builder.py", "passes/toolkit.py", "transforms/stage.py"}


@cache
def trees(word):
    """The files with a word, parsed."""
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}
    return {name: ast.parse(text) for name, text in texts.items() if word in text}


def calls(tree, name):
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", None) == name]


def test_jaxprs_are_made_in_few_places():
    assert {name for name, tree in trees("Jaxpr(").items() if calls(tree, "Jaxpr")} == MAKERS


def walks(tree):
    """Functions with a loop over equations that binds or evaluates each: copies of `evaluate`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Attribute) and node.iter.attr == "eqns":
            text = ast.unparse(node)
            if ".bind(" in text or ".impl(" in text:
                yield node.lineno


def test_jaxprs_are_evaluated_in_one_place():
    assert not [f"{name}:{line}" for name, tree in trees("eqns").items() for line in walks(tree)]


def test_equations_are_not_copied_by_hand():
    """``Eqn(e.primitive, ...)`` may forget the line or the effects: that is `Eqn.replace`."""

    def copies(tree):
        return [c for c in calls(tree, "Eqn") if any(getattr(a, "attr", "") == "source" for a in c.args)]

    assert [name for name, tree in trees("Eqn(").items() if copies(tree)] == ["core/ir.py"]


def wave(x, y):
    s = sin_p.bind(x)
    return [mul_p.bind(s, y), s]


def test_evaluate_computes_and_restores_the_trace():
    x = np.array([0.3, -1.1, 2.0])
    out, s = evaluate(stage(wave, [VECTOR, VECTOR], "wave"), [x, x])
    np.testing.assert_array_equal(out, np.sin(x) * x)
    np.testing.assert_array_equal(s, np.sin(x))
    assert current_trace.get() is eval_trace


def test_replayed_equations_keep_their_line():
    jaxpr = stage(wave, [VECTOR, VECTOR], "wave")
    again = stage(lambda *xs: evaluate(jaxpr, xs), jaxpr.in_avals, "again")
    assert [e.source for e in again.eqns] == [e.source for e in jaxpr.eqns]
    assert "sin_p.bind(x)" in again.eqns[0].source.text
    assert "user_source()" in user_source().text


def test_keys_of_equations():
    """Equal for what computes the same; none for parameters that no key can have."""
    same_p = Primitive("same", lambda x, **params: x, lambda x, **params: x)
    v, w = (Var(aval_of(1.0)) for _ in range(2))
    of = lambda operand, **params: Eqn(same_p, [operand], [Var(aval_of(1.0))], params)
    key = lambda e: equation_key(e, e.invars)
    assert key(of(v, a=1, b=2)) == key(of(v, b=2, a=1)) is not None
    assert key(of(v)) != key(of(w))
    assert key(of(v, a=1)) != key(of(v, a=2))
    assert key(of(Literal(0.0))) != key(of(Literal(-0.0)))
    assert key(of(Literal(1.0))) != key(of(Literal(np.float64(1.0))))
    assert equation_key(of(v), [w]) == key(of(w))
    assert key(of(v, a=[1])) is None
