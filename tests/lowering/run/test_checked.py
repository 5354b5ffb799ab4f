"""Checked mode: kernels that touch what is not theirs are found, by name, before anything is damaged."""

import sys

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core import tape
from functrans.errors import MemoryDamageError
from functrans.lowering.backend import Options
from functrans.lowering.loops import ir
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.passes import split_functions
from functrans.lowering.loops.touches import Touch, touches_of
from functrans.lowering.run import checked as guarding
from functrans.lowering.run import executable
from functrans.lowering.run.cache import KernelCache
from functrans.lowering.run.compile import compile_kernel
from functrans.lowering.run.executable import compile_jaxpr
from functrans.runtime.config import config
from functrans.runtime.guards import GUARD, WORD, memory

F8, F4 = np.dtype("f8"), np.dtype("f4")
CHECKED = Options(checked=True)


@pytest.fixture(autouse=True)
def _unverified(monkeypatch):
    """As users run it: what the verifier would see before must be seen by the guards alone.

    What a test compiles is for itself: no other one may find a faulty kernel.
    """
    monkeypatch.setattr(executable, "kernels", KernelCache())
    monkeypatch.setattr(config, "verify", False)
    monkeypatch.setattr(config, "checked", True)


def writes(at, dtype=F8, shape=(5,), role="out"):
    """A kernel that writes its output as it should, and element `at` of one of its buffers."""
    b = StatementBuilder("careless")
    x = b.buffer("x", dtype, (5,), "in")
    y = b.buffer("y", dtype, (5,), "out")
    victim = b.buffer("victim", dtype, shape, role) if role != "in" else x
    if role in ("out", "stack"):
        with b.loop(5) as i:
            b.store(victim, (i,), b.load(x, (i,)))
    with b.loop(5) as i:
        b.store(y, (i,), b.load(x, (i,)) * (1.0 if role != "stack" else b.load(victim, (i,))))
    at = b.cast(b.load(x, (0,)), np.dtype("i8")) + at if role == "stack" else b.extent(at)
    b.append(ir.Store(victim, (at.operand,), b.load(x, (1,)).operand))
    return b.finish()


def memory_of(kernel):
    """Memory for the storages: zeros, and an element of zeros more."""
    actual = []
    for place in kernel.storages:
        decl = next(b for b in kernel.buffers if b.place == place)
        actual.append(np.zeros(decl.shape, decl.dtype))
    return tuple(actual)


@pytest.mark.parametrize(("role", "named"), [("out", "an output"), ("scratch", "scratch memory")])
@pytest.mark.parametrize(
    ("at", "where"), [(5, "past the end"), (-1, "before the start"), (12, "past the end")]
)
@pytest.mark.parametrize("dtype", [F8, F4])
def test_writes_outside_a_buffer(role, named, at, where, dtype):
    kernel = writes(at, dtype, role=role)
    message = f"kernel 'careless' wrote {where} of 'victim', {named} of type {dtype.name}\\[5\\]"
    with pytest.raises(MemoryDamageError, match=message):
        compile_kernel(kernel, CHECKED).run(memory_of(kernel))


def test_correct_functions_raise_nothing():
    for role in ("out", "scratch", "stack"):
        for at in (0, 4):
            kernel = writes(at, role=role)
            assert compile_kernel(kernel, CHECKED).run(memory_of(kernel)) == 0


def test_writes_to_an_input():
    kernel = writes(3, role="in")
    x = np.arange(5.0)
    with pytest.raises(MemoryDamageError, match="wrote to 'x', an input of type float64"):
        compile_kernel(kernel, CHECKED).run((x, np.zeros(5)))
    np.testing.assert_array_equal(x, np.arange(5.0))


@pytest.mark.parametrize("at", [5, 7, 12, -1, -8])
def test_writes_outside_the_stack(at):
    kernel = writes(at, role="stack")
    with pytest.raises(
        MemoryDamageError, match="wrote outside 'victim', float64\\[5\\] on the stack"
    ) as error:
        compile_kernel(kernel, CHECKED).run(memory_of(kernel))
    assert error.value.__cause__ is None


def test_stack_of_a_part(monkeypatch):
    """A part numbers its declarations in its own way; the message has the caller's name."""
    monkeypatch.setattr(split_functions, "FEWEST", 2)
    b = StatementBuilder("careless")
    x, y = b.buffer("x", F8, (5,), "in"), b.buffer("y", F8, (5,), "out")
    stacks = [b.buffer(f"s{i}", F8, (5,), "stack") for i in range(3)]
    for n, s in enumerate(stacks):
        with b.loop(5) as i:
            b.store(s, (i,), b.load(x, (i,)))
            b.store(y, (i,), b.load(s, (i,)))
        beyond = b.cast(b.load(x, (0,)), np.dtype("i8")) + (5 if n == 1 else 4)
        b.append(ir.Store(s, (beyond.operand,), b.load(x, (1,)).operand))
    kernel = b.finish()
    assert len(split_functions.split(kernel)) > 1
    with pytest.raises(MemoryDamageError, match="wrote outside 's1'"):
        compile_kernel(kernel, CHECKED).run((np.zeros(5), np.zeros(5)))


@pytest.mark.parametrize("dtype", [F8, F4, np.dtype("c16"), np.dtype("i8")])
def test_an_output_that_is_not_written(dtype):
    b = StatementBuilder("forgetful")
    x, y = b.buffer("x", dtype, (30,), "in"), b.buffer("y", dtype, (30,), "out")
    with b.loop(29) as i:
        b.store(y, (i,), b.load(x, (i,)))
    kernel = b.finish()
    with pytest.raises(MemoryDamageError, match=r"kernel 'forgetful' did not write . of .* words of 'y'"):
        compile_kernel(kernel, CHECKED).run((np.ones(30, dtype), np.ones(30, dtype)))


def test_an_output_made_of_scratch_that_is_not_written():
    b = StatementBuilder("forgetful")
    s, y = b.buffer("s", F8, (30,), "scratch"), b.buffer("y", F8, (), "out")
    total = b.local(b.const(0.0, F8))
    with b.loop(30) as i:
        total.set(total.get() + b.load(s, (i,)))
    b.store(y, (), total.get())
    with pytest.raises(MemoryDamageError, match="computed them from memory that it did not write"):
        compile_kernel(b.finish(), CHECKED).run((np.ones(30), np.ones(())))


def of_unknown_length(x, n):
    return fnp.tensordot(x, lax.fori_loop(0, n, lambda i, c: c * 0.5 + x / c, x + 1), axes=1)


@pytest.mark.parametrize(("n", "what"), [(3, "reserved .* bytes for"), (4, "wrote past the end of")])
def test_a_tape_that_gets_too_little_memory(monkeypatch, n, what):
    """Parts that do not know how long a record is: 64 records get the memory of 64 numbers."""
    whole = touches_of

    def forgetful(s):
        return tuple([
            Touch(t.buffer, t.writes, len(t.buffer.shape) if type(s) is ir.Reserve else t.strided)
            for t in whole(s)
        ])  # fmt: skip

    for name, module in list(sys.modules.items()):
        if name.startswith("functrans.lowering.loops.") and "touches_of" in vars(module):
            monkeypatch.setattr(module, "touches_of", forgetful)
    monkeypatch.setattr(split_functions, "FEWEST", 2)
    f = ft.jit(ft.grad(of_unknown_length))
    with pytest.raises(MemoryDamageError, match=rf"kernel '.*' {what} the records of '.*', a pool of tapes"):
        f(np.linspace(0.1, 1, 17), n)


def test_tapes_that_grow(monkeypatch):
    monkeypatch.setattr(split_functions, "FEWEST", 2)
    x, f = np.linspace(0.1, 1, 17), ft.jit(ft.grad(of_unknown_length))
    for n in (0, 1, 63, 64, 65, 200, 1):
        actual = f(x, n)
        with config.patch(checked=False):
            np.testing.assert_allclose(f(x, n), actual, rtol=1e-14)
        with config.patch(backend="python"):
            np.testing.assert_allclose(f(x, n), actual, rtol=1e-12)


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_damage_to_a_tape_is_reported_after_it_moved(checked, before):
    with config.patch(checked=checked):
        pool = tape.new_pool()
        assert tape.reserve(pool, 5, 24, 1 << 20)
        assert not tape.damage(pool)
        memory(int(pool[0]) - (8 if before else -tape.size_of(pool)), 8)[3] = 0
        where = tape.damage(pool)
        assert where == ("before the start" if before else "past the end")
        assert tape.reserve(pool, 5000, 24, 1 << 20)
        assert tape.damage(pool) == where


@pytest.mark.parametrize("checked", [True, False])
def test_pools_of_kernels_have_guards(checked):
    """Made in one mode, they are looked at in the other."""
    b = StatementBuilder("keep")
    header = b.buffer("header", np.dtype("i8"), (3,), "out")
    rows = b.buffer("rows", F8, (1, 3), "tape", "header")
    n = b.buffer("n", np.dtype("i8"), (), "in")
    count = b.load(n, ())
    b.append(ir.Reserve(rows, count.operand, ir.Extent(1 << 20)))
    with b.loop(count) as i, b.loop(3) as j:
        b.store(rows, (i, j), b.cast(i * 3 + j, F8))
    b.store(header, (2,), count)
    kernel = b.finish()
    run = compile_kernel(kernel, Options(checked=checked)).bind()
    pool = tape.new_pool()
    for records in (10, 64, 65, 1000):
        assert run((pool, np.array(records))) == 0
        assert not tape.damage(pool)
        assert tape.size_of(pool) == pool[1] * 24
        held = tape.records(pool, (3,), F8)[:records]
        np.testing.assert_array_equal(held, np.arange(3.0 * records).reshape(-1, 3))


@pytest.mark.parametrize("dtype", [F8, F4])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,)])
def test_records_have_memory_for_each_element(dtype, shape):
    """Of two tapes of a kernel, each has a record of its own size."""
    b = StatementBuilder("keep")
    small = b.buffer("small", np.dtype("i8"), (3,), "out")
    b.buffer("one", F4, (1,), "tape", "small")
    header = b.buffer("header", np.dtype("i8"), (3,), "out")
    b.buffer("rows", dtype, (1, *shape), "tape", "header")
    b.store(small, (2,), b.extent(0))
    b.store(header, (2,), b.extent(0))
    kernel = b.finish()
    needed = max(int(np.prod(shape)) * dtype.itemsize, 1)
    for given in {needed, max(needed - 1, 1)}:
        pools = tape.new_pool(), tape.new_pool()
        assert tape.reserve(pools[0], 5, 4, 1 << 20)
        assert tape.reserve(pools[1], 5, given, 1 << 20)
        run = guarding.checked(lambda arrays: 0, kernel, ())
        if given == needed:
            assert run(pools) == 0
        else:
            with pytest.raises(MemoryDamageError, match=r"reserved .* for the records of 'header'"):
                run(pools)


def test_unwritten_memory_is_not_a_number():
    pool = tape.new_pool()
    assert tape.reserve(pool, 3, 8, 1 << 20)
    held = tape.records(pool, (), np.dtype("u8"))
    assert (held == WORD).all()
    assert np.isnan(tape.records(pool, (), F8)).all()
    assert np.isnan(tape.records(pool, (2,), F4)).all()
    assert GUARD % 8 == 0


def test_the_mode_is_part_of_the_compiled_code():
    f = ft.jit(lambda x: fnp.sum(fnp.sin(x)))
    f(np.ones(3))
    with config.patch(checked=False):
        f(np.ones(3))
    assert f.cache_info().traces == 2
    jaxpr = ft.make_jaxpr(lambda x: fnp.linalg.solve(x, x))(np.eye(3) + 1)
    codes = []
    for checked in (True, False):
        with config.patch(checked=checked):
            compiled = compile_jaxpr(jaxpr)
            np.testing.assert_allclose(compiled(np.eye(3) + 1)[0], np.eye(3), atol=1e-15)
            codes += [unit.code for unit in compiled.kernels]
    assert [c.checked for c in codes] == [True, False]


def test_an_exception_in_a_host_call_frees_the_pools():
    """Scratch is used again: the header must say where the memory is now."""
    calls = []

    def host(c):
        calls.append(1)
        if len(calls) == 100:
            raise ValueError("enough")
        return np.cos(c)

    @ft.custom_jvp
    def look(c):
        return ft.pure_callback(host, ft.ShapeDtypeStruct((), float), c)

    look.defjvp(lambda primals, tangents: (look(*primals), -fnp.sin(primals[0]) * tangents[0]))

    def f(x, n):
        return lax.fori_loop(0, n, lambda i, c: look(c) * x, x)

    g = ft.jit(ft.grad(f))
    first = g(0.7, 10)
    with pytest.raises(Exception, match="enough"):
        g(0.7, 1000)
    for _ in range(20):
        assert g(0.7, 10) == first
