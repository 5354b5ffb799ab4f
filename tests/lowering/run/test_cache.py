"""The cache of kernels: one compilation for one text, whoever asks."""

import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from functrans.lowering.backend import Options
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.run import cache

PYTHON = Options(backend="python")


def kernel(name, number):
    b = StatementBuilder(name)
    x = b.buffer(f"{name}_x", np.dtype("f8"), (3,), "out")
    with b.loop(3) as i:
        b.store(x, (i,), b.const(number, x.dtype))
    return b.finish()


def test_text_is_the_key_and_names_are_not():
    kernels = cache.KernelCache()
    first, compiled = kernels.get(kernel("f", 1.0), PYTHON)
    assert compiled == "compiled"
    assert kernels.get(kernel("g", 1.0), PYTHON) == (first, "memory")
    others = [
        kernels.get(kernel("f", 2.0), PYTHON),
        kernels.get(kernel("f", 1.0), Options(backend="python", strict=True)),
    ]
    assert [origin for _, origin in others] == ["compiled"] * 2
    assert len(kernels) == 3
    kernels.clear()
    assert kernels.get(kernel("f", 1.0), PYTHON)[1] == "compiled"


def test_a_kernel_lives_as_long_as_it_is_used():
    kernels = cache.KernelCache()
    first, _ = kernels.get(kernel("f", 1.0), PYTHON)
    run = first.bind()
    del first
    gc.collect()
    out = np.zeros(3)
    run((out,))
    np.testing.assert_array_equal(out, 1.0)
    del run
    gc.collect()
    assert len(kernels) == 0


class Compiled:
    """Stands for a compiled kernel."""

    code = SimpleNamespace(origin="compiled")


def test_two_threads_compile_once(monkeypatch):
    kernels = cache.KernelCache()
    begun, go, count = threading.Event(), threading.Event(), []

    def slow(kernel, options, text):
        count.append(kernel)
        begun.set()
        assert go.wait(10)
        return Compiled()

    monkeypatch.setattr(cache, "compile_kernel", slow)
    actual = []
    threads = [
        threading.Thread(target=lambda: actual.append(kernels.get(kernel("f", 1.0), PYTHON)))
        for _ in range(6)
    ]
    for t in threads:
        t.start()
    assert begun.wait(10)
    go.set()
    for t in threads:
        t.join(10)
    assert len(count) == 1
    assert len({id(code) for code, _ in actual}) == 1
    assert sorted(origin for _, origin in actual) == ["compiled"] + ["memory"] * 5


def test_failed_compilation_is_retried(monkeypatch):
    kernels = cache.KernelCache()

    def fails(kernel, options, text):
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr(cache, "compile_kernel", fails)
        with pytest.raises(RuntimeError, match="no"):
            kernels.get(kernel("f", 1.0), PYTHON)
    assert kernels.get(kernel("f", 1.0), PYTHON)[1] == "compiled"
