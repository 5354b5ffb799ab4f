"""Statements of the loop IR as LLVM: loops, branches, variables, loads and stores."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...runtime.passes import PARTS, UNROLLING
from ..loops import ir, queries
from ..loops.passes.split_functions import PartCall, shared
from ..processor import processor
from . import ops
from .calls import c_function, host_call, part_of, reserve, routine
from .function import KernelFunction
from .interrupts import Countdown, is_innermost, work_of
from .loop_shape import (
    SHORT,
    VECTOR,
    accumulators,
    calls_maths,
    fails_inside,
    folds_extremes,
    is_branchy,
    is_narrow,
    is_short,
    late_in,
    rounds_of_nest,
)
from .short_loops import ROW, UNROLLED, short_loops
from .teams import run_team
from .timing import mark

#: How many copies of its body a loop has that does little more than branch: each branch is predicted separately.
COPIES = 4
#: The most statements of a test of a ``while`` loop that stands at the loop's end.
TEST = 20
#: The work of an iteration of a brief loop that checks for signals only after its end.
BRIEF_WORK = 64


class Statements(KernelFunction):
    """A function that emits the statements of a kernel."""

    _countdown: Countdown | None = None
    #: Whether statements run one iteration after the other, so that leaving at a failure costs no vectors.
    _in_sequence = False
    #: What waits for a number that the iteration before stores.
    _late: Collection[ir.Operand] = ()
    #: The short loops that become vectors, and those that are unrolled.
    _rows: Collection[ir.For] = ()
    _unrolled: Collection[ir.For] = ()

    def function(self) -> list[str]:
        """Emit the function of all statements."""
        for b in self.kernel.buffers:
            if b.role == "stack" and b.place not in self.bases:
                self.bases[b.place] = self.stack(b)
        if self.options.runs(UNROLLING):
            self._rows, self._unrolled = short_loops(self.kernel.body, processor(self.options.cpu))
        self.body(self.kernel.body)
        return self.text()

    def body(self, body: ir.StatementList) -> None:
        """The statements of a block, in order."""
        for s in shared(body) if self.options.runs(PARTS) else body.statements:
            _EMIT[type(s)](self, s)

    def part(self, call: PartCall) -> str:
        """Emit the function of a part when it is first called."""
        name = self.parts.get(call.text)
        if name is None:
            name = self.parts[call.text] = f"{self.prefix}.part{len(self.parts)}"
            self.functions += Statements(call.part, name, self.options, self).function()
        return name

    def part_call(self, call: PartCall) -> None:
        """Call a part from the body of a loop."""
        slots = [self.alloca(ops.memory_type(v.dtype)) for v in call.results]
        arguments = [
            *(f"ptr {place}" for place in (*(self.bases[place] for place in call.places), *slots)),
            *(f"i64 {self.operand(x)}" for x in call.ints),
            *(f"double {self.double(x)}" for x in call.floats),
        ]
        self.call_part(f"{self.part(call)}.body", arguments)
        for v, slot in zip(call.results, slots):
            self.values[v] = self.new(f"load {ops.memory_type(v.dtype)}, ptr {slot}")

    def double(self, x: Any) -> str:
        """A floating-point number in the form that parts receive."""
        if type(x) is ir.Param:
            return f"%f{x.slot}"
        number = self.operand(x)
        return number if x.dtype == np.float64 else self.new(f"fpext float {number} to double")

    def call_part(self, name: str, arguments: list[str]) -> tuple[str, str]:
        """Call the function of a part, and update the status; returns the part's status and the total."""
        old = self.new("load i64, ptr %status")
        part_status = self.new(f"call i64 @{name}({', '.join(arguments)})")
        status = self.new(f"or i64 {old}, {part_status}")
        self.lines.append(f"  store i64 {status}, ptr %status")
        return part_status, status

    def leave_if_overwritten(self, call: PartCall, part_status: str) -> None:
        """Return if a part wrote outside memory on its stack; each part numbers declarations differently."""
        stacks = [i for i, b in enumerate(call.part.buffers) if b.role == "stack"]
        if self.checked and stacks:
            numbers = {id(b): i for i, b in enumerate(self.kernel.buffers)}
            status = part_status
            for i in stacks:
                mine = self.new(f"icmp eq i64 {part_status}, {ir.OVERWRITTEN | i}")
                theirs = ir.OVERWRITTEN | numbers[id(call.buffers[i])]
                status = self.new(f"select i1 {mine}, i64 {theirs}, i64 {status}")
            self.leave_if(self.new(f"icmp sge i64 {part_status}, {ir.OVERWRITTEN}"), status)

    def leave_if(self, condition: str, status: str) -> None:
        """Return the status if a condition holds."""
        self.count += 1
        n = self.count
        self.lines.append(f"  br i1 {condition}, label %leave{n}, label %stay{n}")
        self.mark(f"leave{n}")
        self.lines.append(f"  ret i64 {status}")
        self.mark(f"stay{n}")

    def let(self, s: ir.Let) -> None:
        """A pure operation."""
        if s.op in ("lt", "add") and s.args[0].dtype == ir.INT64:
            self.lets[s.value] = s
        args = [self.operand(a) for a in s.args]
        if s.op in ir.C_CALLS:
            result = c_function(self, s.op, args)
        elif s.op in ("real", "imag") and s.args[0].dtype.kind == "c":
            result = part_of(self, args[0], s.args[0].dtype, s.op == "imag")
        elif s.op == "cast":
            result = ops.cast(self, args[0], s.args[0].dtype, s.value.dtype)
        elif s.op == "select" and self._in_sequence and self._is_wrapped(s):
            result = self.rarely(args[0], args[1], args[2], ops.llvm_type(s.value.dtype))
        elif s.op == "select":
            result = ops.select(self, s.value.dtype, args)
        elif s.op in ("min", "max") and s.value in self._late and s.value.dtype.kind == "f" and self.fast:
            late = s.args[0] in self._late
            result = self.predicted_extreme(s.op, args[::-1] if late else args, s.value.dtype)
        else:
            self.alone = s.value in self._late
            result = ops.operation(self, s.op, args, s.args[0].dtype, s.reassoc)
        self.values[s.value] = result

    def predicted_extreme(self, op: str, args: list[str], dtype: np.dtype) -> str:
        """A minimum or maximum of two numbers, of which the second one comes late.

        A branch tests whether the first one is NaN, so that nothing waits for the test. If the second one is, the
        comparison is false, and chooses it.
        """
        early, late = args
        t = ops.llvm_type(dtype)
        chosen = self.new(f"fcmp {'ogt' if op == 'max' else 'olt'} {t} {early}, {late}")
        extreme = self.new(f"select i1 {chosen}, {t} {early}, {t} {late}")
        return self.rarely(self.new(f"fcmp uno {t} {early}, {early}"), early, extreme, t)

    def _is_wrapped(self, s: ir.Let) -> bool:
        """Whether a number is an index, counted from the end if it is negative."""
        condition, wrapped = self.lets.get(s.args[0]), self.lets.get(s.args[1])
        if condition is None or wrapped is None or condition.op != "lt" or wrapped.op != "add":
            return False
        number, zero = condition.args
        is_zero = isinstance(zero, ir.Extent | ir.Const) and zero.value == 0
        return is_zero and number == s.args[2] and number in wrapped.args

    def rarely(self, condition: str, x: str, y: str, t: str) -> str:
        """`x` if a condition holds, which it rarely does, else `y`, which does not wait for the condition."""
        unlikely = self.unlikely(condition)
        self.count += 1
        n, before = self.count, self.label
        self.lines.append(f"  br i1 {unlikely}, label %rare{n}, label %usual{n}")
        self.mark(f"rare{n}")
        self.lines.append(f"  br label %usual{n}")
        self.mark(f"usual{n}")
        return self.new(f"phi {t} [ {y}, %{before} ], [ {x}, %rare{n} ]")

    def unlikely(self, condition: str) -> str:
        """A condition of which LLVM knows that it rarely holds."""
        self.globals.setdefault("llvm.expect.i1", "declare i1 @llvm.expect.i1(i1, i1)")
        return self.new(f"call i1 @llvm.expect.i1(i1 {condition}, i1 false)")

    def load(self, s: ir.Load) -> None:
        """Read an element."""
        t, align = ops.memory_type(s.value.dtype), s.value.dtype.itemsize
        element = self.new(f"load {t}, ptr {self.address(s.buffer, s.index, s.part)}, align {align}")
        self.values[s.value] = self.new(f"icmp ne i8 {element}, 0") if s.value.dtype.kind == "b" else element

    def store(self, s: ir.Store) -> None:
        """Write an element."""
        x, dtype = self.operand(s.x), s.x.dtype
        if dtype.kind == "b":
            x = self.new(f"zext i1 {x} to i8")
        target = self.address(s.buffer, s.index, s.part)
        self.lines.append(f"  store {ops.memory_type(dtype)} {x}, ptr {target}, align {dtype.itemsize}")

    def loop(self, s: ir.For) -> None:
        """A counted loop."""
        if s.team is not None:
            run_team(self, s, s.team)
            return
        start, stop = self.operand(s.start), self.operand(s.stop)
        self.count += 1
        n = self.count
        entered = self.new(f"icmp slt i64 {start}, {stop}")
        self.lines.append(f"  br i1 {entered}, label %pre{n}, label %end{n}")
        self.mark(f"pre{n}")
        last = self.new(f"sub i64 {self.new(f'add i64 {start}, {stop}')}, 1") if s.reverse else ""
        if queries.is_long(s) and is_innermost(s.body):
            self.countdown.pieces(s, start, stop, f"end{n}", lambda *piece: self.rounds(s, last, *piece))
        else:
            self.rounds(s, last, start, stop, f"end{n}")
        self.mark(f"end{n}")

    def rounds(self, s: ir.For, last: str, start: str, stop: str, end: str) -> None:
        """The iterations of a loop from `start` to `stop`, at least one; downwards from `last` if it is not empty."""
        before = self.label
        self.count += 1
        n = self.count
        polled = queries.is_long(s) and not is_innermost(s.body)
        work = work_of(self, s.body) if polled else ""
        self.lines.append(f"  br label %body{n}")
        self.mark(f"body{n}")
        counter = self.fresh()
        phi = len(self.lines)
        self.lines.append("")
        self.values[s.var] = self.new(f"sub i64 {last}, {counter}") if last else counter
        outer, self.accumulators = self.accumulators, accumulators(s.body, {s.var})
        with self.in_sequence(queries.is_long(s) and not s.independent and not s.separate, s.body, s.var):
            self.body(s.body)
        self.accumulators = outer
        step = self.new(f"add nsw i64 {counter}, 1")
        again = self.new(f"icmp slt i64 {step}, {stop}")
        if any(type(x) is ir.HostCall for x in queries.walk(s.body)):
            again = self.new(f"and i1 {again}, {self.is_good()}")
        if polled:
            self.countdown.spend(work, n, f"next{n}", end)
            self.mark(f"next{n}")
        self.lines.append(f"  br i1 {again}, label %body{n}, label %{end}{self.hint(s)}")
        self.lines[phi] = f"  {counter} = phi i64 [ {start}, %{before} ], [ {step}, %{self.label} ]"

    @property
    def countdown(self) -> Countdown:
        """The counter that interruptible loops check."""
        if self._countdown is None:
            self._countdown = Countdown(self)
        return self._countdown

    def hint(self, s: ir.For) -> str:
        """Unroll only short nests of loops: the vectorizer interleaves, and more would double the compile time.

        Copies of a loop around a long one gain nothing, and LLVM optimises each copy. A loop of little but branches
        takes up to twice as long when it is not unrolled. A width is named only where LLVM can use it: it reports
        on the standard error where it cannot.
        """
        n = rounds_of_nest(s)
        if s in self._rows or s in self._unrolled:
            self.loops.append(ROW if s in self._rows else UNROLLED)
            return f", !llvm.loop !{len(self.loops) + 1}"
        if n <= VECTOR or (n <= SHORT and not calls_maths(s.body)):
            return ""
        hints = "!0, !1" if folds_extremes(s.body) else "!0"
        if not s.independent and self.options.runs(UNROLLING) and is_branchy(s.body):
            hints = f'!{{!"llvm.loop.unroll.count", i32 {COPIES}}}'
        width = self.math_routines.vector_bits
        if width and (s.independent or s.separate) and is_narrow(s.body):
            hints += f', !{{!"llvm.loop.vectorize.width", i32 {width // 32}}}'
        self.loops.append(hints)
        return f", !llvm.loop !{len(self.loops) + 1}"

    @contextmanager
    def in_sequence(self, value: bool, body: ir.StatementList, var: ir.Value | None = None) -> Iterator[None]:
        """Emit the body of a loop whose iterations run in order, or need not."""
        outer = self._in_sequence, self._late
        self._in_sequence, self._late = value, late_in(body, var) if value else ()
        try:
            yield
        finally:
            self._in_sequence, self._late = outer

    def repeat(self, s: ir.While) -> None:
        """A loop that runs while its test holds.

        A short test is emitted twice, before the first iteration and at the end of each: the loop has one branch then,
        and LLVM sees that the test reads what the body has just stored. What a longer one computes the body after it
        often computes too, once if they stay together.
        """
        self.count += 1
        n = self.count
        work = work_of(self, s.body)
        brief = (
            s.brief
            and self.options.runs(UNROLLING)
            and work.isdigit()
            and int(work) <= BRIEF_WORK
            and is_innermost(s.body)
        )
        if brief:
            trips = self.alloca("i64")
            self.lines.append(f"  store i64 0, ptr {trips}")
        again = f"again{n}" if is_short(s.test, TEST) else f"test{n}"
        self.lines.append(f"  br label %test{n}")
        self.mark(f"test{n}")
        with self.in_sequence(True, s.body):
            self.test(s, n, f"good{n}")
            self.mark(f"body{n}")
            outer, self.accumulators = self.accumulators, sum(type(x) is ir.Set for x in s.body.statements)
            self.body(s.body)
            self.accumulators = outer
        if brief:
            more = self.new(f"add i64 {self.new(f'load i64, ptr {trips}')}, 1")
            self.lines += [f"  store i64 {more}, ptr {trips}", f"  br label %{again}"]
        else:
            self.countdown.spend(work, n, again, f"end{n}")
        if again != f"test{n}":
            self.mark(again)
            with self.in_sequence(True, s.body):
                self.test(s, n, f"good.{again}")
        self.mark(f"end{n}")
        if brief:
            done = self.new(f"load i64, ptr {trips}")
            self.countdown.charge(self.new(f"mul i64 {done}, {work}"))

    def test(self, s: ir.While, n: int, good: str) -> None:
        """Go to the body of a loop if its test holds, else to its end."""
        if fails_inside(s.body) or fails_inside(s.test):  # after a failure the loop might never end
            self.lines.append(f"  br i1 {self.is_good()}, label %{good}, label %end{n}")
            self.mark(good)
        self.body(s.test)
        self.lines.append(f"  br i1 {self.operand(s.condition)}, label %body{n}, label %end{n}")

    def branch(self, s: ir.If) -> None:
        """Statements under a condition."""
        self.count += 1
        n = self.count
        orelse = "else" if s.orelse.statements else "end"
        self.lines.append(f"  br i1 {self.operand(s.condition)}, label %then{n}, label %{orelse}{n}")
        self.mark(f"then{n}")
        self.body(s.then)
        self.lines.append(f"  br label %end{n}")
        if s.orelse.statements:
            self.mark(f"else{n}")
            self.body(s.orelse)
            self.lines.append(f"  br label %end{n}")
        self.mark(f"end{n}")

    def local(self, s: ir.Declare) -> None:
        """Declare a variable: LLVM turns small stack memory into registers."""
        t = ops.llvm_type(s.var.dtype)
        slot = self.locals[s.var] = self.alloca(t)
        self.lines.append(f"  store {t} {self.operand(s.init)}, ptr {slot}")

    def get(self, s: ir.Get) -> None:
        """Read a variable."""
        self.values[s.value] = self.new(f"load {ops.llvm_type(s.value.dtype)}, ptr {self.locals[s.var]}")

    def set(self, s: ir.Set) -> None:
        """Assign to a variable."""
        t = ops.llvm_type(s.var.dtype)
        self.lines.append(f"  store {t} {self.operand(s.x)}, ptr {self.locals[s.var]}")

    def copy(self, s: ir.Copy) -> None:
        """Copy one buffer into another."""
        target, source = self.bases[s.target.place], self.bases[s.source.place]
        if target == source:
            return
        size = str(s.target.dtype.itemsize)
        for n in s.target.shape:
            size = self.new(f"mul i64 {size}, {self.extent(n)}")
        self.lines.append(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
        )

    def fail(self, s: ir.Fail) -> None:
        """Record a failure in the status; return if the loop around has an order."""
        bit = 1 << min(s.equation, ir.LAST_EQUATION)
        if self._in_sequence:
            self.leave_if(self.unlikely(self.operand(s.condition)), str(bit))
            return
        old = self.new("load i64, ptr %status")
        failed = self.new(f"select i1 {self.operand(s.condition)}, i64 {bit}, i64 0")
        self.lines.append(f"  store i64 {self.new(f'or i64 {old}, {failed}')}, ptr %status")


_EMIT: dict[type, Any] = {
    PartCall: Statements.part_call,
    ir.Let: Statements.let,
    ir.Load: Statements.load,
    ir.Store: Statements.store,
    ir.For: Statements.loop,
    ir.While: Statements.repeat,
    ir.If: Statements.branch,
    ir.Declare: Statements.local,
    ir.Get: Statements.get,
    ir.Set: Statements.set,
    ir.Copy: Statements.copy,
    ir.Fail: Statements.fail,
    ir.Call: routine,
    ir.Reserve: reserve,
    ir.HostCall: host_call,
    ir.Mark: mark,
}
