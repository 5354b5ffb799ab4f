"""Split large kernels into parts: functions of a few loops each, shared if they are equal.

LLVM's time grows faster than the length of a function, and programs repeat themselves: the layers of a network, the
steps of an unrolled loop. A part is a kernel whose parameters are the storages and numbers that its statements use, in
the order of first use. So the parts of equal layers have equal text, and are compiled once.

A kernel of many loops consists only of parts (`split`). In the body of a loop, such as the stages of a Runge-Kutta
step, only repeated statements become parts (`shared`), so that LLVM sees the rest as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ....runtime.config import config
from .. import ir, queries
from ..check import verify_parts
from ..mapping import Mapping
from ..part_call import PartCall
from ..show import show
from ..touches import touches

#: Kernels with fewer loops and calls than this stay whole.
FEWEST = 12
_HEAVY = (ir.For, ir.While, ir.Call, ir.HostCall)


def split(kernel: ir.Kernel) -> list[PartCall] | None:
    """The calls equivalent to a kernel; None if it should stay whole."""
    if not _is_large(kernel.body):
        return None
    chunks = _Chunks(kernel.body)
    return _verified([chunks.call(n, chunks.is_own(n)) for n in range(len(chunks.chunks))])


def shared(body: ir.StatementList) -> list[Any]:
    """The statements of a loop's body, with repeated ones replaced by calls."""
    if not _is_large(body):
        return body.statements
    chunks = _Chunks(body)
    statements: list[Any] = []
    calls = [
        chunks.call(n, lambda place: False) if _can_move(chunk) else None
        for n, chunk in enumerate(chunks.chunks)
    ]
    times = Counter(call.text for call in _verified([call for call in calls if call]))
    for chunk, call in zip(chunks.chunks, calls):
        statements += [call] if call and times[call.text] > 1 else chunk
    return statements


def team_call(kernel: ir.Kernel, loop: ir.For) -> PartCall:
    """The body of a loop that a team runs, as a call of a part of the kernel that it is in."""
    inside = Counter(touch.buffer.place for touch in touches(loop.body))
    users = Counter(touch.buffer.place for touch in touches(kernel.body))
    part = _Part(loop.body.statements, lambda place: inside[place] == users[place])
    part.kernel.buffers = part.ordered()
    buffers, places = list(part.strided), part.places()
    return PartCall(part.kernel, show(part.kernel), buffers, places, part.ints, part.floats, [])


def _verified(calls: list[PartCall]) -> list[PartCall]:
    """The calls themselves, checked first if ``config.verify`` is set."""
    if config.verify:
        verify_parts(calls)
    return calls


def _is_large(body: ir.StatementList) -> bool:
    return sum(type(s) in _HEAVY for s in body.statements) >= FEWEST


def _can_move(chunk: list[ir.Statement]) -> bool:
    """Whether statements in the body of a loop can form a part.

    They must not leave the loop or use its variables, and must have loops long enough to make up for the call and
    for memory in place of registers.
    """
    statements = list(queries.walk(ir.StatementList(chunk)))
    if any(type(s) in (ir.HostCall, ir.Reserve) or queries.is_long(s) for s in statements):
        return False
    defined = {v for s in chunk for v in all_defined(s)}
    outside = [x for x in uses(chunk) if type(x) in (ir.Value, ir.LocalVar) and x not in defined]
    if not all(type(x) is ir.Value and passes(x.dtype) for x in outside):
        return False
    return any(type(s) is ir.For and queries.rounds(s, ir.SHORT + 1) > ir.SHORT for s in statements)


class _Chunks:
    """The statements of a block in chunks, and the users of each value and storage."""

    def __init__(self, body: ir.StatementList):
        self.chunks = list(_chunks(body.statements))
        self.parts: dict[str, ir.Kernel] = {}
        self.users: dict[Any, set[int]] = {}  # the chunks that use a value or a storage
        for n, chunk in enumerate(self.chunks):
            for x in (*uses(chunk), *(t.buffer.place for t in touches(ir.StatementList(chunk)))):
                self.users.setdefault(x, set()).add(n)

    def is_own(self, n: int) -> Callable[[str], bool]:
        """Whether only this chunk uses a storage."""
        return lambda place: self.users.get(place) == {n}

    def call(self, n: int, own: Callable[[str], bool]) -> PartCall:
        """The chunk as a call of a part, which is shared if its text is equal."""
        builder = _Part(self.chunks[n], own)
        defined = [v for s in self.chunks[n] for v in _defines(s)]
        results = [v for v in defined if self.users.get(v, set()) - {n}]
        for v in results:
            builder.give(v)
        builder.kernel.buffers = builder.ordered()
        text = show(builder.kernel)
        part = self.parts.setdefault(text, builder.kernel)
        return PartCall(
            part, text, list(builder.strided), builder.places(), builder.ints, builder.floats, results
        )


class _Part(Mapping):
    """The statements of a chunk as a kernel."""

    def __init__(self, chunk: list[ir.Statement], own: Callable[[str], bool]):
        self.own = own  # whether only this chunk uses a storage
        self.ints: list[ir.Operand] = []
        self.floats: list[ir.Operand] = []
        self.known: dict[Any, ir.Param] = {}
        self.defined = {v for s in chunk for v in all_defined(s)}
        self.extra: list[ir.BufferDecl] = []
        body = ir.StatementList(chunk)
        self.written: set[str] = set()
        self.strided: dict[ir.BufferDecl, int] = {}  # by buffer, the first axis whose extent is needed
        for touch in touches(body):
            b = touch.buffer
            self.strided[b] = min(touch.strided, self.strided.get(b, touch.strided))
            if touch.writes:
                self.written.add(b.place)
        super().__init__(ir.Kernel("part", list(self.strided), body), self.operand)
        self.kernel.ints, self.kernel.floats = len(self.ints), len(self.floats)

    def decl(self, b: ir.BufferDecl) -> ir.BufferDecl:
        role = "tape" if b.role == "tape" else "out" if b.place in self.written else "in"
        if b.role == "stack" and self.own(b.place):
            role = "stack"
        # Extents that no address needs would only add parameters.
        shape = [1 if type(n) is ir.Param and d < self.strided[b] else n for d, n in enumerate(b.shape)]
        shape = [n if isinstance(n, int) else self.operand(n) for n in shape]
        return ir.BufferDecl(b.name, b.dtype, tuple(shape), role, b.place)

    def operand(self, x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple([self.operand(part) for part in x])
        outside = type(x) is ir.Value and x not in self.defined
        return self.parameter(x) if outside or type(x) is ir.Param else x

    def parameter(self, x: Any) -> ir.Param:
        parameter = self.known.get(x)
        if parameter is None:
            numbers = self.ints if x.dtype == ir.INT64 else self.floats
            parameter = self.known[x] = ir.Param(len(numbers), x.dtype)
            numbers.append(x)
        return parameter

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
        """The storages, except those for results."""
        return [place for place in self.kernel.storages if place not in {b.place for b in self.extra}]


# --- where to cut -------------------------------------------------------------------------------------------


def _chunks(statements: list[ir.Statement]) -> Iterator[list[ir.Statement]]:
    """Chunks of about one loop or call each; no variable is used on both sides of a cut."""
    last_use: dict[Any, int] = {}
    for n, s in enumerate(statements):
        last_use.update((x, n) for x in uses([s]) if type(x) in (ir.LocalVar, ir.Value))
    chunk: list[ir.Statement] = []
    busy = -1  # the last statement that uses something which a cut must not separate
    heavy = False
    for n, s in enumerate(statements):
        begins = type(s) in _HEAVY or type(s) is ir.Declare
        if chunk and heavy and begins and n > busy:
            yield chunk
            chunk, heavy = [], False
        chunk.append(s)
        heavy = heavy or type(s) in _HEAVY
        for x in _defines(s):
            if type(x) is ir.LocalVar or not passes(x.dtype):
                busy = max(busy, last_use.get(x, n))
    if chunk:
        yield chunk


def passes(dtype: np.dtype) -> bool:
    """Whether a number can be a parameter."""
    return dtype in (np.int64, np.float64, np.float32)


def _defines(s: ir.Statement) -> list[Any]:
    """The values and variables that a statement defines for later ones."""
    if type(s) is ir.Declare:
        return [s.var]
    value = getattr(s, "value", None)
    return [] if value is None else [value]


def all_defined(s: ir.Statement) -> Iterator[Any]:
    """The values and variables that a statement, and those in its blocks, define."""
    yield from _defines(s)
    if type(s) is ir.For:
        yield s.var
        if s.team is not None:
            yield s.team.worker
    for body in queries.bodies_of(s):
        for inner in body.statements:
            yield from all_defined(inner)


def uses(chunk: list[ir.Statement]) -> Iterator[Any]:
    """Values and variables used in a chunk, at any depth."""
    for s in queries.walk(ir.StatementList(chunk)):
        for x in queries.operands_of(s):
            yield from x if isinstance(x, tuple) else (x.offset,) if type(x) is ir.Address else (x,)
        if isinstance(s, (ir.Get, ir.Set)):
            yield s.var
