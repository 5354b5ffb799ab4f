"""Test the indices of a loop before it, where the first and the last one tell about all others.

What bounds an index is often known only while the kernel runs, or relates two numbers, as in a loop that begins where
another one is. But an index that grows by the same number in each iteration is in bounds if it is so in the first
iteration and in the last. There are two versions of the loop then, of which the second is as it was::

                                                inside = 0 <= first and first + (n - 1) * step < 50
    for k in range(n):                          if inside:
        i = first + k * step                        for k in range(n):
        if i < 0:                                       use x[first + k * step]
            i = i + 50                ──▶       else:
        if i >= 50:                                 for k in range(n):
            fail                                        i = first + k * step
        use x[i]                                        ...

The first version is written by the builder that writes all loops: with narrower ranges of the indices, it leaves out
the tests (see `passes.indices.int_ranges`). If the ranges decide `inside`, that version is the only one.

The numbers that are tested are those of the loop, modulo 2**64. So the step times the number of steps must be less than
2**63: then the exact numbers lie between the first and the last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....passes.indices.int_ranges import HIGHEST, LOWEST, UNKNOWN, Range, combined, common
from ....runtime.config import config
from ....runtime.passes import VERSIONS
from .. import ir, queries
from ..arithmetic import IndexFacts
from ..builder import StatementBuilder
from ..handles import ScalarHandle
from ..touches import touches

#: Loops with fewer iterations, if known, stay as they are.
FEWEST = 8
#: The most statements of a loop that is written twice: LLVM optimises each version.
MOST_STATEMENTS = 200
#: A step and the number of steps may be as large as this, where they are known only at run time.
LARGEST = (1 << 31) - 1
#: A number that these make of numbers that grow evenly may grow evenly, too.
_LINEAR = ("add", "sub", "neg", "mul", "shl")
_COPIED = (ir.Let, ir.Load, ir.Store, ir.Declare, ir.Get, ir.Set, ir.Copy, ir.Fail)
_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_MIRRORED = {"lt": "gt", "gt": "lt", "ge": "le", "le": "ge"}

_Numbers = dict[ir.Operand, ScalarHandle]


def with_versions(kernel: ir.Kernel, facts: IndexFacts) -> ir.Kernel:
    """Test indices before loops, in place, where this makes tests inside superfluous.

    Parameters
    ----------
    kernel : Kernel
        Not outlined yet.
    facts : IndexFacts
        What is known of its indices.
    """
    if config.runs(VERSIONS) and (
        facts.wrapped or any(type(s) is ir.Fail for s in queries.walk(kernel.body))
    ):
        builder = StatementBuilder(kernel.name)
        builder.kernel, builder.facts = kernel, facts
        _block(builder, kernel.body)
    return kernel


def _block(builder: StatementBuilder, body: ir.StatementList) -> None:
    """Write the statements of a block again, and other versions of its loops."""
    old, body.statements = body.statements, []
    with builder.inside(body):
        for s in old:
            for inner in queries.bodies_of(s):
                _block(builder, inner)
            if isinstance(s, ir.Let | ir.Load) and s.value.dtype in (ir.INT64, ir.BOOL):
                builder.adopt(s)
            elif type(s) is ir.For and not s.independent and not s.separate and _is_candidate(builder, s):
                _loop(builder, s)
            else:
                builder.append(s)


def _is_candidate(builder: StatementBuilder, loop: ir.For) -> bool:
    """Whether a loop has tests, many iterations, and a simple body."""
    wrapped = builder.facts.wrapped
    return (
        any(type(s) is ir.Fail or (type(s) is ir.Let and s.value in wrapped) for s in loop.body.statements)
        and queries.rounds(loop, FEWEST) >= FEWEST
        and _is_plain(loop.body)
    )


def _loop(builder: StatementBuilder, loop: ir.For) -> None:
    """Write the versions of a loop."""
    tests = _Tests(builder, loop)
    before = ir.StatementList()
    with builder.inside(before):
        inside = tests.inside()
    if not tests.limits:
        builder.append(loop)
    elif type(inside.operand) is ir.Const:
        _Copy(builder, loop, tests.limits).write()
    elif sum(1 for _ in queries.walk(loop.body)) > MOST_STATEMENTS:
        builder.append(loop)
    else:
        builder.statements.extend(before.statements)
        first = ir.StatementList()
        builder.append(ir.If(inside.operand, first, ir.StatementList([loop])))
        with builder.inside(first):
            _Copy(builder, loop, tests.limits).write()


def _is_plain(body: ir.StatementList) -> bool:
    """Whether a body has no loops inside, except for those of one iteration, and can be copied."""
    return all(
        type(s) in _COPIED
        or (type(s) is ir.If and _is_plain(s.then) and _is_plain(s.orelse))
        or (type(s) is ir.For and queries.rounds(s, 2) == 1 and _is_plain(s.body))
        for s in body.statements
    )


# --- the tests ----------------------------------------------------------------------------------------------


class _Tests:
    """Which limits the indices of a loop must be in so that the tests of these can be left out.

    Only tests that every iteration makes count. So a loop that runs in the version with tests needs one of them.

    Attributes
    ----------
    limits : dict of Operand to Range
        By index; each grows evenly, or is the same in all iterations.
    """

    def __init__(self, builder: StatementBuilder, loop: ir.For):
        self.builder = builder
        self.loop = loop
        self.written = {touch.buffer.place for touch in touches(loop.body) if touch.writes}
        #: What computes each number, of those that every iteration computes, in order.
        self.sources: dict[ir.Operand, ir.Let | ir.Load] = {}
        #: 1 for a number that grows evenly, 0 for one that stays, None for others; those from outside the loop stay.
        self.degrees: dict[ir.Operand, int | None] = {loop.var: 1}
        self.limits: dict[ir.Operand, Range] = {}
        for inner in queries.walk(loop.body):
            if isinstance(inner, ir.Let | ir.Load | ir.Get):
                self.degrees[inner.value] = None
            elif isinstance(inner, ir.For):
                self.degrees[inner.var] = None
        for s in loop.body.statements:
            if isinstance(s, ir.Let | ir.Load):
                self.sources[s.value] = s
                self.degrees[s.value] = self.degree(s)
        for s in loop.body.statements:
            if type(s) is ir.Fail:
                self.require(s.condition, False)
            elif type(s) is ir.Let and s.value in builder.facts.wrapped:
                self.limit(builder.facts.wrapped[s.value], (0, HIGHEST))

    def degree(self, s: ir.Let | ir.Load) -> int | None:
        """What `degrees` says of the result of a statement."""
        degrees = [self.degrees.get(x, 0) for x in queries.operands_of(s)]
        if s.value.dtype != ir.INT64 or None in degrees:
            return None
        if isinstance(s, ir.Load):
            return None if any(degrees) or s.buffer.place in self.written or not self.is_safe(s) else 0
        if s.op in ("min", "max") and not any(degrees):
            return 0
        if s.op not in _LINEAR or (s.op == "mul" and all(degrees)) or (s.op == "shl" and degrees[1]):
            return None
        return int(any(degrees))

    def is_safe(self, s: ir.Load) -> bool:
        """Whether an element may be read even if the loop has no iteration."""
        ranges = [self.builder.range_of(ScalarHandle(self.builder, i)) for i in s.index]
        inside = all(low >= 0 and high < n for (low, high), n in zip(ranges, s.buffer.shape))
        return inside and s.buffer.role not in ("pool", "tape")

    def require(self, x: ir.Operand, truth: bool) -> None:
        """A condition must hold in each iteration, or in none."""
        s = self.sources.get(x)
        if not isinstance(s, ir.Let):
            return
        if s.op == "not":
            self.require(s.args[0], not truth)
        elif s.op == ("and" if truth else "or"):
            for a in s.args:
                self.require(a, truth)
        elif s.op in _NEGATED:
            op = s.op if truth else _NEGATED[s.op]
            for a, how, b in ((s.args[0], op, s.args[1]), (s.args[1], _MIRRORED[op], s.args[0])):
                if isinstance(b, ir.Extent | ir.Const) and a.dtype == ir.INT64:
                    self.limit(a, _side(how, int(b.value)))

    def limit(self, x: ir.Operand, limit: Range) -> None:
        """A number must be in a range; one that may count from the end must not do so."""
        x = self.builder.facts.wrapped.get(x, x) if x in self.sources else x
        if type(x) is ir.Value and self.degrees.get(x, 0) is not None:
            self.limits[x] = common(limit, self.limits.get(x, UNKNOWN))

    def inside(self) -> ScalarHandle:
        """Write tests whether all indices are within their limits; those that certainly are not lose theirs."""
        b = self.builder
        start = ScalarHandle(b, self.loop.start)
        last = ScalarHandle(b, self.loop.stop) - 1
        at_start, at_end = self.values(start), self.values(last)
        steps = self.steps(at_start)
        result = b.const(True, ir.BOOL)
        for x, limit in list(self.limits.items()):
            step = steps.get(x, b.extent(0))
            test = self.is_exact(step, last - start) if x in steps else b.const(True, ir.BOOL)
            test = test & self.is_within(limit, self.of(x, at_start), self.of(x, at_end), b.range_of(step))
            if type(test.operand) is ir.Const and not test.operand.value:
                del self.limits[x]
            else:
                result = result & test
        return result

    def is_within(self, limit: Range, first: ScalarHandle, last: ScalarHandle, step: Range) -> ScalarHandle:
        """Whether the first and the last number are in a range, and with them those between."""
        b = self.builder
        result = b.const(True, ir.BOOL)
        least, greatest = [first, last], [first, last]
        if step[0] >= 0 or step[1] <= 0:
            least, greatest = ([first], [last]) if step[0] >= 0 else ([last], [first])
            if UNKNOWN in (b.range_of(first), b.range_of(last)):
                result = least[0] <= greatest[0]  # those beyond the end of int64 continue at its other end
        for x in least if limit[0] > LOWEST else ():
            result = result & (x >= limit[0])
        for x in greatest if limit[1] < HIGHEST else ():
            result = result & (x < limit[1] + 1)
        return result

    def is_exact(self, step: ScalarHandle, steps: ScalarHandle) -> ScalarHandle:
        """Whether so many steps are less than 2**63 together."""
        b = self.builder
        known = b.range_of(steps)
        result = b.const(True, ir.BOOL) if known != UNKNOWN else steps >= 0
        if combined("mul", b.range_of(step), (0, max(known[1], 0))) is None:
            result = result & (steps <= LARGEST) & (step <= LARGEST) & (step >= -LARGEST)
        return result

    def needed(self) -> list[ir.Let | ir.Load]:
        """The statements that compute the indices, in order."""
        needed: set[Any] = set(self.limits)
        for s in reversed(self.sources.values()):
            if s.value in needed:
                needed.update(queries.operands_of(s))
        return [s for s in self.sources.values() if s.value in needed]

    def of(self, x: ir.Operand, values: _Numbers) -> ScalarHandle:
        """A number among values, or one from outside the loop."""
        return values[x] if x in values else ScalarHandle(self.builder, x)

    def values(self, number: ScalarHandle) -> _Numbers:
        """What the indices are in the iteration with a number."""
        b = self.builder
        values: _Numbers = {self.loop.var: number}
        for s in self.needed():
            operands = [self.of(x, values) for x in queries.operands_of(s)]
            values[s.value] = b.load(s.buffer, operands) if isinstance(s, ir.Load) else b.again(s, operands)
        return values

    def steps(self, values: _Numbers) -> _Numbers:
        """By how much the indices grow that do; `values` are those of any iteration."""
        b = self.builder
        steps: _Numbers = {self.loop.var: b.extent(1)}
        for s in self.needed():
            if isinstance(s, ir.Load) or not self.degrees[s.value]:
                continue
            fixed = [self.of(x, values) if s.op in ("mul", "shl") else b.extent(0) for x in s.args]
            steps[s.value] = b.again(s, [steps.get(x, y) for x, y in zip(s.args, fixed)])
        return steps


def _side(op: str, number: int) -> Range:
    """The integers that compare so with a number."""
    if op in ("lt", "le"):
        return LOWEST, number - (op == "lt")
    return number + (op == "gt"), HIGHEST


# --- the version without tests ------------------------------------------------------------------------------


class _Copy:
    """A loop written again, with narrower ranges of its indices."""

    def __init__(self, builder: StatementBuilder, loop: ir.For, limits: dict[ir.Operand, Range]):
        self.builder = builder
        self.loop = loop
        self.limits = limits
        self.values: _Numbers = {}
        self.variables: dict[ir.LocalVar, ir.LocalVar] = {}

    def write(self) -> None:
        """Write it at the builder's current position."""
        with self.builder.forgetting_ranges():
            for x, limit in self.limits.items():
                self.builder.ranged(ScalarHandle(self.builder, x), limit)
            self.rounds(self.loop)

    def rounds(self, s: ir.For) -> None:
        """A loop."""
        b, var, body = self.builder, ir.Value(ir.INT64), ir.StatementList()
        b.append(replace(s, var=var, start=self.of(s.start), stop=self.of(s.stop), body=body))
        self.define(s.var, ScalarHandle(b, var))
        with b.inside(body):
            self.body(s.body)

    def body(self, body: ir.StatementList) -> None:
        """The statements of a block."""
        for s in body.statements:
            self.statement(s)

    def handle(self, x: ir.Operand) -> ScalarHandle:
        """What an operand is in the new loop."""
        return self.values[x] if x in self.values else ScalarHandle(self.builder, x)

    def of(self, x: ir.Operand) -> ir.Operand:
        """The same as an operand."""
        return self.handle(x).operand

    def define(self, old: ir.Value, new: ScalarHandle) -> None:
        """Note the result of a statement; what is known of the old one, with its limit, holds for the new one."""
        self.values[old] = self.builder.ranged(new, self.builder.range_of(ScalarHandle(self.builder, old)))

    def statement(self, s: Any) -> None:
        """One statement."""
        b = self.builder
        match s:
            case ir.Let():
                self.define(s.value, b.again(s, [self.handle(x) for x in s.args]))
            case ir.Load():
                self.define(s.value, ScalarHandle(b, value := ir.Value(s.value.dtype)))
                b.append(ir.Load(value, s.buffer, tuple(map(self.of, s.index)), s.part))
            case ir.Store():
                b.append(ir.Store(s.buffer, tuple(map(self.of, s.index)), self.of(s.x), s.part))
            case ir.If():
                self.branch(s)
            case ir.For():
                self.rounds(s)
            case ir.Declare():
                self.variables[s.var] = ir.LocalVar(s.var.dtype, s.var.block, s.var.fold)
                b.append(ir.Declare(self.variables[s.var], self.of(s.init)))
            case ir.Get():
                self.define(s.value, ScalarHandle(b, value := ir.Value(s.value.dtype)))
                b.append(ir.Get(value, self.variables.get(s.var, s.var)))
            case ir.Set():
                b.append(ir.Set(self.variables.get(s.var, s.var), self.of(s.x)))
            case ir.Copy():
                b.append(ir.Copy(s.target, s.source))
            case ir.Fail():
                failed = self.of(s.condition)
                if type(failed) is not ir.Const or failed.value:
                    b.append(ir.Fail(failed, s.equation))

    def branch(self, s: ir.If) -> None:
        """A branch, or that part of it that is certain to run."""
        condition = self.of(s.condition)
        if type(condition) is ir.Const:
            self.body(s.then if condition.value else s.orelse)
            return
        new = ir.If(condition, ir.StatementList(), ir.StatementList())
        self.builder.append(new)
        for body, old in ((new.then, s.then), (new.orelse, s.orelse)):
            with self.builder.inside(body):
                self.body(old)
