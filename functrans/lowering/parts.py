"""Large kernels in parts: functions of a few loops each, equal ones shared.

LLVM's time grows faster than a function's length, and programs repeat themselves: the layers of a network,
the steps of an unrolled loop. A part is a kernel of its own, whose parameters are the storages and numbers
that its statements use, in the order of first use; so the parts of equal layers have equal text, and are
compiled once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import loopir as ir
from .loopshow import show
from .mapping import Mapping

#: Kernels with fewer loops and calls than this stay whole.
FEWEST = 12
_HEAVY = (ir.For, ir.While, ir.Call, ir.HostCall)


@dataclass(eq=False, slots=True)
class PartCall:
    """One call of a part.

    Attributes
    ----------
    part : Kernel
        Shared by all calls of equal parts.
    buffers : list of BufferDecl
        The caller's declarations for ``part.buffers``, but for those of `results`.
    places : list of str
        The caller's storages for ``part.storages``; the last ones are slots for `results`.
    ints, floats : list of operands
        What the part's parameters are.
    results : list of Value
        Values of the caller that the part computes, each in a storage of its own behind `places`.
    """

    part: ir.Kernel
    buffers: list[ir.BufferDecl]
    places: list[str]
    ints: list[ir.Operand]
    floats: list[ir.Operand]
    results: list[ir.Value]


def split(kernel: ir.Kernel) -> list[PartCall] | None:
    """The calls that do what a kernel does, or None if it should stay whole."""
    heavy = sum(type(s) in _HEAVY for s in kernel.body.statements)
    if heavy < FEWEST:
        return None
    return _Split(kernel).calls


class _Split:
    def __init__(self, kernel: ir.Kernel):
        self.kernel = kernel
        self.chunks = list(_chunks(kernel.body.statements))
        self.parts: dict[str, ir.Kernel] = {}
        self.users: dict[Any, set[int]] = {}  # the chunks that use a value or a storage
        for n, chunk in enumerate(self.chunks):
            for x in (*_uses(chunk), *(t.buffer.place for t in ir.touches(ir.Block(chunk)))):
                self.users.setdefault(x, set()).add(n)
        self.calls = [self.call(n, chunk) for n, chunk in enumerate(self.chunks)]

    def call(self, n: int, chunk: list[ir.Statement]) -> PartCall:
        made = _Part(chunk, {x for x, users in self.users.items() if users == {n}})
        defined = [v for s in chunk for v in _defines(s)]
        results = [v for v in defined if self.users.get(v, set()) - {n}]
        for v in results:
            made.give(v)
        made.kernel.buffers = made.ordered()
        shared = self.parts.setdefault(show(made.kernel), made.kernel)
        return PartCall(shared, list(made.strided), made.places(), made.ints, made.floats, results)


class _Part(Mapping):
    """The statements of a chunk as a kernel."""

    def __init__(self, chunk: list[ir.Statement], own: set[Any]):
        self.own = own  # the storages that nothing else uses
        self.ints: list[ir.Operand] = []
        self.floats: list[ir.Operand] = []
        self.known: dict[Any, ir.Param] = {}
        self.defined = {v for s in chunk for v in _all_defined(s)}
        self.extra: list[ir.BufferDecl] = []
        body = ir.Block(chunk)
        self.written: set[str] = set()
        self.strided: dict[ir.BufferDecl, int] = {}  # of each buffer the first axis whose extent is needed
        for touch in ir.touches(body):
            b = touch.buffer
            self.strided[b] = min(touch.strided, self.strided.get(b, touch.strided))
            if touch.writes:
                self.written.add(b.place)
        super().__init__(ir.Kernel("part", list(self.strided), body), self.operand)
        self.kernel.ints, self.kernel.floats = len(self.ints), len(self.floats)

    def decl(self, b: ir.BufferDecl) -> ir.BufferDecl:
        role = "tape" if b.role == "tape" else "out" if b.place in self.written else "in"
        if b.role == "stack" and b.place in self.own:
            role = "stack"
        # Extents that no address needs would only be more parameters.
        shape = [1 if type(n) is ir.Param and d < self.strided[b] else n for d, n in enumerate(b.shape)]
        shape = [n if isinstance(n, int) else self.operand(n) for n in shape]
        return ir.BufferDecl(b.name, b.dtype, tuple(shape), role, b.place)

    def operand(self, x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple([self.operand(part) for part in x])
        outside = type(x) is ir.Value and x not in self.defined
        return self.parameter(x) if outside or type(x) is ir.Param else x

    def parameter(self, x: Any) -> ir.Param:
        found = self.known.get(x)
        if found is None:
            numbers = self.ints if x.dtype == ir.INT64 else self.floats
            found = self.known[x] = ir.Param(len(numbers), x.dtype)
            numbers.append(x)
        return found

    def argument(self, a: Any) -> Any:
        return self.operand(a) if isinstance(a, tuple) else super().argument(a)

    def give(self, v: ir.Value) -> None:
        """Store a value where the caller can read it."""
        slot = ir.BufferDecl(f"result{len(self.extra)}", v.dtype, (), "out")
        self.extra.append(slot)
        self.kernel.body.statements.append(ir.Store(slot, (), v))

    def ordered(self) -> list[ir.BufferDecl]:
        return [*self.kernel.buffers, *self.extra]

    def places(self) -> list[str]:
        """The storages, but for the results'."""
        return [place for place in self.kernel.storages if place not in {b.place for b in self.extra}]


# --- where to cut -------------------------------------------------------------------------------------------


def _chunks(statements: list[ir.Statement]) -> Iterator[list[ir.Statement]]:
    """Runs of statements of about one loop or call each; no variable is used on both sides of a cut."""
    last_use: dict[Any, int] = {}
    for n, s in enumerate(statements):
        last_use.update((x, n) for x in _uses([s]) if type(x) in (ir.LocalVar, ir.Value))
    chunk: list[ir.Statement] = []
    busy = -1  # the last statement that uses what a cut must not separate
    heavy = False
    for n, s in enumerate(statements):
        begins = type(s) in _HEAVY or type(s) is ir.Local
        if chunk and heavy and begins and n > busy:
            yield chunk
            chunk, heavy = [], False
        chunk.append(s)
        heavy = heavy or type(s) in _HEAVY
        for x in _defines(s):
            if type(x) is ir.LocalVar or not _passes(x.dtype):
                busy = max(busy, last_use.get(x, n))
    if chunk:
        yield chunk


def _passes(dtype: np.dtype) -> bool:
    """Whether a number can be a parameter."""
    return dtype in (np.int64, np.float64, np.float32)


def _defines(s: ir.Statement) -> list[Any]:
    """The values and variables that a statement defines for those behind it."""
    if type(s) is ir.Local:
        return [s.var]
    value = getattr(s, "value", None)
    return [] if value is None else [value]


def _all_defined(s: ir.Statement) -> Iterator[Any]:
    yield from _defines(s)
    if type(s) is ir.For:
        yield s.var
    for block in ir.blocks_of(s):
        for inner in block.statements:
            yield from _all_defined(inner)


def _uses(chunk: list[ir.Statement]) -> Iterator[Any]:
    """Values and variables used in a chunk, at any depth."""
    for s in ir.walk(ir.Block(chunk)):
        for x in ir.operands_of(s):
            yield from x if isinstance(x, tuple) else (x.offset,) if type(x) is ir.Ref else (x,)
        if isinstance(s, (ir.Get, ir.Set)):
            yield s.var
