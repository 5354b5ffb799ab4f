"""The structural verifier of the loop IR; it runs between passes in the tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from .loopir import (
    BOOL,
    COMPARISONS,
    INT64,
    OPERATIONS,
    ROLES,
    Block,
    BufferDecl,
    Call,
    Const,
    Copy,
    Extent,
    Fail,
    For,
    Get,
    HostCall,
    If,
    Kernel,
    Let,
    Load,
    Local,
    LocalVar,
    Param,
    Ref,
    Reserve,
    Set,
    Store,
    Value,
    While,
)


class LoopIRError(AssertionError):
    """A kernel breaks a rule of the loop IR: an error of a pass, never of the user."""


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex dtype; others unchanged."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def result_dtype(op: str, dtypes: tuple[np.dtype, ...]) -> np.dtype:
    """The dtype of an operation's value (``cast`` excepted)."""
    if op in COMPARISONS:
        return BOOL
    if op == "select":
        return dtypes[1]
    if op in ("abs", "real", "imag"):
        return real_dtype(dtypes[0])
    if op == "bits":
        return np.dtype(f"i{dtypes[0].itemsize}")
    if op == "complex":
        return np.dtype(f"c{dtypes[0].itemsize * 2}")
    return dtypes[0]


def verify(kernel: Kernel) -> None:
    """Check definitions before uses, dtypes, ranks, roles.

    Raises
    ------
    LoopIRError
        Naming the statement.
    """
    _Verifier(kernel)


class _Verifier:
    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.where: Any = "buffers"
        self.seen: set[Any] = set()
        names = [b.name for b in kernel.buffers]
        self.need(len(set(names)) == len(names), f"duplicate buffer names in {names}")
        self.buffers = {id(b) for b in kernel.buffers}
        for b in kernel.buffers:
            self.need(b.role in ROLES and b.name.isidentifier(), f"bad declaration {b}")
            for n in b.shape:
                literal = isinstance(n, int) and n >= 0
                self.need(
                    literal or (type(n) is Param and b.role != "stack"), f"bad extent {n!r} of {b.name}"
                )
                if type(n) is Param:
                    self.operand(n, INT64)
        self.block(kernel.body, set())

    def need(self, condition: bool, message: str) -> None:
        if not condition:
            raise LoopIRError(f"kernel '{self.kernel.name}': {message} (at {self.where})")

    def operand(self, x: Any, dtype: np.dtype | None = None, scope: set[Any] | None = None) -> np.dtype:
        if type(x) is Value:
            self.need(scope is not None and x in scope, f"{x} is used where it is not defined")
        elif type(x) is Param:
            n = self.kernel.ints if x.dtype == INT64 else self.kernel.floats - (x.dtype.kind == "c")
            self.need(x.dtype == INT64 or x.dtype.kind in "fc", f"a parameter of dtype {x.dtype}")
            self.need(0 <= x.slot < n, f"{x} is outside of the parameter slots")
        else:
            self.need(type(x) in (Const, Extent), f"{x!r} is no operand")
        self.need(dtype is None or x.dtype == dtype, f"{x!r} should have dtype {dtype}")
        return x.dtype

    def define(self, value: Any, scope: set[Any]) -> None:
        self.need(value not in self.seen, f"{value} is defined twice")
        self.seen.add(value)
        scope.add(value)

    def access(self, s: Load | Store, scope: set[Any]) -> np.dtype:
        self.need(id(s.buffer) in self.buffers, f"buffer {s.buffer.name} is not declared")
        self.need(len(s.index) == len(s.buffer.shape), f"{len(s.index)} indices for {s.buffer}")
        for i in s.index:
            self.operand(i, INT64, scope)
        self.need(s.part in (None, 0, 1), f"part {s.part}")
        if s.part is None:
            return s.buffer.dtype
        self.need(s.buffer.dtype.kind == "c", f"a part of {s.buffer.dtype}")
        return real_dtype(s.buffer.dtype)

    def let(self, s: Let, scope: set[Any]) -> None:
        self.need(OPERATIONS.get(s.op) == len(s.args), f"operation {s.op!r} of {len(s.args)} operands")
        dtypes = tuple(self.operand(a, None, scope) for a in s.args)
        if s.op == "select":
            self.need(dtypes[0] == BOOL and dtypes[1] == dtypes[2], f"select of {dtypes}")
        elif s.op != "cast":
            self.need(len(set(dtypes)) == 1, f"{s.op} of different dtypes {dtypes}")
        if s.op in ("and", "or", "xor", "not"):
            self.need(dtypes[0].kind in "biu", f"{s.op} of {dtypes[0]}")
        if s.op in ("shl", "shr", "idiv", "irem"):
            self.need(dtypes[0].kind in "iu", f"{s.op} of {dtypes[0]}")
        if s.op == "div":
            self.need(dtypes[0].kind in "fc", f"div of {dtypes[0]}")
        if s.op != "cast":
            self.need(
                s.value.dtype == result_dtype(s.op, dtypes), f"{s.op} gives {result_dtype(s.op, dtypes)}"
            )
        self.define(s.value, scope)

    def block(self, block: Block, outer: set[Any]) -> None:
        scope = set(outer)
        for s in block.statements:
            self.where = s
            self.statement(s, scope)

    def statement(self, s: Any, scope: set[Any]) -> None:
        match s:
            case Let():
                self.let(s, scope)
            case Load():
                self.need(s.value.dtype == self.access(s, scope), "the value's dtype is not the buffer's")
                self.define(s.value, scope)
            case Store():
                self.operand(s.x, self.access(s, scope), scope)
                self.need(s.buffer.role != "in", f"store to input {s.buffer.name}")
            case For():
                self.operand(s.start, INT64, scope)
                self.operand(s.stop, INT64, scope)
                inner = set(scope)
                self.need(s.var.dtype == INT64, "a loop variable is int64")
                self.define(s.var, inner)
                self.block(s.body, inner)
            case While():
                tested = set(scope)
                for inner in s.test.statements:
                    self.statement(inner, tested)
                self.operand(s.condition, BOOL, tested)
                self.block(s.body, scope)
            case If():
                self.operand(s.condition, BOOL, scope)
                self.block(s.then, scope)
                self.block(s.orelse, scope)
            case Local():
                self.operand(s.init, s.var.dtype, scope)
                self.define(s.var, scope)
            case Get():
                self.need(s.var in scope, "the local is not declared here")
                self.need(s.value.dtype == s.var.dtype, "the value's dtype is not the local's")
                self.define(s.value, scope)
            case Set():
                self.need(s.var in scope, "the local is not declared here")
                self.operand(s.x, s.var.dtype, scope)
            case Copy():
                self.need(
                    id(s.target) in self.buffers and id(s.source) in self.buffers, "buffer not declared"
                )
                self.need(s.target.dtype == s.source.dtype, "copy between dtypes")
                self.need(s.target.role != "in" or s.target.place == s.source.place, "copy to an input")
            case Call():
                self.call(s, scope)
            case Fail():
                self.operand(s.condition, BOOL, scope)
            case HostCall():
                self.operand(s.number, INT64, scope)
                for ref in s.refs:
                    self.ref(ref, scope)
            case Reserve():
                self.need(s.tape.role == "tape" and id(s.tape) in self.buffers, "no tape")
                self.operand(s.needed, INT64, scope)
                self.operand(s.limit, INT64, scope)
            case _:
                self.need(False, f"{s!r} is no statement")

    def ref(self, a: Ref, scope: set[Any]) -> None:
        self.need(isinstance(a.buffer, BufferDecl) and id(a.buffer) in self.buffers, "buffer not declared")
        self.operand(a.offset, INT64, scope)

    def call(self, s: Call, scope: set[Any]) -> None:
        for a in s.args:
            if isinstance(a, str):
                self.need(len(a) == 1, f"character argument {a!r}")
            elif type(a) is LocalVar:
                self.need(a in scope, "the local is not declared here")
            elif type(a) is Ref:
                self.ref(a, scope)
            else:
                self.operand(a, None, scope)
        if s.value is not None:
            self.define(s.value, scope)
