"""Loops, branches, locals, buffers, parameters and status, by both routes."""

import numpy as np
import pytest

from functrans.lowering.backend import Options
from functrans.lowering.loops import ir
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.check import verify
from functrans.lowering.run.compile import compile_kernel

F8, F4, I8, B1, C16, C8 = (np.dtype(c) for c in ("f8", "f4", "i8", "?", "c16", "c8"))
rng = np.random.default_rng(0)


@pytest.fixture(params=["llvm", "python"])
def run(request):
    def call(b, arrays, ints=(), floats=()):
        kernel = b.finish()
        kernel.ints, kernel.floats = len(ints), len(floats)
        verify(kernel)
        return compile_kernel(kernel, Options(backend=request.param)).run(tuple(arrays), ints, floats)

    return call


@pytest.mark.parametrize("n", [0, 1, 7, 64, 1001])
@pytest.mark.parametrize("dtype", [F8, F4, C16, C8, I8], ids=str)
def test_reassociated_sum(run, n, dtype):
    b = StatementBuilder("total")
    x, y = b.buffer("x", dtype, (n,), "in"), b.buffer("y", dtype, (), "out")
    total = b.local(b.const(0, dtype))
    with b.loop(n) as i:
        total.set(b.binary("add", total.get(), b.load(x, (i,)), reassoc=True))
    b.store(y, (), total.get())
    data = (rng.normal(size=n) * 10 + (1j * rng.normal(size=n) if dtype.kind == "c" else 0)).astype(dtype)
    out = np.empty((), dtype)
    assert run(b, [data, out]) == 0
    np.testing.assert_allclose(
        out, data.sum(dtype=np.result_type(dtype, F8)), rtol=1e-5 if dtype in (F4, C8) else 1e-13
    )


def test_loops_in_both_directions_with_run_time_bounds(run):
    b = StatementBuilder("scan")
    x, y = b.buffer("x", F8, (20,), "in"), b.buffer("y", F8, (20,), "out")
    z = b.buffer("z", F8, (20,), "out")
    first, last = b.parameter(0, I8), b.parameter(1, I8)
    total = b.local(b.const(0.0, F8))
    with b.loop(last, first, reverse=True) as i:
        total.set(total.get() * 0.5 + b.load(x, (i,)))
        b.store(y, (i,), total.get())
    with b.loop(last, first) as i:
        b.store(z, (i,), total.get() - b.load(y, (i,)))
    data, out, out2 = rng.normal(size=20), np.zeros(20), np.zeros(20)
    assert run(b, [data, out, out2], (3, 17)) == 0
    expected, s = np.zeros(20), 0.0
    for i in reversed(range(3, 17)):
        s = s * 0.5 + data[i]
        expected[i] = s
    np.testing.assert_allclose(out, expected, rtol=1e-15)
    np.testing.assert_allclose(out2[3:17], s - expected[3:17], rtol=1e-14)
    assert run(b, [data, out, out2], (5, 5)) == 0
    assert run(b, [data, out, out2], (9, 2)) == 0


def test_nested_loops_transpose_and_outlined_extents(run):
    b = StatementBuilder("transpose")
    rows, columns = ir.Param(0, I8), ir.Param(1, I8)
    x = b.buffer("x", F4, (rows, columns, 3), "in")
    y = b.buffer("y", F4, (3, columns, rows), "out")
    with b.loop(b.parameter(0, I8)) as i, b.loop(b.parameter(1, I8)) as j, b.loop(3) as k:
        b.store(y, (2 - k, j, i), b.load(x, (i, j, k)))
    data = rng.normal(size=(5, 7, 3)).astype(F4)
    out = np.zeros((3, 7, 5), F4)
    assert run(b, [data, out], (5, 7)) == 0
    np.testing.assert_array_equal(out, data.transpose(2, 1, 0)[::-1])


def test_guarded_reads_stay_in_bounds(run):
    b = StatementBuilder("pad")
    x, y = b.buffer("x", F8, (4,), "in"), b.buffer("y", F8, (10,), "out")
    with b.loop(10) as i:
        inside = (i >= 3) & (i < 7)
        b.store(y, (i,), b.guarded(inside, lambda i=i: b.load(x, (i - 3,)), b.const(-1.0, F8)))
    out = np.zeros(10)
    assert run(b, [np.arange(4.0), out]) == 0
    np.testing.assert_array_equal(out, np.pad(np.arange(4.0), 3, constant_values=-1))


def test_conditional_statements(run):
    b = StatementBuilder("clip")
    x, y, count = (
        b.buffer("x", F8, (50,), "in"),
        b.buffer("y", F8, (50,), "out"),
        b.buffer("c", I8, (), "out"),
    )
    actual = b.local(b.const(0, I8))
    with b.loop(50) as i:
        v = b.load(x, (i,))
        b.store(y, (i,), v)
        with b.if_(v > 0.5):
            actual.set(actual.get() + 1)
            b.store(y, (i,), b.const(0.5, F8))
    b.store(count, (), actual.get())
    data, out, n = rng.uniform(size=50), np.zeros(50), np.zeros((), I8)
    assert run(b, [data, out, n]) == 0
    np.testing.assert_array_equal(out, np.minimum(data, 0.5))
    assert n == (data > 0.5).sum()


def test_two_branches(run):
    b = StatementBuilder("branches")
    x, y = b.buffer("x", F8, (20,), "in"), b.buffer("y", F8, (20,), "out")
    with b.loop(20) as i:
        v = b.load(x, (i,))
        then, orelse = ir.StatementList(), ir.StatementList()
        b.append(ir.If((v > 0.0).operand, then, orelse))
        with b.inside(then):
            b.store(y, (i,), v * 2.0)
        with b.inside(orelse):
            b.store(y, (i,), b.const(7.0, F8))
    data, out = rng.normal(size=20), np.zeros(20)
    assert run(b, [data, out]) == 0
    np.testing.assert_array_equal(out, np.where(data > 0, data * 2, 7))


def test_status_names_the_equations(run):
    b = StatementBuilder("gather")
    x, index, y = (
        b.buffer("x", F8, (5,), "in"),
        b.buffer("index", I8, (40,), "in"),
        b.buffer("y", F8, (40,), "out"),
    )
    with b.loop(40) as i:
        j = b.load(index, (i,))
        b.equation = 2
        b.fail_if((j < 0) | (j >= 5))
        b.equation = 99
        b.fail_if(j.eq(77))
        b.store(y, (i,), b.load(x, (b.call("min", b.call("max", j, b.extent(0)), b.extent(4)),)))
    good, out = rng.integers(0, 5, 40), np.zeros(40)
    assert run(b, [np.arange(5.0), good, out]) == 0
    np.testing.assert_array_equal(out, good)
    bad = good.copy()
    bad[17] = 5
    assert run(b, [np.arange(5.0), bad, out]) == 1 << 2
    bad[33] = 77
    assert run(b, [np.arange(5.0), bad, out]) == 1 << 2 | 1 << ir.LAST_EQUATION


def test_float_and_complex_parameters(run):
    b = StatementBuilder("scale")
    x, y = b.buffer("x", F4, (9,), "in"), b.buffer("y", F4, (9,), "out")
    z = b.buffer("z", C16, (9,), "out")
    with b.loop(9) as i:
        v = b.load(x, (i,))
        b.store(y, (i,), v * b.parameter(0, F4))
        b.store(z, (i,), b.cast(v, C16) * b.parameter(1, C16))
    data, out, out2 = rng.normal(size=9).astype(F4), np.zeros(9, F4), np.zeros(9, C16)
    assert run(b, [data, out, out2], (), (0.1, 2.0, -3.5)) == 0
    np.testing.assert_array_equal(out, data * F4.type(0.1))
    np.testing.assert_allclose(out2, data.astype(C16) * (2.0 - 3.5j), rtol=1e-15)


def test_stack_scratch_and_copies(run):
    b = StatementBuilder("memory")
    x, y = b.buffer("x", F8, (6,), "in"), b.buffer("y", F8, (2, 3), "out")
    small = b.buffer("small", F8, (3,), "stack")
    work = b.scratch((6,), F8)
    flags = b.buffer("flags", B1, (3,), "stack")
    b.copy(work, x)
    b.copy(y, x)
    with b.loop(3) as j:
        b.store(small, (j,), b.const(0.0, F8))
        b.store(flags, (j,), j.eq(1))
    with b.loop(2) as i, b.loop(3) as j:
        b.store(small, (j,), b.load(small, (j,)) + b.load(work, (i * 3 + j,)))
    with b.loop(3) as j:
        b.store(y, (0, j), b.where(b.load(flags, (j,)), b.load(small, (j,)), b.const(-1.0, F8)))
    data, out = rng.normal(size=6), np.zeros((2, 3))
    assert run(b, [data, out, np.zeros(6)]) == 0
    sums = data.reshape(2, 3).sum(0)
    np.testing.assert_allclose(out, [[-1, sums[1], -1], data[3:]], rtol=1e-15)


def test_declarations_that_share_storage(run):
    b = StatementBuilder("alias")
    x = b.buffer("x", F8, (4, 3), "in")
    flat = b.buffer("flat", F8, (12,), "in", storage="x")
    work = b.buffer("work", F8, (12,), "scratch", storage="heap")
    again = b.buffer("again", F8, (3, 4), "scratch", storage="heap")
    y = b.buffer("y", F8, (3,), "out")
    b.copy(flat, x)
    with b.loop(12) as i:
        b.store(work, (i,), b.load(flat, (i,)) * 2.0)
    with b.loop(3) as i:
        total = b.local(b.const(0.0, F8))
        with b.loop(4) as j:
            total.set(total.get() + b.load(again, (i, j)))
        b.store(y, (i,), total.get())
    assert b.finish().storages == ["x", "heap", "y"]
    data, out = rng.normal(size=(4, 3)), np.zeros(3)
    assert run(b, [data, np.zeros(12), out]) == 0
    np.testing.assert_allclose(out, 2 * data.reshape(3, 4).sum(1), rtol=1e-14)


def test_booleans_in_memory_may_be_any_byte(run):
    b = StatementBuilder("bools")
    x, y = b.buffer("x", B1, (4,), "in"), b.buffer("y", I8, (4,), "out")
    with b.loop(4) as i:
        b.store(y, (i,), b.cast(b.load(x, (i,)), I8))
    out = np.zeros(4, I8)
    assert run(b, [np.array([0, 1, 2, 255], np.uint8).view(bool), out]) == 0
    np.testing.assert_array_equal(out, [0, 1, 1, 1])


def test_complex_locals_branches_and_zero_dimensional_buffers(run):
    b = StatementBuilder("horner")
    c, z, y = b.buffer("c", C16, (5,), "in"), b.buffer("z", C16, (), "in"), b.buffer("y", C16, (), "out")
    total = b.local(b.const(1 + 2j, C16))
    with b.loop(5) as i, b.if_(b.call("imag", b.load(c, (i,))) > 0.0):
        total.set(total.get() * b.load(z, ()) + b.load(c, (i,)))
    b.store(y, (), total.get())
    data, at, out = rng.normal(size=5) + 1j * rng.normal(size=5), np.array(0.3 - 0.7j), np.zeros((), C16)
    assert run(b, [data, at, out]) == 0
    expected = 1 + 2j
    for v in data:
        expected = expected * at + v if v.imag > 0 else expected
    np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_many_buffers_and_parameters(run):
    b = StatementBuilder("many")
    sources = [b.buffer("x", F8, (3,), "in") for _ in range(30)]
    y = b.buffer("y", F8, (3,), "out")
    with b.loop(3) as i:
        total = b.const(0.0, F8)
        for j, s in enumerate(sources):
            total = total + b.load(s, (i,)) * b.parameter(j, F8)
        b.store(y, (i,), total)
    data, factors, out = rng.normal(size=(30, 3)), rng.normal(size=30), np.zeros(3)
    assert run(b, [*data, out], (), tuple(factors)) == 0
    np.testing.assert_allclose(out, factors @ data, rtol=1e-13)
