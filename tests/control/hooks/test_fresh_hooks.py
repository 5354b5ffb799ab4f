"""Inline hooks that read anything: a backward pass computes with what they read when it is called."""

import os
import types
import warnings
from collections import OrderedDict, deque
from contextvars import ContextVar

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.runtime.config import config

ambient = ContextVar("ambient", default=1.0)


class Table:
    def __init__(self):
        self.rows = {"k": 1.0}

    def __getitem__(self, name):
        return self.rows[name]


class Factor:
    def __init__(self):
        self.number = 1.0

    def __rmul__(self, other):
        return self.number * other

    __mul__ = __rmul__
    __array_ufunc__ = None


def readers():
    """Hooks that scale by a number which they read somewhere, and how to set it."""
    ordered, queue, table, factor = OrderedDict(k=1.0), deque([1.0]), Table(), Factor()
    names, module, array = types.SimpleNamespace(k=1.0), types.ModuleType("settings"), np.ones(3)
    held, opened, outer = [Table()], iter, {"in": {"it": [1.0]}}
    module.k = 1.0
    return {
        "OrderedDict": (lambda ct: ct * ordered["k"], lambda v: ordered.update(k=v)),
        "deque": (lambda ct: ct * queue[0], lambda v: queue.__setitem__(0, v)),
        "environment": (
            lambda ct: ct * float(os.environ.get("FUNCTRANS_TEST_FACTOR", "1.0")),
            lambda v: os.environ.update(FUNCTRANS_TEST_FACTOR=str(v)),
        ),
        "ContextVar": (lambda ct: ct * ambient.get(), ambient.set),
        "__getitem__": (lambda ct: ct * table["k"], lambda v: table.rows.update(k=v)),
        "__rmul__": (lambda ct: ct * factor, lambda v: setattr(factor, "number", v)),
        "getattr": (lambda ct: ct * getattr(names, "k"), lambda v: setattr(names, "k", v)),  # noqa: B009
        "module": (lambda ct: ct * module.k, lambda v: setattr(module, "k", v)),
        "array": (lambda ct: ct * array, lambda v: array.__setitem__(slice(None), v)),
        "deep": (lambda ct: ct * outer["in"]["it"][0], lambda v: outer["in"]["it"].__setitem__(0, v)),
        "object in a list": (lambda ct: ct * held[0]["k"], lambda v: held[0].rows.update(k=v)),
        "branch": (lambda ct: ct * 2.0 if next(opened(queue)) > 2.0 else ct, lambda v: queue.append(v)),
    }


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("FUNCTRANS_TEST_FACTOR", "1.0")


@pytest.mark.parametrize("name", [n for n in readers() if n != "branch"])
def test_a_hook_reads_its_numbers_at_each_backward_pass(name):
    hook, change = readers()[name]
    f = ft.jit(lambda x: fnp.sum(ft.cotangent_hook(x * 3.0, hook, mode="inline")))
    looped = lambda x: lax.scan(lambda c, _: (ft.cotangent_hook(c, hook, mode="inline"), None), x, None, 2)[0]
    scan = ft.jit(lambda x: fnp.sum(looped(x)))
    x = np.ones(3)
    _, pull = ft.vjp(f, x)
    for number in (2.0, 5.0, 1.0):
        change(number)
        np.testing.assert_allclose(ft.grad(f)(x), 3.0 * number * np.ones(3))
        np.testing.assert_allclose(pull(1.0)[0], 3.0 * number * np.ones(3))
        np.testing.assert_allclose(ft.grad(scan)(x), number**2 * np.ones(3))
    assert f.cache_info().traces == 1


@pytest.mark.parametrize("name", [n for n in readers() if n not in ("branch", "array")])
def test_a_second_derivative_is_as_fresh(name):
    hook, change = readers()[name]
    f = ft.jit(lambda x: fnp.sum(ft.cotangent_hook(x, lambda ct: hook(ct) * fnp.sin(ct), mode="inline") ** 3))
    x, h = np.array([0.2, 0.4, 0.6]), 1e-6
    for number in (2.0, 5.0):
        change(number)
        by_hand = lambda x, number=number: number * 3 * x**2 * np.sin(3 * x**2)
        gradient = lambda x: ft.grad(f)(x)
        np.testing.assert_allclose(gradient(x), by_hand(x), rtol=1e-12)
        along = ft.jvp(gradient, (x,), (np.ones(3),))[1]
        np.testing.assert_allclose(along, (by_hand(x + h) - by_hand(x - h)) / (2 * h), rtol=1e-7)


def test_the_same_numbers_compile_nothing():
    weights, settings = np.ones(3), {"limit": 1.0}
    f = ft.jit(
        lambda x: fnp.sum(ft.cotangent_hook(x, lambda ct: weights * ct * settings["limit"], mode="inline"))
    )
    gradient = ft.grad(f)
    gradient(np.ones(3))
    before = f.cache_info()[:2]
    settings["limit"] = float("1.0")
    weights[:] = np.ones(3)
    assert np.all(gradient(np.ones(3)) == 1.0)
    assert f.cache_info()[:2] == before
    weights[1] = 7.0
    np.testing.assert_array_equal(gradient(np.ones(3)), [1.0, 7.0, 1.0])
    weights[1] = 1.0
    after = f.cache_info()[:2]
    assert np.all(gradient(np.ones(3)) == 1.0)
    assert f.cache_info()[:2] == after  # the first form is kept


def test_jit_around_a_backward_pass_traces_its_hooks_once():
    """As all the code that it traces: the rule is jit's."""
    calls, settings = [], {"k": 2.0}

    def hook(ct):
        calls.append(type(ct))
        return ct * settings["k"]

    f = lambda x: ft.cotangent_hook(x, hook, mode="inline") ** 2
    outside, inside = ft.jit(ft.grad(f)), ft.jit(ft.grad(ft.jit(f)))
    for gradient in (outside, inside):
        settings["k"] = 2.0
        assert gradient(3.0) == 12.0
        settings["k"] = 5.0
        assert gradient(3.0) == 12.0
        gradient.clear_cache()
        assert gradient(3.0) == 30.0
    del calls[:]
    compiled = ft.jit(f)
    for k in range(3):  # outside of jit, as in PyTorch: at each backward pass
        ft.grad(compiled)(3.0)
        assert len(calls) == k + 1


def test_jit_traces_hooks_with_a_handle_once_too():
    settings = {"k": 2.0}

    def f(x):
        y = 3.0 * x
        ft.register_hook(y, lambda ct: ct * settings["k"], mode="inline")
        return y * y

    gradient = ft.jit(lambda x: ft.grad(ft.jit(f))(x))
    assert gradient(1.0) == 36.0
    settings["k"] = 5.0
    assert gradient(1.0) == 36.0
    gradient.clear_cache()
    assert gradient(1.0) == 90.0


def test_the_warning_says_why_a_hook_cannot_be_compiled():
    def hook(ct):
        return ct * min(float(ct), 2.0)

    f = ft.jit(lambda x: ft.cotangent_hook(x, hook, mode="inline") ** 2)
    with pytest.warns(
        RuntimeWarning, match="'hook' cannot be compiled, and runs as Python: .*traced value"
    ) as caught:
        assert ft.grad(f)(3.0) == 12.0
    assert "\n" not in str(caught[0].message)


def test_a_handle_removes_a_hook_that_a_jit_has_traced():
    handles = []

    def run(x):
        y = 3.0 * x
        handles.append(ft.register_hook(y, lambda ct: 2.0 * ct, mode="inline"))
        return y * y

    gradient = ft.jit(ft.grad(run))
    assert gradient(1.0) == 36.0
    handles[0].remove()
    assert gradient(1.0) == 18.0
    assert len(handles) == 1


def test_a_state_is_read_at_each_call_of_a_jit():
    table, state = Table(), ft.BackwardState()
    state.on_y = lambda ct: ct * table["k"]
    gradient = ft.jit(ft.grad(lambda x, s: ft.cotangent_hook(x, s, "on_y", mode="inline") ** 2))
    for number in (2.0, 5.0):
        table.rows["k"] = number
        assert gradient(3.0, state) == 6.0 * number
    state.on_y = fnp.sin
    np.testing.assert_allclose(gradient(3.0, state), np.sin(6.0))
    assert gradient.cache_info().traces == 1


def test_a_hook_with_a_rule_of_its_own():
    table = Table()

    @ft.custom_jvp
    def scaled(ct):
        return ct * ct

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), 2.0 * primals[0] * tangents[0] * table["k"]))
    f = ft.jit(lambda x: ft.cotangent_hook(x, scaled, mode="inline") ** 2)
    for number in (1.0, 10.0):
        table.rows["k"] = number
        assert ft.grad(f)(3.0) == 36.0
        # (2x)^2 by the rule: 2 (2x) number, times 2, by the chain; and by the hook of the outer order
        direct = ft.grad(ft.grad(lambda x: ft.cotangent_hook(x, scaled) ** 2))(3.0)
        assert ft.grad(ft.grad(f))(3.0) == direct


def test_a_hook_that_calls_python():
    seen = []
    f = ft.jit(
        lambda x: (
            ft.cotangent_hook(x, lambda ct: ft.debug.callback(seen.append, ct) or 2.0 * ct, mode="inline")
            ** 2
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [float(ft.grad(f)(x)) for x in (1.0, 2.0, 3.0)] == [4.0, 8.0, 12.0]
    assert [float(ct) for ct in seen] == [2.0, 4.0, 6.0]
    assert f.cache_info().traces == 1


def test_a_hook_that_needs_numbers_runs_once_per_backward_pass():
    calls = []

    def hook(ct):
        calls.append(ct)
        return ct if float(ct) > 0 else -ct

    f = ft.jit(lambda x: ft.cotangent_hook(x, hook, mode="inline") ** 2)
    with pytest.warns(RuntimeWarning, match="cannot be compiled"):
        ft.grad(f)(1.0)
    del calls[:]
    assert [float(ft.grad(f)(x)) for x in (1.0, -2.0)] == [2.0, 4.0]
    assert len(calls) == 2


def test_hooks_are_traced_where_functions_may_not_be():
    f = ft.jit(lambda x: ft.cotangent_hook(x, lambda ct: ct * 2.0, mode="inline") ** 2)
    ft.grad(f)(3.0)
    with config.patch(no_tracing=True):
        assert ft.grad(f)(3.0) == 12.0
