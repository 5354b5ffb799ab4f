"""The structural verifier of the loop IR; it runs between passes in the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from ...core.dtypes import real_dtype
from ...passes.scalar_functions import OPERATIONS, result_dtype
from ...runtime.config import config
from . import ir, queries
from .offsets import Offsets
from .part_call import PartCall
from .touches import touches, touches_of


class LoopIRError(AssertionError):
    """A kernel violates a rule of the loop IR: a bug in a pass, never the user's error."""


def verified(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel itself, checked first if ``config.verify`` is set."""
    if config.verify:
        verify(kernel)
    return kernel


def verify(kernel: ir.Kernel) -> None:
    """Check definitions before uses, dtypes, ranks and roles.

    Raises
    ------
    LoopIRError
        The message names the statement.
    """
    _Verifier(kernel)


def verify_plan(kernel: ir.Kernel, before: Mapping[int, str]) -> None:
    """Check that values needed at the same time do not share a storage.

    Parameters
    ----------
    kernel : Kernel
        After `plan`.
    before : mapping
        The storage of each declaration before the plan, by its id.

    Raises
    ------
    LoopIRError
        The message names the storages.
    """
    check = _Verifier(kernel)
    lives: dict[str, list[int]] = {}
    places: dict[str, set[str]] = {}
    for time, statement in enumerate(kernel.body.statements):
        for touch in touches(ir.StatementList([statement])):
            old = before[id(touch.buffer)]
            lives.setdefault(old, [time, time])[1] = time
            places.setdefault(old, set()).add(touch.buffer.place)
    tenants: dict[str, str] = {}
    for old in sorted(lives, key=lambda old: lives[old][0]):
        check.where = f"the plan for {old}"
        if len(places[old]) != 1:
            check.fail(f"one storage became {sorted(places[old])}")
        (new,) = places[old]
        other = tenants.get(new)
        if other is not None and not (lives[other][1] < lives[old][0]):
            check.fail(f"{other} is still needed in the storage {new}")
        tenants[new] = old


def verify_parts(calls: Sequence[PartCall]) -> None:
    """Check that the parts of a kernel are valid, and that each receives the memory and extents that it accesses.

    Parameters
    ----------
    calls : sequence of PartCall
        Of one kernel, or of one body of a loop.

    Raises
    ------
    LoopIRError
        The message names the part's statement.
    """
    users = Counter(place for call in calls for place in {b.place for b in call.buffers})
    checks: dict[int, _Verifier] = {}
    for call in calls:
        check = checks.get(id(call.part))
        if check is None:
            check = checks[id(call.part)] = _Verifier(call.part)
        check.where = f"a call that gives {call.places}"
        check.part(call, users)


def _collect_buffers(x: Any, found: list[ir.BufferDecl]) -> None:
    """Append the buffers that a field of a statement holds."""
    kind = type(x)
    if kind is ir.BufferDecl:
        found.append(x)
    elif kind is ir.Address:
        found.append(x.buffer)
    elif kind is tuple:
        for part in x:
            _collect_buffers(part, found)


def _in_strips(inside: list[ir.Statement], var: ir.Value) -> dict[ir.Operand, int]:
    """The numbers ``size * var + k`` with ``0 <= k < size`` that statements compute, and the sizes."""
    loops = [s for s in inside if type(s) is ir.For]
    extents: dict[ir.Operand, int] = {s.var: s.stop.value for s in loops if type(s.stop) is ir.Extent}
    starts: dict[ir.Operand, int] = {}
    found: dict[ir.Operand, int] = {}
    for s in inside:
        if type(s) is ir.Let and s.op == "mul" and s.args[0] is var and type(s.args[1]) is ir.Extent:
            starts[s.value] = s.args[1].value
        if type(s) is ir.Let and s.op == "add" and s.args[0] in starts:
            size = starts[s.args[0]]
            if 0 < extents.get(s.args[1], 0) <= size:
                found[s.value] = size
    return found


class _Verifier:
    def __init__(self, kernel: ir.Kernel):
        self.kernel = kernel
        self.where: Any = "buffers"
        self.seen: set[Any] = set()
        names = [b.name for b in kernel.buffers]
        if len(set(names)) != len(names):
            self.fail(f"duplicate buffer names in {names}")
        self.buffers = {id(b) for b in kernel.buffers}
        for b in kernel.buffers:
            if not (b.role in ir.ROLES and b.name.isidentifier()):
                self.fail(f"bad declaration {b}")
            for n in b.shape:
                literal = isinstance(n, int) and n >= 0
                if not (literal or (type(n) is ir.Param and b.role != "stack")):
                    self.fail(f"bad extent {n!r} of {b.name}")
                if type(n) is ir.Param:
                    self.operand(n, ir.INT64)
        self.body(kernel.body, set())

    def fail(self, message: str) -> NoReturn:
        raise LoopIRError(f"kernel '{self.kernel.name}': {message} (at {self.where})")

    def part(self, call: PartCall, users: Counter[str]) -> None:
        """Check what a call passes to a part; `users` counts the calls that receive a storage."""
        part, place_of = call.part, dict(zip(call.part.storages, call.places))
        if len(part.storages) != len(call.places) + len(call.results):
            self.fail(f"storages {call.places}")
        if (part.ints, part.floats) != (len(call.ints), len(call.floats)):
            self.fail("missing parameters")
        pairs = list(zip(part.buffers, call.buffers))
        for b, their in pairs:
            if b.role == "stack":
                if not (their.role == "stack" and users[their.place] == 1):
                    self.fail(f"{their.name} outlives the part")
            else:
                if place_of[b.place] != their.place:
                    self.fail(f"{b.name} is not {their.name}")
            if not (b.dtype == their.dtype and len(b.shape) == len(their.shape)):
                self.fail(f"{b} is not {their}")
        callers = {id(b): their for b, their in pairs}
        for touch in touches(part.body):
            b, first = touch.buffer, touch.strided
            if id(b) in callers:  # the others hold results
                extents = [call.ints[n.slot] if type(n) is ir.Param else n for n in b.shape[first:]]
                expected = [*callers[id(b)].shape[first:]]
                if extents != expected:
                    self.fail(f"extents {extents} of {b.name} should be {expected}")

    def operand(self, x: Any, dtype: np.dtype | None = None, scope: set[Any] | None = None) -> np.dtype:
        if type(x) is ir.Value:
            if not (scope is not None and x in scope):
                self.fail(f"{x} is used where it is not defined")
        elif type(x) is ir.Param:
            n = self.kernel.ints if x.dtype == ir.INT64 else self.kernel.floats - (x.dtype.kind == "c")
            if not (x.dtype == ir.INT64 or x.dtype.kind in "fc"):
                self.fail(f"a parameter of dtype {x.dtype}")
            if not (0 <= x.slot < n):
                self.fail(f"{x} is outside the parameter slots")
        else:
            if type(x) not in (ir.Const, ir.Extent):
                self.fail(f"{x!r} is not an operand")
        if not (dtype is None or x.dtype == dtype):
            self.fail(f"{x!r} should have dtype {dtype}")
        return x.dtype

    def define(self, value: Any, scope: set[Any]) -> None:
        if value in self.seen:
            self.fail(f"{value} is defined twice")
        self.seen.add(value)
        scope.add(value)

    def access(self, s: ir.Load | ir.Store, scope: set[Any]) -> np.dtype:
        if len(s.index) != len(s.buffer.shape):
            self.fail(f"{len(s.index)} indices for {s.buffer}")
        for i in s.index:
            self.operand(i, ir.INT64, scope)
        if s.part not in (None, 0, 1):
            self.fail(f"part {s.part}")
        if s.part is None:
            return s.buffer.dtype
        if s.buffer.dtype.kind != "c":
            self.fail(f"a part of {s.buffer.dtype}")
        return real_dtype(s.buffer.dtype)

    def let(self, s: ir.Let, scope: set[Any]) -> None:
        if s.op in ir.C_CALLS:
            if ir.C_CALLS[s.op] != len(s.args):
                self.fail(f"{s.op} of {len(s.args)} operands")
            for a in s.args:
                self.operand(a, real_dtype(s.value.dtype), scope)
            self.define(s.value, scope)
            return
        if OPERATIONS.get(s.op) != len(s.args):
            self.fail(f"operation {s.op!r} of {len(s.args)} operands")
        dtypes = tuple(self.operand(a, None, scope) for a in s.args)
        if s.op == "select":
            if not (dtypes[0] == ir.BOOL and dtypes[1] == dtypes[2]):
                self.fail(f"select of {dtypes}")
        elif s.op != "cast" and len(set(dtypes)) != 1:
            self.fail(f"{s.op} of different dtypes {dtypes}")
        if s.op in ("and", "or", "xor", "not") and dtypes[0].kind not in "biu":
            self.fail(f"{s.op} of {dtypes[0]}")
        if s.op in ("shl", "shr", "idiv", "irem") and dtypes[0].kind not in "iu":
            self.fail(f"{s.op} of {dtypes[0]}")
        if s.op == "div" and dtypes[0].kind not in "fc":
            self.fail(f"div of {dtypes[0]}")
        if s.op != "cast" and s.value.dtype != result_dtype(s.op, dtypes):
            self.fail(f"{s.op} gives {result_dtype(s.op, dtypes)}")
        self.define(s.value, scope)

    def body(self, body: ir.StatementList, outer: set[Any]) -> None:
        scope = set(outer)
        for s in body.statements:
            self.where = s
            self.statement(s, scope)

    def touched(self, s: Any) -> None:
        """Every buffer in a statement is declared, and `touches_of`, on which all plans rely, reports it."""
        found: list[ir.BufferDecl] = []
        for name in type(s).__slots__:
            _collect_buffers(getattr(s, name), found)
        if not found:
            return
        reported = {id(touch.buffer) for touch in touches_of(s)}
        for b in found:
            if id(b) not in self.buffers:
                self.fail(f"buffer {b.name} is not declared")
            if id(b) not in reported:
                self.fail(f"touches_of does not report buffer {b.name}")

    def statement(self, s: Any, scope: set[Any]) -> None:
        self.touched(s)
        match s:
            case ir.Let():
                self.let(s, scope)
            case ir.Load():
                if s.value.dtype != self.access(s, scope):
                    self.fail("the value's dtype is not the buffer's")
                self.define(s.value, scope)
            case ir.Store():
                self.operand(s.x, self.access(s, scope), scope)
                if s.buffer.role == "in":
                    self.fail(f"store to input {s.buffer.name}")
            case ir.For():
                self.operand(s.start, ir.INT64, scope)
                self.operand(s.stop, ir.INT64, scope)
                inner = set(scope)
                if s.var.dtype != ir.INT64:
                    self.fail("a loop variable is int64")
                self.define(s.var, inner)
                if s.team is not None:
                    self.operand(s.team.size, ir.INT64, scope)
                    self.define(s.team.worker, inner)
                self.body(s.body, inner)
                if s.independent and queries.rounds(s, 2) > 1:
                    self.independence(s)
                if s.team is not None:
                    self.team(s, s.team)
            case ir.While():
                tested = set(scope)
                for inner in s.test.statements:
                    self.statement(inner, tested)
                self.operand(s.condition, ir.BOOL, tested)
                self.body(s.body, scope)
            case ir.If():
                self.operand(s.condition, ir.BOOL, scope)
                self.body(s.then, scope)
                self.body(s.orelse, scope)
            case ir.Declare():
                self.operand(s.init, s.var.dtype, scope)
                self.define(s.var, scope)
            case ir.Get():
                if s.var not in scope:
                    self.fail("the local is not declared here")
                if s.value.dtype != s.var.dtype:
                    self.fail("the value's dtype is not the local's")
                self.define(s.value, scope)
            case ir.Set():
                if s.var not in scope:
                    self.fail("the local is not declared here")
                self.operand(s.x, s.var.dtype, scope)
            case ir.Copy():
                if s.target.dtype != s.source.dtype:
                    self.fail("copy between dtypes")
                if not (s.target.role != "in" or s.target.place == s.source.place):
                    self.fail("copy to an input")
            case ir.Call():
                self.call(s, scope)
            case ir.Fail():
                self.operand(s.condition, ir.BOOL, scope)
            case ir.HostCall():
                self.operand(s.number, ir.INT64, scope)
                for ref in s.refs:
                    self.operand(ref.offset, ir.INT64, scope)
            case ir.Mark():
                self.operand(s.site, ir.INT64)
            case ir.Reserve():
                if s.tape.role != "tape":
                    self.fail("no tape")
                self.operand(s.needed, ir.INT64, scope)
                self.operand(s.limit, ir.INT64, scope)
            case _:
                self.fail(f"{s!r} is not a statement")

    def independence(self, loop: ir.For) -> None:
        """No iteration reads or writes an element that another one writes."""
        inside = list(queries.walk(loop.body))
        own = {s.var for s in inside if type(s) is ir.Declare}
        written = {touch.buffer.place for touch in touches(loop.body) if touch.writes}
        strides: dict[str, int] = {}
        shifts: dict[str, object] = {}
        offsets = Offsets()
        local: dict[
            ir.Operand, object
        ] = {}  # numbers of iterations and a number from outside, added or subtracted
        strips = _in_strips(inside, loop.var)
        defined = {s.value for s in inside if isinstance(s, ir.Let | ir.Load | ir.Get | ir.Call)}
        defined |= {s.var for s in inside if type(s) is ir.For}
        for s in inside:
            offsets.note(s)
            if type(s) is ir.Let and s.op == "sub" and s.args[0] is loop.var and s.args[1] not in defined:
                local[s.value] = "sub", s.args[1]
            if type(s) is ir.Let and s.op == "add" and s.args[1] is loop.var and s.args[0] not in defined:
                local[s.value] = "add", s.args[0]
            if type(s) is ir.Set and s.var not in own:
                self.fail("iterations share a local")
            for touch in touches_of(s):
                place = touch.buffer.place
                if place not in written:
                    continue
                if not isinstance(s, ir.Load | ir.Store):
                    self.fail(f"iterations share {place}")
                # The elements at different numbers on one axis are different, whatever the other axes are.
                sums = [offsets.of(i) for i in s.index]
                places: list[tuple[object, object]] = [
                    (loop.var, (local.get(x, strips.get(x)), by)) if x in local or x in strips else (x, by)
                    for x, by in sums
                ]
                axes = [d for d, (base, _) in enumerate(places) if base is loop.var]
                if len(axes) != 1:
                    self.fail(f"iterations share elements of {place}")
                shift = places[axes[0]][1]
                if shifts.setdefault(place, shift) != shift:
                    self.fail(f"iterations share elements of {place}")
                inner = touch.buffer.shape[axes[0] + 1 :]
                # Once outlined, equal extents may be different parameters.
                if all(isinstance(n, int) for n in inner) and strides.setdefault(place, prod(inner)) != prod(
                    inner
                ):
                    self.fail(f"iterations overlap in {place}")

    def team(self, loop: ir.For, team: ir.Team) -> None:
        """Threads share no variable, and no scratch but that which has a row for each, or for each chunk."""
        inside = list(queries.walk(loop.body))
        own = {s.var for s in inside if type(s) is ir.Declare}
        numbers = loop.var, team.worker
        for s in inside:
            if isinstance(s, ir.HostCall | ir.Reserve):
                self.fail("a worker cannot call Python or enlarge a pool")
            if isinstance(s, ir.Set | ir.Get) and s.var not in own:
                self.fail("threads share a local")
            if isinstance(s, ir.Load | ir.Store) and s.buffer.dealt and s.index[0] not in numbers:
                self.fail(f"threads share {s.buffer.name}")

    def call(self, s: ir.Call, scope: set[Any]) -> None:
        for a in s.args:
            if isinstance(a, str):
                if len(a) != 1:
                    self.fail(f"character argument {a!r}")
            elif type(a) is ir.LocalVar:
                if a not in scope:
                    self.fail("the local is not declared here")
            elif type(a) is ir.Address:
                self.operand(a.offset, ir.INT64, scope)
            elif isinstance(a, tuple):  # the parts of a complex number
                for part in a:
                    self.operand(part, None, scope)
            else:
                self.operand(a, None, scope)
        if s.value is not None:
            self.define(s.value, scope)
