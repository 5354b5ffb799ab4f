"""Loops merged, buffers placed, numbers outlined: on kernels written by hand."""

from itertools import pairwise

import numpy as np
import pytest

from functrans.core.ir import Literal
from functrans.lowering.backend import Options
from functrans.lowering.loops import ir
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.check import LoopIRError, verify
from functrans.lowering.loops.passes import plan as planning
from functrans.lowering.loops.passes.collapse import collapse
from functrans.lowering.loops.passes.outline import Literals, outline
from functrans.lowering.loops.passes.plan import plan, scratch_bytes
from functrans.lowering.loops.show import show
from functrans.lowering.run.compile import compile_kernel
from functrans.runtime.config import config

F8 = np.dtype("f8")
ROLES = ("in", "scratch", "scratch", "out")


def add_one(b, target, source, *extents):
    """``target = source + 1`` over all axes."""

    def loops(index, left):
        if not left:
            b.store(target, index, b.load(source, index) + 1.0)
            return
        with b.loop(left[0]) as i:
            loops([*index, i], left[1:])

    loops([], extents)


def chain(n, length):
    """A kernel of several passes, each through a buffer of its own."""
    b = StatementBuilder("chain")
    buffers = [b.buffer("x", F8, (n,), "in")]
    buffers += [b.buffer("t", F8, (n,), "scratch") for _ in range(length - 1)]
    buffers.append(b.buffer("y", F8, (n,), "out"))
    for source, target in pairwise(buffers):
        add_one(b, target, source, n)
    return b.finish()


def test_small_buffers_that_live_long_leave_large_slots_to_large_ones():
    """As the gradients of weights do, which are added up in the end, between activations."""
    for large, small, expected in (
        (1000, 10, [80, 80, 8000, 8000]),
        (10, 1000, [80, 8000, 8000, 8000]),
    ):
        b = StatementBuilder("steps")
        x, y = b.buffer("x", F8, (large,), "in"), b.buffer("y", F8, (small,), "out")
        parts = []
        for _ in range(3):
            z = b.buffer("z", F8, (large,), "scratch")
            add_one(b, z, x, large)
            parts.append(b.buffer("part", F8, (small,), "scratch"))
            add_one(b, parts[-1], z, min(small, large))
            x = z
        for part in parts:
            add_one(b, y, part, small)
        kernel = plan(b.finish(), 1)
        verify(kernel)
        assert sorted(scratch_bytes(kernel).values()) == expected


def test_free_scratch_is_reused():
    kernel = plan(chain(100, 6), 16)
    verify(kernel)
    assert len(scratch_bytes(kernel)) == 2
    x, y = np.arange(100.0), np.empty(100)
    compiled = compile_kernel(kernel, Options(backend="python"))
    work = [np.empty(n, np.uint8) for n in scratch_bytes(kernel).values()]
    arrays = {"x": x, "y": y, **dict(zip(scratch_bytes(kernel), work))}
    assert compiled.run(tuple(arrays[s] for s in kernel.storages)) == 0
    np.testing.assert_array_equal(y, x + 6)


def test_a_plan_that_forgets_a_use_is_reported(monkeypatch):
    whole = planning._touched
    forgetful = lambda s: [b for b in whole(s) if b.name != "t" or len(whole(s)) < 2]

    def kernel():
        b = StatementBuilder("f")
        x, t, u, y = [b.buffer(name, F8, (100,), role) for name, role in zip("xtuy", ROLES)]
        b.store(t, (0,), b.load(x, (0,)))
        add_one(b, t, x, 100)
        add_one(b, u, x, 100)
        with b.loop(100) as i:
            b.store(y, (i,), b.load(t, (i,)) + b.load(u, (i,)))
        return b.finish()

    with config.patch(verify=True):
        plan(kernel(), 16)
        monkeypatch.setattr(planning, "_touched", forgetful)
        with pytest.raises(LoopIRError, match="t is still needed in the storage"):
            plan(kernel(), 16)


def test_small_scratch_lives_on_the_stack():
    kernel = plan(chain(10, 3), 16)
    assert [b.role for b in kernel.buffers] == ["in", "stack", "stack", "out"]
    kernel = plan(chain(10, 3), 5)
    assert [b.role for b in kernel.buffers] == ["in", "scratch", "scratch", "out"]


def test_unused_scratch_disappears_but_inputs_stay():
    b = StatementBuilder("f")
    b.buffer("x", F8, (30,), "in")
    b.scratch((30,), F8)
    kernel = plan(b.finish(), 16)
    assert [d.name for d in kernel.buffers] == ["x"]


def test_declarations_that_nothing_touches():
    """An input keeps one, of whatever it is called; the header of a tape is not its records."""
    b = StatementBuilder("f")
    header = b.buffer("header", np.dtype("i8"), (3,), "out")
    rows = b.buffer("rows", F8, (1,), "tape", "header")
    b.buffer("others", F8, (1,), "tape", "header")
    x = b.buffer("x", F8, (30,), "in")
    b.buffer("view of x", F8, (5, 6), "in", "x")
    b.buffer("idle", F8, (2,), "in")
    b.buffer("changed", F8, (30,), "update", "x")
    unread = b.buffer("unread", np.dtype("i8"), (3,), "in")
    b.buffer("records", F8, (1,), "tape", "unread")
    b.store(rows, (b.extent(0),), b.load(x, (b.extent(0),)))
    b.store(header, (2,), b.extent(1))
    kernel = plan(b.finish(), 16)
    assert [d.name for d in kernel.buffers] == ["header", "rows", "x", "idle", "changed", "unread", "records"]
    assert unread in kernel.buffers


def test_adjacent_axes_become_one_loop():
    b = StatementBuilder("f")
    x, y = b.buffer("x", F8, (4, 5, 3), "in"), b.buffer("y", F8, (4, 5, 3), "out")
    add_one(b, y, x, 4, 5, 3)
    kernel = plan(collapse(b.finish()), 2)
    verify(kernel)
    (loop,) = kernel.body.statements
    assert loop.stop == ir.Extent(60)
    assert [type(s) for s in loop.body.statements] == [ir.Load, ir.Let, ir.Store]
    a, out = np.arange(60.0), np.empty(60)
    assert compile_kernel(kernel, Options(backend="python")).run((a, out)) == 0
    np.testing.assert_array_equal(out, a + 1)


def test_axes_used_separately_stay_loops():
    b = StatementBuilder("f")
    x, v, y = b.buffer("x", F8, (4, 5), "in"), b.buffer("v", F8, (5,), "in"), b.buffer("y", F8, (4, 5), "out")
    with b.loop(4) as i, b.loop(5) as j:
        b.store(y, (i, j), b.load(x, (i, j)) + b.load(v, (j,)))
    text = show(b.finish())
    assert show(collapse(b.finish())) == text


def test_part_of_an_axis_does_not_merge():
    b = StatementBuilder("f")
    x, y = b.buffer("x", F8, (4, 6), "in"), b.buffer("y", F8, (4, 5), "out")
    with b.loop(4) as i, b.loop(5) as j:
        b.store(y, (i, j), b.load(x, (i, j)))
    text = show(b.finish())
    assert show(collapse(b.finish())) == text


def two_axes(n, m):
    b = StatementBuilder("f")
    x, v, y = b.buffer("x", F8, (n, m), "in"), b.buffer("v", F8, (m,), "in"), b.buffer("y", F8, (n, m), "out")
    with b.loop(n) as i, b.loop(m) as j:
        b.store(y, (i, j), b.load(x, (i, j)) * b.load(v, (j,)))
    return b.finish()


def test_extents_that_happen_to_be_equal_are_distinguished():
    first, numbers = outline(two_axes(30, 40), 16)
    verify(first)
    assert sorted(numbers) == [30, 40]
    second, equal = outline(two_axes(40, 40), 16)
    assert show(first) == show(second)
    assert sorted(equal) == [40, 40]


def test_small_extents_are_literals():
    kernel, numbers = outline(two_axes(30, 3), 16)
    assert numbers == (30,)
    assert kernel.buffers[0].shape[1] == 3


def test_literals_share_slots_and_common_ones_stay():
    literals = Literals()
    for common in (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.nan):
        assert literals.operand(Literal(common)) is None
    assert literals.operand(Literal(3)) is None
    assert literals.operand(Literal(3.5)) == literals.operand(Literal(np.float64(3.5)))
    assert literals.operand(Literal(np.float32(3.5))).slot == 1
    assert literals.operand(Literal(1 - 3j)).slot == 2
    assert literals.operand(Literal(0.25)).slot == 4
    extent = Literal(30.0)
    assert literals.operand(extent) == literals.operand(extent)
    assert literals.operand(Literal(30.0)) != literals.operand(extent)
    assert literals.values == [3.5, 3.5, 1.0, -3.0, 0.25, 30.0, 30.0]
