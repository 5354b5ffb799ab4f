"""`Function` classes: which rules they may define, together, late, and by inheritance."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

X = np.array([1.0, 2.0, 3.0])


class Square(ft.Function):
    """Context first."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2.0 * x * g


def test_no_forward():
    class Empty(ft.Function):
        pass

    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Empty.apply(X)


def test_no_backward_is_noticed_when_it_is_asked_for():
    class Double(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return 2.0 * x

    assert np.array_equal(Double.apply(X), 2.0 * X)
    assert np.array_equal(ft.jit(Double.apply)(X), 2.0 * X)
    assert np.array_equal(ft.vmap(Double.apply)(X), 2.0 * X)
    for f in (Double.apply, ft.jit(Double.apply)):
        with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
            ft.grad(f)(1.0)
        with pytest.raises(errors.MissingRuleError, match="jvp"):
            ft.jvp(f, (1.0,), (1.0,))


def test_backward_and_vjp_exclude_each_other():
    with pytest.raises(TypeError, match="Implementing both 'backward' and 'vjp'"):

        class Both(ft.Function):
            backward = staticmethod(lambda ctx, g: g)
            vjp = staticmethod(lambda ctx, g: g)

    class Half(ft.Function):
        backward = staticmethod(lambda ctx, g: g)

    with pytest.raises(errors.FunctionDefinitionError, match="Whole"):

        class Whole(Half):
            vjp = staticmethod(lambda ctx, g: g)


def test_vjp_alone():
    class Triple(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def vjp(ctx, g):
            return 3.0 * g

    assert ft.grad(Triple.apply)(5.0) == 3.0


def test_never_instantiated():
    with pytest.raises(TypeError, match=r"never instantiated; use Square\.apply"):
        Square()


def test_forward_with_context_beside_setup_context():
    class Mixed(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    with pytest.raises(TypeError, match=r"missing a required argument: 'x'.*setup_context"):
        Mixed.apply(X)


@pytest.mark.parametrize("option", ["generate_vmap_rule", "generate_jvp_rule"])
def test_options_are_checked(option):
    with pytest.raises(TypeError, match=option):
        type(ft.Function)("Odd", (ft.Function,), {option: 3})


def test_subclass_overrides_a_rule():
    class Steeper(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 10.0 * x * g

    assert ft.grad(Square.apply)(1.0) == 2.0
    assert ft.grad(Steeper.apply)(1.0) == 10.0
    assert Steeper.apply(fnp.asarray(3.0)) == 9.0


def test_a_rule_replaced_later_is_used():
    class Changing(Square):
        pass

    class Heir(Changing):
        pass

    assert ft.grad(Heir.apply)(1.0) == 2.0
    Changing.backward = staticmethod(lambda ctx, g: 7.0 * g)
    assert ft.grad(Heir.apply)(1.0) == 7.0
    del Changing.backward
    assert ft.grad(Heir.apply)(1.0) == 2.0


def test_rules_and_options_set_later_are_checked():
    class Late(Square):
        pass

    with pytest.raises(TypeError, match="Implementing both 'backward' and 'vjp'"):
        Late.vjp = staticmethod(lambda ctx, g: g)
    del Late.vjp
    with pytest.raises(TypeError, match="vmap_method"):
        Late.vmap_method = "never"
    Late.vmap_method = None
    assert ft.grad(Late.apply)(1.0) == 2.0


def test_attributes_of_the_users():
    """A class may keep what it likes; that makes no other program of its rules."""

    class Counted(Square):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            Counted.calls += 1
            return Square.forward(ctx, x)

    before = type(Counted).changes
    assert [float(ft.grad(Counted.apply)(k)) for k in (1.0, 2.0)] == [2.0, 4.0]
    assert Counted.calls == 2
    assert type(Counted).changes == before


def test_the_backward_class():
    seen = []

    class Watched(Square):
        @staticmethod
        def forward(ctx, x):
            seen.append(ctx)
            return Square.forward(ctx, x)

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx)
            return Square.backward(ctx, g)

    ft.grad(Watched.apply)(fnp.asarray(1.0))
    assert [type(ctx).__name__ for ctx in seen] == ["WatchedBackward"] * len(seen)
    assert type(seen[-1])._forward_cls is Watched
    assert type(seen[-1]) is Watched._backward_cls
    assert seen[-1].apply(5.0) == 10.0  # what reverse mode calls
