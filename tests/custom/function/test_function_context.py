"""`ctx`: which gradients are wanted, attributes, and what rules may read from around them."""

from functools import partial

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

X = np.array([1.0, 2.0, 3.0])


# --- needs_input_grad ----------------------------------------------------------------------------------------


def masks(transform, *args):
    """What ctx.needs_input_grad was, in forward and in the rules, at each level."""
    seen = []

    class Product(ft.Function):
        @staticmethod
        def forward(ctx, x, y, n):
            seen.append(("forward", ctx.needs_input_grad))
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen.append(("backward", ctx.needs_input_grad))
            x, y = ctx.saved_tensors
            return g * y, g * x, None

        @staticmethod
        def jvp(ctx, s, t, _):
            seen.append(("jvp", ctx.needs_input_grad))
            x, y = ctx.saved_tensors
            return s * y + x * t

    transform(lambda x, y: Product.apply(x, y, 3))(*args)
    return seen


NONE, FIRST, BOTH = (False, False, False), (True, False, False), (True, True, False)
TWO, THREE = fnp.asarray(2.0), fnp.asarray(3.0)


def test_needs_input_grad():
    assert masks(lambda f: f, TWO, THREE) == [("forward", NONE)]
    assert masks(ft.grad, TWO, THREE) == [("forward", FIRST), ("backward", FIRST)]
    both = masks(lambda f: lambda *xs: ft.jvp(f, xs, xs), TWO, THREE)
    assert both == [("forward", BOTH), ("jvp", BOTH)]
    one = masks(lambda f: lambda *xs: ft.jvp(f, xs, (TWO, None)), TWO, THREE)
    assert one == [("forward", FIRST), ("jvp", FIRST)]


def test_needs_input_grad_under_jit():
    traced = masks(lambda f: ft.jit(ft.grad(f)), TWO, THREE)
    assert ("backward", FIRST) in traced
    assert {mask for _, mask in traced} <= {NONE, FIRST}
    assert {mask for _, mask in masks(ft.jit, TWO, THREE)} == {NONE}


def test_needs_input_grad_of_nested_levels():
    seen = []

    class Product(ft.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append(ctx.needs_input_grad)
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    def inner(x):
        return ft.grad(lambda y: Product.apply(x, y))(THREE)

    assert ft.grad(inner)(TWO) == 1.0
    assert set(seen) == {(False, False), (False, True), (True, False)}
    assert Product.apply(TWO, THREE) == 6.0
    assert seen[-1] == (False, False)


def test_needs_input_grad_of_a_tree():
    seen = []

    class First(ft.Function):
        @staticmethod
        def forward(ctx, pair, x):
            seen.append(ctx.needs_input_grad)
            return pair[0] * 1.0

        @staticmethod
        def backward(ctx, g):
            return (g, None), None

    ft.grad(lambda x: First.apply((TWO, x), THREE))(1.0)
    assert seen[0] == (True, False)


# --- context -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["saved_tensors", "saved", "needs_input_grad", "save_for_backward", "apply"])
def test_reserved_names(name):
    class Bad(ft.Function):
        @staticmethod
        def forward(ctx, x):
            setattr(ctx, name, 1)
            return x

    with pytest.raises(AttributeError, match=f"ctx.{name} cannot be set") as info:
        Bad.apply(X)
    assert isinstance(info.value, errors.ContextAttributeError)


def test_read_only_in_the_rules():
    class Counter(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.count = 0
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            ctx.count += 1
            return g

        @staticmethod
        def jvp(ctx, t):
            del ctx.count
            return t

    with pytest.raises(AttributeError, match="ctx is read-only in backward") as info:
        ft.grad(Counter.apply)(1.0)
    assert "ctx.count += 1" in str(info.value)
    with pytest.raises(AttributeError, match="ctx is read-only in jvp"):
        ft.jvp(Counter.apply, (1.0,), (1.0,))


def test_attributes_of_all_kinds():
    class Keeper(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.number, ctx.text, ctx.nothing, ctx.thing = 2, "t", None, ft
            ctx.odd = {1: "a", "b": 2}
            ctx.array = x * 3.0
            ctx.tree = {"a": [x, 1.5], "b": "text"}
            ctx.temporary = 1
            del ctx.temporary
            return x * x

        @staticmethod
        def backward(ctx, g):
            assert (ctx.number, ctx.text, ctx.nothing, ctx.thing) == (2, "t", None, ft)
            assert ctx.odd == {1: "a", "b": 2}
            assert ctx.tree["b"] == "text"
            assert ctx.tree["a"][1] == 1.5
            assert not hasattr(ctx, "temporary")
            return g * (ctx.array + ctx.tree["a"][0] * -1.0)

    for transform in (lambda f: f, ft.jit):
        assert transform(ft.grad(Keeper.apply))(3.0) == 6.0
        assert transform(ft.grad(ft.grad(Keeper.apply)))(3.0) == 2.0
        assert ft.vmap(transform(ft.grad(Keeper.apply)))(X).tolist() == [2.0, 4.0, 6.0]


def test_no_such_attribute():
    class Forgetful(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor

    with pytest.raises(AttributeError, match="'ForgetfulBackward' object has no attribute 'factor'"):
        ft.grad(Forgetful.apply)(1.0)


def test_strict_context():
    class Keeper(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.n = 3
            ctx.kept = [x]
            return x * 1.0

    with ft.config.patch(strict_ctx=True):
        with pytest.raises(errors.FunctionContractError, match=r"ctx\.kept.*strict_ctx") as info:
            Keeper.apply(X)
        assert "ctx.kept = [x]" in str(info.value)
    Keeper.apply(X)


def test_forward_cannot_change_its_arguments():
    class Writer(ft.Function):
        @staticmethod
        def forward(ctx, x):
            x[0] = 5.0
            return x

    x = X.copy()
    for f in (Writer.apply, ft.jit(Writer.apply), lambda x: ft.vjp(Writer.apply, x)):
        with pytest.raises(ValueError, match="cannot be changed in place"):
            f(x)
    np.testing.assert_array_equal(x, X)


# --- captured values -----------------------------------------------------------------------------------------


def scale_by(w):
    class Scale(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return w * x

        @staticmethod
        def backward(ctx, g):
            return w * g

    return Scale.apply


def test_captured_values_that_are_not_differentiated():
    w = np.array([2.0, 3.0])
    np.testing.assert_array_equal(ft.vmap(lambda w: scale_by(w)(5.0))(w), 5.0 * w)
    np.testing.assert_array_equal(ft.vmap(lambda w: ft.grad(scale_by(w))(5.0))(w), w)
    np.testing.assert_array_equal(ft.jit(lambda w: ft.grad(lambda x: fnp.sum(scale_by(w)(x)))(w))(w), w)
    assert ft.jit(lambda w: ft.grad(scale_by(w))(5.0))(2.0) == 2.0


def test_captured_value_that_is_differentiated():
    for f in (lambda w: scale_by(w)(2.0), lambda w: scale_by(w)(w), ft.jit(lambda w: scale_by(w)(w))):
        with pytest.raises(errors.CapturedTracerError, match="'w' is being differentiated"):
            ft.grad(f)(3.0)


def test_captured_in_a_static_argument():
    class Call(ft.Function):
        @staticmethod
        def forward(ctx, x, f):
            ctx.f = f
            return f(x)

        @staticmethod
        def backward(ctx, g):
            return ctx.f(g), None

    times = lambda w, x: w * x
    w = np.array([2.0, 3.0])
    np.testing.assert_array_equal(
        ft.vmap(lambda w: ft.grad(lambda x: Call.apply(x, partial(times, w)))(1.0))(w), w
    )
    with pytest.raises(errors.CapturedTracerError):
        ft.grad(lambda w: Call.apply(2.0, partial(times, w)))(3.0)
