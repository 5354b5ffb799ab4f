"""Hooks compiled into the backward pass: equal to eager hooks at every order, compiled again if they change."""

import functools
import types
import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import HookError

X = np.linspace(0.2, 1.0, 4)
HOOKS = {
    "squared": lambda ct: ct * ct,
    "sine": fnp.sin,
    "sum": lambda ct: ct + fnp.sum(ct),
    "None": lambda ct: None,
    "clip": lambda ct: fnp.clip(ct, -0.5, 0.5),
}


def state_of(hook):
    state = ft.BackwardState()
    state.on_y = hook
    return state


def f(mode):
    return lambda x, s: fnp.sum(ft.cotangent_hook(fnp.sin(x), s, "on_y", mode=mode) ** 2 * x)


def scanned(mode):
    def run(x, s):
        def body(c, row):
            return ft.cotangent_hook(fnp.sin(c * row), s, "on_y", mode=mode), None

        return fnp.sum(lax.scan(body, x[:2], x)[0])

    return run


def looped(mode):
    def run(x, s):
        def body(pair):
            i, c = pair
            return i + 1, ft.cotangent_hook(fnp.sin(c * x[i]), s, "on_y", mode=mode)

        return fnp.sum(lax.while_loop(lambda pair: pair[0] < 4, body, (0, x[:2]))[1])

    return run


def written_out(mode):
    def run(x, s):
        c = x[:2]
        for i in range(4):
            c = ft.cotangent_hook(fnp.sin(c * x[i]), s, "on_y", mode=mode)
        return fnp.sum(c)

    return run


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize(
    ("program", "eager"),
    [(f, f), (scanned, written_out), (looped, written_out)],
    ids=["plain", "scan", "while"],
)
def test_every_order_equals_the_eager_hook(program, eager, hook):
    """Which is called directly, and differentiated like any other code."""
    state = state_of(HOOKS[hook])
    compiled = ft.jit(program("inline"))
    first = lambda x: ft.grad(eager("host"))(x, state)
    want = first(X)
    for gradient in (ft.grad(compiled), ft.jit(ft.grad(program("inline"))), ft.jit(ft.grad(compiled))):
        np.testing.assert_allclose(gradient(X, state), want, rtol=1e-12)
    if program is looped:
        return
    v = np.array([1.0, -0.5, 0.25, 2.0])
    second = ft.grad(lambda x: fnp.vdot(v, ft.grad(compiled)(x, state)))(X)
    np.testing.assert_allclose(second, ft.grad(lambda x: fnp.vdot(v, first(x)))(X), rtol=1e-12)
    forward = ft.jvp(lambda x: ft.grad(compiled)(x, state), (X,), (v,))[1]
    np.testing.assert_allclose(forward, ft.jvp(first, (X,), (v,))[1], rtol=1e-12)


@pytest.mark.parametrize("hook", HOOKS)
def test_under_vmap_it_equals_the_loop(hook):
    state, rows = state_of(HOOKS[hook]), np.stack([X, 2.0 * X, -X])
    compiled = ft.jit(f("inline"))
    want = [ft.grad(f("host"))(row, state) for row in rows]
    np.testing.assert_allclose(ft.vmap(ft.grad(compiled), (0, None))(rows, state), want, rtol=1e-12)
    total = lambda rows: fnp.sum(ft.vmap(compiled, (0, None))(rows, state))
    np.testing.assert_allclose(ft.grad(total)(rows), want, rtol=1e-12)
    np.testing.assert_allclose(ft.jit(ft.grad(total))(rows), want, rtol=1e-12)


def test_the_second_derivative_of_a_tripled_cotangent():
    h = ft.jit(lambda x: ft.cotangent_hook(2.0 * x, lambda ct: 3.0 * ct, mode="inline") ** 2)
    assert ft.grad(h)(1.0) == 24.0
    assert ft.grad(ft.grad(h))(1.0) == 72.0
    assert ft.jit(ft.grad(ft.grad(h)))(1.0) == 72.0
    assert ft.grad(ft.jit(ft.grad(h)))(1.0) == 72.0
    assert ft.grad(ft.grad(ft.grad(h)))(1.0) == 0.0
    assert ft.jacfwd(ft.grad(h))(1.0) == 24.0


factor = 1.0


def test_a_changed_guard_recompiles_the_backward_alone():
    global factor
    compiled, state = (
        ft.jit(lambda x, s: ft.cotangent_hook(3.0 * x, s, "on_y", mode="inline")),
        ft.BackwardState(),
    )
    compiles = lambda: compiled.cache_info()[:2]

    def scale(a):
        return lambda ct, b=1.0: a * b * factor * state.c * ct

    def gradient():
        return float(ft.grad(compiled)(1.0, state))

    factor, state.c, state.on_y = 1.0, 1.0, scale(1.0)
    assert gradient() == 3.0
    traces, before = compiles()
    state.on_y = scale(1.0)  # another function of equal code and closure
    assert gradient() == 3.0
    assert compiles() == (traces, before)
    changes = [
        lambda: setattr(state, "on_y", scale(2.0)),
        lambda: setattr(state.on_y, "__defaults__", (3.0,)),
        lambda: globals().update(factor=5.0),
        lambda: setattr(state, "c", 7.0),
        lambda: setattr(state, "on_y", [state.on_y, lambda ct: 11.0 * ct]),
        lambda: setattr(state, "on_y", functools.partial(lambda a, ct: a * ct, 13.0)),
    ]
    for k, (change, want) in enumerate(zip(changes, [6.0, 18.0, 90.0, 630.0, 6930.0, 39.0])):
        change()
        assert gradient() == want
        assert gradient() == want
        assert compiles()[0] == traces
        assert compiles()[1] <= before + k + 1
    state.on_y = scale(1.0)
    factor, state.c = 1.0, 1.0
    last = compiles()
    assert gradient() == 3.0
    assert compiles() == last  # the first form is kept


class Scale:
    """A hook with settings; `by` reads the one that it is about through a method and a property."""

    shared = 1.0

    def __init__(self):
        self.own, self.nested = 1.0, {"list": [1.0]}

    def product(self):
        return self.own * self.last

    @property
    def last(self):
        return self.nested["list"][-1]

    def __call__(self, ct):
        return self.by(ct)

    def by(self, ct):
        return self.product() * self.shared * ct


class Slots:
    __slots__ = ("own",)


def test_settings_in_objects_and_dicts():
    scale, settings, slots, module = Scale(), {"own": 1.0}, Slots(), types.ModuleType("settings")
    slots.own = module.own = 1.0
    hooks = {
        "object": (scale, lambda v: setattr(scale, "own", v)),
        "method": (scale.by, lambda v: scale.nested["list"].append(v)),
        "class": (scale.by, lambda v: setattr(Scale, "shared", v)),
        "closure": (lambda ct: scale.product() * ct, lambda v: setattr(scale, "own", v)),
        "class in a closure": (lambda ct: Scale.shared * ct, lambda v: setattr(Scale, "shared", v)),
        "dict": (lambda ct: settings["own"] * ct, lambda v: settings.update(own=v)),
        "slot": (lambda ct: slots.own * ct, lambda v: setattr(slots, "own", v)),
        "module": (lambda ct: module.own * ct, lambda v: setattr(module, "own", v)),
        "partial": (functools.partial(Scale.by, scale), lambda v: setattr(scale, "own", v)),
    }
    for name, (hook, change) in hooks.items():
        h = ft.jit(lambda x, hook=hook: ft.cotangent_hook(x, hook, mode="inline"))
        g = lambda x, h=h: ft.grad(h)(x)
        for value in (2.0, 3.0, 1.0):
            change(value)
            assert g(0.0) == value, name
        before = h.cache_info()[:2]
        change(2.0)
        assert g(0.0) == 2.0
        assert h.cache_info()[:2] == before  # the first form is kept
        change(1.0)


def test_no_python_runs_in_the_compiled_backward_pass():
    seen = {"calls": 0}

    def hook(ct):
        seen["calls"] += 1
        return 2.0 * ct

    g = ft.jit(ft.grad(lambda x: ft.cotangent_hook(x, hook, mode="inline") ** 2))
    assert g(3.0) == 12.0
    assert g(3.0) == 12.0
    assert seen == {"calls": 1}
    assert "host" not in g.lower(3.0).as_text("python")


def test_a_hook_that_needs_numbers_runs_on_the_host():
    state = state_of(lambda ct: ct * (2.0 if float(ct[0]) > 0 else 1.0))
    compiled = ft.jit(lambda x, s: fnp.sum(ft.cotangent_hook(x, s, "on_y", mode="inline") ** 2))
    with pytest.warns(RuntimeWarning, match=r"the hook 'on_y' cannot be compiled, and runs as Python"):
        np.testing.assert_allclose(ft.grad(compiled)(X, state), 4.0 * X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once
        np.testing.assert_allclose(ft.grad(compiled)(-X, state), -2.0 * X)
        np.testing.assert_allclose(ft.jit(ft.grad(compiled))(X, state), 4.0 * X)


def test_a_hook_in_a_loop_may_hold_arrays():
    weights = np.array([2.0, 3.0])
    state = state_of(lambda ct: weights * ct)
    for program in (scanned, looped):
        want = ft.grad(written_out("host"))(X, state)
        np.testing.assert_allclose(ft.grad(ft.jit(program("inline")))(X, state), want, rtol=1e-12)


def test_inline_hooks_of_two_states():
    state, other = state_of(fnp.sin), state_of(fnp.cos)
    compiled = ft.jit(f("inline"))
    with pytest.raises(ft.errors.BackwardStateError, match="of 2 BackwardStates"):
        ft.jit(ft.grad(lambda x: compiled(x, state) + compiled(x, other)))(X)


def test_a_removed_inline_hook():
    handles = []

    def run(x):
        handles.append(ft.register_hook(x, lambda ct: 2.0 * ct, mode="inline"))
        return x * x

    g = ft.grad(ft.jit(run))
    assert g(1.0) == 4.0
    handles[0].remove()
    assert g(1.0) == 2.0
    assert len(handles) == 1


def test_errors_of_an_inline_hook():
    compiled = ft.jit(lambda x, s: fnp.sum(ft.cotangent_hook(x, s, "on_y", mode="inline")))
    with pytest.raises(HookError, match="changed the size"):
        ft.grad(compiled)(X, state_of(lambda ct: ct[:1]))
    with pytest.raises(ZeroDivisionError) as caught:
        ft.grad(compiled)(X, state_of(lambda ct: 1 / 0))
    assert "in the hook 'on_y'" in caught.value.__notes__[0]
    with pytest.raises(ft.errors.BackwardStateError, match="never set"):
        ft.grad(compiled)(X, ft.BackwardState())


SECOND_ORDER = {
    "eager": lambda f: ft.grad(f),
    "grad jit": lambda f: ft.grad(ft.jit(f)),
    "jit grad": lambda f: ft.jit(ft.grad(f)),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(f)),
    "scan": lambda f: ft.grad(lambda x: lax.scan(lambda c, x: (c + f(x), None), 0.0, x[None])[0]),
}


@pytest.mark.parametrize("form", SECOND_ORDER)
def test_the_derivative_of_tanh_reads_its_value_which_has_a_hook(form):
    """1 - tanh(x)^2 is a use of tanh(x): in a second derivative its cotangent passes the hook too, as in PyTorch."""

    def f(x):
        h = fnp.tanh(1.3 * x)
        ft.register_hook(h, lambda ct: 3.0 * ct, mode="inline")
        return fnp.sum(h**2)

    h = np.tanh(1.3 * X)
    gradient = SECOND_ORDER[form](f)
    np.testing.assert_allclose(gradient(X), 3 * 2 * h * (1 - h**2) * 1.3, rtol=1e-12)
    want = 3 * (3 * 2 * 1.3 * (1 - 3 * h**2)) * (1 - h**2) * 1.3
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(gradient(x)))(X), want, rtol=1e-12)


@pytest.mark.parametrize("form", SECOND_ORDER)
def test_several_hooks_on_such_a_value(form):
    def f(x):
        y = fnp.tanh(x)
        ft.register_hook(y, lambda ct: fnp.sin(ct), mode="inline")
        ft.register_hook(y, lambda ct: ct * ct, mode="inline")
        ft.register_hook(y, lambda ct: ct + y, mode="inline")
        return fnp.sum(y**3)

    y = np.tanh(X)
    ct, slope = 3 * y**2, 1 - y**2
    after = lambda ct: np.sin(ct) ** 2 + y
    gradient = SECOND_ORDER[form](f)
    np.testing.assert_allclose(gradient(X), after(ct) * slope, rtol=1e-12)
    # Of the gradient summed: what y gets by its factor, by the hook that reads it, and by the cotangent, hooked again.
    total = after(ct) * -2 * y + slope * (1 + np.sin(2 * ct) * 6 * y)
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(gradient(x)))(X), after(total) * slope, rtol=1e-12)
