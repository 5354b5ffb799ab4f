import gc
import math
import os
import re
import subprocess
import sys
import threading
import warnings
from contextlib import ExitStack

import numpy as np
import pytest

from functrans.lowering.backend import Options
from functrans.lowering.llvm import backend as native
from functrans.lowering.llvm.c import native_call
from functrans.lowering.llvm.maths import choice as maths
from functrans.lowering.loops import ir
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.run import compile as compiling
from functrans.lowering.run.compile import BACKENDS, best_backend, compile_kernel, self_test

F8, F4 = np.dtype("f8"), np.dtype("f4")


def doubling(factor=2.0):
    b = StatementBuilder("scale")
    n = ir.Param(0, ir.INT64)
    x, y = b.buffer("x", F8, (n,), "in"), b.buffer("y", F8, (n,), "out")
    with b.loop(b.parameter(0, ir.INT64)) as i:
        b.store(y, (i,), b.load(x, (i,)) * factor)
    kernel = b.finish()
    kernel.ints = 1
    return kernel


def test_the_native_route_serves_here():
    assert best_backend().name == "llvm"
    kernel = compile_kernel(doubling())
    assert kernel.route == "llvm"
    assert "noinline" in kernel.llvm
    assert "def scale(x, y, n0):" in kernel.python_source
    x, y = np.arange(9.0), np.zeros(9)
    run = kernel.bind((9,))
    assert run((x, y)) == 0
    np.testing.assert_array_equal(y, 2 * x)
    assert kernel.bind((4,), nogil=True)((x, x.copy())) == 0


def test_jitted_code_calls_a_kernel():
    from numba import njit

    entry = compile_kernel(doubling(3.0)).code.entry
    gc.collect()  # the entry keeps the machine code

    @njit
    def twice(arrays, numbers):
        return entry(arrays, numbers) + entry(arrays, numbers)

    x, y, words = np.arange(9.0), np.zeros(9), np.array([9])
    arrays = (x, y)
    assert twice(id(arrays), words.ctypes.data) == 0
    np.testing.assert_array_equal(y, 3 * x)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b.name)
def test_every_backend_passes_the_self_test(backend):
    self_test(backend)


def test_self_test_finds_wrong_values():
    class Wrong(type(BACKENDS[-1])):
        def compile(self, kernel, options):
            (loop,) = (s for s in kernel.body.statements if isinstance(s, ir.For))
            product = next(s for s in loop.body.statements if isinstance(s, ir.Let))
            product.op = "add"
            return super().compile(kernel, options)

    with pytest.raises(RuntimeError, match="wrong values"):
        self_test(Wrong())


def test_symbols_are_hashes_of_the_code():
    """Equal kernels have equal symbols, and a second one of the same symbol runs as well."""
    first, again = compile_kernel(doubling(7.0)), compile_kernel(doubling(7.0))
    assert first.llvm == again.llvm
    assert first.llvm != compile_kernel(doubling(7.5)).llvm
    assert first.llvm != compile_kernel(doubling(7.0), Options(strict=True)).llvm
    del first
    gc.collect()
    y = np.zeros(9)
    assert again.run((np.arange(9.0), y), (9,)) == 0
    np.testing.assert_array_equal(y, 7 * np.arange(9.0))


@pytest.mark.slow
def test_symbols_are_the_same_in_every_process():
    code = """
import numpy as np
import functrans as ft, functrans.numpy as fnp
from functrans.lowering.run.executable import compile_jaxpr

def f(x, w):
    return fnp.sum(fnp.tanh(x @ w) * fnp.exp(x), axis=0), fnp.linalg.cholesky(w @ w.T + 3 * fnp.eye(4))

jaxpr = ft.make_jaxpr(f)(np.ones((30, 4)), np.eye(4))
print(*[line.split("(")[0] for unit in compile_jaxpr(jaxpr).kernels for line in unit.llvm.splitlines()
        if line.startswith("define i64 @")])
"""
    texts = set()
    for seed in "01":
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(done.stdout)
    (text,) = texts
    assert re.fullmatch(r"(define i64 @functrans_kernel_[0-9a-f]{32}\s*)+", text)


def test_fallback_to_the_next_and_to_python(monkeypatch):
    def fails(*args):
        raise RuntimeError("no such thing")

    between = BACKENDS[1:-1]
    second = between[0]
    monkeypatch.setattr(compiling, "_best", [])
    monkeypatch.setattr(native, "compile_text", fails)
    with pytest.warns(RuntimeWarning, match=f"slower backend '{second.name}'.*|no such thing"):
        kernel = compile_kernel(doubling())
    assert kernel.route == second.name
    x, y = np.arange(5.0), np.zeros(5)
    assert kernel.run((x, y), (5,)) == 0
    np.testing.assert_array_equal(y, 2 * x)

    monkeypatch.setattr(compiling, "_best", [])
    for backend in between:
        monkeypatch.setattr(type(backend), "compile", fails)
    with pytest.warns(RuntimeWarning, match="slower backend 'python'"):
        kernel = compile_kernel(doubling())
    assert kernel.route == "python"
    assert kernel.run((x, y), (5,)) == 0


def test_a_missing_routine_makes_a_python_kernel(monkeypatch):
    monkeypatch.setitem(maths.LIBM, "erfc", "no_such_function")
    b = StatementBuilder("tails")
    x, y = b.buffer("x", F8, (3,), "in"), b.buffer("y", F8, (3,), "out")
    with b.loop(3) as i:
        b.store(y, (i,), b.call("erfc", b.load(x, (i,))))
    with pytest.warns(RuntimeWarning, match="no_such_function"):
        kernel = compile_kernel(b.finish())
    assert kernel.route == "python"
    out = np.zeros(3)
    assert kernel.run((np.array([0.0, 1.0, -np.inf]), out)) == 0
    np.testing.assert_allclose(out, [1.0, 1 - math.erf(1.0), 2.0])


def test_python_runs_what_the_njit_route_leaves_out():
    """Numba's complex division differs from NumPy's, so it does not compile the kernel; nobody is warned."""
    b = StatementBuilder("quotients")
    x, y = b.buffer("x", np.dtype("c16"), (2,), "in"), b.buffer("y", np.dtype("c16"), (2,), "out")
    with b.loop(2) as i:
        b.store(y, (i,), b.load(x, (i,)) / b.load(x, (i,)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = compile_kernel(b.finish(), Options(backend="njit"))
    assert kernel.route == "python"
    out = np.zeros(2, complex)
    assert kernel.run((np.array([1 + 2j, 3 - 1j]), out)) == 0
    np.testing.assert_allclose(out, 1.0)


def test_the_njit_route_wraps_and_rounds_narrow_numbers():
    b = StatementBuilder("narrow")
    x, y = b.buffer("x", np.dtype("i1"), (3,), "in"), b.buffer("y", np.dtype("i1"), (3,), "out")
    u, v = b.buffer("u", F4, (3,), "in"), b.buffer("v", F4, (3,), "out")
    with b.loop(3) as i:
        b.store(y, (i,), b.cast(b.load(x, (i,)) * 100, np.dtype("i1")))
        b.store(v, (i,), b.load(u, (i,)) * 0.1 + 1e-9)
    data, out, single, rounded = (
        np.array([1, 2, -3], "i1"),
        np.zeros(3, "i1"),
        np.array([1, 3, 7], F4),
        np.zeros(3, F4),
    )
    kernel = b.finish()
    run = BACKENDS[1].compile(kernel, Options()).bind((), (), False)
    assert run((data, out, single, rounded)) == 0
    np.testing.assert_array_equal(out, data * np.int8(100))
    np.testing.assert_array_equal(rounded, single * F4.type(0.1) + F4.type(1e-9))


def test_threads_share_a_kernel():
    kernel = compile_kernel(doubling(5.0))
    failures = []

    def work(seed):
        x = np.random.default_rng(seed).normal(size=1000)
        run = kernel.bind((1000,), nogil=bool(seed % 2))
        for _ in range(200):
            y = np.zeros(1000)
            run((x, y))
            if not np.array_equal(y, 5 * x):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_threads_compile_at_once():
    built = []
    threads = [
        threading.Thread(target=lambda f=f: built.append(compile_kernel(doubling(f))))
        for f in (2.0, 3.0, 4.0, 7.0)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({k.llvm for k in built}) == 4


def test_python_form_steps_through_plain_arrays():
    kernel = compile_kernel(doubling(), Options(backend="python"))
    x, y = np.arange(3.0), np.zeros(3)
    lines = []

    def trace(frame, event, arg):
        if frame.f_code.co_name == "scale":
            lines.append(frame.f_lineno)
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        kernel.code.entry(x, y, 3)
    finally:
        sys.settrace(old)
    np.testing.assert_array_equal(y, 2 * x)
    assert len(lines) > 6


def test_python_route_is_silent():
    b = StatementBuilder("silent")
    y = b.buffer("y", F8, (2,), "out")
    one, zero = b.const(1.0, F8), b.const(0.0, F8)
    b.store(y, (0,), one / zero)
    b.store(y, (1,), b.call("log", zero))
    out = np.zeros(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_kernel(b.finish(), Options(backend="python")).run((out,)) == 0
    np.testing.assert_array_equal(out, [np.inf, -np.inf])


def test_strict_kernels_do_not_contract():
    x = np.array([1 + 2.0**-30])
    results = []
    for strict in (False, True):
        b = StatementBuilder("fused")
        source, y = b.buffer("x", F8, (1,), "in"), b.buffer("y", F8, (1,), "out")
        v = b.load(source, (0,))
        b.store(y, (0,), v * v - 1.0)
        out = np.zeros(1)
        kernel = compile_kernel(b.finish(), Options(strict=strict))
        kernel.run((x, out))
        assert ("contract" in kernel.llvm) is not strict
        results.append(out[0])
    assert results[1] == x[0] * x[0] - 1.0


def test_memory_layout_is_as_assumed():
    assert native_call.fields_are_known()


def nest(*extents):
    """A kernel of nested loops that doubles; None for an extent not known."""
    b = StatementBuilder("nest")
    shape = tuple(ir.Param(0, ir.INT64) if n is None else n for n in extents)
    x, y = b.buffer("x", F8, shape, "in"), b.buffer("y", F8, shape, "out")
    with ExitStack() as loops:
        bounds = [b.parameter(0, ir.INT64) if n is None else n for n in extents]
        index = tuple(loops.enter_context(b.loop(n)) for n in bounds)
        b.store(y, index, b.load(x, index) * 2.0)
    kernel = b.finish()
    kernel.ints = extents.count(None)
    return kernel


@pytest.mark.parametrize(
    ("extents", "remaining"),
    [((3, 3, 3), 0), ((2, 2, 2, 2), 0), ((4, 4, 4), 1), ((3, 3, 100), 3), ((3, 3, None), 3), ((40, 3), 1)],
)
def test_loops_around_long_ones_stay_loops(extents, remaining):
    kernel = compile_kernel(nest(*extents))
    assert len(re.findall(r"br .*!llvm\.loop", kernel.llvm)) == remaining
    shape = tuple(5 if n is None else n for n in extents)
    x, y = np.random.default_rng(0).normal(size=shape), np.zeros(shape)
    assert kernel.run((x, y), (5,) * kernel.kernel.ints) == 0
    np.testing.assert_array_equal(y, 2 * x)
