"""The builder of loop IR: implements the protocols of `functrans.core.kernel` for kernel rules.

It provides loops, branches, memory, tapes and calls; `arithmetic` provides the operations on scalars. Equal loads of
input buffers inside a block are shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core.dtypes import memory_dtype, real_dtype, register_dtype
from ...core.tape import TapeAval
from ...runtime.config import config
from ..blas import LETTERS, RETURNS, has_own_products
from . import ir, queries
from .arithmetic import Arithmetic, make_const
from .handles import Known, LocalHandle, Memory, Place, ScalarHandle, TapeMemory, View, Window, memory_key
from .ir import INT64


class StatementBuilder(Arithmetic):
    """Builds one kernel, statement by statement.

    Parameters
    ----------
    name : str
        The kernel's name.
    buffers : list of BufferDecl, optional
        The declarations of a kernel that is there already; new ones are added to them.

    Attributes
    ----------
    equation : int
        The number that `fail_if` reports; set it before calling a rule.
    """

    def __init__(self, name: str, buffers: list[ir.BufferDecl] | None = None):
        super().__init__(name)
        self.equation = 0
        self.calls: list[Any] = []  # equations that Python evaluates
        if buffers is not None:
            self.kernel.buffers = buffers
        self._names = {b.name for b in self.kernel.buffers}
        self._tapes: dict[str, ir.BufferDecl] = {}

    def finish(self) -> ir.Kernel:
        """The kernel."""
        return self.kernel

    def buffer(
        self, name: str, dtype: np.dtype, shape: tuple[Any, ...], role: str, storage: str | None = None
    ) -> ir.BufferDecl:
        """Declare a buffer; a number makes its name unique."""
        unique, n = name, 1
        while unique in self._names:
            n += 1
            unique = f"{name}_{n}"
        self._names.add(unique)
        decl = ir.BufferDecl(unique, memory_dtype(dtype), tuple(shape), role, storage)
        self.kernel.buffers.append(decl)
        return decl

    # --- statements ------------------------------------------------------------------------------------

    def guarded(
        self, condition: ScalarHandle, read: Callable[[], ScalarHandle], otherwise: ScalarHandle
    ) -> ScalarHandle:
        """``read()`` if the condition holds, else `otherwise`."""
        if type(condition.operand) is ir.Const:
            return read() if condition.operand.value else otherwise
        result = self.local(otherwise)
        with self.if_(condition):
            result.set(read())
        return result.get()

    def fail_if(self, condition: ScalarHandle) -> None:
        """Report that the current `equation` failed."""
        if not (type(condition.operand) is ir.Const and not condition.operand.value):
            self.append(ir.Fail(condition.operand, self.equation))

    @contextmanager
    def loop(
        self,
        stop: int | ScalarHandle,
        start: int | ScalarHandle = 0,
        *,
        reverse: bool = False,
        interruptible: bool = False,
        independent: bool = False,
        separate: bool = False,
        adds: bool = False,
        most: int = 0,
    ) -> Iterator[ScalarHandle]:
        """A loop; the context value is the index."""
        first, end = self.scalar(start), self.scalar(stop)
        var, body = ir.Value(INT64), ir.StatementList()
        index = ScalarHandle(self, var)
        self.append(
            ir.For(
                var,
                first.operand,
                end.operand,
                body,
                reverse,
                interruptible,
                independent,
                separate,
                adds,
                most=most,
            )
        )
        low, high = self.range_of(first), self.range_of(end)
        if low[0] < high[1]:
            self.ranged(index, (low[0], high[1] - 1))
        with self.inside(body):
            yield index

    @contextmanager
    def while_(self, test: Callable[[], ScalarHandle], most: int | None = None) -> Iterator[None]:
        """A loop that runs while ``test()``, evaluated before each iteration, holds, and at most so often."""
        statements, body = ir.StatementList(), ir.StatementList()
        with self.inside(statements):
            condition = test()
        brief = most is not None and most <= ir.BRIEF
        self.append(ir.While(statements, condition.operand, body, brief))
        with self.inside(body):
            yield

    @contextmanager
    def if_(self, condition: ScalarHandle) -> Iterator[None]:
        """Statements under a condition."""
        if type(condition.operand) is ir.Const and condition.operand.value:
            yield
            return
        then = ir.StatementList()
        self.append(ir.If(condition.operand, then, ir.StatementList()))
        with self.inside(then):
            yield

    @contextmanager
    def failures_if(self, condition: ScalarHandle) -> Iterator[None]:
        """Statements under a condition that matter only if they fail or call Python; others are left out."""
        then, declared = ir.StatementList(), len(self.kernel.buffers)
        with self.inside(then):
            yield
        if queries.may_fail(then):
            self.append(ir.If(condition.operand, then, ir.StatementList()))
        else:
            del self.kernel.buffers[declared:]

    def local(self, initial: ScalarHandle, block: int = 0, fold: str = "") -> LocalHandle:
        """A new variable; a sum of more than `block` elements is computed in blocks of that many."""
        var = ir.LocalVar(initial.dtype, block, fold)
        self.append(ir.Declare(var, initial.operand))
        return LocalHandle(self, var)

    def scratch(self, shape: tuple[int, ...], dtype: np.dtype) -> ir.BufferDecl:
        """Temporary memory."""
        return self.buffer("work", np.dtype(dtype), tuple(shape), "scratch")

    def row(self, buffer: Any, index: ScalarHandle | int) -> Any:
        """The part of a buffer at an index of its first axis."""
        i = self.scalar(index)
        if isinstance(buffer, TapeMemory):
            aval = buffer.aval.with_shape(buffer.aval.shape[1:])
            return TapeMemory(self.row(buffer.spans, i), buffer.pools, aval)
        if isinstance(buffer, View):
            return View(buffer.buffer, (*buffer.prefix, i))
        return View(buffer, (i,))

    def number(self, value: ScalarHandle) -> Known:
        """A scalar instead of memory."""
        return Known(value)

    def window(
        self, buffer: Memory, starts: tuple[int, ...], shape: tuple[int, ...], axes: tuple[int | None, ...]
    ) -> Window:
        """A box of a buffer's elements."""
        return Window(buffer, starts, shape, axes)

    # --- tapes -----------------------------------------------------------------------------------------

    def span(self, tape: TapeMemory) -> tuple[ScalarHandle, ScalarHandle]:
        """The number of a tape's first record, and its number of records."""
        return self.load(tape.spans, (0,)), self.load(tape.spans, (1,))

    def begin_tape(self, tape: TapeMemory) -> ScalarHandle:
        """The number that the first record of a new tape will have."""
        return self.load(tape.pools[0], (2,))

    def reserve(self, tape: TapeMemory, records: ScalarHandle) -> None:
        """Make room for more records in the pool of a tape."""
        limit = self.extent(config.tape_limit)
        self.append(ir.Reserve(self._records(tape), records.operand, limit.operand))

    def end_tape(self, tape: TapeMemory, start: ScalarHandle, count: ScalarHandle) -> None:
        """Make the tape consist of the records from `start` on."""
        self.store(tape.spans, (0,), start)
        self.store(tape.spans, (1,), count)
        self.store(tape.pools[0], (2,), start + count)

    def record(self, tape: TapeMemory, number: ScalarHandle) -> Place:
        """A record of the pool of a tape."""
        record = View(self._records(tape), (number,))
        item = tape.aval.item
        return TapeMemory(record, tape.pools[1:], item) if isinstance(item, TapeAval) else record

    def _records(self, tape: TapeMemory) -> ir.BufferDecl:
        place, item = tape.pools[0].place, tape.aval.item
        records = self._tapes.get(place)
        if records is None:
            name = f"{tape.pools[0].name}_records"
            records = self._tapes[place] = self.buffer(name, item.dtype, (1, *item.shape), "tape", place)
        return records

    # --- memory ----------------------------------------------------------------------------------------

    def adopt(self, s: ir.Let | ir.Load) -> None:
        """Add a statement that exists already, so that it can be shared."""
        if isinstance(s, ir.Let):
            super().adopt(s)
        else:
            self.append(s)
            if s.buffer.role == "in" and s.part is None:
                self.note(("load", id(s.buffer), s.index), ScalarHandle(self, s.value))

    def _index(self, index: Sequence[ScalarHandle | int]) -> tuple[ir.Operand, ...]:
        return tuple(x.operand if isinstance(x, ScalarHandle) else ir.Extent(int(x)) for x in index)

    def load(self, buffer: Memory | Known, index: Sequence[ScalarHandle | int]) -> ScalarHandle:
        """Read one element."""
        if isinstance(buffer, Known):
            return buffer.value
        if isinstance(buffer, View):
            index, buffer = buffer.place(index), buffer.buffer
        place = self._index(index)

        def make() -> ScalarHandle:
            value = ir.Value(buffer.dtype)
            self.append(ir.Load(value, buffer, place))
            return self.widened(ScalarHandle(self, value))

        return self.remember(("load", id(buffer), place), make) if buffer.role == "in" else make()

    def store(self, buffer: Memory, index: Sequence[ScalarHandle | int], value: Any) -> None:
        """Write one element."""
        if isinstance(buffer, View):
            index, buffer = buffer.place(index), buffer.buffer
        x = self.narrowed(self.scalar(value, register_dtype(buffer.dtype)), buffer.dtype)
        self.append(ir.Store(buffer, self._index(index), x.operand))

    def copy(self, target: Place, source: Place) -> None:
        """Copy all of `source` to `target`."""
        if (
            isinstance(target, ir.BufferDecl)
            and isinstance(source, ir.BufferDecl)
            and target.dtype == source.dtype
        ):
            self.append(ir.Copy(target, source))
        elif isinstance(target, TapeMemory) and isinstance(source, TapeMemory):
            if [p.place for p in target.pools] == [p.place for p in source.pools]:
                self.copy(target.spans, source.spans)
            else:
                self._copy_tapes(target, source)
        elif memory_key(target) != memory_key(source):
            assert isinstance(target, Memory)
            assert isinstance(source, Memory | Known)
            self._copy_elements(target, source, ())

    def is_same(self, x: Place, y: Place) -> bool:
        """Whether both are the same memory."""
        return bool(memory_key(x) == memory_key(y))

    def _copy_elements(self, target: Memory, source: Memory | Known, index: tuple[ScalarHandle, ...]) -> None:
        if len(index) == len(target.shape):
            self.store(target, index, self.load(source, index))
            return
        with self.loop(target.shape[len(index)]) as i:
            self._copy_elements(target, source, (*index, i))

    def _copy_tapes(self, target: TapeMemory, source: TapeMemory) -> None:
        """Copy records from one pool to another."""
        if len(target.shape) > 1:
            with self.loop(target.shape[0]) as i:
                self._copy_tapes(self.row(target, i), self.row(source, i))
            return
        first, count = self.span(source)
        start = self.begin_tape(target)
        self.reserve(target, start + count)
        with self.loop(count) as i:
            self.copy(self.record(target, start + i), self.record(source, first + i))
        self.end_tape(target, start, count)

    def extern(self, name: str, *args: Any) -> ScalarHandle | None:
        """Call a BLAS or LAPACK routine by its name without the type letter."""
        dtype = next(b.dtype for b in map(_buffer_of, args) if b is not None)
        arguments = tuple(self._argument(a, dtype) for a in args)
        value, letter = None, LETTERS[dtype.name]
        if name in RETURNS:
            value = ir.Value(dtype if RETURNS[name] == "type" else real_dtype(dtype))
            if value.dtype != dtype:
                letter = LETTERS[value.dtype.name] + letter  # scnrm2
        self.append(ir.Call(name, letter, arguments, value))
        return None if value is None else ScalarHandle(self, value)

    def has_quick_products(self, dtype: np.dtype) -> bool:
        """Whether matrix products use functrans's own code (`llvm.gemm`)."""
        return has_own_products(LETTERS[dtype.name])

    def host_call(self, equation: Any, memory: Sequence[Memory], reads: int, native: bool = False) -> None:
        """Have Python evaluate a `host.host_calls.HostEquation`, from the first `reads` buffers to the others."""
        self.calls.append(equation)
        refs = tuple([self._argument(m, m.dtype) for m in memory])
        self.append(ir.HostCall(ir.Extent(equation.number), refs, reads, native))

    def _offset(self, view: View) -> ScalarHandle:
        """The number of elements of the buffer before a view."""
        offset = self.extent(0)
        for i, n in zip(view.prefix, view.buffer.shape):
            offset = offset * n + i
        return offset * math.prod(view.shape)

    def _argument(self, a: Any, dtype: np.dtype) -> Any:
        if isinstance(a, str):
            return a
        if isinstance(a, LocalHandle):
            return a.var
        if isinstance(a, Known):
            number = self.buffer("number", a.dtype, a.shape, "scratch")
            self.store(number, (0,) * len(a.shape), a.value)
            return ir.Address(number)
        if isinstance(a, ir.BufferDecl):
            return ir.Address(a)
        if isinstance(a, View):
            return ir.Address(a.buffer, self._offset(a).operand)
        if isinstance(a, tuple):
            buffer, offset = a
            if isinstance(buffer, View):
                return ir.Address(buffer.buffer, (self._offset(buffer) + offset).operand)
            return ir.Address(buffer, self.scalar(offset).operand)
        if isinstance(a, (bool, int, np.integer)):
            return ir.Extent(int(a))
        return a.operand if isinstance(a, ScalarHandle) else make_const(a, dtype)


def _buffer_of(a: Any) -> Memory | Known | None:
    a = a[0] if isinstance(a, tuple) else a
    return a if isinstance(a, Memory | Known) else None
