"""Hooks under every stack of transformations, against rules that do the same, and how often they run."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax


def clipped(ct):
    return fnp.clip(ct, -1.0, 1.0)


def doubled(ct):
    return 2.0 * ct


W = np.arange(6.0).reshape(2, 3) / 5.0 - 0.4
X = np.linspace(-1.0, 1.0, 12).reshape(4, 3)


def by_rule(f):
    """The identity whose cotangent passes `f`: what a hook must be equal to."""

    @ft.custom_vjp
    def identity(x):
        return x

    identity.defvjp(lambda x: (x, None), lambda _, ct: (f(ct),))
    return identity


def layer(w, x, hook_w=lambda w: w, hook_h=lambda h: h):
    h = hook_h(fnp.tanh(hook_w(w) @ x))
    return fnp.sum(h**2)


def expected(w, x):
    return layer(w, x, by_rule(clipped), by_rule(doubled))


def loop(f):
    return lambda w, X: sum(f(w, x) for x in X)


def total(f):
    return lambda w, X: fnp.sum(f(w, X))


def fori(f):
    return lambda w, X: lax.fori_loop(0, 4, lambda i, c: c + f(w, fnp.asarray(X)[i]), 0.0)


def while_loop(f):
    def step(s):
        return s[0] + 1, s[1] + f(w_(), fnp.asarray(X)[s[0]])

    def run(w, X):
        nonlocal w_
        w_ = lambda: w
        return lax.while_loop(lambda s: s[0] < 4, step, (0, 0.0))[1]

    w_ = None
    return run


STACKS = {
    "grad": lambda f: ft.grad(loop(f)),
    "grad jit": lambda f: ft.grad(loop(ft.jit(f))),
    "jit grad": lambda f: ft.jit(ft.grad(loop(f))),
    "grad vmap": lambda f: ft.grad(total(ft.vmap(f, (None, 0)))),
    "grad vmap jit": lambda f: ft.grad(total(ft.vmap(ft.jit(f), (None, 0)))),
    "grad jit vmap": lambda f: ft.grad(ft.jit(total(ft.vmap(f, (None, 0))))),
    "jit grad vmap": lambda f: ft.jit(ft.grad(total(ft.vmap(f, (None, 0))))),
    "vmap grad": lambda f: lambda w, X: fnp.sum(ft.vmap(ft.grad(f), (None, 0))(w, X), 0),
    "vmap grad jit": lambda f: lambda w, X: fnp.sum(ft.vmap(ft.grad(ft.jit(f)), (None, 0))(w, X), 0),
    "jit vmap grad": lambda f: ft.jit(lambda w, X: fnp.sum(ft.vmap(ft.grad(f), (None, 0))(w, X), 0)),
    "grad scan": lambda f: ft.grad(lambda w, X: lax.scan(lambda c, x: (c + f(w, x), None), 0.0, X)[0]),
    "jit grad scan": lambda f: ft.jit(
        ft.grad(lambda w, X: lax.scan(lambda c, x: (c + f(w, x), None), 0.0, X)[0])
    ),
    "grad map": lambda f: ft.grad(lambda w, X: fnp.sum(lax.map(lambda x: f(w, x), X))),
    "grad fori": lambda f: ft.grad(fori(f)),
    "grad while": lambda f: ft.grad(while_loop(f)),
    "jit grad while": lambda f: ft.jit(ft.grad(while_loop(f))),
    "grad cond": lambda f: ft.grad(
        lambda w, X: sum(lax.cond(x[0] < 9.0, f, lambda w, x: fnp.sum(w), w, x) for x in X)
    ),
    "grad checkpoint": lambda f: ft.grad(loop(ft.checkpoint(f))),
    "jit grad checkpoint": lambda f: ft.jit(ft.grad(loop(ft.checkpoint(f)))),
    "grad scan checkpoint": lambda f: ft.grad(
        lambda w, X: lax.scan(ft.checkpoint(lambda c, x: (c + f(w, x), None)), 0.0, X)[0]
    ),
    "disable_jit": lambda f: lambda w, X: ft.disable_jit()(ft.grad(loop(ft.jit(f))))(w, X),
}


def by_functions(mode):
    return lambda w, x: layer(
        w,
        x,
        lambda w: ft.cotangent_hook(w, clipped, mode=mode),
        lambda h: ft.cotangent_hook(h, doubled, mode=mode),
    )


def by_block(w, x):
    return fnp.sum(block(w, x) ** 2)


@ft.hookable
def block(w, x):
    return fnp.tanh(w @ x)


block.register_full_backward_hook(lambda b, grad_input, grad_output: (clipped(grad_input[0]), grad_input[1]))
block.register_full_backward_pre_hook(lambda b, grad_output: (doubled(grad_output[0]),))
KINDS = {"host": by_functions("host"), "inline": by_functions("inline"), "block": by_block}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("kind", KINDS)
def test_hooks_under_every_stack_equal_a_rule(kind, stack):
    want = ft.grad(loop(expected))(W, X)
    assert not np.allclose(want, ft.grad(loop(layer))(W, X))
    np.testing.assert_allclose(STACKS[stack](KINDS[kind])(W, X), want, rtol=1e-12)


@pytest.mark.parametrize("stack", STACKS)
def test_a_registered_hook_under_every_stack_equals_a_rule(stack):
    def registered(w, x):
        h = fnp.tanh(w @ x)
        total = fnp.sum(h**2)
        ft.register_hook(h, doubled)
        return total

    want = ft.grad(loop(lambda w, x: layer(w, x, lambda w: w, by_rule(doubled))))(W, X)
    np.testing.assert_allclose(STACKS[stack](registered)(W, X), want, rtol=1e-12)


@pytest.mark.parametrize("stack", STACKS)
def test_how_often_a_hook_runs(stack):
    """Once for each example where numbers are seen; once on a traced example under an eager `vmap`."""
    seen = []
    gradient = STACKS[stack](lambda w, x: layer(w, x, lambda w: ft.cotangent_hook(w, seen.append)))
    gradient(W, X)
    once = stack in ("grad vmap", "vmap grad")
    for calls in (1, 2):
        assert len(seen) == calls * (1 if once else len(X))
        gradient(W, X) if calls == 1 else None
    assert all(ct.shape == W.shape for ct in seen)


@pytest.mark.parametrize("stack", ["grad", "grad jit", "jit grad", "grad scan", "jit grad scan"])
def test_a_forward_pass_runs_no_hook(stack):
    f = lambda x: ft.cotangent_hook(x, lambda ct: 1 / 0) ** 2
    for g in (f, ft.jit(f), ft.vmap(f), ft.jit(ft.vmap(f))):
        np.testing.assert_allclose(g(X[0]), X[0] ** 2)
    np.testing.assert_allclose(ft.jvp(f, (2.0,), (1.0,))[1], 4.0)
    np.testing.assert_allclose(ft.linearize(f, 2.0)[1](1.0), 4.0)
