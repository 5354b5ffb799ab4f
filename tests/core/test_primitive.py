"""What passes need to know of a primitive stands in its record: each treats one that it has never seen right."""

import dataclasses

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.aval import Aval, aval_of
from functrans.core.kernel import Block
from functrans.core.primitive import Effect, Linear, Primitive
from functrans.core.trace import current_trace, eval_trace
from functrans.errors import NoRuleError
from functrans.lowering.jaxpr.simplify import simplify
from functrans.primitives.families import elementwise, mul_p
from functrans.runtime.config import config
from functrans.transforms.batch import batch
from functrans.transforms.jvp import jvp
from functrans.transforms.transpose import backward


def swapped(**slots):
    """The operand with its first and its last element exchanged; as NumPy computes it, since it has no kernel rule."""

    def impl(x):
        out = np.array(x)
        out[[0, -1]] = out[[-1, 0]]
        return out

    return Primitive("swapped", lambda x: x, impl, **slots)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_operations_that_move_data_are_not_blamed_for_nan(wrap):
    x = np.array([1.0, np.nan, 2.0])
    with config.patch(debug_nans=True):
        moves = swapped(moves_data=True)
        assert np.isnan(wrap(moves.bind)(x)[1])
        with pytest.raises(ft.errors.NaNError, match="exp returned NaN"):
            wrap(lambda x: fnp.exp(moves.bind(x)))(x)
        with pytest.raises(ft.errors.NaNError, match="swapped returned NaN"):
            wrap(swapped().bind)(x)


@pytest.mark.parametrize("tests_equality", [False, True])
def test_a_kernel_computes_values_that_are_tested_for_equality_once(tests_equality):
    same = elementwise(
        "same_value",
        np.equal,
        kernel=lambda k, x, y: x.eq(y),
        out=lambda dtype: np.dtype(bool),
        kinds="f",
        tests_equality=tests_equality,
    )

    def f(x, y):
        z = x * y + x
        return same.bind(z, fnp.max(z))

    x = np.random.default_rng(0).normal(size=50)
    compiled = ft.jit(f).lower(x, x[::-1]).compile()
    assert ("(scratch)" in compiled.as_text("python")) == tests_equality
    if tests_equality:
        assert np.asarray(compiled(x, x[::-1])).sum() == 1


@pytest.mark.parametrize("can", [True, False])
def test_a_loop_over_lanes_asks_the_record_of_its_only_equation(can):
    asked = []

    def emit(k, operands, results):
        k.store(results[0], [], k.load(operands[0], []) * 2.0)

    def over_lanes(k, jaxpr, consts, rows, out_rows, length):
        asked.append(length)
        with k.loop(length if can else 0) as i:
            k.store(out_rows[0], [i], k.load(rows[0], [i]) * 2.0)
        return can

    doubled = Primitive("doubled", lambda x: x, lambda x: x * 2.0, kernel=Block(emit, over_lanes=over_lanes))
    x = np.arange(100.0)
    np.testing.assert_array_equal(ft.jit(lambda x: lax.map(doubled.bind, x))(x), x * 2)
    assert asked == [100]


def cubed(kernel):
    return elementwise(
        "cubed",
        lambda x: x * x * x,
        factors=(lambda ans, x: mul_p.bind(3.0, mul_p.bind(x, x)),),
        kernel=kernel,
        kinds="f",
    )


@pytest.mark.parametrize(
    ("kernel", "stored"),
    [(lambda k, x: x * x * x, 1), (lambda k, x: k.call("pow", x, k.const(3.0, x.dtype)), 3)],
)
def test_cheap_values_of_a_loop_are_recomputed_and_others_stored(kernel, stored):
    prim = cubed(kernel)

    def body(c, _):
        a = prim.bind(c)
        b = prim.bind(a)
        return prim.bind(b) * 0.1, None

    def f(x):
        return lax.scan(body, x, None, length=5)[0]

    jaxpr = ft.make_jaxpr(lambda x: ft.vjp(f, x)[1](1.0))(0.5)
    (forward, *_) = [e for e in jaxpr.eqns if e.primitive.name == "scan"]
    assert sum(v.aval.shape == (5,) for v in forward.outvars) == stored
    x, slope = 0.5, 1.0
    for _ in range(5):
        slope *= 0.1 * 27 * x**26
        x = 0.1 * x**27
    np.testing.assert_allclose(ft.grad(f)(0.5), slope, rtol=1e-12)


def test_an_equation_with_unused_outputs_becomes_narrower():
    low_p = Primitive("low", lambda x: Aval((), x.dtype), np.min)
    exact, close = [
        Primitive(
            name,
            lambda x: (Aval((), x.dtype),) * 2,
            lambda x: (np.min(x), np.max(x)),
            multiple_results=True,
            narrow=lambda eqn, needed, strict, same=same: (
                eqn.replace(primitive=low_p, outvars=eqn.outvars[:1])
                if eqn.outvars[1] not in needed and (same or not strict)
                else None
            ),
        )
        for name, same in (("exact", True), ("close", False))
    ]
    x = np.array([3.0, 1.0, 2.0])

    def names(prim, part, strict):
        jaxpr = simplify(ft.make_jaxpr(lambda x: prim.bind(x)[part])(x), strict=strict)
        return [e.primitive.name for e in jaxpr.eqns]

    assert names(exact, 0, True) == names(close, 0, False) == ["low"]
    assert names(close, 0, True) == names(close, 1, False) == ["close"]
    assert names(exact, 1, False) == ["exact"]
    assert ft.jit(lambda x: exact.bind(x)[0])(x) == 1.0


def test_a_rule_simplifies_its_equations():
    """``half(twice(x))`` is ``x``; half of one half is known."""

    def cancelled(rw, eqn):
        inner = rw.made_by(eqn.invars[0], twice)
        return eqn.invars[0] if rw.uniform(eqn.invars[0]) == 0.0 else inner and inner.invars[0]

    twice = elementwise("twice", lambda x: 2.0 * x, linear=True, kernel=lambda k, x: x * 2.0, kinds="f")
    half = elementwise(
        "half", lambda x: 0.5 * x, linear=True, kernel=lambda k, x: x * 0.5, kinds="f", simplify=cancelled
    )

    def f(x):
        return half.bind(twice.bind(x)), half.bind(fnp.zeros(3)), half.bind(x)

    x = np.array([1.0, -2.0, np.inf])
    simple = simplify(ft.make_jaxpr(f)(x))
    assert [e.primitive.name for e in simple.eqns] == ["broadcast_in_dim", "half"]
    for out, expected in zip(ft.jit(f)(x), (x, np.zeros(3), x / 2)):
        np.testing.assert_array_equal(out, expected)


def test_what_effects_allow():
    names = ("removable", "shareable", "movable", "ordered", "on_host", "may_raise")
    table = {
        Effect.NONE: (True, True, True, False, False, False),
        Effect.RAISE: (False, True, False, False, False, True),
        Effect.HOST: (False, False, False, True, True, True),
        Effect.RAISE | Effect.HOST: (False, False, False, True, True, True),
        Effect.COLLECTIVE: (False, False, False, True, True, True),
    }
    for effects, answers in table.items():
        assert tuple(getattr(effects, name) for name in names) == answers


@pytest.mark.parametrize("effects", [Effect.NONE, Effect.RAISE, Effect.HOST])
def test_passes_do_what_the_effects_allow(effects):
    seen = []

    def impl(x):
        seen.append(float(np.sum(x)))
        return np.array(x)

    prim = Primitive("seen", lambda x: x, impl, effects=lambda: effects)
    dead = ft.make_jaxpr(lambda x: (prim.bind(x), x * 2.0)[1])(np.ones(3))
    assert ("seen" in str(simplify(dead))) is not effects.removable
    twice = ft.make_jaxpr(lambda x: prim.bind(x) + prim.bind(x))(np.ones(3))
    assert str(simplify(twice)).count("seen") == (1 if effects.shareable else 2)

    def loop(x):
        return lax.fori_loop(0, 0, lambda i, c: c + prim.bind(x), x)

    seen.clear()
    ft.jit(loop)(np.ones(3))
    assert not seen or effects.movable  # a loop of no rounds runs nothing that can be noticed


def test_a_record_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        mul_p.weak = False


def test_a_missing_rule_names_the_file_to_open():
    bare = Primitive("bare", lambda a: a, lambda x: x)
    x = np.array([0.3, -1.1, 2.0])
    v, w = Linear(aval_of(x)), Linear(aval_of(x))
    for run in (
        lambda: jvp(lambda x: [bare.bind(x)], [x], [x]),
        lambda: batch(lambda x: [bare.bind(x)], 3, [x], [0]),
        lambda: backward([(bare, (v,), {}, (w,))], [w], [x], [v]),
    ):
        with pytest.raises(
            NoRuleError, match=r"primitive 'bare' has no (jvp|batch|transpose) rule; .*test_primitive"
        ):
            run()
        assert current_trace.get() is eval_trace
