"""`backward` and `transpose_jaxpr`, by themselves: cotangents, and the dot-product law."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.aval import Zero, aval_of
from functrans.core.evaluation import evaluate
from functrans.passes.check import check_jaxpr
from functrans.primitives.elementwise.arithmetic import gt_p, mul_p, select_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.elementwise.trig import cos_p, sin_p
from functrans.primitives.structure.linear import add_p, reduce_sum_p
from functrans.transforms.linearize import linearize, replay
from functrans.transforms.stage import stage
from functrans.transforms.transpose import _reads_first, backward, transpose_jaxpr

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


def test_backward_adds_cotangents_of_values_used_twice():
    actual = linearize(lambda x: [mul_p.bind(x, x), add_p.bind(x, x)], [X], [True])
    (ct,) = backward(actual.tape, actual.tangents, [np.ones(3), np.ones(3)], actual.inputs)
    np.testing.assert_allclose(ct, 2 * X + 2)
    (ct,) = backward(actual.tape, actual.tangents, [Zero(X), np.ones(3)], actual.inputs)
    np.testing.assert_allclose(ct, [2.0, 2.0, 2.0])
    (ct,) = backward(actual.tape, actual.tangents, [Zero(X), Zero(X)], actual.inputs)
    assert type(ct) is Zero


def test_transposed_jaxpr():
    def f(x, w, y):
        return [reduce_sum_p.bind(mul_p.bind(x, sin_p.bind(w)), axes=(0,)), y]

    jaxpr = staged(f, VECTOR, VECTOR, VECTOR)
    back, mask = transpose_jaxpr(jaxpr, (True, False, True), (True, False))
    check_jaxpr(back)
    assert mask == (True, False)
    np.testing.assert_allclose(evaluate(back, [X, 2.0])[0], 2 * np.sin(X))


@pytest.mark.parametrize("f", [wave, folded, branched], ids=lambda f: f.__name__)
def test_dot_product_law(f):
    """What a tape makes of tangents, times cotangents, is tangents times what its transpose makes of them."""
    linear = linearize(f, [X, Y], [True, True])
    tangents = [np.cos(X), np.sin(2 * X)]
    images = replay(linear, tangents)
    cotangents = [np.exp(-(np.asarray(t) ** 2)) for t in images]
    back = backward(linear.tape, linear.tangents, cotangents, linear.inputs)
    left = sum(np.sum(c * t) for c, t in zip(cotangents, images, strict=True))
    right = sum(np.sum(c * t) for c, t in zip(back, tangents, strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-12)


def test_transposing_twice_is_the_linear_map_itself():
    def f(w, x):
        return [reduce_sum_p.bind(mul_p.bind(x, cos_p.bind(w)), axes=(0,))]

    back, _ = transpose_jaxpr(staged(f), (False, True), (True,))
    again, _ = transpose_jaxpr(back, (False, True), (True,))
    np.testing.assert_allclose(evaluate(again, [X, Y])[0], np.sum(np.cos(X) * Y), rtol=1e-14)


def test_effects_of_a_backward_program_keep_their_order():
    """What does not depend on a cotangent is computed as late as possible, but shown where it stands."""
    seen = []

    @ft.custom_vjp
    def f(x):
        return fnp.sin(x)

    def back(x, ct):
        ft.debug.callback(lambda v: seen.append(("early", v.tolist())), fnp.cumsum(fnp.sort(x)), ordered=True)
        ft.debug.callback(lambda v: seen.append(("late", v.tolist())), ct, ordered=True)
        return (ct * fnp.cumsum(fnp.sort(x)),)

    f.defvjp(lambda x: (f(x), x), back)
    for outer in (lambda g: g, ft.jit):
        seen.clear()
        g = outer(ft.grad(ft.jit(lambda x: fnp.sum(f(x)))))
        np.testing.assert_allclose(g(X), np.cumsum(np.sort(X)))
        assert seen == [("early", np.cumsum(np.sort(X)).tolist()), ("late", [1.0] * 3)]


@pytest.mark.parametrize("more", [0, 1])
def test_an_update_comes_after_the_other_reads_of_its_array(more):
    """Unless these depend on the update, so that its cotangent is complete when the reads add to it."""

    def f(x):
        outs, a = [], x
        for k in range(4):
            b = a.at[k].set(x[k + 5] ** 2)
            outs += [fnp.sum(a[7:9] * 2.0), *[fnp.sum(fnp.sin(x[:3]))] * more, b[k] * a[6]]
            a = b
        return [*outs, fnp.sum(a)]

    x = np.linspace(0.0, 1.0, 1000)
    linearized = linearize(f, [x], [True])
    tape = _reads_first(linearized.tape)
    assert sorted(map(id, tape)) == sorted(map(id, linearized.tape))
    updates = [p for p, e in enumerate(tape) if e.primitive.name == "dynamic_update_slice"]
    assert len(updates) == 4
    for p in updates:
        array, reached = tape[p].invars[0], set(tape[p].outvars)
        for e in tape[p + 1 :]:
            if not reached.isdisjoint(e.invars):
                reached.update(e.outvars)
            else:
                assert array not in e.invars
    values = replay(linearized._replace(tape=tape), [np.sin(x)])
    np.testing.assert_allclose(values, replay(linearized, [np.sin(x)]), rtol=1e-15)


def test_hooks_between_an_update_and_a_read_keep_their_order():
    seen = []

    def f(x):
        a = x.at[0].set(x[5] ** 2)
        u, y = a[7:9] * 1.0, x[1:3] * 1.0
        ft.register_hook(u, lambda g: seen.append(("u", np.asarray(g).tolist())))
        v = y + x[7:9]
        ft.register_hook(v, lambda g: seen.append(("v", np.asarray(g).tolist())))
        return fnp.sum(a) + fnp.sum(u * u) + fnp.sum(v * v)

    x = np.linspace(0.0, 1.0, 1000)
    expected = np.ones(1000)
    expected[0], expected[5] = 0.0, 1 + 2 * x[5]
    expected[7:9] += 2 * x[7:9]
    expected[1:3] += 2 * (x[1:3] + x[7:9])
    expected[7:9] += 2 * (x[1:3] + x[7:9])
    looped = lambda x: lax.fori_loop(0, 1, lambda i, s: s + f(x), 0.0)
    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.jit(ft.grad(looped))):
        seen.clear()
        np.testing.assert_allclose(g(x), expected)
        assert seen == [("v", (2 * (x[1:3] + x[7:9])).tolist()), ("u", (2 * x[7:9]).tolist())]


ROWS = np.linspace(0.1, 1.7, 400)  # a cotangent of this size is added to in place


def two_branches(x, y):
    return lax.cond(x[0] > 0.0, lambda x, y: (2.0 * x, 3.0 * y), lambda x, y: (x, y), x, y)[0]


def a_call(x, y):
    return ft.jit(lambda x, y: (2.0 * x, 3.0 * y))(x, y)[0]


def a_loop(x, y):
    return lax.fori_loop(0, 1, lambda i, s: (2.0 * s[0], 3.0 * s[1]), (x, y))[0]


@pytest.mark.parametrize("first", [two_branches, a_call, a_loop])
@pytest.mark.parametrize("wrap", [ft.jit, lambda f: f])
def test_a_cotangent_stays_as_it_is_where_nothing_is_added(first, wrap):
    """`first` has an operand whose result nothing reads, and that has a cotangent from elsewhere."""

    def f(x, y):
        step = lambda s, _: (s + fnp.sum(first(x, y)) + fnp.sum(fnp.sin(y)), None)
        return lax.scan(step, 0.0, None, 2)[0]

    of_x, of_y = wrap(ft.grad(f, (0, 1)))(ROWS, ROWS[::-1].copy())
    np.testing.assert_array_equal(of_x, np.full(400, 4.0))
    np.testing.assert_allclose(of_y, 2.0 * np.cos(ROWS[::-1]), rtol=1e-14)
