"""The primitive that carries a rule, by rules written for flat values."""

import itertools
from collections import deque

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.custom.custom_call import bind_rule
from functrans.custom.function_call import once
from functrans.custom.rule import CustomRule, Forward
from functrans.errors import (
    CapturedTracerError,
    GradientError,
    MissingRuleError,
    OnceDifferentiableError,
    TangentError,
)
from functrans.frontend.arguments import given, result

X = np.linspace(0.2, 1.0, 4)


def applied(fwd, fwd_res=None, bwd=None, jvp=None, *, arity=1, **slots):
    """A function of arrays with these rules; `fwd` takes and returns arrays."""
    calls = []

    def flat(values):
        calls.append(1)
        return [fwd(*map(given, values))]

    slots.update({"fwd": flat, "fwd_res": fwd_res, "bwd": bwd, "jvp": jvp})
    functions = {name: staticmethod(f) if callable(f) else f for name, f in slots.items() if f is not None}
    marks = {
        "has_reverse": bwd is not None,
        "has_forward": jvp is not None,
        **{f"has_{name}": name in slots for name in ("vmap", "transpose", "plain")},
    }
    rule = type("R", (CustomRule,), {"name": "R", "arity": arity, **marks, **functions})()

    def call(*args):
        return result(bind_rule(rule, args, [fwd, fwd_res, bwd, jvp])[0])

    call.calls = calls
    return call


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w


def keep_inputs(values, perturbed, again):
    return Forward(again(), list(values))


def keep_output(values, perturbed, again):
    outs = again()
    return Forward(outs, list(outs))


tripled_exp = applied(fnp.exp, keep_output, lambda token, saved, cts: [3.0 * cts[0] * saved[0]])
product = applied(
    lambda a, b: a * b, keep_inputs, lambda token, saved, cts: [cts[0] * saved[1], cts[0] * saved[0]], arity=2
)
clipped = applied(
    lambda x: 2.0 * x, keep_inputs, lambda token, saved, cts: [fnp.clip(2.0 * cts[0], -1.5, 1.5)]
)

STACKS = {
    "grad": lambda f: ft.grad(f),
    "grad of jit": lambda f: ft.grad(ft.jit(f)),
    "jit of grad": lambda f: ft.jit(ft.grad(f)),
    "jacfwd": lambda f: ft.jacfwd(f),
    "jacfwd of jit": lambda f: ft.jacfwd(ft.jit(f)),
    "vmapped": lambda f: lambda x: ft.vmap(ft.grad(f))(fnp.stack([x, x]))[1],
    "grad of vmap": lambda f: ft.grad(lambda x: ft.vmap(f)(fnp.stack([x]))[0]),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(f)),
    "linearize": lambda f: lambda x: ft.linearize(f, x)[1](1.0),
}


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(STACKS, STACKS)))
def test_a_rule_holds_at_every_level(outer, inner):
    """Three times the derivative, at each order; the saved output is differentiated by the rule, too."""
    first = STACKS[inner](tripled_exp)
    assert np.allclose(first(0.4), 3.0 * np.exp(0.4))
    assert np.allclose(STACKS[outer](first)(0.4), 9.0 * np.exp(0.4))


def test_third_order():
    for f in (tripled_exp, ft.jit(tripled_exp)):
        assert np.allclose(ft.grad(ft.grad(ft.grad(f)))(0.4), 27.0 * np.exp(0.4))
        assert np.allclose(ft.jit(ft.grad(ft.jit(ft.grad(ft.grad(f)))))(0.4), 27.0 * np.exp(0.4))


def test_the_forward_runs_once_eagerly():
    f = applied(fnp.sin, keep_output, lambda token, saved, cts: [cts[0]])
    f(0.1)
    assert len(f.calls) == 1
    ft.grad(f)(0.1)
    assert len(f.calls) == 2
    ft.grad(ft.grad(f))(0.1)
    assert len(f.calls) == 3


def test_an_operand_shared_by_all_examples_gets_the_sum():
    def total(a, b):
        return fnp.sum(ft.vmap(product, (0, None))(a, b))

    for f in (total, ft.jit(total)):
        da, db = ft.grad(f, (0, 1))(X, 2.0)
        assert np.allclose(da, 2.0)
        assert np.allclose(db, X.sum())
    assert np.allclose(ft.hessian(total, 1)(X, 2.0), 0.0)
    ones = np.ones(4)
    assert np.allclose(ft.jvp(total, (X, 2.0), (ones, 1.0))[1], 8.0 + X.sum())


def test_a_constant_gradient_of_a_shared_operand_is_summed_too():
    f = applied(lambda a, b: a + b, keep_inputs, lambda token, saved, cts: [cts[0], np.ones(())], arity=2)
    found = ft.grad(lambda b: fnp.sum(ft.vmap(f, (0, None))(X, b)))(1.0)
    assert np.allclose(found, 4.0)


@pytest.mark.parametrize(
    "dims", [(0, 0), (1, 1), (0, 1), (1, 0), (0, None), (1, None), (None, 0), (None, 1), (-1, 0)]
)
def test_batch_axes_anywhere(dims):
    a, b = [x[0] if d is None else x for x, d in zip(np.random.default_rng(0).normal(size=(2, 3, 3)), dims)]

    def gradients(f):
        return ft.vmap(ft.grad(lambda a, b: fnp.sum(fnp.sin(f(a, b)) * b), (0, 1)), dims)(a, b)

    for found, want in zip(gradients(product), gradients(lambda a, b: a * b)):
        assert np.allclose(found, want)


def test_nested_vmap_and_sizes_of_one_and_zero():
    grid = ft.vmap(ft.vmap(ft.grad(product, (0, 1)), (None, 0)), (0, None))
    da, db = grid(X, X + 1.0)
    assert np.allclose(da, np.broadcast_to(X + 1.0, (4, 4)))
    assert np.allclose(db, X[:, None] * np.ones(4))
    assert ft.vmap(ft.grad(product))(np.ones(1), np.ones(1)).shape == (1,)
    assert ft.vmap(ft.grad(product))(np.ones(0), np.ones(0)).shape == (0,)


LOOPS = {
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
    "while": lambda f: lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
    "fori": lambda f: lambda x: lax.fori_loop(0, 3, lambda i, c: f(c), x),
    "cond": lambda f: lambda x: f(f(lax.cond(x > 0.0, f, fnp.sin, x))),
    "checkpoint": lambda f: ft.checkpoint(lambda x: f(f(f(x)))),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("jit", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_a_rule_without_forward_mode_within_loops(loop, jit):
    """Clipping is not linear in the cotangent: 1 becomes 1.5, that is kept by each further pass."""
    f = jit(LOOPS[loop](clipped))
    assert np.allclose(ft.grad(f)(1.0), 1.5)
    assert np.allclose(ft.vmap(ft.grad(f))(X), 1.5)
    assert np.allclose(ft.grad(lambda x: 0.1 * f(x))(1.0), 0.8)
    with pytest.raises(MissingRuleError, match="not linear in the cotangent"):
        ft.jvp(f, (1.0,), (1.0,))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_rule_within_loops_to_second_order(loop):
    """d/dx of 3^3 exp(a(x)) a'(x), the loop being exp(exp(exp(x)/9)/9)/9, each derivative tripled once more."""

    def step(x):
        return tripled_exp(x) / 9.0

    def by_hand(x, factor):
        a, slopes = x, []
        for _ in range(3):
            a = np.exp(a) / 9.0
            slopes.append(a * factor)
        return np.prod(slopes)

    f = LOOPS[loop](step)
    assert np.allclose(ft.grad(f)(0.3), by_hand(0.3, 3.0))
    assert np.allclose(ft.grad(ft.jit(f))(0.3), by_hand(0.3, 3.0))
    assert np.allclose(ft.jvp(f, (0.3,), (1.0,))[1], by_hand(0.3, 3.0))
    # Of the product of the a_i, each a_i has the derivative of the loop up to there: three times as large, too.
    a = [0.3]
    for _ in range(3):
        a.append(np.exp(a[-1]) / 9.0)
    first = 3.0 * a[1]
    second = first * 3.0 * a[2]
    want = by_hand(0.3, 3.0) * (3.0 + first * 3.0 + second * 3.0)
    assert np.allclose(ft.grad(ft.grad(f))(0.3), want)
    assert np.allclose(ft.jit(ft.hessian(f))(0.3), want)


class TestForwardMode:
    def test_from_a_reverse_rule(self):
        assert np.allclose(ft.jvp(product, (2.0, 3.0), (1.0, 10.0))[1], 23.0)
        assert np.allclose(ft.jacfwd(ft.jacfwd(product, 0), 1)(2.0, 3.0), 1.0)

    @pytest.mark.parametrize(
        "pull",
        [
            lambda x, g: g**2,
            lambda x, g: g + 1.0,
            lambda x, g: fnp.where(g > 0.0, g, 0.0),
            lambda x, g: fnp.ones(()),
            lambda x, g: g if g > 0.0 else -g,
            lambda x, g: fnp.clip(g, -1.0, 1.0),
            lambda x, g: fnp.floor(g),
        ],
    )
    def test_a_reverse_rule_that_is_not_linear_gives_none(self, pull):
        f = applied(lambda x: x * x, keep_inputs, lambda token, saved, cts: [pull(saved[0], cts[0])])
        ft.grad(f)(3.0)
        with pytest.raises(MissingRuleError, match=r"forward mode through R: .* not linear in the cotangent"):
            ft.jvp(f, (3.0,), (1.0,))

    def test_zeros_may_be_added_and_chosen(self):
        def pull(x, g):
            found = fnp.zeros(3).at[1].add(2.0 * x * g)
            return fnp.sum(fnp.where(fnp.asarray([True, True, False]), found, 0.0))

        f = applied(lambda x: x * x, keep_inputs, lambda token, saved, cts: [pull(saved[0], cts[0])])
        assert np.allclose(ft.jvp(f, (3.0,), (1.0,))[1], 6.0)
        assert np.allclose(ft.jit(ft.jacfwd(f))(3.0), 6.0)

    @pytest.mark.parametrize("materialized", [True, False])
    def test_within_a_loop_with_an_array_that_the_reverse_rule_captured(self, materialized):
        index = np.array([0, 0, 2])
        take = applied(
            lambda x: fnp.take(x, index),
            lambda values, perturbed, again: Forward(again(), [], materialized=materialized),
            lambda token, saved, cts: [fnp.zeros(3).at[index].add(cts[0])],
        )

        def step(x):
            y, push = ft.linearize(take, x)
            return 0.5 * y + push(x * fnp.arange(3.0))

        def loop(x):
            return lax.fori_loop(0, 2, lambda i, c: step(c), x)

        def by_hand(x):
            return 0.5 * x[index] + (x * np.arange(3.0))[index]

        x = np.array([0.3, -0.4, 0.9])
        assert np.allclose(ft.jit(loop)(x), by_hand(by_hand(x)))

    def test_zeros_for_an_operand_that_does_not_matter(self):
        def pull(token, saved, cts):
            return [2.0 * cts[0], fnp.zeros_like(saved[1])]

        f = applied(lambda a, b: 2.0 * a, keep_inputs, pull, arity=2)
        for push in (ft.jvp, lambda *args: ft.jit(lambda: ft.jvp(*args))()):
            assert np.allclose(push(f, (1.0, 2.0), (1.0, 1.0))[1], 2.0)
        assert np.allclose(ft.vmap(ft.jacfwd(f, 1))(X, X), 0.0)
        assert np.allclose(ft.jit(ft.jacfwd(f, 1))(1.0, 2.0), 0.0)

    def test_can_be_forbidden(self):
        f = applied(lambda x: x, keep_inputs, lambda token, saved, cts: [cts[0]], derive_jvp=False)
        assert ft.grad(f)(1.0) == 1.0
        for push in (lambda: ft.jvp(f, (1.0,), (1.0,)), lambda: ft.linearize(f, 1.0)[1](1.0)):
            with pytest.raises(MissingRuleError, match="no rule for forward mode"):
                push()


class TestBothRules:
    f = staticmethod(
        applied(
            lambda x: x * x,
            keep_inputs,
            lambda token, saved, cts: [20.0 * saved[0] * cts[0]],
            lambda values, tangents, again: (again(), [5.0 * values[0] * tangents[0]]),
        )
    )

    def test_each_mode_takes_its_own(self):
        assert ft.grad(self.f)(1.0) == 20.0
        assert ft.jvp(self.f, (1.0,), (1.0,))[1] == 5.0

    @pytest.mark.parametrize("jit", [lambda f: f, ft.jit], ids=["eager", "jit"])
    def test_linearize_pushes_forward(self, jit):
        _, push = ft.linearize(jit(self.f), 1.0)
        assert push(1.0) == 5.0
        assert np.allclose(ft.vmap(push)(X), 5.0 * X)

    def test_no_rule_is_an_error_that_names_the_mode(self):
        f = applied(fnp.sin, no_reverse="define bwd", no_forward="define jvp")
        assert np.allclose(ft.vmap(ft.jit(f))(X), np.sin(X))
        with pytest.raises(MissingRuleError, match="reverse mode through R: define bwd"):
            ft.grad(f)(1.0)
        with pytest.raises(MissingRuleError, match="forward mode through R: define jvp"):
            ft.jvp(f, (1.0,), (1.0,))
        with pytest.raises(NotImplementedError):
            ft.grad(ft.jit(f))(1.0)

    def test_jvp_alone_serves_reverse_mode(self):
        f = applied(
            lambda x: x * x, jvp=lambda values, tangents, again: (again(), [2.5 * values[0] * tangents[0]])
        )
        for first in (ft.grad(f), ft.grad(ft.jit(f)), ft.jit(ft.grad(f))):
            assert np.allclose(first(3.0), 7.5)
            assert np.allclose(ft.grad(first)(3.0), 2.5)
        assert np.allclose(ft.vmap(ft.grad(f))(X), 2.5 * X)


class TestReverseModeFromJvp:
    @pytest.mark.parametrize(
        ("tangent", "what"),
        [
            (lambda x, t: t**2, "'integer_pow' of it"),
            (lambda x, t: t * t, "'mul' of it by itself"),
            (lambda x, t: fnp.sin(t), "'sin' of it"),
            (lambda x, t: fnp.where(t > 0.0, t, 0.0), "'gt' of it"),
            (lambda x, t: t if t > 0.0 else -t, "it asks for numbers: truth value"),
            (lambda x, t: fnp.ones(()), "does not depend"),
            (lambda x, t: t + 1.0, "'add' of it and a number that is not zero"),
            (lambda x, t: 2.0 - t, "'sub' of it and a number that is not zero"),
        ],
    )
    @pytest.mark.parametrize("jit", [lambda f: f, ft.jit], ids=["eager", "jit"])
    def test_what_is_not_linear_is_refused_by_name(self, tangent, what, jit):
        f = applied(
            lambda x: x * x, jvp=lambda values, tangents, again: (again(), [tangent(values[0], tangents[0])])
        )
        with pytest.raises(TangentError, match=f"reverse mode through R transposes its jvp.*{what}"):
            ft.grad(jit(f))(3.0)

    def test_other_faults_keep_their_own_words(self):
        f = applied(
            lambda x: x * x,
            jvp=lambda values, tangents, again: (
                again(),
                [2.0 * values[0] * tangents[0] if values[0] > 0.0 else tangents[0]],
            ),
        )
        assert ft.grad(f)(3.0) == 6.0
        with pytest.raises(ft.errors.TracerBoolConversionError):
            ft.grad(ft.jit(f))(3.0)


class TestLinearUse:
    """A rule's function applied to a tangent by the jvp of another."""

    tenfold = staticmethod(
        applied(
            lambda t: 3.0 * t,
            lambda v, p, again: Forward(again(), []),
            lambda token, saved, cts: [30.0 * cts[0]],
        )
    )

    def test_is_transposed_by_its_reverse_rule(self):
        f = applied(
            lambda x: x * x,
            jvp=lambda values, tangents, again: (again(), [2.0 * values[0] * self.tenfold(tangents[0])]),
        )
        assert ft.jvp(f, (3.0,), (1.0,))[1] == 18.0
        for g in (ft.grad(f), ft.grad(ft.jit(f)), ft.jit(ft.grad(f))):
            assert g(3.0) == 180.0
        assert np.allclose(ft.vmap(ft.grad(f))(X), 60.0 * X)
        assert np.allclose(ft.grad(lambda x: fnp.sum(ft.vmap(f)(x)))(X), 60.0 * X)

    def test_linear_transpose(self):
        assert ft.linear_transpose(self.tenfold, 1.0)(1.0)[0] == 30.0
        assert ft.linear_transpose(ft.jit(self.tenfold), 1.0)(1.0)[0] == 30.0
        with pytest.raises(GradientError, match="not linear"):
            ft.linear_transpose(tripled_exp, 1.0)(1.0)


class TestCaptured:
    @staticmethod
    def scaled(w, x):
        f = applied(
            lambda x: w * x,
            lambda v, p, again: Forward(again(), []),
            lambda token, saved, cts: [10.0 * w * cts[0]],
        )
        return f(x)

    @pytest.mark.parametrize("stack", [s for s in STACKS if s != "checkpoint"])
    def test_traced_values_are_operands(self, stack):
        def f(w, x):
            return STACKS[stack](lambda x: self.scaled(w, x))(x)

        for g in (f, ft.jit(f)):
            assert np.allclose(g(2.0, 3.0), 20.0)
            assert np.allclose(ft.vmap(g)(X, X), 10.0 * X)
            assert np.allclose(ft.vmap(g, (0, None))(X, 1.0), 10.0 * X)

    def test_through_jit_and_loops(self):
        def twice(w, x):
            return lax.scan(lambda c, _: (self.scaled(w, c), None), x, None, length=2)[0]

        for f in (ft.grad(twice, 1), ft.jit(ft.grad(twice, 1)), ft.grad(ft.jit(twice), 1)):
            assert np.allclose(f(2.0, 1.0), 400.0)
            assert np.allclose(ft.vmap(f)(X, X), (10.0 * X) ** 2)

    @pytest.mark.parametrize(
        "of",
        [
            lambda f: ft.grad(f),
            lambda f: ft.jit(ft.grad(f)),
            lambda f: ft.grad(ft.jit(f)),
            lambda f: ft.jacfwd(f),
            lambda f: ft.vmap(ft.grad(f), (None, 0)),
            lambda f: ft.grad(lambda w, x: fnp.sum(ft.vmap(f, (None, 0))(w, x))),
        ],
    )
    def test_a_differentiated_one_raises_where_it_is_read(self, of):
        with pytest.raises(CapturedTracerError, match="'w' is being differentiated"):
            of(self.scaled)(2.0, X)

    def test_reading_its_shape_is_allowed(self):
        def f(w, x):
            double = applied(
                lambda x: w.ndim + 2.0 * x, keep_inputs, lambda token, saved, cts: [2.0 * cts[0] + w.ndim]
            )
            return double(x) * w

        assert ft.grad(f)(3.0, 1.0) == 2.0
        assert ft.grad(ft.jit(f))(3.0, 1.0) == 2.0

    def test_a_rule_within_a_rule_hands_it_on(self):
        """The inner rule holds what is differentiated, too, and is the one to refuse it, if it reads it."""

        def f(w, x, reads):
            held = [w]

            def inner(x):
                return applied(
                    lambda x: held[0] * x if reads else 2.0 * x,
                    keep_inputs,
                    lambda token, saved, cts: [2.0 * cts[0]],
                )(x)

            outer = applied(
                inner,
                lambda values, perturbed, again: Forward([inner(*values)], []),
                lambda token, saved, cts: [3.0 * cts[0]],
            )
            return outer(x) * w

        for g in (ft.grad(f), ft.jit(ft.grad(f), static_argnums=2), ft.grad(ft.jit(f, static_argnums=2))):
            assert g(3.0, 1.0, False) == 2.0
            with pytest.raises(CapturedTracerError, match="held"):
                g(3.0, 1.0, True)

    def test_in_containers_partials_and_attributes(self):
        class Layer:
            def __init__(self, w):
                self.w = {"kernel": [w]}

            def __call__(self, x):
                return self.w["kernel"][0] * x

        def f(w, x):
            layer = Layer(w)
            return applied(layer, keep_inputs, lambda token, saved, cts: [cts[0] * layer.w["kernel"][0]])(x)

        assert ft.grad(ft.jit(f), 1)(2.0, 3.0) == 2.0
        assert np.allclose(ft.vmap(ft.grad(f, 1))(X, X), X)

    @pytest.mark.parametrize(
        ("held", "read"),
        [
            (Slotted, lambda h: h.w),
            (lambda w: deque([w]), lambda h: h[0]),
            (lambda w: [[[[[[[w]]]]]]], lambda h: h[0][0][0][0][0][0][0]),
            (lambda w: ft.jit(lambda: w), lambda h: h()),
            (lambda w: ft.tree_util.Partial(lambda w: w, w), lambda h: h()),
            (lambda w: ft.custom_vmap(lambda: w), lambda h: h()),
            (lambda w: ft.vjp(lambda x: x * w, 1.0)[1], lambda h: h(1.0)[0]),
        ],
        ids=["slots", "deque", "depth", "jit", "Partial", "custom_vmap", "pullback"],
    )
    def test_wherever_it_stands(self, held, read):
        def f(w, x):
            h = held(w)
            rule = applied(
                lambda x: x * read(h), keep_inputs, lambda token, saved, cts: [2.0 * cts[0] * read(h)]
            )
            return rule(x)

        assert ft.grad(ft.jit(f), 1)(2.0, 3.0) == 4.0
        assert np.allclose(ft.vmap(f)(X, X), X * X)
        assert np.allclose(ft.vmap(ft.grad(f, 1))(X, X), 2.0 * X)
        assert np.allclose(ft.jit(ft.vmap(ft.grad(f, 1)))(X, X), 2.0 * X)


class TestResiduals:
    @staticmethod
    def kept(f, *args):
        with ft.config.patch(partitioner="save_all"):
            _, pull = ft.vjp(ft.jit(f), *args)
        arrays = [a for e in pull._linear.tape for a in e.args if isinstance(a, np.ndarray | np.generic)]
        return [np.shape(a) for a in arrays]

    def test_what_the_reverse_rule_does_not_read_is_not_kept(self):
        f = applied(
            fnp.sin,
            lambda v, p, again: Forward(again(), [v[0], fnp.exp(fnp.stack([v[0]] * 2))]),
            lambda token, saved, cts: [cts[0] * fnp.cos(saved[0])],
        )
        assert self.kept(f, X) == [(4,)]
        assert np.allclose(ft.grad(lambda x: fnp.sum(ft.jit(f)(x)))(X), np.cos(X))

    def test_all_are_where_zeros_matter(self):
        f = applied(
            fnp.sin,
            lambda v, p, again: Forward(again(), [v[0], fnp.exp(fnp.stack([v[0]] * 2))], materialized=False),
            lambda token, saved, cts: [cts[0] * fnp.cos(saved[0])],
        )
        assert sorted(self.kept(f, X)) == [(2, 4), (4,)]


class TestOnce:
    f = staticmethod(
        applied(
            lambda x: x * x,
            keep_inputs,
            lambda token, saved, cts: once("Square", lambda v: [2.0 * v[0] * v[1]], [saved[0], cts[0]]),
        )
    )

    def test_first_derivatives(self):
        for g in (ft.grad(self.f), ft.jit(ft.grad(self.f)), ft.grad(ft.jit(self.f))):
            assert g(3.0) == 6.0
        assert np.allclose(ft.vmap(ft.grad(self.f))(X), 2.0 * X)

    REVERSE = tuple(s for s in STACKS if s not in ("jacfwd", "jacfwd of jit", "linearize"))

    @pytest.mark.parametrize("stack", ["jacfwd", "jacfwd of jit", "linearize"])
    def test_forward_mode_is_refused_at_once(self, stack):
        with pytest.raises((OnceDifferentiableError, MissingRuleError)):
            STACKS[stack](self.f)(3.0)

    @pytest.mark.parametrize(("outer", "inner"), list(itertools.product(STACKS, REVERSE)))
    def test_second_derivatives_raise(self, outer, inner):
        with pytest.raises(OnceDifferentiableError, match=r"differentiate twice .* \(Square\)"):
            STACKS[outer](STACKS[inner](self.f))(3.0)

    @pytest.mark.parametrize("jit", [lambda f: f, ft.jit], ids=["eager", "jit"])
    def test_second_derivatives_elsewhere_are_not_affected(self, jit):
        f = jit(self.f)
        assert np.allclose(ft.grad(ft.grad(lambda y: f(2.0) * y**3))(2.0), 48.0)
        assert np.allclose(ft.grad(lambda y: ft.grad(f)(1.0) * y)(2.0), 2.0)

    def test_the_marked_part_sees_plain_arrays(self):
        seen = []

        def pull(values):
            seen.append(type(values[0]))
            return [values[0] * values[1]]

        f = applied(
            lambda x: x * x, keep_inputs, lambda token, saved, cts: once("F", pull, [saved[0], cts[0]])
        )
        ft.grad(lambda y: y + ft.grad(f)(lax.stop_gradient(y)))(X[0])
        assert seen == [np.float64] or seen == [np.ndarray]


def test_a_dictionary_that_changes_while_captured_values_are_looked_for():
    """The repr of a key may do anything: Numba's types, for example, fill tables."""

    class Key:
        def __init__(self, table):
            self.table = table

        def __repr__(self):
            self.table[object()] = [1.0]
            return "key"

    table = {}
    table[Key(table)] = table[Key(table)] = [1.0]

    @ft.custom_jvp
    def double(x):
        return 2.0 * x if table else x

    @double.defjvp
    def _(primals, tangents):
        return double(*primals), tangents[0] * (2.0 if table else 1.0)

    for f in (double, ft.jit(double)):
        assert ft.grad(f)(3.0) == 2.0
        assert ft.jvp(f, (3.0,), (1.0,)) == (6.0, 2.0)
    assert len(table) > 2
