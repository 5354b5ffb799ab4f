"""Split complex numbers into parts, so that every scalar of a kernel is real.

A complex value becomes a pair of real ones; a complex buffer is read and written by parts. Arithmetic is expanded;
division and the functions of the C library follow NumPy for infinities and NaN. The only complex values left are
results of C functions (``cexp`` and others, internal operations with the parts as arguments), which ``real`` and
``imag`` split immediately.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....core.dtypes import real_dtype
from ....passes.scalar_functions import FUNCTIONS
from .. import ir, queries
from ..builder import StatementBuilder
from ..handles import ScalarHandle

C128 = np.dtype("c16")
F64 = np.dtype("f8")

Pair = tuple[ScalarHandle, ScalarHandle]


def has_complex(kernel: ir.Kernel) -> bool:
    """Whether a kernel contains anything complex."""
    return any(b.dtype.kind == "c" for b in kernel.buffers) or any(
        type(s) is ir.Let and s.value.dtype.kind == "c" for s in queries.walk(kernel.body)
    )


def split_complex(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with complex scalars split into parts; buffers do not change."""
    return _Splitter(kernel).run()


class _Splitter:
    def __init__(self, kernel: ir.Kernel):
        self.b = StatementBuilder(kernel.name)
        self.kernel = kernel
        self.pairs: dict[ir.Value, Pair] = {}
        self.locals: dict[ir.LocalVar, tuple[ir.LocalVar, ir.LocalVar]] = {}

    def run(self) -> ir.Kernel:
        self.body(self.kernel.body)
        old, new = self.kernel, self.b.finish()
        return ir.Kernel(old.name, old.buffers, new.body, old.ints, old.floats)

    def pair(self, x: Any) -> Pair:
        """The parts of a complex operand."""
        if type(x) is ir.Value:
            return self.pairs[x]
        real = real_dtype(x.dtype)
        if type(x) is ir.Param:
            return ScalarHandle(self.b, ir.Param(x.slot, real)), ScalarHandle(
                self.b, ir.Param(x.slot + 1, real)
            )
        return self.b.const(x.value.real, real), self.b.const(x.value.imag, real)

    def body(self, body: ir.StatementList) -> None:
        for s in body.statements:
            self.statement(s)

    def nested(self, body: ir.StatementList) -> ir.StatementList:
        new = ir.StatementList()
        with self.b.inside(new):
            self.body(body)
        return new

    def statement(self, s: Any) -> None:
        match s:
            case ir.Let() if s.value.dtype.kind == "c" or any(a.dtype.kind == "c" for a in s.args):
                self.let(s)
            case ir.Load() if s.value.dtype.kind == "c":
                self.pairs[s.value] = self.load(s, 0), self.load(s, 1)
            case ir.Store() if s.x.dtype.kind == "c":
                for part, x in enumerate(self.pair(s.x)):
                    self.b.append(ir.Store(s.buffer, s.index, x.operand, part))
            case ir.Declare() if s.var.dtype.kind == "c":
                real = real_dtype(s.var.dtype)
                variables = self.locals[s.var] = ir.LocalVar(real), ir.LocalVar(real)
                for var, x in zip(variables, self.pair(s.init)):
                    self.b.append(ir.Declare(var, x.operand))
            case ir.Get() if s.var in self.locals:
                self.pairs[s.value] = self.get(self.locals[s.var][0]), self.get(self.locals[s.var][1])
            case ir.Set() if s.var in self.locals:
                for var, x in zip(self.locals[s.var], self.pair(s.x)):
                    self.b.append(ir.Set(var, x.operand))
            case ir.For():
                self.b.append(replace(s, body=self.nested(s.body)))
            case ir.While():
                test = self.nested(s.test)
                self.b.append(ir.While(test, s.condition, self.nested(s.body), s.brief))
            case ir.If():
                self.b.append(ir.If(s.condition, self.nested(s.then), self.nested(s.orelse)))
            case ir.Call():
                self.call(s)
            case _:
                self.b.append(s)

    def load(self, s: ir.Load, part: int) -> ScalarHandle:
        value = ir.Value(real_dtype(s.value.dtype))
        self.b.append(ir.Load(value, s.buffer, s.index, part))
        return ScalarHandle(self.b, value)

    def get(self, var: ir.LocalVar) -> ScalarHandle:
        value = ir.Value(var.dtype)
        self.b.append(ir.Get(value, var))
        return ScalarHandle(self.b, value)

    def call(self, s: ir.Call) -> None:
        def argument(a: Any) -> Any:
            if isinstance(a, (str, ir.LocalVar, ir.Address)) or a.dtype.kind != "c":
                return a
            return tuple(x.operand for x in self.pair(a))

        self.b.append(ir.Call(s.routine, s.letter, tuple(map(argument, s.args)), s.value))
        if s.value is not None and s.value.dtype.kind == "c":
            self.pairs[s.value] = self.parts(s.value)

    def parts(self, value: ir.Value) -> Pair:
        """``real`` and ``imag`` of a C function's result."""
        whole = ScalarHandle(self.b, value)
        return self.b.let("real", (whole,)), self.b.let("imag", (whole,))

    def c_function(self, name: str, *args: Pair) -> Pair:
        """A C function of doubles, rounded to the parts' dtype."""
        b, dtype = self.b, args[0][0].dtype
        flat = tuple(b.cast(x, F64) for pair in args for x in pair)
        whole = b.let(name, flat, C128)
        re, im = b.let("real", (whole,)), b.let("imag", (whole,))
        return b.cast(re, dtype), b.cast(im, dtype)

    # --- operations ------------------------------------------------------------------------------------

    def let(self, s: ir.Let) -> None:
        b, op = self.b, s.op
        if op == "complex":
            self.pairs[s.value] = ScalarHandle(b, s.args[0]), ScalarHandle(b, s.args[1])
        elif op == "cast":
            self.cast(s)
        elif op == "select":
            c = ScalarHandle(b, s.args[0])
            (xr, xi), (yr, yi) = self.pair(s.args[1]), self.pair(s.args[2])
            self.pairs[s.value] = b.where(c, xr, yr), b.where(c, xi, yi)
        else:
            args = [self.pair(a) for a in s.args]
            result = self.operation(op, args, s.reassoc)
            if isinstance(result, tuple):
                self.pairs[s.value] = result
            else:
                self.same(s.value, result)

    def same(self, value: ir.Value, x: ScalarHandle) -> None:
        """Define a real `value` of the old kernel as `x` (a cast to its own dtype is free)."""
        self.b.append(ir.Let(value, "cast", (x.operand,)))

    def cast(self, s: ir.Let) -> None:
        b, x, dtype = self.b, s.args[0], s.value.dtype
        if dtype.kind == "c":
            real = real_dtype(dtype)
            if x.dtype.kind == "c":
                re, im = self.pair(x)
                self.pairs[s.value] = b.cast(re, real), b.cast(im, real)
            else:
                self.pairs[s.value] = b.cast(ScalarHandle(b, x), real), b.const(0.0, real)
            return
        re, im = self.pair(x)
        if dtype.kind == "b":
            self.same(s.value, re.ne(0.0) | im.ne(0.0))
        else:
            self.same(s.value, b.cast(re, dtype))

    def operation(self, op: str, args: list[Pair], reassoc: bool) -> Pair | ScalarHandle:
        b = self.b
        function = FUNCTIONS.get(op)
        if function is not None and function.complex and function.operands == 1:
            return self.c_function(function.complex, *args)
        if op in ("add", "sub"):
            (ar, ai), (br, bi) = args
            return b.binary(op, ar, br, reassoc=reassoc), b.binary(op, ai, bi, reassoc=reassoc)
        rule = getattr(self, f"op_{op}", None)
        if rule is None:
            raise NotImplementedError(f"{op} of complex numbers in a kernel")
        return rule(*args)

    def op_mul(self, x: Pair, y: Pair) -> Pair:
        (ar, ai), (br, bi) = x, y
        return ar * br - ai * bi, ar * bi + ai * br

    def op_div(self, x: Pair, y: Pair) -> Pair:
        """Smith's algorithm, as in NumPy: no needless overflow."""
        b = self.b
        (ar, ai), (br, bi) = x, y
        sr, si = b.call("abs", br), b.call("abs", bi)
        swap = sr < si
        large, small = b.where(swap, bi, br), b.where(swap, br, bi)
        zero = ~swap & sr.eq(0.0) & si.eq(0.0)
        ratio = small / large
        scale = 1.0 / (large + small * ratio)
        re = (b.where(swap, ar, ai) * ratio + b.where(swap, ai, ar)) * scale
        im = (b.where(swap, ai * ratio - ar, ai - ar * ratio)) * scale
        return b.where(zero, ar / sr, re), b.where(zero, ai / sr, im)

    def op_neg(self, x: Pair) -> Pair:
        return -x[0], -x[1]

    def op_conj(self, x: Pair) -> Pair:
        return x[0], -x[1]

    def op_real(self, x: Pair) -> ScalarHandle:
        return x[0]

    def op_imag(self, x: Pair) -> ScalarHandle:
        return x[1]

    def op_abs(self, x: Pair) -> ScalarHandle:
        return self.b.call("hypot", *x)

    def op_eq(self, x: Pair, y: Pair) -> ScalarHandle:
        return x[0].eq(y[0]) & x[1].eq(y[1])

    def op_ne(self, x: Pair, y: Pair) -> ScalarHandle:
        return x[0].ne(y[0]) | x[1].ne(y[1])

    def op_lt(self, x: Pair, y: Pair) -> ScalarHandle:
        """NumPy's order: by real part, then by imaginary part; false for NaN."""
        return self.ordered(x, y) & ((x[0] < y[0]) | (x[0].eq(y[0]) & (x[1] < y[1])))

    def op_le(self, x: Pair, y: Pair) -> ScalarHandle:
        return self.ordered(x, y) & ((x[0] < y[0]) | (x[0].eq(y[0]) & (x[1] <= y[1])))

    def op_gt(self, x: Pair, y: Pair) -> ScalarHandle:
        return self.op_lt(y, x)

    def op_ge(self, x: Pair, y: Pair) -> ScalarHandle:
        return self.op_le(y, x)

    def ordered(self, x: Pair, y: Pair) -> ScalarHandle:
        """No imaginary part is NaN (a NaN real part is false in every comparison)."""
        return x[1].eq(x[1]) & y[1].eq(y[1])

    def op_max(self, x: Pair, y: Pair) -> Pair:
        return self.extreme(self.op_ge(x, y), x, y)

    def op_min(self, x: Pair, y: Pair) -> Pair:
        return self.extreme(self.op_le(x, y), x, y)

    def extreme(self, first: ScalarHandle, x: Pair, y: Pair) -> Pair:
        nan = x[0].ne(x[0]) | x[1].ne(x[1])
        take = first | nan
        return self.b.where(take, x[0], y[0]), self.b.where(take, x[1], y[1])

    def op_pow(self, x: Pair, y: Pair) -> Pair:
        """C's power, with NumPy's results where C returns NaN: z**0 is 1, and 0**y is 0 if Re y > 0."""
        b, dtype = self.b, x[0].dtype
        zero = x[0].eq(0.0) & x[1].eq(0.0)
        positive = y[0] > 0.0
        one = y[0].eq(0.0) & y[1].eq(0.0)
        at_zero = b.where(positive, b.const(0.0, dtype), b.const(float("nan"), dtype))
        re, im = (b.where(zero, at_zero, part) for part in self.c_function("cpow", x, y))
        return b.where(one, b.const(1.0, dtype), re), b.where(one, b.const(0.0, dtype), im)

    def op_log2(self, x: Pair) -> Pair:
        return self.scaled_log(x, 1.4426950408889634)

    def op_log10(self, x: Pair) -> Pair:
        return self.scaled_log(x, 0.4342944819032518)

    def scaled_log(self, x: Pair, factor: float) -> Pair:
        re, im = self.c_function("clog", x)
        return re * factor, im * factor

    def op_exp2(self, x: Pair) -> Pair:
        b, dtype, ln2 = self.b, x[0].dtype, 0.6931471805599453
        re, im = self.c_function("cexp", (b.cast(x[0], F64) * ln2, b.cast(x[1], F64) * ln2))
        return b.cast(re, dtype), b.cast(im, dtype)

    def op_log1p(self, x: Pair) -> Pair:
        """As eagerly (see `log1p_p`), in doubles."""
        b, dtype = self.b, x[0].dtype
        re, im = b.cast(x[0], F64), b.cast(x[1], F64)
        above = re + 1.0
        near = (b.call("abs", re) < 0.5) & (b.call("abs", im) < 0.5)
        small = b.call("log1p", b.where(near, re * (re + 2.0) + im * im, b.const(0.0, F64))) * 0.5
        size, angle = b.call("log", b.call("hypot", above, im)), b.call("arctan2", im, above)
        return b.cast(b.where(near, small, size), dtype), b.cast(angle, dtype)

    def op_expm1(self, x: Pair) -> Pair:
        """As in NumPy: expm1(x) cos(y) - 2 sin(y / 2)^2, exp(x) sin(y)."""
        b = self.b
        half = b.call("sin", x[1] * 0.5)
        re = b.call("expm1", x[0]) * b.call("cos", x[1]) - half * half * 2.0
        return re, b.call("exp", x[0]) * b.call("sin", x[1])
