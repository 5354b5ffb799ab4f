"""`BackwardState`: hooks that are set after the forward pass, and where a state must not be used."""

import gc
import threading
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import BackwardStateError
from functrans.transforms.linearize_jaxpr import linearize_jaxpr

FORMS = {"eager": ft.grad, "grad jit": lambda f: ft.grad(ft.jit(f)), "jit grad": lambda f: ft.jit(ft.grad(f))}


def doubled(ct):
    return 2.0 * ct


def by_rule(f):
    """The identity whose cotangent passes `f`: what a hook must be equal to."""

    @ft.custom_vjp
    def identity(x):
        return x

    identity.defvjp(lambda x: (x, None), lambda _, ct: (f(ct),))
    return identity


def with_state(w, xs, state):
    def body(c, x):
        c = ft.cotangent_hook(fnp.tanh(w * c + x), state, "on_c")
        return c, c * c

    return fnp.sum(lax.scan(body, 0.5, xs)[1])


def written_out(factor):
    def f(w, xs):
        c, out = 0.5, 0.0
        for i in range(len(xs)):
            c = by_rule(lambda ct: factor * ct)(fnp.tanh(w * c + xs[i]))
            out = out + c * c
        return out

    return f


def test_a_hook_in_a_scan_under_jit_set_after_the_forward_pass():
    xs, seen = np.linspace(0.0, 1.0, 5), []
    loss = ft.jit(with_state)
    state = ft.BackwardState()
    value, pull = ft.vjp(loss, 0.7, xs, state)
    np.testing.assert_allclose(value, written_out(1.0)(0.7, xs), rtol=1e-12)
    state.on_c = lambda ct: seen.append(float(ct)) or 2.0 * ct
    gw, gx, gs = pull(1.0)
    want = ft.grad(written_out(2.0), (0, 1))(0.7, xs)
    np.testing.assert_allclose([gw, *gx], [want[0], *want[1]], rtol=1e-12)
    assert gs is None
    assert len(seen) == 5
    before = loss.cache_info()
    for another in (state, ft.BackwardState()):  # another member, another object
        another.on_c = lambda ct: 3.0 * ct
        gw = ft.vjp(loss, 0.7, xs, another)[1](1.0)[0]
        np.testing.assert_allclose(gw, ft.grad(written_out(3.0))(0.7, xs), rtol=1e-12)
    after = loss.cache_info()
    assert (after.traces, after.compiles) == (before.traces, before.compiles)


@pytest.mark.parametrize("form", FORMS)
def test_a_state_in_every_form(form):
    state, g = ft.BackwardState(), FORMS[form](with_state)
    xs = np.linspace(0.0, 1.0, 5)
    for factor in (1.0, 2.0):
        state.on_c = [lambda ct, factor=factor: 2.0 * factor * ct, lambda ct: None, lambda ct: ct / 2.0]
        np.testing.assert_allclose(g(0.7, xs, state), ft.grad(written_out(factor))(0.7, xs), rtol=1e-12)
    state.on_c = []
    np.testing.assert_allclose(g(0.7, xs, state), ft.grad(written_out(1.0))(0.7, xs), rtol=1e-12)


def test_a_state_that_is_captured():
    state = ft.BackwardState()
    f = ft.jit(lambda x: ft.cotangent_hook(x, state, "on_x") ** 2)
    _y, pull = ft.vjp(f, 3.0)
    state.on_x = doubled
    assert pull(1.0) == (12.0,)


def test_register_hook_takes_a_state():
    def f(x, state):
        y = x * x
        ft.register_hook(y, state, "on_y")
        return y + ft.jit(lambda y, s: ft.register_hook(y, s, "on_y") and 2.0 * y)(y, state)

    state = ft.BackwardState()
    state.on_y = lambda ct: 10.0 * ct
    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        assert g(1.0, state) == 2.0 * 3.0 * 10.0 * 10.0


def test_each_thread_has_a_state():
    loss, xs = ft.jit(with_state), np.linspace(0.0, 1.0, 5)
    actual, start = {}, threading.Barrier(4)

    def work(k):
        state = ft.BackwardState()
        start.wait()
        for _ in range(20):
            _, pull = ft.vjp(loss, 0.7, xs, state)
            state.on_c = lambda ct: k * ct
            actual.setdefault(k, []).append(float(pull(1.0)[0]))

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, gradients in actual.items():
        np.testing.assert_allclose(gradients, [ft.grad(written_out(k))(0.7, xs)] * 20, rtol=1e-12)


def test_a_state_lives_as_long_as_its_backward_pass():
    def pull():
        state = ft.BackwardState()
        actual = ft.vjp(ft.jit(with_state), 0.7, np.ones(3), state)[1]
        state.on_c = doubled
        return actual, weakref.ref(state)

    pulled, state = pull()
    gc.collect()
    np.testing.assert_allclose(pulled(1.0)[0], ft.grad(written_out(2.0))(0.7, np.ones(3)), rtol=1e-12)
    del pulled
    gc.collect()
    assert state() is None


@pytest.mark.parametrize("form", [lambda f: f, ft.jit])
def test_a_missing_member(form):
    state = ft.BackwardState()
    state.other = doubled
    _, pull = ft.vjp(form(lambda x, s: ft.cotangent_hook(x, s, "on_x")), 1.0, state)
    with pytest.raises(BackwardStateError, match=r"needs 'on_x'.*never set; set: \[other\]") as caught:
        pull(1.0)
    assert 'ft.cotangent_hook(x, s, "on_x")' in str(caught.value)
    state.on_x = 3.0
    with pytest.raises(BackwardStateError, match=r"'on_x' of the BackwardState is '3\.0' of type float"):
        pull(1.0)
    state.on_x = doubled
    assert pull(1.0) == (2.0, None)
    del state.on_x
    with pytest.raises(BackwardStateError, match="never set"):
        pull(1.0)


@pytest.mark.parametrize(
    "trace", [ft.jit, ft.grad, lambda f: lambda x, s: ft.vmap(f, (0, None))(fnp.ones(2), s)]
)
@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.on_x,
        lambda s: hasattr(s, "on_x"),
        lambda s: setattr(s, "on_x", 1),
        lambda s: delattr(s, "a"),
    ],
)
def test_a_state_is_empty_in_the_forward_pass(trace, use):
    with pytest.raises(BackwardStateError, match="in the forward pass, where the state is empty"):
        trace(lambda x, s: use(s) or x)(1.0, ft.BackwardState())


@pytest.mark.parametrize(
    "use",
    [
        lambda x, s: s * x,
        lambda x, s: x - s,
        lambda x, s: s < x,
        lambda x, s: -s,
        lambda x, s: fnp.sin(s),
        lambda x, s: np.sin(s),
        lambda x, s: fnp.stack([x, s]),
        lambda x, s: s[0],
        lambda x, s: float(s),
        lambda x, s: s,
        lambda x, s: (x, {"state": s}),
    ],
)
def test_a_state_is_not_a_number(use):
    for form in (ft.jit, lambda f: lambda x, s: ft.vjp(f, x, s)):
        with pytest.raises(BackwardStateError):
            form(use)(fnp.ones(3), ft.BackwardState())


def test_where_a_state_must_not_be():
    state, f = ft.BackwardState(), lambda x, s: x
    with pytest.raises(BackwardStateError, match="in_axes"):
        ft.vmap(f)(np.ones(3), state)
    with pytest.raises(
        BackwardStateError, match=r"argument 1 \('s'\) is a BackwardState, which has no derivative"
    ):
        ft.grad(f, 1)(1.0, state)
    with pytest.raises(
        BackwardStateError, match=r"at most one.*got 2 \(argument 1 \('s'\) and argument 2 \('t'\)\)"
    ):
        ft.jit(lambda x, s, t: x)(1.0, state, state)
    with pytest.raises(BackwardStateError, match="at most one"):
        ft.vjp(lambda x, s, t: x, 1.0, state, ft.BackwardState())
    with pytest.raises(BackwardStateError, match="at most one"):
        ft.jit(lambda x, s: ft.jit(lambda x, s, t: x)(x, s, s))(1.0, state)
    with pytest.raises(BackwardStateError, match="is reserved"):
        state.proxy = doubled
    with pytest.raises(AttributeError, match="only while a function is compiled"):
        state.proxy


def test_the_proxy_is_a_tracer():
    proxies = []
    ft.jit(lambda x, s: proxies.append(s.proxy) or x)(1.0, ft.BackwardState())
    assert "backward_state" in str(proxies[0].aval)


def test_a_state_has_no_tangent():
    f, state = (lambda x, s: ft.cotangent_hook(x, s, "on_x") ** 2), ft.BackwardState()
    assert ft.jvp(f, (3.0, state), (1.0, None)) == (9.0, 6.0)
    assert ft.linearize(f, 3.0, state)[1](1.0, None) == 6.0


def test_hooks_may_use_their_state():
    """Also under an outer derivative, where the hook itself is differentiated."""
    state = ft.BackwardState()
    state.count, state.factor = 0, 3.0

    def hook(ct):
        state.count += 1
        return state.factor * ct

    state.on_y = hook
    assert ft.grad(ft.grad(lambda x: ft.cotangent_hook(2.0 * x, state, "on_y") ** 2))(1.0) == 72.0
    assert state.count == 2


def test_a_state_is_not_a_residual():
    def f(x, state):
        return ft.cotangent_hook(fnp.sin(x), state, "on_y") ** 2

    jaxpr = ft.make_jaxpr(f)(1.0, ft.BackwardState())
    primal, _, residuals, _ = linearize_jaxpr(jaxpr, (True, False))
    assert ("in", 1) in residuals
    assert not any(str(v.aval) == "backward_state" for v in primal.outvars)
