import numpy as np
import pytest

from functrans.lowering.loops import ir, queries
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.check import LoopIRError, verify
from functrans.lowering.loops.mapping import Mapping
from functrans.lowering.loops.show import show

F8, I8, I1 = np.dtype("f8"), np.dtype("i8"), np.dtype("i1")


def lets(b):
    return [s.op for s in queries.walk(b.finish().body) if isinstance(s, ir.Let)]


def test_equal_operations_become_one_within_their_scope():
    b = StatementBuilder("k")
    x, y = b.buffer("x", F8, (4,), "in"), b.buffer("y", F8, (4,), "out")
    with b.loop(4) as i:
        v = b.load(x, (i,))
        assert b.load(x, (i,)).operand is v.operand
        assert (v + 1.0).operand is (v + 1.0).operand
        with b.if_(v > 0.0):
            assert (v + 1.0).operand is (v + 1.0).operand
            inner = v * v
        assert (v * v).operand is not inner.operand
        assert b.load(y, (i,)).operand is not b.load(y, (i,)).operand
    assert lets(b) == ["add", "gt", "mul", "mul"]
    verify(b.finish())


def test_consts_distinguish_zeros():
    b = StatementBuilder("k")
    assert b.const(0.0, F8).operand != b.const(-0.0, F8).operand
    assert b.const(np.nan, F8).operand == b.const(np.nan, F8).operand
    assert b.const(1, I8).operand != b.const(True, np.dtype(bool)).operand
    assert b.const(0.1, np.dtype("f4")).operand.value == float(np.float32(0.1))
    with pytest.raises(OverflowError):
        b.const(300, I1)


def test_integers_fold_and_floats_do_not():
    b = StatementBuilder("k")
    n = b.extent(20)
    i = b.parameter(0, I8)
    assert (n * 3 + 1 - 2).operand == ir.Extent(59)
    assert (i + 0).operand is i.operand
    assert (i * 1).operand is i.operand
    assert (i * 0).operand == (b.extent(0) * i).operand == ir.Extent(0)
    assert (b.extent(1) * i).operand is (b.extent(0) + i).operand is (i - 0).operand is i.operand
    assert (-n).operand == ir.Extent(-20)
    assert b.call("idiv", b.extent(-7), b.extent(2)).operand == ir.Extent(-3)
    assert b.call("irem", b.extent(-7), b.extent(2)).operand == ir.Extent(-1)
    x = b.parameter(0, F8)
    assert lets(b) == []
    x + 0.0  # -0.0 + 0.0 is 0.0
    x * 0.0
    assert lets(b) == ["add", "mul"]


def test_simple_powers_are_written_out():
    b = StatementBuilder("k")
    x = b.parameter(0, F8)
    b.call("pow", x, b.const(2.0, F8))
    b.call("pow", x, b.const(-1.0, F8))
    b.call("pow", b.const(2.0, F8), x)
    assert b.call("pow", x, b.const(1.0, F8)) is x
    b.call("pow", x, b.const(0.5, F8))  # sqrt differs at -0.0 and -inf
    assert lets(b) == ["mul", "div", "exp2", "pow"]


def test_casts_and_choices_fold():
    b = StatementBuilder("k")
    x = b.parameter(0, F8)
    assert b.cast(x, F8) is x
    assert b.cast(b.const(2.7, F8), I8).operand == ir.Const(2, I8)
    assert b.cast(b.const(-1, I8), np.dtype("u1")).operand == ir.Const(255, np.dtype("u1"))
    yes = b.const(True, np.dtype(bool))
    assert b.where(yes, x, -x).operand is x.operand
    assert b.where(x > 0.0, x, x).operand is x.operand
    assert b.call("real", x) is x
    assert b.call("floor", b.parameter(0, I8)).operand == ir.Param(0, I8)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda b, x, i: x + i,
        lambda b, x, i: i / i,
        lambda b, x, i: x << 1,
        lambda b, x, i: b.where(x, x, x),
        lambda b, x, i: b.where(x > 0.0, x, i),
        lambda b, x, i: x >> 1,
        lambda b, x, i: (x > 0.0) - (x > 1.0),
        lambda b, x, i: bool(x > 0.0),
    ],
)
def test_misuse_is_refused(wrong):
    b = StatementBuilder("k")
    with pytest.raises(TypeError):
        wrong(b, b.parameter(0, F8), b.parameter(0, I8))


def test_equal_kernels_have_equal_text():
    def build(n, names):
        b = StatementBuilder(names)
        x, y = b.buffer(names, F8, (n,), "in"), b.buffer(names, F8, (n,), "out")
        total = b.local(b.const(0.0, F8))
        with b.loop(n) as i:
            total.set(b.binary("add", total.get(), b.load(x, (i,)) * 2.5, reassoc=True))
            b.store(y, (i,), total.get())
        b.fail_if(total.get() > 3.0)
        return b.finish()

    assert show(build(30, "a")) == show(build(30, "bc"))
    assert show(build(30, "a")) != show(build(31, "a"))


def test_operands_can_be_replaced():
    b = StatementBuilder("k")
    x, y = b.buffer("x", F8, (30,), "in"), b.buffer("y", F8, (30,), "out")
    small = b.buffer("small", F8, (30,), "stack")
    with b.loop(30) as i:
        b.store(small, (i,), b.load(x, (i,)))
        b.store(y, (i,), b.load(small, (i,)) * 2.5)

    def replace(operand):
        if operand == ir.Extent(30):
            return ir.Param(0, I8)
        return ir.Param(0, F8) if operand == ir.Const(2.5, F8) else operand

    outlined = Mapping(b.finish(), replace).kernel
    outlined.ints = outlined.floats = 1
    verify(outlined)
    text = show(outlined)
    assert "p0:i64" in text
    assert "mul v2 p0:f64" in text
    assert "stack b2: f64[30]" in text
    assert "2.5" not in text
    assert "30" in show(b.finish())


def test_verifier_reports_errors():
    def broken(change):
        b = StatementBuilder("k")
        x, y = b.buffer("x", F8, (4,), "in"), b.buffer("y", F8, (4,), "out")
        change(b, x, y)
        with pytest.raises(LoopIRError) as error:
            verify(b.finish())
        return str(error.value)

    def escaped(b, x, y):
        with b.loop(4) as i:
            pass
        b.store(y, (i,), b.const(0.0, F8))

    assert "not defined" in broken(escaped)
    assert "store to input" in broken(lambda b, x, y: b.store(x, (0,), b.const(0.0, F8)))
    assert "1 indices" not in broken(lambda b, x, y: b.store(y, (0, 1), b.const(0.0, F8)))
    assert "dtype" in broken(lambda b, x, y: b.store(y, (0,), b.const(0, I8)))
    assert "not of" not in broken(lambda b, x, y: b.let("shl", (b.load(x, (0,)), b.load(x, (0,)))))
    assert "parameter slots" in broken(lambda b, x, y: b.store(y, (0,), b.parameter(0, F8)))
    assert "duplicate" in broken(lambda b, x, y: b.kernel.buffers.append(y))


@pytest.mark.parametrize("what", ["other element", "local", "other stride", "whole"])
def test_a_loop_is_not_independent_whose_iterations_share_something(what):
    b = StatementBuilder("shared")
    x = b.buffer("x", F8, (6, 6), "in")
    y = b.buffer("y", F8, (6, 6), "out")
    flat = b.buffer("flat", F8, (36,), "out", "y")
    total = b.local(b.const(0.0, F8))
    with b.loop(5, independent=True) as i:
        value = b.load(x, (i, 0))
        b.store(y, (i, 1), value)
        if what == "other element":
            b.store(y, (i, 2), b.load(y, (i + 1, 1)))
        elif what == "local":
            total.set(total.get() + value)
        elif what == "other stride":
            b.store(flat, (i,), value)
        elif what == "whole":
            b.copy(y, x)
    with pytest.raises(LoopIRError, match=r"share|overlap"):
        verify(b.finish())


def test_a_window_may_lie_in_a_row():
    """Its elements are those of the box, of which axes of extent 1 may be left out."""
    b = StatementBuilder("k")
    y = b.buffer("y", F8, (2, 3, 4, 5), "out")
    with b.loop(2) as n:
        for inside, first in ((b.row(y, n), ()), (y, (n,))):
            starts, axes = ((1, 2, 0), (0, None, 1)) if not first else ((0, 1, 2, 0), (None, 0, None, 1))
            window = b.window(inside, starts, (2, 3), axes)
            assert (window.buffer, window.shape, window.dtype) == (y, (2, 3), F8)
            i, j = b.parameter(0, I8), b.parameter(1, I8)
            found = [getattr(x, "operand", x) for x in window.place((i, j))]
            row = n.operand if not first else 0
            assert found == [row, (i + 1).operand, 2, j.operand]
