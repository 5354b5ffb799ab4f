"""What a hook is: which are equal, what they may return, what they see of values that they captured."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.control.bodies.cache import interned
from functrans.control.callbacks.callback import Replay, made_before
from functrans.control.hooks.hook_calls import FirstHook, Hook, HookCall, MultiHook, PostAccumulateHook
from functrans.control.hooks.traced_hooks import _same
from functrans.core.aval import aval_of
from functrans.errors import HookError
from functrans.errors.source import user_source
from functrans.runtime.context import run_with

X = np.array([0.5, -1.0, 2.0])
FORMS = {
    "eager": ft.grad,
    "grad jit": lambda f: ft.grad(ft.jit(f)),
    "jit grad": lambda f: ft.jit(ft.grad(f)),
}


def doubled(ct):
    return 2.0 * ct


def tripled(ct):
    return 3.0 * ct


# --- which hooks are equal ----------------------------------------------------------------------------------


def made(function=doubled, member=None, mode="host", source=None, kind=Hook, state=None, **options):
    return kind(function, state, member, mode, source, **options)


def test_hooks_that_do_the_same_at_the_same_line_are_equal():
    line, other = user_source(), user_source()
    assert made(source=line) == made(source=line)
    assert hash(made(source=line)) == hash(made(source=line))
    assert made(None, "on_ct", source=line) == made(None, "on_ct", source=line)
    different = [
        made(source=line),
        made(tripled, source=line),
        made(mode="inline", source=line),
        made(source=other),
        made(None, "on_ct", source=line),
        made(None, "on_x", source=line),
        doubled,
    ]
    for i, a in enumerate(different):
        assert [a == b for b in different] == [i == j for j in range(len(different))]


def test_hooks_with_a_handle_a_state_or_values_are_equal_to_themselves_alone():
    line, state = user_source(), ft.BackwardState()
    holding = lambda ct: line and ct
    for make in (
        lambda: made(source=line, kind=MultiHook),
        lambda: made(source=line, kind=FirstHook),
        lambda: made(source=line, kind=PostAccumulateHook),
        lambda: made(holding, source=line),
        lambda: made(None, "on_ct", source=line, state=state),
    ):
        one, another = make(), make()
        assert not one.shared
        assert one == one
        assert one != another
        assert hash(one) != hash(another)
    assert made(source=line).shared
    assert made(None, "on_ct", source=line).shared


def test_programs_of_equal_hooks_are_one():
    def f(x, hook):
        return 2.0 * ft.cotangent_hook(x, hook)

    def program(hook):
        return interned(ft.make_jaxpr(lambda x: f(x, hook))(1.0))

    assert program(doubled) is program(doubled)
    assert program(doubled) is not program(tripled)
    closed = lambda: (lambda n: lambda ct: n * ct)(2.0)
    assert program(closed()) is not program(closed())


def test_names():
    class Callable:
        def __call__(self, ct):
            return ct

    assert made().name == repr(made()) == "doubled"
    assert made(Callable()).name == "Callable"
    assert made(None, "on_ct").name == "on_ct"
    assert str(ft.make_jaxpr(lambda x: ft.cotangent_hook(x, doubled))(1.0)).count("hook=doubled") == 1


def test_operands_that_are_no_cotangents():
    state = ft.BackwardState()
    assert (made().extra, made(None, "on_ct").extra, made(None, "on_ct", state=state).extra) == (0, 1, 0)
    assert made(captures=("a", "b")).extra == 2
    assert made(None, "on_ct", captures=("a",)).extra == 2


# --- weak values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("change", [lambda g, s: s, lambda g, s: 2 * s, lambda g, s: g * s])
def test_a_captured_number_is_weak_as_it_was(change, mode):
    """It takes the dtype of the cotangent, eagerly and compiled."""

    def f(x, s):
        y = 2 * x
        ft.register_hook(y, lambda g: change(g, s), mode=mode)
        return fnp.sum(y * y)

    x = np.float32(1.5)
    want = 2 * change(6.0, 0.25)
    for gradient in (
        lambda x, s: ft.grad(lambda x: f(x, s))(x),
        ft.grad(f),
        ft.grad(ft.jit(f)),
        ft.jit(ft.grad(f)),
        ft.jit(lambda x, s: ft.grad(lambda x: f(x, s))(x)),
        lambda x, s: ft.vmap(ft.grad(f), (0, None))(x[None], s)[0],
    ):
        got = gradient(x, 0.25)
        assert aval_of(got).dtype == np.float32
        assert got == want
    if mode == "inline":
        inner, by_number = ft.vjp(lambda s: ft.grad(f)(x, s), 0.25)
        assert aval_of(inner).dtype == np.float32
        h = 1e-3
        np.testing.assert_allclose(
            by_number(np.float32(1))[0], (2 * change(6.0, 0.25 + h) - want) / h, rtol=1e-6
        )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["host", "inline"])
def test_a_captured_array_is_not_weak(form, mode):
    def f(x):
        s = fnp.asarray(np.float64(0.25)) * fnp.asarray(np.float64(fnp.pi))
        y = 2 * x
        ft.register_hook(y, lambda g: g * fnp.float32(s), mode=mode)
        return fnp.sum(y)

    got = FORMS[form](f)(np.ones(3, np.float32))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, 2 * np.pi / 4, rtol=1e-6)


# --- hooks on the first of several cotangents ---------------------------------------------------------------


@pytest.mark.parametrize("how", ["all", "any"])
@pytest.mark.parametrize("axis", [0, 1])
def test_each_lane_of_hooks_on_several_values_sees_what_it_captured(how, axis):
    """Of a compiled program too, in which the captured value is defined after the hook."""
    seen = []

    def f(x):
        y = 2.0 * x
        z = y * fnp.roll(x, 1)
        s = fnp.sin(z)
        note = lambda cts: seen.append(np.asarray((cts if how == "any" else cts[1]) * s))
        ft.register_multi_grad_hook([y, z], note, how)
        return fnp.sum(z)

    lanes = np.stack([X, 3 * X])
    xs = lanes if axis == 0 else lanes.T
    for g in (
        ft.vmap(ft.grad(ft.jit(f)), in_axes=axis),
        ft.grad(lambda x: fnp.sum(ft.vmap(ft.jit(f), in_axes=axis)(x))),
        ft.jit(ft.vmap(ft.grad(f), in_axes=axis)),
    ):
        seen.clear()
        g(xs)
        want = [np.sin(2 * x * np.roll(x, 1)) for x in lanes]
        np.testing.assert_allclose(
            sorted(seen, key=lambda s: s[0]), sorted(want, key=lambda s: s[0]), rtol=1e-12
        )


@pytest.mark.parametrize("form", FORMS)
def test_a_hook_on_several_runs_without_those_that_are_not_differentiated(form):
    """It sees None for them; the first of the others still comes first."""
    seen = []

    def f(x):
        a, b, c = 2.0 * x, fnp.floor(3.0 * x), 4.0 * x
        ft.register_multi_grad_hook([a, b, c], lambda cts: seen.append(list(cts)))
        ft.register_multi_grad_hook([a, b, c], lambda ct: seen.append(ct), "any")
        return fnp.sum(a * a + b + 5.0 * c)

    FORMS[form](f)(X)
    (cts,) = [x for x in seen if isinstance(x, list)]
    (first,) = [x for x in seen if not isinstance(x, list)]
    np.testing.assert_allclose(cts[0], 4 * X)
    np.testing.assert_allclose(cts[2], [5.0] * 3)
    assert cts[1] is None or not np.any(np.asarray(cts[1]) != 1.0)
    np.testing.assert_allclose(first, [5.0] * 3)


# --- constants of hooks -------------------------------------------------------------------------------------


def test_arrays_at_one_place_are_the_same():
    base = np.arange(6.0)
    assert _same(base, base)
    assert _same(base[1:4], base[1:4])
    assert not _same(base[1:4], base[2:5])
    assert _same(base[1:4], base[1:4].copy())
    assert not _same(base, base.astype(np.float32))
    assert not _same(base, base.reshape(2, 3))
    assert not _same(np.array([0.0]), np.array([-0.0]))
    assert _same(np.array([np.nan]), np.array([np.nan]))
    assert not _same(base, list(base))
    assert not _same(1.0, 1.0 + 0 * base[0])
    assert not _same(base[::2], base[:3])
    assert _same(base[::2], base[::2].copy())


# --- states that a program captures -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["host", "inline"])
def test_a_state_from_outside_that_an_inner_function_takes(mode):
    state = ft.BackwardState()

    @ft.jit
    def inner(x, s):
        return ft.cotangent_hook(3.0 * x, s, "on_ct", mode=mode) ** 2

    outer = ft.jit(lambda x: inner(x, state) + 1.0)
    _, pull = ft.vjp(outer, 2.0)
    for k in (1.0, 2.0):
        state.on_ct = lambda ct, k=k: k * ct
        assert pull(1.0)[0] == k * 36.0
        assert ft.grad(outer)(2.0) == k * 36.0
        assert ft.jit(ft.grad(outer))(2.0) == k * 36.0
    assert outer(2.0) == 37.0


@pytest.mark.parametrize("form", ["jit grad", "grad jit"])
def test_a_failing_kernel_after_a_hook_does_not_repeat_it(form):
    """To find the line, the program is evaluated again: with what the hook returned."""
    seen = []

    @ft.custom_vjp
    def picked(x, i):
        return x

    def backward(i, ct):
        return ct * fnp.arange(3.0)[i], None

    picked.defvjp(lambda x, i: (x, i), backward)

    def f(x, i):
        y = fnp.sin(picked(x, i))
        return fnp.sum(ft.cotangent_hook(y, lambda ct: seen.append(float(ct)) or 2.0 * ct) ** 2)

    gradient = FORMS[form](f)
    np.testing.assert_allclose(gradient(0.5, 2), 2 * 4.0 * np.sin(0.5) * np.cos(0.5))
    assert len(seen) == 1
    with pytest.raises(IndexError, match=r"arange\(3.0\)\[i\]"):
        gradient(0.5, 7)
    np.testing.assert_allclose(seen, [2 * np.sin(0.5)] * 2)


# --- on numbers ---------------------------------------------------------------------------------------------


def call_on_numbers(seen, kind=Hook, active=True, lanes=()):
    """A call of a hook that doubles two cotangents, or only sees them."""
    if kind is Hook:
        hook = made(lambda ct: seen.append(ct) or 2.0 * ct, active=active)
        return HookCall(hook, (aval_of(X),), (True,), (True,), lanes)
    hook = made(lambda cts: seen.append(cts), kind=kind, size=2, active=active)
    return HookCall(hook, (aval_of(X),) * 2, (True, True), (True, True), lanes, order=(0, 1))


def test_a_hook_that_was_removed_from_a_compiled_program_hands_its_cotangent_on():
    seen = []
    (found,) = call_on_numbers(seen).on_host(X)
    np.testing.assert_array_equal(found, 2.0 * X)
    (found,) = call_on_numbers(seen, active=False).on_host(X)
    np.testing.assert_array_equal(found, X)
    assert len(seen) == 1


def test_a_hook_that_only_sees_has_no_results():
    seen = []
    assert call_on_numbers(seen, MultiHook).on_host(X, X) == []
    assert call_on_numbers(seen, MultiHook, active=False).on_host(X, X) == []
    assert len(seen) == 1
    none = ((0, (0, 0)),)
    assert call_on_numbers(seen, MultiHook, lanes=none).on_host(X[:0], X[:0]) == []
    (empty,) = call_on_numbers(seen, lanes=((0, (0,)),)).on_host(X[:0])
    assert empty.shape == (0,)
    assert len(seen) == 1


@pytest.mark.parametrize("lanes", [(), ((3, (0,)),)], ids=["whole", "lanes"])
def test_a_hook_is_repeated_by_what_it_returned(lanes):
    """While a failure is explained; a hook that had not run before runs then, as one does in a kernel."""
    seen = []
    call = call_on_numbers(seen, lanes=lanes)
    before = [np.full(3, 7.0)]
    assert run_with(made_before, Replay([before]), call.on_host, X) is before
    assert seen == []
    values = [X] if not lanes else [np.arange(3.0)]
    call = HookCall(call.hook, (aval_of(X if not lanes else 0.0),), (True,), (True,), lanes)
    for log in (Replay(), [before], None):
        (found,) = run_with(made_before, log, call.on_host, *values)
        np.testing.assert_array_equal(found, 2.0 * values[0])
    assert len(seen) == 3 * (3 if lanes else 1)


def test_the_state_is_no_cotangent():
    """The last operand of a hook that is named when it runs is the number of the state."""
    state = ft.BackwardState()
    loss = ft.jit(lambda x, state: fnp.sum(ft.cotangent_hook(x, state, "on_ct") ** 2))
    grad = ft.jit(ft.grad(loss))
    for factor in (2.0, 5.0):
        state.on_ct = lambda ct, factor=factor: factor * ct
        np.testing.assert_allclose(grad(X, state), factor * 2.0 * X)


# --- results ------------------------------------------------------------------------------------------------

COTANGENTS = {
    "number": (0.5, lambda y: y * y),
    "single": (np.float32(0.5), lambda y: y * y),
    "array": (np.arange(3.0), lambda y: fnp.sum(y * y)),
    "complex": (0.5 + 1j, lambda y: fnp.abs(y) ** 2),
}
RETURNED = {
    "None": (lambda: None, {"number", "single", "array", "complex"}),
    "int": (lambda: 2, {"number", "single", "complex"}),
    "float": (lambda: 2.0, {"number", "single", "complex"}),
    "complex": (lambda: 2j, {"complex"}),
    "float64": (lambda: np.float64(2.0), {"number"}),
    "float32": (lambda: np.float32(2.0), {"single"}),
    "complex128": (lambda: np.complex128(2.0), {"complex"}),
    "0-d": (lambda: np.full((), 2.0), {"number"}),
    "one": (lambda: np.full(1, 2.0), set()),
    "three": (lambda: np.full(3, 2.0), {"array"}),
    "integers": (lambda: np.full(3, 2), set()),
    "text": (lambda: "2", set()),
    "a list": (lambda: [2.0, 2.0, 2.0], set()),
}


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("form", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_what_a_hook_may_return(form, mode):
    """None, a number for a cotangent of rank 0, or an array of its shape and dtype; nothing else passes in silence."""
    for kind in COTANGENTS if form is not ft.jit else ("single",):
        x, loss = COTANGENTS[kind]
        plain = ft.grad(loss)(x)
        for name, (returned, fits) in RETURNED.items():
            hooked = lambda x, f=loss, of=returned: f(ft.cotangent_hook(x, lambda ct: of(), mode=mode))
            gradient = ft.grad(form(hooked))
            if kind not in fits:
                with pytest.raises(
                    HookError, match=r"has changed the (size|type)|must return an array or None"
                ):
                    gradient(x)
                continue
            found = gradient(x)
            assert (found.shape, found.dtype) == (plain.shape, plain.dtype)
            np.testing.assert_array_equal(
                found, plain if name == "None" else np.full(np.shape(x), returned())
            )


def test_a_hook_on_values_of_two_functions_is_refused():
    def f(x):
        y = x * 2

        def inner(z):
            w = z * 3
            ft.register_multi_grad_hook([y, w], lambda cts: None)
            return w * y

        return fnp.sum(ft.jit(inner)(x))

    for gradient in (ft.grad(f), ft.grad(ft.jit(f)), ft.jit(ft.grad(f))):
        with pytest.raises(HookError, match="some of the values are computed in inner, others outside"):
            gradient(np.ones(2))


def test_a_hook_inside_on_a_value_from_outside_that_captures_another():
    def f(x):
        y, w = 2 * x, fnp.cos(x)

        def inner(z):
            ft.register_hook(y, lambda g: g * w)
            return z * y

        return fnp.sum(ft.jit(inner)(x))

    x = np.array([0.5, 2.0])
    for gradient in (ft.grad(f), ft.grad(ft.jit(f)), ft.jit(ft.grad(f))):
        np.testing.assert_allclose(gradient(x), 2 * x + 2 * x * np.cos(x), rtol=1e-14)
