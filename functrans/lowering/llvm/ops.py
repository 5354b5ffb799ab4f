"""LLVM instructions of the loop IR's operations on real numbers, integers and booleans.

Each function emits instructions through an `Emitter`, which names values, and returns the name of the result. Flags:
`contract` (a multiplication and an addition may be rounded once) unless strict, `reassoc` where the IR allows it; never
`nnan` or `ninf`, which would break isnan and isinf.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.casts import wide_integer
from ...core.dtypes import INT64, is_low
from ...passes.scalar_functions import COMPARISONS
from .emitter import Emitter
from .low_precision import narrow, widen

_TYPES = {"bool": "i1", "float32": "float", "float64": "double"}
_MEMORY = {"bool": "i8"}


def llvm_type(dtype: np.dtype) -> str:
    """The type of a scalar in a register."""
    return _TYPES.get(dtype.name) or f"i{dtype.itemsize * 8}"


def memory_type(dtype: np.dtype) -> str:
    """The type of a (real) element in memory."""
    return _MEMORY.get(dtype.name) or llvm_type(dtype)


def literal(value: Any, dtype: np.dtype) -> str:
    """A number as LLVM writes it: floats by the bits of a double, which is exact."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "f":
        return "0x" + struct.pack(">d", value).hex().upper()
    bits = dtype.itemsize * 8
    value = int(value) % (1 << bits)
    return str(value - (1 << bits) if value >> (bits - 1) else value)


Emit = Callable[[Emitter, list[str], np.dtype, str], str]

_FLOAT_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "fmod": "frem"}
_ARITHMETIC = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "shl": "shl"}
_BOOLEAN = {"add": "or", "mul": "and", "min": "and", "max": "or", "sub": "xor"}
_FLOAT_COMPARE = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_INTRINSICS = {
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "sqrt": "sqrt", "abs": "fabs",
    "copysign": "copysign", "min": "minimum", "max": "maximum",
}  # fmt: skip


def operation(e: Emitter, op: str, args: list[str], dtype: np.dtype, reassoc: bool) -> str:
    """One operation on operands of `dtype` (``cast`` and ``select`` have separate functions)."""
    kind = dtype.kind
    if is_low(dtype):  # the register holds the bits
        assert op == "bits", op
        return args[0]
    if kind == "f":
        return _float(e, op, args, dtype, "reassoc " if reassoc else "")
    return _integer(e, op, args, dtype)


def _float(e: Emitter, op: str, args: list[str], dtype: np.dtype, reassoc: str) -> str:
    t = llvm_type(dtype)
    if op in _FLOAT_ARITHMETIC:
        return e.new(f"{_FLOAT_ARITHMETIC[op]} {reassoc}{e.fast}{t} {args[0]}, {args[1]}")
    if op == "multiply":
        return e.new(f"fmul {t} {args[0]}, {args[1]}")
    if op == "neg":
        return e.new(f"fneg {t} {args[0]}")
    if op == "bits":
        return e.new(f"bitcast {t} {args[0]} to i{8 * dtype.itemsize}")
    if op in COMPARISONS:
        return e.new(f"fcmp {_FLOAT_COMPARE[op]} {t} {args[0]}, {args[1]}")
    if op in _INTRINSICS:
        suffix = "f64" if t == "double" else "f32"
        # NumPy does not specify which of two zeros is greater; nor do we, at half the cost.
        flags = e.fast and e.fast + "nsz " if op in ("min", "max") else e.fast
        return intrinsic(e, f"llvm.{_INTRINSICS[op]}.{suffix}", t, args, flags)
    return e.maths(op, dtype, args)


def _integer(e: Emitter, op: str, args: list[str], dtype: np.dtype) -> str:
    t, signed = llvm_type(dtype), dtype.kind == "i"
    if dtype.kind == "b":
        op = _BOOLEAN.get(op, op)
    if op in _ARITHMETIC:
        return e.new(f"{_ARITHMETIC[op]} {t} {args[0]}, {args[1]}")
    if op in COMPARISONS:
        word = op if op in ("eq", "ne") else ("s" if signed else "u") + op
        return e.new(f"icmp {word} {t} {args[0]}, {args[1]}")
    if op == "shr":
        return e.new(f"{'ashr' if signed else 'lshr'} {t} {args[0]}, {args[1]}")
    if op in ("idiv", "irem"):
        return e.new(f"{'s' if signed else 'u'}{op[1:]} {t} {args[0]}, {args[1]}")
    if op == "from_bits" and dtype.itemsize == 2:
        return args[0]
    if op == "from_bits":
        return e.new(f"bitcast {t} {args[0]} to {llvm_type(np.dtype(f'f{dtype.itemsize}'))}")
    if op == "neg":
        return e.new(f"sub {t} 0, {args[0]}")
    if op == "not":
        return e.new(f"xor {t} {args[0]}, -1")
    if op in ("min", "max"):
        return intrinsic(e, f"llvm.{'s' if signed else 'u'}{op}.{t}", t, args)
    if op == "abs" and not signed:
        return args[0]
    if op == "abs":
        return e.new(f"call {t} @llvm.abs.{t}({t} {args[0]}, i1 false)")
    return e.maths(op, dtype, args)


def intrinsic(e: Emitter, name: str, t: str, args: list[str], flags: str = "") -> str:
    """A call of an LLVM intrinsic of operands and result of type `t`."""
    return e.new(f"call {flags}{t} @{name}({', '.join(f'{t} {a}' for a in args)})")


def select(e: Emitter, dtype: np.dtype, args: list[str]) -> str:
    """``args[1] if args[0] else args[2]``."""
    t = llvm_type(dtype)
    return e.new(f"select i1 {args[0]}, {t} {args[1]}, {t} {args[2]}")


def cast(e: Emitter, x: str, source: np.dtype, target: np.dtype) -> str:
    """``astype``, for float16 and bfloat16 from and to float32 (see `loops.arithmetic`).

    `arrays.casts` says what a float outside an integer's range gives.
    """
    if source == target:
        return x
    if is_low(source):
        return widen(e, x, source)
    if is_low(target):
        return narrow(e, x, source, target)
    s, t = llvm_type(source), llvm_type(target)
    if target.kind == "b":
        zero = literal(0, source)
        return e.new(f"fcmp une {s} {x}, {zero}" if source.kind == "f" else f"icmp ne {s} {x}, 0")
    if source.kind == "f":
        if target.kind == "f":
            return e.new(f"{'fpext' if target.itemsize > source.itemsize else 'fptrunc'} {s} {x} to {t}")
        return _float_to_integer(e, x, source, target)
    signed = source.kind == "i"
    if target.kind == "f":
        return e.new(f"{'s' if signed else 'u'}itofp {s} {x} to {t}")
    if source.kind != "b" and source.itemsize == target.itemsize:
        return x
    if source.kind != "b" and source.itemsize > target.itemsize:
        return e.new(f"trunc {s} {x} to {t}")
    return e.new(f"{'s' if signed else 'z'}ext {s} {x} to {t}")


def _float_to_integer(e: Emitter, x: str, source: np.dtype, target: np.dtype) -> str:
    """What `arrays.casts` says."""
    t = llvm_type(target)
    if target == np.uint64:
        s, half = llvm_type(source), literal(2.0**63, source)
        large = e.new(f"fcmp oge {s} {x}, {half}")
        low = e.new(f"fsub {s} {x}, {half}")
        small = _truncated(e, x, source, INT64)
        above = e.new(f"xor i64 {_truncated(e, low, source, INT64)}, {-(2**63)}")
        return e.new(f"select i1 {large}, i64 {above}, i64 {small}")
    wide = wide_integer(target)
    integer = _truncated(e, x, source, wide)
    return integer if llvm_type(wide) == t else e.new(f"trunc {llvm_type(wide)} {integer} to {t}")


def _truncated(e: Emitter, x: str, source: np.dtype, integer: np.dtype) -> str:
    """A float as a signed integer; NaN and what does not fit is the smallest one, which LLVM leaves undefined."""
    s, t, limit = llvm_type(source), llvm_type(integer), 2 ** (8 * integer.itemsize - 1)
    size = intrinsic(e, f"llvm.fabs.{'f32' if source == np.float32 else 'f64'}", s, [x])
    fits = e.new(f"fcmp olt {s} {size}, {literal(float(limit), source)}")
    return e.new(f"select i1 {fits}, {t} {e.new(f'fptosi {s} {x} to {t}')}, {t} {-limit}")
