import itertools
import operator

import numpy as np
import pytest

from functrans.lowering.loops import ir
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.python.emit import emit_python
from functrans.lowering.python.runtime import python_function

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


def constant(value, dtype, explicit=False):
    """The text of a constant, and what a kernel that stores it leaves."""
    b = StatementBuilder("k")
    y = b.buffer("y", np.dtype(dtype), (1,), "out")
    b.store(y, (0,), b.const(value, np.dtype(dtype)))
    text = emit_python(b.finish(), explicit=explicit)
    out = np.zeros(1, dtype)
    assert python_function(b.finish(), text)(out) == 0
    return text.split("y[0] = ")[1].splitlines()[0], out


PARTS = [0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1.5e308]
CONSTANTS = [
    *[(complex(x, y), "c16") for x, y in itertools.product(PARTS, PARTS)],
    *[(complex(x, y), "c8") for x, y in itertools.product(PARTS[:-1], PARTS[:-1])],
    *[(x, dtype) for x in PARTS[:-1] for dtype in ("f8", "f4")],
    *[(n, dtype) for n in (0, 7, -8) for dtype in ("i1", "i4", "i8")],
    *[(n, "u1") for n in (0, 255)],
    *[(2**63 - 1, "i8"), (-(2**63), "i8"), (True, "?"), (False, "?")],
]


@pytest.mark.parametrize("explicit", [False, True])
def test_constants_are_read_as_they_were(explicit):
    """All their bits, signs of zeros too; not the payload of NaN."""
    for value, dtype in CONSTANTS:
        _, out = constant(value, dtype, explicit)
        expected = np.full(1, value, dtype)
        np.testing.assert_array_equal(out, expected)
        for part in (np.real, np.imag):
            x, y = part(out)[0], part(expected)[0]
            assert np.isnan(x) or np.signbit(np.float64(x)) == np.signbit(np.float64(y)), (value, dtype)


def test_constants_are_short():
    """Python's literals, where these say the same; with `explicit`, dtypes that Python has not are named."""
    for value, dtype, text in (
        (1 + 2j, "c16", "(1+2j)"),
        (2j, "c16", "(2j)"),
        (-1.5 - 2j, "c16", "(-1.5-2j)"),
        (-1.5 + 0j, "c16", "complex(-1.5, 0.0)"),
        (complex(0.0, -0.0), "c16", "complex(0.0, -0.0)"),
        (complex(np.inf, 1.0), "c16", "complex(inf, 1.0)"),
        (-2.0, "f8", "-2.0"),
        (-2.0, "f4", "-2.0"),
        (3, "i4", "3"),
    ):
        assert constant(value, dtype)[0] == text
    for value, dtype, text in (
        (1 + 2j, "c16", "(1+2j)"),
        (1 + 2j, "c8", "complex64((1+2j))"),
        (-2.0, "f8", "-2.0"),
        (-2.0, "f4", "float32(-2.0)"),
        (3, "i8", "3"),
        (3, "i4", "int32(3)"),
        (True, "?", "True"),
    ):
        assert constant(value, dtype, explicit=True)[0] == text


@pytest.mark.parametrize(
    ("op", "number", "value", "dtype"),
    [
        (operator.add, 2**62, 2**62, "i8"),
        (operator.mul, 2**40, -(2**40), "i8"),
        (operator.sub, -(2**62) - 1, 2**62, "i8"),
        (operator.truediv, 1.0, 0.0, "f8"),
        (operator.truediv, 0.0, -0.0, "f8"),
        (operator.sub, 2.0, -3.0, "f8"),
        (operator.mul, 1e300, -1e300, "f8"),
    ],
)
def test_constants_compute_with_parameters_as_numpy_does(op, number, value, dtype):
    """Parameters are Python's numbers, whose integers do not wrap, and which cannot be divided by zero."""
    b = StatementBuilder("k")
    y = b.buffer("y", np.dtype(dtype), (1,), "out")
    b.store(y, (0,), op(b.parameter(0, np.dtype(dtype)), b.const(value, np.dtype(dtype))))
    kernel = b.finish()
    kernel.ints, kernel.floats = (1, 0) if dtype == "i8" else (0, 1)
    run = python_function(kernel, emit_python(kernel))
    out = np.zeros(1, dtype)
    with np.errstate(all="ignore"):
        assert run(out, number) == 0
        np.testing.assert_array_equal(out, op(np.full(1, number, dtype), np.full(1, value, dtype)))
