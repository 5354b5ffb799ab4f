"""Hooks that look at several cotangents, and at final gradients."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ArgumentError, ArgumentValueError, HookError

FORMS = {
    "eager": ft.grad,
    "grad jit": lambda f, argnums=0: ft.grad(ft.jit(f), argnums),
    "jit grad": lambda f, argnums=0: ft.jit(ft.grad(f, argnums)),
    "jit grad jit": lambda f, argnums=0: ft.jit(ft.grad(ft.jit(f), argnums)),
}


def rounded(ct):
    return None if ct is None else round(float(ct), 6)


@pytest.mark.parametrize("form", FORMS)
def test_the_order_of_all_kinds(form):
    log = []

    def f(x, y):
        u = x * y
        v = 2.0 * u
        w = 3.0 * x
        unused = y * 5.0
        values = [v, u, x, unused, w]
        ft.register_multi_grad_hook(values, lambda cts: log.append(("all", [*map(rounded, cts)])))
        ft.register_multi_grad_hook([x, u, unused, v], lambda ct: log.append(("any", rounded(ct))), "any")
        ft.post_accumulate_hook(x, lambda g: log.append(("final x", rounded(g))))
        ft.post_accumulate_hook(y, lambda g: log.append(("final y", rounded(g))))
        ft.register_hook(x, lambda ct: log.append(("x", rounded(ct))) or 10.0 * ct)
        return v * v + w + u

    dv, du = 2.0 * 2.0 * 6.0, 2.0 * 24.0 + 1.0
    dx, dy = 3.0 * du + 3.0, 2.0 * du
    want = [("any", dv), ("all", [dv, du, dx, None, 1.0]), ("x", dx), ("final x", 10.0 * dx), ("final y", dy)]
    for calls in (1, 2):
        log.clear()
        g = FORMS[form](f, (0, 1))
        np.testing.assert_allclose(g(2.0, 3.0), [10.0 * dx, dy])
        assert log == want, calls


@pytest.mark.parametrize("form", FORMS)
def test_values_without_a_cotangent(form):
    log = []

    def f(x):
        a, b = x[0] * 2.0, x[1] * 3.0
        ft.register_multi_grad_hook([a, b, a], lambda cts: log.append([*map(rounded, cts)]))
        return 5.0 * a

    FORMS[form](f)(np.ones(2))
    assert log == [[5.0, None, 5.0]]


def test_constants_among_the_values():
    log = []

    def f(x, y):
        ft.register_multi_grad_hook([y, x], lambda cts: log.append([*map(rounded, cts)]))
        return x * y

    assert ft.grad(f)(2.0, 3.0) == 3.0
    assert log == [[None, 3.0]]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_once_for_each_example_and_iteration(mode):
    log = []
    note = lambda cts: log.append(rounded(cts[1] if mode == "all" else cts))

    def f(x):
        y = 2.0 * x
        ft.register_multi_grad_hook([x, y], note, mode)
        return y * y

    x = np.array([1.0, 2.0, 3.0])
    want = list(4.0 * x)
    ft.grad(ft.jit(lambda x: fnp.sum(ft.vmap(f)(x))))(x)
    ft.vmap(ft.grad(ft.jit(f)))(x)
    ft.jit(ft.vmap(ft.grad(f)))(x)
    assert log == want * 3
    log.clear()
    ft.grad(lambda x: lax.scan(lambda c, row: (c + f(row), None), 0.0, x)[0])(x)
    assert log == want[::-1]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_second_derivative_meets_them_again(mode):
    log = []

    def f(x):
        y = x * x
        ft.register_multi_grad_hook([x, y], lambda cts: log.append(1), mode)
        return y * x

    assert ft.grad(ft.grad(f))(2.0) == 12.0
    assert len(log) == 2
    assert ft.grad(ft.grad(ft.jit(f)))(2.0) == 12.0
    assert len(log) == 4


def test_a_removed_hook_on_several():
    def f(x):
        ft.register_multi_grad_hook([x, 2.0 * x], lambda cts: 1 / 0).remove()
        ft.post_accumulate_hook(x, lambda g: 1 / 0).remove()
        return x * x

    assert ft.grad(f)(3.0) == ft.grad(ft.jit(f))(3.0) == 6.0


def test_a_final_gradient_by_name():
    state, seen = ft.BackwardState(), []

    @ft.jit
    def loss(w, state):
        ft.post_accumulate_hook(w, state, "on_w")
        return fnp.sum(w * w)

    _, pull = ft.vjp(loss, np.ones(3), state)
    state.on_w = seen.append
    pull(1.0)
    np.testing.assert_array_equal(seen[0], [2.0, 2.0, 2.0])


def test_bad_uses():
    with pytest.raises(HookError, match="not an argument of the function that is differentiated"):
        ft.grad(lambda x: ft.post_accumulate_hook(2.0 * x, print) and x)(1.0)
    with pytest.raises(HookError, match="not an argument of the function that is differentiated"):
        ft.grad(lambda x: ft.jit(lambda x: ft.post_accumulate_hook(2.0 * x, print) and x)(x))(1.0)
    with pytest.raises(HookError, match="not an argument of the function that is differentiated"):
        ft.grad(lambda x: ft.jit(lambda x: ft.post_accumulate_hook(x, print) and x)(2.0 * x))(1.0)
    with pytest.raises(HookError, match="must return None, but returned an object of type Array"):
        ft.grad(lambda x: ft.post_accumulate_hook(x, lambda g: 2.0 * g) and x)(1.0)
    with pytest.raises(HookError, match="not being differentiated"):
        ft.register_multi_grad_hook([fnp.ones(3)], print)
    with pytest.raises(HookError, match=r"dtype int64"):
        ft.grad(lambda x: ft.register_multi_grad_hook([x, 3], print) and x)(1.0)
    with pytest.raises(ArgumentError, match="list or tuple of arrays"):
        ft.register_multi_grad_hook(fnp.ones(3), print)
    with pytest.raises(ArgumentError, match="without elements"):
        ft.register_multi_grad_hook([], print)
    with pytest.raises(ArgumentValueError, match="'all' or 'any'"):
        ft.register_multi_grad_hook([1.0], print, "some")
    with pytest.raises(HookError, match="some of the values are computed in"):
        ft.grad(lambda x: ft.jit(lambda y: ft.register_multi_grad_hook([x, 2.0 * y], print) and y)(x))(1.0)
    with pytest.raises(HookError, match="a branch calls register_hook on a value from outside"):
        ft.grad(lambda x: lax.cond(x > 0, lambda: ft.register_hook(x, print) and x, lambda: x))(1.0)
