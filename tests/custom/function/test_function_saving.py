"""What `ctx` keeps for `backward` and `jvp`: what may be saved, when it is read, and when it is freed."""

import gc
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.core.ir import subjaxprs

X = np.array([1.0, 2.0, 3.0])


def saving(record, backward=lambda ctx, g: g, jvp=None, style_b=False, **options):
    """A function of one argument, ``2 x``, whose forward ends with ``record(ctx, x, y)``."""
    if style_b:

        class Saving(ft.Function):
            @staticmethod
            def forward(x):
                return x * 2.0

            @staticmethod
            def setup_context(ctx, inputs, output):
                record(ctx, inputs[0], output)

    else:

        class Saving(ft.Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2.0
                record(ctx, x, y)
                return y

    Saving.backward = staticmethod(backward)
    if jvp is not None:
        Saving.jvp = staticmethod(jvp)
    for name, value in options.items():
        setattr(Saving, name, value)
    return Saving.apply


SETTERS = ["save_for_backward", "save_for_forward", "mark_non_differentiable"]


# --- what may be saved --------------------------------------------------------------------------------------


@pytest.mark.parametrize("setter", ["save_for_backward", "save_for_forward"])
@pytest.mark.parametrize("style_b", [False, True])
@pytest.mark.parametrize(("value", "kind"), [("s", "str"), (object(), "object"), ([X], "list"), ({}, "dict")])
def test_only_arrays_are_saved(setter, style_b, value, kind):
    def record(ctx, x, y):
        getattr(ctx, setter)(x, value)

    message = f"{setter} can only save variables, but argument 1 is of type {kind}"
    for f in (saving(record, style_b=style_b), ft.jit(saving(record, style_b=style_b))):
        with pytest.raises(TypeError, match=message) as info:  # also where nothing is differentiated
            f(X)
        assert isinstance(info.value, errors.FunctionDefinitionError)
        assert "getattr(ctx, setter)(x, value)" in str(info.value)


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("style_b", [False, True])
def test_numbers_are_saved_as_they_are(style_b, clear):
    seen = []

    def backward(ctx, g):
        x, *rest = ctx.saved_tensors
        seen.append(rest)
        return g * x

    def record(ctx, x, y):
        ctx.save_for_backward(x, 3, None, 2.5, True, 1j)

    op = saving(record, backward, style_b=style_b, clear_saved_tensors_on_access=clear)
    assert op(2.0) == 4.0  # a number, which is not an array where nothing is differentiated
    for f in (ft.grad(op), ft.jit(ft.grad(op)), ft.grad(ft.checkpoint(op))):
        assert f(2.0) == 2.0
    with ft.saved_values_hooks(lambda x: x + 1.0, lambda x: x):
        assert ft.grad(op)(2.0) == 3.0  # hooks see arrays alone
    for rest in seen:
        assert rest == [3, None, 2.5, True, 1j]
        assert list(map(type, rest)) == [int, type(None), float, bool, complex]


def test_numbers_saved_for_jvp():
    op = saving(
        lambda ctx, x, y: ctx.save_for_forward(3.0, x), jvp=lambda ctx, t: t * ctx.saved[0] * ctx.saved[1]
    )
    assert op(2.0) == 4.0
    assert ft.jvp(op, (2.0,), (1.0,))[1] == 6.0


def test_an_output_computed_from_a_number_may_be_marked():
    op = saving(lambda ctx, x, y: ctx.mark_non_differentiable(y))
    assert op(2.0) == 4.0
    assert ft.grad(op)(2.0) == 0.0


def test_trees_get_a_hint():
    with pytest.raises(TypeError, match="save the arrays in it one by one, or assign the whole"):
        saving(lambda ctx, x, y: ctx.save_for_backward((x, y)))(X)


@pytest.mark.parametrize("style_b", [False, True])
def test_none_stays_none(style_b):
    seen = []

    def backward(ctx, g):
        seen.append(ctx.saved_tensors)
        return g * ctx.saved[0]

    op = saving(lambda ctx, x, y: ctx.save_for_backward(x, None, x), backward, style_b=style_b)
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(op(x)))(X), X)
    (a, b, c), *_ = seen
    assert b is None
    assert type(seen[0]) is tuple
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(c, X)
    np.testing.assert_array_equal(ft.jit(ft.grad(lambda x: fnp.sum(op(x))))(X), X)


def test_nothing_saved():
    seen = []
    op = saving(
        lambda ctx, x, y: None,
        lambda ctx, g: (seen.append(ctx.saved_tensors), g)[1],
        lambda ctx, t: (seen.append(ctx.saved_tensors), t)[1],
    )
    ft.grad(op)(1.0)
    ft.jvp(op, (1.0,), (1.0,))
    assert seen == [(), ()]


def test_saved_arrays_cannot_be_written_to():
    def backward(ctx, g):
        ctx.saved_tensors[0][0] = 1.0
        return g

    op = saving(lambda ctx, x, y: ctx.save_for_backward(x), backward)
    with pytest.raises(ValueError, match="cannot be changed in place"):
        ft.vjp(op, X)[1](X)


def test_the_gradient_cannot_be_written_to():
    def backward(ctx, g):
        g[0] = 1.0
        return g

    g = np.ones(3)
    with pytest.raises(ValueError, match="cannot be changed in place"):
        ft.vjp(saving(lambda *_: None, backward), X)[1](g)
    np.testing.assert_array_equal(g, np.ones(3))


def test_what_is_saved_stays_as_it_was():
    """Changes of the user's arrays after the forward pass, and of a buffer that is used again."""
    buffer = np.zeros(3)

    def record(ctx, x, y):
        buffer[:] = x
        ctx.save_for_backward(x, buffer)

    op = saving(record, lambda ctx, g: g * (ctx.saved[0] + ctx.saved[1]))
    x = X.copy()
    _, pull = ft.vjp(op, x)
    x[:] = 0.0
    buffer[:] = 0.0
    np.testing.assert_array_equal(pull(np.ones(3))[0], 2.0 * X)
    gradient = ft.grad(lambda x: fnp.sum(op(x)) + fnp.sum(op(10.0 * x)))(X)
    np.testing.assert_array_equal(gradient, 2.0 * X + 10.0 * 20.0 * X)


# --- when ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style_b", [False, True])
@pytest.mark.parametrize("setter", SETTERS)
def test_setters_are_called_once(setter, style_b):
    def record(ctx, x, y):
        getattr(ctx, setter)(y)
        getattr(ctx, setter)(y)

    with pytest.raises(errors.FunctionContractError, match=f"Saving: {setter} called twice"):
        saving(record, style_b=style_b)(X)


def test_materialize_is_set_once():
    with pytest.raises(errors.FunctionContractError, match="set_materialize_grads called twice"):
        saving(lambda ctx, x, y: (ctx.set_materialize_grads(True), ctx.set_materialize_grads(True)))(X)


@pytest.mark.parametrize("setter", SETTERS)
def test_setters_belong_into_forward(setter):
    def call(ctx, x):
        getattr(ctx, setter)(x)

    kept = []
    op = saving(
        lambda ctx, x, y: kept.append(ctx),
        lambda ctx, g: (call(ctx, g), g)[1],
        lambda ctx, t: (call(ctx, t), t)[1],
    )
    with pytest.raises(errors.FunctionContractError, match="not in or after backward"):
        ft.grad(op)(1.0)
    with pytest.raises(errors.FunctionContractError, match="not in or after jvp"):
        ft.jvp(op, (1.0,), (1.0,))
    with pytest.raises(errors.FunctionContractError, match="not in or after forward"):
        call(kept[0], fnp.asarray(1.0))


@pytest.mark.parametrize("style_b", [False, True])
@pytest.mark.parametrize("name", ["saved_tensors", "saved"])
def test_saved_values_are_not_read_in_forward(style_b, name):
    def record(ctx, x, y):
        ctx.save_for_backward(x)
        getattr(ctx, name)

    with pytest.raises(
        errors.FunctionContractError, match="saved_tensors can be read in backward and jvp only"
    ):
        saving(record, style_b=style_b)(X)


def test_a_context_kept_after_forward():
    kept = []
    saving(lambda ctx, x, y: kept.append(ctx))(X)
    with pytest.raises(errors.FunctionContractError, match="saved_tensors can be read in"):
        _ = kept[0].saved_tensors
    with pytest.raises(AttributeError, match="read-only"):
        kept[0].late = 1


def test_jvp_reads_what_was_saved_for_forward():
    op = saving(
        lambda ctx, x, y: (ctx.save_for_backward(x), ctx.save_for_forward(y)),
        lambda ctx, g: g * ctx.saved_tensors[0],
        lambda ctx, t: t * ctx.saved_tensors[0],
    )
    assert ft.grad(op)(3.0) == 3.0
    assert ft.jvp(op, (3.0,), (1.0,))[1] == 6.0


def test_the_other_save_is_an_error_in_jvp():
    """PyTorch gives an empty tuple, silently."""

    def read(ctx, t):
        return t * ctx.saved_tensors[0]

    only_backward = saving(lambda ctx, x, y: ctx.save_for_backward(x), jvp=read)
    with pytest.raises(
        errors.FunctionContractError, match="jvp reads saved_tensors, but only save_for_backward"
    ) as info:
        ft.jvp(only_backward, (X,), (X,))
    assert "ctx.save_for_forward" in str(info.value)
    only_forward = saving(lambda ctx, x, y: ctx.save_for_forward(x), read)
    with pytest.raises(
        errors.FunctionContractError, match="backward reads saved_tensors, but only save_for_forward"
    ):
        ft.vjp(only_forward, X)[1](X)


# --- pruning and freeing ------------------------------------------------------------------------------------


def residual_count(op):
    """The number of residuals of a compiled linearisation."""
    _, push = ft.linearize(ft.jit(op), X)
    return len(push._linear.tape[-1].args) - 1


def test_what_backward_does_not_read_is_not_kept():
    """The values saved but not read are not computed by the compiled forward pass."""

    def op(keep_all):
        def record(ctx, x, y):
            ctx.save_for_backward(x, fnp.exp(x), fnp.cos(x))

        return saving(record, lambda ctx, g: g * sum(ctx.saved) if keep_all else g * ctx.saved[0])

    def names(keep_all):
        f = ft.jit(lambda x: ft.grad(lambda x: fnp.sum(op(keep_all)(x)))(x))
        found, todo = set(), [f.lower(X).jaxpr]
        while todo:
            jaxpr = todo.pop()
            found |= {e.primitive.name for e in jaxpr.eqns}
            todo += [j for e in jaxpr.eqns for j in subjaxprs(e.params)]
        return found

    assert {"exp", "cos"} <= names(True)
    assert not {"exp", "cos"} & names(False)


def test_unread_values_are_no_residuals_of_grad_of_jit():
    def record(ctx, x, y):
        ctx.save_for_backward(x, fnp.exp(x))

    f = ft.jit(saving(record, lambda ctx, g: g * ctx.saved[0]))
    _y, pull = ft.vjp(f, X)
    shapes = [a for e in pull._linear.tape for a in e.args if isinstance(a, np.ndarray)]
    assert not any(np.array_equal(a, np.exp(X)) for a in shapes)
    np.testing.assert_array_equal(pull(np.ones(3))[0], X)


def test_reusable_by_default():
    op = saving(lambda ctx, x, y: ctx.save_for_backward(x), lambda ctx, g: g * ctx.saved[0])
    _, pull = ft.vjp(op, X)
    np.testing.assert_array_equal(pull(np.ones(3))[0], pull(np.ones(3))[0])


@pytest.mark.slow
def test_freed_by_the_first_call():
    kept = []

    class Big(np.ndarray):
        """An array that can be watched."""

    def record(ctx, x, y):
        array = np.arange(3.0)
        array.flags.writeable = False
        kept.append(weakref.ref(array))
        ctx.save_for_backward(array)

    op = saving(record, lambda ctx, g: g * ctx.saved[0])
    _, pull = ft.vjp(op, X, retain=False)
    gc.collect()
    assert kept[0]() is not None
    np.testing.assert_array_equal(pull(np.ones(3))[0], np.arange(3.0))
    gc.collect()
    assert kept[0]() is None
    with pytest.raises(errors.SavedValuesFreedError, match="second time"):
        pull(np.ones(3))


def test_saved_inputs_are_freed():
    refs = []

    class Identity(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return g

    def f(x):
        y = fnp.exp(x)
        z = Identity.apply(y)
        refs.append(weakref.ref(getattr(y, "primal", y)))
        return z

    _, pull = ft.vjp(lambda x: Identity.apply(x), X)
    args = [a for e in pull._linear.tape for a in e.args if isinstance(a, np.ndarray)]
    assert args == []  # nothing was saved


def reading(times, style_b=False):
    def backward(ctx, g):
        values = [ctx.saved_tensors[0] for _ in range(times)]
        return g * values[0]

    return saving(
        lambda ctx, x, y: ctx.save_for_backward(x),
        backward,
        style_b=style_b,
        clear_saved_tensors_on_access=True,
    )


@pytest.mark.parametrize("style_b", [False, True])
def test_cleared_when_it_is_read(style_b):
    once, twice = reading(1, style_b), reading(2, style_b)
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(once(x)))(X), X)
    with pytest.raises(errors.SavedValuesFreedError, match="can only be accessed once"):
        ft.grad(lambda x: fnp.sum(twice(x)))(X)
    with pytest.raises(errors.SavedValuesFreedError, match="can only be accessed once"):
        ft.grad(twice)(1.0)
    assert ft.grad(once)(3.0) == 3.0
    _, pull = ft.vjp(once, X)
    np.testing.assert_array_equal(pull(np.ones(3))[0], X)
    with pytest.raises(errors.SavedValuesFreedError, match="second time"):
        pull(np.ones(3))


def test_cleared_when_it_is_read_under_transformations():
    once = reading(1)
    loss = lambda x: fnp.sum(once(x) * x)
    plain = ft.grad(loss)(X)
    np.testing.assert_array_equal(ft.jit(ft.grad(loss))(X), plain)
    np.testing.assert_array_equal(ft.jit(ft.grad(loss))(X), plain)
    np.testing.assert_array_equal(ft.grad(ft.jit(loss))(X), plain)
    np.testing.assert_allclose(ft.hessian(loss)(X), ft.hessian(ft.jit(loss))(X))
    np.testing.assert_array_equal(ft.vmap(ft.grad(once))(X), X)
    with pytest.raises(errors.SavedValuesFreedError, match="can only be accessed once"):
        ft.jit(ft.grad(lambda x: fnp.sum(reading(2)(x))))(X)
