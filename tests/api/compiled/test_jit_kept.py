"""What `jit` keeps: which programs are dropped, and that memory does not grow."""

import gc
import resource
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp


def test_programs_not_used_for_longest_are_dropped_and_kernels_stay():
    f = ft.jit(lambda x: fnp.sum(fnp.sin(x)))
    with ft.config.patch(trace_limit=4):
        for _ in range(3):
            for n in range(20, 30):  # more sizes than programs are kept
                np.testing.assert_allclose(f(np.ones(n)), n * np.sin(1.0))
        info = f.cache_info()
        assert (info.traces, info.compiles + info.disk_hits) == (30, 1)
        for n in (40, 41) * 20:
            f(np.ones(n))
        assert f.cache_info().traces == 32
        assert len(list(f._cache.traced.recent_items())) <= 4


def test_a_program_in_use_stays():
    f = ft.jit(lambda x: fnp.sum(fnp.sin(x)))
    with ft.config.patch(trace_limit=8):
        f(np.ones(3))
        for n in range(20, 60):
            f(np.ones(n)), f(np.ones(n)), f(np.ones(3))
        assert f.cache_info().traces == 41


def test_static_values_are_let_go():
    class Setting:
        pass

    f = ft.jit(lambda x, setting: x * 2.0, static_argnums=1)
    gone = []
    with ft.config.patch(trace_limit=4):
        for _ in range(20):
            setting = Setting()
            weakref.finalize(setting, gone.append, 1)
            f(1.0, setting)
    assert len(gone) >= 15


def test_hooks_of_blocks_are_seen_by_programs_that_were_dropped():
    block = ft.hookable(lambda x: 2.0 * x)
    f = ft.jit(lambda x: fnp.sum(block(x)))
    with ft.config.patch(trace_limit=4):
        for n in range(3, 20):
            f(np.ones(n)), f(np.ones(n)), f(np.ones(2))
        ((_, keys),) = block._programs._programs.items()
        assert len(keys) <= 4
        block.register_forward_hook(lambda block, args, out: out + 1.0)
        assert [float(f(np.ones(n))) for n in (19, 2, 3)] == [57.0, 6.0, 9.0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sizes", "static values"])
def test_memory_does_not_grow_with_sizes_and_static_values(kind):
    f = ft.jit(lambda x, n: fnp.sum(fnp.sin(x) * n), static_argnums=1)
    call = (lambda i: f(np.ones(20 + i), 2.0)) if kind == "sizes" else lambda i: f(np.ones(20), i)

    def resident():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    with ft.config.patch(trace_limit=100):
        for i in range(600):  # until the other, smaller caches are full
            call(i)
        before = resident()
        for i in range(600, 2600):
            call(i)
    assert resident() - before < 2000 * 2000  # a program takes 14,000 bytes
