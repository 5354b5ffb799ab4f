"""Blocks with PyTorch's module hooks: their order, what they get and replace, and which functions are traced again."""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentError, ArgumentValueError, HookError, NoRuleError

FORMS = {
    "eager": ft.grad,
    "grad jit": lambda f, argnums=0: ft.grad(ft.jit(f), argnums),
    "jit grad": lambda f, argnums=0: ft.jit(ft.grad(f, argnums)),
}


def numbers(cts):
    return tuple([None if ct is None else round(float(ct), 6) for ct in cts])


def layer(w, x):
    return w * x, w + x


@pytest.mark.parametrize("form", FORMS)
def test_the_order_and_the_gradients(form):
    """PyTorch's for a module with two results, the second argument of which needs no gradient."""
    log, block = [], ft.hookable(layer)
    block.register_forward_pre_hook(lambda b, args: log.append(("pre", len(args), b is block)))
    block.register_forward_pre_hook(lambda b, args: log.append("first"), prepend=True)
    block.register_forward_hook(lambda b, args, out: log.append(("forward", len(args), len(out))))
    block.register_full_backward_pre_hook(lambda b, g: log.append(("bpre", numbers(g))) or (2.0 * g[0], g[1]))
    block.register_full_backward_pre_hook(lambda b, g: log.append(("bpre2", numbers(g))))
    block.register_full_backward_hook(
        lambda b, i, o: log.append(("full", numbers(i), numbers(o))) or (10.0 * i[0], i[1])
    )
    block.register_full_backward_hook(lambda b, i, o: log.append(("full2", numbers(i), numbers(o))))

    def f(w, x):
        a, b = block(w, x)
        return a * a + 3.0 * b

    forward = ["first", ("pre", 2, True), ("forward", 2, 2)]
    go = 2.0 * (2.0 * 6.0)
    gw = go * 3.0 + 3.0
    backward = [
        ("bpre", (12.0, 3.0)),
        ("bpre2", (24.0, 3.0)),
        ("full", (gw, None), (24.0, 3.0)),
        ("full2", (10.0 * gw, None), (24.0, 3.0)),
    ]
    g = FORMS[form](f)
    assert g(2.0, 3.0) == 10.0 * gw
    assert log == forward + backward
    log.clear()
    assert g(2.0, 3.0) == 10.0 * gw
    assert log == (forward if form == "eager" else []) + backward


@pytest.mark.parametrize("form", FORMS)
def test_forward_hooks_replace_arguments_and_results(form):
    block = ft.hookable(lambda x: 3.0 * x)
    block.register_forward_pre_hook(lambda b, args: args[0] + 1.0)
    block.register_forward_pre_hook(lambda b, args: (args[0] * 2.0,))
    block.register_forward_hook(lambda b, args, out: out * args[0])
    assert block(1.0) == 3.0 * 4.0 * 4.0
    assert FORMS[form](block)(1.0) == 6.0 * 4.0 * 2.0


@pytest.mark.parametrize("form", FORMS)
def test_a_block_of_the_data_alone(form):
    """Its parameters are captured, so that no argument has a gradient: hooks look at `grad_output`."""
    log = []

    def f(w, x):
        block = ft.hookable(lambda x: (w * x, w + x))
        block.register_full_backward_hook(lambda b, i, o: log.append((i, numbers(o))))
        a, b = block(x)
        return a * b

    assert FORMS[form](f)(2.0, 3.0) == 3.0 * 5.0 + 6.0
    assert log == [((None,), (5.0, 6.0))]


@pytest.mark.parametrize("form", FORMS)
def test_pytrees_and_statics(form):
    log = []

    @ft.hookable
    def block(parameters, x, name, *, scale):
        return {"y": parameters["w"] * x * scale, "n": 3}

    def double(b, grad_input, grad_output):
        log.append((grad_input, grad_output))
        return ({"w": 2.0 * grad_input[0]["w"], "b": None}, None, None)

    block.register_full_backward_hook(double)
    f = lambda p: block(p, 5.0, "name", scale=2.0)["y"]
    found = FORMS[form](f)({"w": 3.0, "b": 1.0})
    assert found["w"] == 20.0
    assert found["b"] == 0.0
    ((grad_input, grad_output),) = log
    assert set(grad_input[0]) == {"w", "b"}
    assert grad_input[1:] == (None, None)
    assert grad_output[0]["y"] == 1.0
    assert grad_output[0]["n"] is None


def test_vmap_equals_the_loop():
    clip = lambda b, grad_input, grad_output: (fnp.clip(grad_input[0], -0.5, 0.5), grad_input[1])
    block = ft.hookable(lambda w, x: fnp.tanh(w @ x))
    block.register_full_backward_hook(clip)
    block.register_full_backward_pre_hook(lambda b, g: (3.0 * g[0],))
    f = lambda w, x: fnp.sum(block(w, fnp.sin(x)) ** 2)
    w, xs = np.arange(6.0).reshape(2, 3) / 5.0, np.linspace(-1.0, 1.0, 12).reshape(4, 3)
    want = sum(ft.grad(f)(w, x) for x in xs)
    total = lambda w: fnp.sum(ft.vmap(f, (None, 0))(w, xs))
    jitted = lambda w: fnp.sum(ft.vmap(ft.jit(f), (None, 0))(w, xs))
    for found in (
        ft.grad(total)(w),
        ft.grad(jitted)(w),
        ft.grad(ft.jit(total))(w),
        ft.jit(ft.grad(total))(w),
        sum(ft.vmap(ft.grad(ft.jit(f)), (None, 0))(w, xs)),
    ):
        np.testing.assert_allclose(found, want, rtol=1e-12)


def test_second_derivatives():
    host, inline = (ft.hookable(lambda x: 2.0 * x) for _ in range(2))
    host.register_full_backward_hook(lambda b, i, o: (3.0 * i[0],))
    inline.register_full_backward_hook(lambda b, i, o: (3.0 * i[0],), mode="inline")
    for block in (host, inline):
        f = lambda x, block=block: block(x) ** 2
        assert ft.grad(f)(1.0) == 24.0
        assert ft.grad(ft.grad(f))(1.0) == 72.0
    assert ft.grad(ft.grad(ft.jit(lambda x: inline(x) ** 2)))(1.0) == 72.0
    with pytest.raises(NoRuleError, match='mode="inline"'):
        ft.grad(ft.grad(ft.jit(lambda x: host(x) ** 2)))(1.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda i: (i[0],), "must return a tuple of 2 for grad_input, or None, but returned 1 of them"),
        (lambda i: i[0], "must return a tuple of 2 for grad_input.*of type Array"),
        (lambda i: (i[0][:1], i[1]), "changed the size of value"),
        (lambda i: ({"a": i[0]}, i[1]), "for grad_input, where it got"),
    ],
)
def test_bad_gradients(form, returned, message):
    block = ft.hookable(lambda w, x: w * x)
    block.register_full_backward_hook(lambda b, i, o: returned(i))
    with pytest.raises(HookError, match=message):
        FORMS[form](lambda w, x: fnp.sum(block(w, x)), (0, 1))(np.ones(3), np.ones(3))


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="hookable: "):
        ft.hookable(3)
    block = ft.hookable(layer)
    with pytest.raises(ArgumentError, match="register_forward_hook of layer: expected a function"):
        block.register_forward_hook(3)
    with pytest.raises(ArgumentValueError, match="mode must be"):
        block.register_full_backward_hook(print, mode="compiled")
    with pytest.raises(ArgumentError, match="functions made by hookable"):
        ft.register_group_hooks([layer])
    with pytest.raises(ArgumentError, match="pre must be a function"):
        ft.register_group_hooks([block], pre=3)


# --- registration and traces ------------------------------------------------------------------------------------


def test_which_functions_are_traced_again():
    block = ft.hookable(lambda x: 2.0 * x)
    direct = ft.jit(lambda x: block(x) + 1.0)
    through = ft.jit(lambda x: direct(x) + 1.0)
    other = ft.jit(lambda x: x + 1.0)
    traces = lambda: [f.cache_info().traces for f in (direct, through, other)]
    run = lambda: [float(f(1.0)) for f in (direct, through, other)]
    assert run() == [3.0, 4.0, 2.0]
    assert traces() == [1, 1, 1]
    old = weakref.ref(direct.trace(1.0).jaxpr)
    handle = block.register_forward_hook(lambda b, args, out: 10.0 * out)
    gc.collect()
    assert old() is None
    assert run() == [21.0, 22.0, 2.0]
    assert run() == [21.0, 22.0, 2.0]
    assert traces() == [2, 2, 1]
    handle.remove()
    handle.remove()
    assert run() == [3.0, 4.0, 2.0]
    assert traces() == [3, 3, 1]
    with block.register_full_backward_hook(lambda b, i, o: (5.0 * i[0],)):
        assert ft.grad(through)(1.0) == 10.0
    assert ft.grad(through)(1.0) == 2.0
    # A program that meets the block by an inner one whose trace is known is noted, too.
    late = ft.jit(lambda x: direct(x) * 2.0)
    assert late(1.0) == 6.0
    block.register_forward_hook(lambda b, args, out: out + 1.0)
    assert late(1.0) == 8.0


def test_as_a_method_and_by_name():
    class Model:
        def __init__(self, w):
            self.w = w

        @ft.hookable
        def layer(self, x):
            """Scale."""
            return self.w * x

    handle = Model.layer.register_full_backward_hook(lambda b, i, o: (None, 3.0 * i[1]))
    assert ft.grad(lambda x: Model(2.0).layer(x))(1.0) == 6.0
    handle.remove()
    assert ft.grad(lambda x: Model(2.0).layer(x))(1.0) == 2.0
    assert Model.layer.__doc__ == "Scale."
    assert repr(ft.hookable(layer)) == "<hookable of layer>"


@ft.hookable
def module_block(x):
    return 2.0 * x


def test_pickling():
    assert pickle.loads(pickle.dumps(module_block)) is module_block


# --- groups -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [lambda f: f, ft.jit])
def test_a_group(form):
    log = []
    a, b, c = (ft.hookable(lambda x, k=k: x + k) for k in (1.0, 10.0, 100.0))
    handle = ft.register_group_hooks(
        [a, b],
        pre=lambda args: log.append("pre") or (2.0 * args[0],),
        post=lambda out: log.append("post") or -out,
    )
    f = lambda x: c(b(a(x)))
    assert form(f)(1.0) == -(2.0 + 1.0 + 10.0) + 100.0
    assert log == ["pre", "post"]
    assert form(lambda x: a(b(x)))(1.0) == -(2.0 + 10.0 + 1.0)  # the order in which they run
    assert log == ["pre", "post"] * 2
    handle.remove()
    handle.remove()
    assert form(f)(1.0) == 112.0


def test_a_group_after_an_exception_and_in_threads():
    log, fail = [], [True]

    def broken(x):
        if fail[0]:
            raise ZeroDivisionError
        return x

    a, b = ft.hookable(lambda x: x), ft.hookable(broken)
    handle = ft.register_group_hooks(
        [a, b], pre=lambda args: log.append("pre"), post=lambda out: log.append("post")
    )
    with pytest.raises(ZeroDivisionError):
        b(a(1.0))
    fail[0] = False
    b(a(1.0))
    assert log == ["pre", "pre", "post"]
    log.clear()
    a(1.0)
    thread = threading.Thread(target=lambda: b(a(1.0)))
    thread.start()
    thread.join()
    b(1.0)
    assert log == ["pre", "pre", "post", "post"]
    with handle as same:
        assert same is handle
    log.clear()
    b(a(1.0))
    assert log == []


def test_forward_hooks_get_keyword_arguments():
    seen = []
    block = ft.hookable(lambda x, *, scale=1.0: x * scale)

    def before(block, args, kwargs):
        seen.append((args, kwargs))
        return (args[0] + 1.0,), {"scale": 10.0}

    def after(block, args, kwargs, out):
        seen.append((args, kwargs, out))
        return -out

    with (
        block.register_forward_pre_hook(before, with_kwargs=True),
        block.register_forward_hook(after, with_kwargs=True),
    ):
        assert block(2.0, scale=3.0) == -30.0
    assert seen == [((2.0,), {"scale": 3.0}), ((3.0,), {"scale": 10.0}, 30.0)]
    with (
        block.register_forward_pre_hook(lambda block, args, kwargs: args, with_kwargs=True),
        pytest.raises(HookError, match="must return a pair"),
    ):
        block(2.0)


def test_a_forward_hook_that_is_always_called():
    calls = []
    block = ft.hookable(lambda x: x / 0)

    def note(block, args, out):
        calls.append(out)
        raise ValueError("too late")

    block.register_forward_hook(lambda *args: calls.append("never"))
    block.register_forward_hook(note, always_call=True)
    with (
        pytest.raises(ZeroDivisionError),
        pytest.warns(RuntimeWarning, match="always_call=True raised ValueError"),
    ):
        block(1)
    assert calls == [None]
    fine = ft.hookable(lambda x: x + 1)
    fine.register_forward_hook(lambda block, args, out: calls.append(out), always_call=True)
    assert fine(1) == 2
    assert calls == [None, 2]


@pytest.mark.parametrize("form", [ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(ft.jit(f))])
def test_a_full_backward_hook_gets_none_for_an_output_that_is_not_used(form):
    seen = []
    block = ft.hookable(lambda x: (2.0 * x, 3.0 * x))
    block.register_full_backward_hook(lambda block, ins, outs: seen.append((ins, outs)))
    block.register_full_backward_pre_hook(lambda block, outs: seen.append(outs))
    assert form(lambda x: block(x)[0])(1.0) == 2.0
    assert seen == [(1.0, None), ((2.0,), (1.0, None))]


@pytest.mark.parametrize("kind", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_a_hook_of_a_block_that_reads_a_traced_value_is_an_error_with_a_cure(kind):
    block = ft.hookable(fnp.sin)

    def f(x):
        factor = 3.0 * x

        def scaler(*args):
            return (args[1][0] * factor,)

        with getattr(block, kind)(scaler):
            return block(x)

    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        with pytest.raises(
            ft.errors.UnexpectedTracerError, match=f"{kind}: the hook 'scaler' of a block.*Use register_hook"
        ):
            g(0.4)
