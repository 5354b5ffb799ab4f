import numpy as np

from functrans.lowering.loops import ir
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.python.emit import emit_python

F8, F4, I8 = np.dtype("f8"), np.dtype("f4"), np.dtype("i8")


def body(b):
    return emit_python(b.finish()).split("status = 0\n")[1].rsplit("\n", 1)[0]


def test_values_used_once_are_written_in_place():
    b = StatementBuilder("k")
    x, y = b.buffer("x", F8, (30, 4), "in"), b.buffer("y", F8, (4, 30), "out")
    with b.loop(30) as i, b.loop(4) as j:
        v = b.load(x, (i, j))
        w = b.call("tanh", v - 1.0)
        b.store(y, (j, i), b.where(v > 0.0, (v + 2.0) * v, -w) / (w * w))
    assert (
        body(b)
        == """\
    for i in range(30):
        for j in range(4):
            t2 = x[i, j]
            t3 = tanh(t2 - 1.0)
            y[j, i] = ((t2 + 2.0) * t2 if t2 > 0.0 else -t3) / (t3 * t3)"""
    )


def test_reads_stay_before_writes():
    b = StatementBuilder("k")
    y = b.buffer("y", F8, (4,), "out")
    total = b.local(b.const(0.0, F8))
    old = b.load(y, (0,))
    b.store(y, (0,), b.const(1.0, F8))
    before = total.get()
    total.set(b.const(5.0, F8))
    b.store(y, (1,), old + before)
    assert (
        body(b)
        == """\
    s = 0.0
    t1 = y[0]
    y[0] = 1.0
    t2 = s
    s = 5.0
    y[1] = t1 + t2"""
    )


def test_narrow_dtypes_parameters_routines_and_failures():
    b = StatementBuilder("k")
    x, y = b.buffer("x", F4, (ir.Param(0, I8), 3), "in"), b.buffer("y", F4, (3, 3), "out")
    work = b.buffer("w", F4, (2,), "stack")
    info = b.local(b.const(0, np.dtype("i4")))
    acc = b.local(b.const(0, F4))
    b.store(work, (0,), b.parameter(0, F4) * 2.0)
    with b.loop(b.parameter(0, I8), 1, reverse=True) as i:
        acc.set(acc.get() + b.cast(b.call("idiv", i, b.extent(2)), F4) / b.load(x, (i, 0)))
    b.extern("potrf", "U", 3, (y, 1), 3, info)
    b.equation = 4
    b.fail_if(info.get().ne(0) | ~(acc.get() > 0.0))
    assert (
        emit_python(b.finish())
        == """\
def k(x, y):
    # x: float32[n0,3]; y: float32[3,3] (out)
    status = 0
    w = empty((2,), float32)
    info = array([0], int32)
    s = float32(0.0)
    w[0] = float32(p0) * 2.0
    for i in range(n0 - 1, 1 - 1, -1):
        s = s + float32(idiv(i, 2)) / x[i, 0]
    spotrf('U', 3, (y, 1), 3, info)
    if (info[0] != 0) | (not s > 0.0):
        status |= 1 << 4
    return status"""
    )


def test_names_do_not_collide():
    b = StatementBuilder("k")
    buffers = [b.buffer(name, F8, (2,), "out") for name in ("exp", "status", "i", "s", "t0")]
    total = b.local(b.const(0.0, F8))
    with b.loop(2) as i:
        for buffer in buffers:
            b.store(buffer, (i,), b.call("exp", total.get()))
    text = emit_python(b.finish())
    names = text.split("(")[1].split(")")[0].split(", ")
    assert len(set(names)) == 5
    assert not {"exp", "status"} & set(names)
    compile(text, "k", "exec")
