"""What keeps arrays alive: the function and what was traced of it; no cycle (the collector is off)."""

import contextlib
import gc
import resource
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.control.call import executable
from functrans.lowering.llvm.objects import libraries


@pytest.fixture(autouse=True, scope="module")
def _no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def big():
    return np.ones(1000)


def alive(*arrays):
    return [weakref.ref(a) for a in arrays]


STACKS = {
    "jit": lambda f, x: ft.jit(f)(x),
    "grad": lambda f, x: ft.grad(f)(x),
    "grad-jit": lambda f, x: ft.grad(ft.jit(f))(x),
    "jit-grad": lambda f, x: ft.jit(ft.grad(f))(x),
    "vmap": lambda f, x: ft.vmap(f)(np.ones((2, 1000))),
    "vmap-grad-jit": lambda f, x: ft.vmap(ft.grad(ft.jit(f)))(np.ones((2, 1000))),
    "hessian": lambda f, x: ft.hessian(ft.jit(f))(np.ones(3)),
    "jvp-jit": lambda f, x: ft.jvp(ft.jit(f), (x,), (x,)),
    "vjp": lambda f, x: ft.vjp(f, x)[1](1.0),
    "vjp-jit": lambda f, x: ft.vjp(ft.jit(f), x)[1](1.0),
    "linearize": lambda f, x: ft.linearize(f, x)[1](x),
    "make_jaxpr": lambda f, x: ft.make_jaxpr(f)(x),
    "lower": lambda f, x: ft.jit(f).lower(x).compile()(x),
}


@pytest.mark.parametrize("name", STACKS)
def test_nothing_outlives_the_function(name):
    w, x = big()[:3] if name == "hessian" else big(), big()
    f = lambda x: fnp.sum(fnp.sin(x * w) * x)  # noqa: F821
    refs = alive(w, x, f)
    out = STACKS[name](f, x)
    del f, w, x, out
    assert [r() for r in refs] == [None] * 3


def test_the_machine_code_goes_with_the_function():
    f = ft.jit(lambda x: fnp.sin(x) * 3.0)
    f(np.ones(3))
    (unit,) = executable(f.lower(np.ones(3)).jaxpr).kernels
    code = weakref.ref(unit.code)
    held = len(libraries)
    del unit
    assert code() is not None
    del f
    gc.collect()
    assert code() is None
    ft.clear_caches()
    assert len(libraries) < held, "LLVM's library holds the memory"


@pytest.mark.slow
def test_functions_one_after_the_other_leave_nothing():
    """The bound allows for the object code that is kept, of small kernels some 2 kB each; a leak would take more."""

    def run(number):
        def f(x):
            for k in range(7):
                x = x + x * x if number >> k & 1 else x * x - x
            return x

        ft.jit(f)(np.ones(3))

    def resident():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    for i in range(60):  # until what LLVM and the allocator hold in reserve is there
        run(i)
    before = resident()
    for i in range(60, 110):
        run(i)
    assert resident() - before < 50 * 30_000


@pytest.mark.parametrize("derive", [ft.grad, lambda f: ft.jit(ft.grad(f)), ft.value_and_grad])
def test_the_jit_object_takes_jaxpr_and_constants_along(derive):
    w = big()
    f = ft.jit(lambda x: fnp.sum(x * w))
    derive(f)(w)
    jaxpr = f.lower(w).jaxpr
    refs = [weakref.ref(jaxpr), weakref.ref(f), *alive(*jaxpr.consts)]
    assert len(refs) == 3
    del f, jaxpr
    assert [r() for r in refs] == [None] * 3


def test_the_cache_does_not_keep_arguments_and_results_alive():
    f = ft.jit(lambda x: (x * 2, x))
    x = big()
    outs = f(x)
    ft.vjp(f, x)
    refs = alive(x, *outs)
    del x, outs
    assert [r() for r in refs] == [None] * 3


def test_methods_and_their_instances():
    class Model:
        def __init__(self):
            self.w = big()

        @ft.jit
        def loss(self, x):
            return fnp.sum(self.w * x)

    model = Model()
    model.loss(2.0)
    ft.grad(model.loss)(3.0)
    refs = alive(model, model.w)
    del model
    assert [r() for r in refs] == [None] * 2


def test_a_failed_call_keeps_nothing():
    x = big()

    def f(x):
        return fnp.sum(x[fnp.asarray([2000])])

    refs = alive(x, f)
    for g in (f, ft.jit(f), ft.grad(ft.jit(f)), ft.vmap(f)):
        with contextlib.suppress(IndexError, ValueError):
            g(fnp.asarray(x))
    del x, f, g
    assert [r() for r in refs] == [None] * 2
