"""The builder of loop IR: what kernel rules are written against (`functrans.core.kernel`), implemented.

Equal pure operations inside a block become one, and so do equal loads of input buffers. Folding is light
and only of integers, so that the structure of a kernel does not come to depend on sizes: extents combine to
extents, and zeros and ones vanish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.config import config
from ..core.tape import TapeAval
from . import loopir as ir
from .loopcheck import real_dtype, result_dtype
from .loopir import BOOL, INT64

#: BLAS functions that return a number: "type" of the routine, "real" for its real type, "int" for int32.
RETURNS = {"dot": "type", "dotu": "type", "dotc": "type", "nrm2": "real", "asum": "real"}
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


class Scalar:
    """A scalar of a kernel (see `functrans.core.kernel.Scalar`): an operand and the builder it belongs to."""

    __slots__ = ("builder", "operand")

    def __init__(self, builder: Builder, operand: ir.Operand):
        self.builder = builder
        self.operand = operand

    @property
    def dtype(self) -> np.dtype:
        """The scalar's dtype."""
        return self.operand.dtype

    def _binary(self, op: str, other: Any) -> Scalar:
        return self.builder.binary(op, self, other)

    def _reflected(self, op: str, other: Any) -> Scalar:
        return self.builder.binary(op, self.builder.scalar(other, self.dtype), self)

    def __add__(self, other: Any) -> Scalar:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> Scalar:
        return self._reflected("add", other)

    def __sub__(self, other: Any) -> Scalar:
        return self._binary("sub", other)

    def __rsub__(self, other: Any) -> Scalar:
        return self._reflected("sub", other)

    def __mul__(self, other: Any) -> Scalar:
        return self._binary("mul", other)

    def __rmul__(self, other: Any) -> Scalar:
        return self._reflected("mul", other)

    def __truediv__(self, other: Any) -> Scalar:
        return self._binary("div", other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return self._reflected("div", other)

    def __neg__(self) -> Scalar:
        return self.builder.unary("neg", self)

    def __and__(self, other: Any) -> Scalar:
        return self._binary("and", other)

    def __or__(self, other: Any) -> Scalar:
        return self._binary("or", other)

    def __xor__(self, other: Any) -> Scalar:
        return self._binary("xor", other)

    def __invert__(self) -> Scalar:
        return self.builder.unary("not", self)

    def __lshift__(self, other: Any) -> Scalar:
        return self._binary("shl", other)

    def __rshift__(self, other: Any) -> Scalar:
        return self._binary("shr", other)

    def __lt__(self, other: Any) -> Scalar:
        return self._binary("lt", other)

    def __le__(self, other: Any) -> Scalar:
        return self._binary("le", other)

    def __gt__(self, other: Any) -> Scalar:
        return self._binary("gt", other)

    def __ge__(self, other: Any) -> Scalar:
        return self._binary("ge", other)

    def eq(self, other: Any) -> Scalar:
        """Equality (``==`` compares the Python objects)."""
        return self._binary("eq", other)

    def ne(self, other: Any) -> Scalar:
        """Inequality, true for NaN."""
        return self._binary("ne", other)

    def __bool__(self) -> bool:
        raise TypeError("a kernel's scalar has no truth value: use `where`, `guarded` or `if_`")

    def __repr__(self) -> str:
        return f"Scalar({self.operand!r})"


class View:
    """A part of a buffer: the elements whose first indices are given. To a rule it is a buffer."""

    __slots__ = ("buffer", "prefix", "shape")

    def __init__(self, buffer: ir.BufferDecl, prefix: tuple[Scalar, ...]):
        self.buffer = buffer
        self.prefix = prefix
        self.shape = buffer.shape[len(prefix) :]

    @property
    def dtype(self) -> np.dtype:
        """The buffer's dtype."""
        return self.buffer.dtype

    @property
    def key(self) -> Any:
        """Equal for views of the same memory."""
        return self.buffer.place, tuple([i.operand for i in self.prefix])


class TapeMemory:
    """An array of tapes (see `core.tape`): the memory of its spans, and the headers of its pools."""

    __slots__ = ("aval", "pools", "spans")

    def __init__(self, spans: Memory, pools: tuple[ir.BufferDecl, ...], aval: TapeAval):
        self.spans = spans
        self.pools = pools
        self.aval = aval

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the spans."""
        return self.spans.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the spans."""
        return INT64


Memory = ir.BufferDecl | View
Place = Memory | TapeMemory


class LocalHandle:
    """A scalar variable of a kernel (see `functrans.core.kernel.Local`)."""

    __slots__ = ("builder", "var")

    def __init__(self, builder: Builder, var: ir.LocalVar):
        self.builder = builder
        self.var = var

    def get(self) -> Scalar:
        """The variable's value now."""
        value = ir.Value(self.var.dtype)
        self.builder.append(ir.Get(value, self.var))
        return Scalar(self.builder, value)

    def set(self, value: Scalar) -> None:
        """Assign."""
        self.builder.append(ir.Set(self.var, self.builder.scalar(value, self.var.dtype).operand))


def make_const(value: Any, dtype: np.dtype) -> ir.Const:
    """A literal, rounded to `dtype`.

    Raises
    ------
    OverflowError
        If an integer does not fit.
    """
    return ir.Const(np.asarray(value, dtype).item() if dtype.kind in "fcb" else int(dtype.type(value)), dtype)


class Builder:
    """Builds one kernel, statement by statement.

    Parameters
    ----------
    name : str
        The kernel's name.

    Attributes
    ----------
    equation : int
        The number that `fail_if` reports; set it before calling a rule.
    """

    def __init__(self, name: str):
        self.kernel = ir.Kernel(name, [], ir.Block())
        self.equation = 0
        self.calls: list[Any] = []  # the equations that Python evaluates
        self._blocks = [self.kernel.body]
        self._known: list[dict[Any, Scalar]] = [{}]
        self._names: set[str] = set()
        self._tapes: dict[str, ir.BufferDecl] = {}

    def finish(self) -> ir.Kernel:
        """The kernel."""
        return self.kernel

    def buffer(
        self, name: str, dtype: np.dtype, shape: tuple[Any, ...], role: str, storage: str | None = None
    ) -> ir.BufferDecl:
        """Declare a buffer; the name is made unique with a number."""
        unique, n = name, 1
        while unique in self._names:
            n += 1
            unique = f"{name}_{n}"
        self._names.add(unique)
        decl = ir.BufferDecl(unique, dtype, tuple(shape), role, storage)
        self.kernel.buffers.append(decl)
        return decl

    def append(self, statement: ir.Statement) -> None:
        """Add a statement at the current place."""
        self._blocks[-1].statements.append(statement)

    @contextmanager
    def inside(self, block: ir.Block) -> Iterator[None]:
        """Build in `block` for a while."""
        self._blocks.append(block)
        self._known.append({})
        try:
            yield
        finally:
            self._blocks.pop()
            self._known.pop()

    # --- operands --------------------------------------------------------------------------------------

    def scalar(self, x: Any, dtype: np.dtype = INT64) -> Scalar:
        """`x` itself, or a Python number as a scalar of `dtype`; ints for int64 count as extents."""
        if isinstance(x, Scalar):
            return x
        if dtype == INT64 and type(x) is int:
            return Scalar(self, ir.Extent(x))
        return self.const(x, dtype)

    def const(self, value: Any, dtype: np.dtype) -> Scalar:
        """A data literal."""
        return Scalar(self, make_const(value, np.dtype(dtype)))

    def extent(self, n: int) -> Scalar:
        """A number that follows from shapes: it may become a run-time parameter."""
        return Scalar(self, ir.Extent(n))

    def parameter(self, slot: int, dtype: np.dtype) -> Scalar:
        """A run-time parameter; the kernel's `ints` and `floats` are for the caller to set."""
        return Scalar(self, ir.Param(slot, dtype))

    def _index(self, index: Sequence[Scalar | int]) -> tuple[ir.Operand, ...]:
        return tuple(x.operand if isinstance(x, Scalar) else ir.Extent(int(x)) for x in index)

    # --- pure operations -------------------------------------------------------------------------------

    def _remember(self, key: Any, make: Callable[[], Scalar]) -> Scalar:
        for known in reversed(self._known):
            found = known.get(key)
            if found is not None:
                return found
        made = self._known[-1][key] = make()
        return made

    def let(
        self, op: str, args: tuple[Scalar, ...], dtype: np.dtype | None = None, reassoc: bool = False
    ) -> Scalar:
        """The operation `op` of `loopir.OPERATIONS`, without folding."""
        operands = tuple(a.operand for a in args)
        to = result_dtype(op, tuple(a.dtype for a in operands)) if dtype is None else dtype

        def make() -> Scalar:
            value = ir.Value(to)
            self.append(ir.Let(value, op, operands, reassoc))
            return Scalar(self, value)

        return self._remember((op, operands, to, reassoc), make)

    def unary(self, op: str, x: Scalar) -> Scalar:
        """``neg`` or ``not``."""
        a = x.operand
        if op == "neg" and type(a) is ir.Extent:
            return self.extent(-a.value)
        if op == "neg" and type(a) is ir.Const and a.dtype.kind in "fc":
            return self.const(-a.value, a.dtype)
        return self.let(op, (x,))

    def binary(self, op: str, x: Scalar, other: Any, *, reassoc: bool = False) -> Scalar:
        """A binary operator on scalars of one dtype; `reassoc` allows reordering (in reductions).

        Raises
        ------
        TypeError
            If the dtypes differ, or the operator does not take them.
        """
        shift = op in ("shl", "shr")
        y = (
            other
            if isinstance(other, Scalar)
            else self.const(other, x.dtype)
            if shift
            else self.scalar(other, x.dtype)
        )
        kind = x.dtype.kind
        if x.dtype != y.dtype or (op == "div" and kind not in "fc") or (shift and kind not in "iu"):
            raise TypeError(f"kernel rule: {op} of {x.dtype} and {y.dtype}")
        if kind == "b":
            op = {"add": "or", "mul": "and"}.get(op, op)
            if op == "sub":
                raise TypeError("kernel rule: sub of booleans")
        elif kind in "iu":
            folded = _fold_integers(op, x, y)
            if folded is not None:
                return folded
        return self.let(op, (x, y), reassoc=reassoc and kind in "fc")

    def call(self, name: str, *args: Scalar) -> Scalar:
        """A function of `UNARY_CALLS` or `BINARY_CALLS`."""
        kind = args[0].dtype.kind
        if kind == "b" and name in ("min", "max"):
            return self.binary("and" if name == "min" else "or", *args)
        if kind != "c" and name in ("real", "conj"):
            return args[0]
        if kind in "biu" and name in ("floor", "ceil", "trunc", "rint"):
            return args[0]
        if kind in "bu" and name == "abs":
            return args[0]
        if kind != "c" and name == "imag":
            return self.const(0, args[0].dtype)
        if name == "pow" and kind == "f":
            power = _simple_power(self, *args)
            if power is not None:
                return power
        if name in ("idiv", "irem") and all(type(a.operand) is ir.Extent for a in args):
            a, b = _integer(args[0].operand), _integer(args[1].operand)
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return self.extent(quotient if name == "idiv" else a - quotient * b)
        return self.let(name, args)

    def cast(self, x: Scalar, dtype: np.dtype) -> Scalar:
        """NumPy's ``astype``."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if type(x.operand) is ir.Const:
            with np.errstate(all="ignore"):
                a = np.asarray(x.operand.value, x.dtype)
                a = a.real if x.dtype.kind == "c" and dtype.kind not in "cb" else a
                if dtype.kind in "bc" or a.dtype.kind != "f" or np.isfinite(a):
                    return self.const(a.astype(dtype)[()], dtype)
        return self.let("cast", (x,), dtype)

    def where(self, condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
        """`x` where the condition holds, else `y`."""
        y = self.scalar(y, x.dtype)
        if x.dtype != y.dtype or condition.dtype != BOOL:
            raise TypeError(f"kernel rule: where of {condition.dtype}, {x.dtype} and {y.dtype}")
        c = condition.operand
        if x.operand == y.operand:
            return x
        if type(c) is ir.Const:
            return x if c.value else y
        return self.let("select", (condition, x, y))

    # --- statements ------------------------------------------------------------------------------------

    def guarded(self, condition: Scalar, read: Callable[[], Scalar], otherwise: Scalar) -> Scalar:
        """``read()`` where the condition holds, else `otherwise`."""
        result = self.local(otherwise)
        with self.if_(condition):
            result.set(read())
        return result.get()

    def fail_if(self, condition: Scalar) -> None:
        """Report failure of the current `equation`."""
        self.append(ir.Fail(condition.operand, self.equation))

    @contextmanager
    def loop(
        self,
        stop: int | Scalar,
        start: int | Scalar = 0,
        *,
        reverse: bool = False,
        interruptible: bool = False,
    ) -> Iterator[Scalar]:
        """A loop; the context value is the index."""
        var, body = ir.Value(INT64), ir.Block()
        bounds = self.scalar(start).operand, self.scalar(stop).operand
        self.append(ir.For(var, *bounds, body, reverse, interruptible))
        with self.inside(body):
            yield Scalar(self, var)

    @contextmanager
    def while_(self, test: Callable[[], Scalar]) -> Iterator[None]:
        """A loop that runs as long as ``test()``, evaluated before each iteration, holds."""
        statements, body = ir.Block(), ir.Block()
        with self.inside(statements):
            condition = test()
        self.append(ir.While(statements, condition.operand, body))
        with self.inside(body):
            yield

    @contextmanager
    def if_(self, condition: Scalar) -> Iterator[None]:
        """Statements under a condition."""
        then = ir.Block()
        self.append(ir.If(condition.operand, then, ir.Block()))
        with self.inside(then):
            yield

    def local(self, initial: Scalar) -> LocalHandle:
        """A new variable."""
        var = ir.LocalVar(initial.dtype)
        self.append(ir.Local(var, initial.operand))
        return LocalHandle(self, var)

    def scratch(self, shape: tuple[int, ...], dtype: np.dtype) -> ir.BufferDecl:
        """Temporary memory."""
        return self.buffer("work", np.dtype(dtype), tuple(shape), "scratch")

    def row(self, buffer: Any, index: Scalar | int) -> Any:
        """The part of a buffer at an index of its first axis."""
        i = self.scalar(index)
        if isinstance(buffer, TapeMemory):
            aval = buffer.aval.with_shape(buffer.aval.shape[1:])
            return TapeMemory(self.row(buffer.spans, i), buffer.pools, aval)
        if isinstance(buffer, View):
            return View(buffer.buffer, (*buffer.prefix, i))
        return View(buffer, (i,))

    # --- tapes -----------------------------------------------------------------------------------------

    def span(self, tape: TapeMemory) -> tuple[Scalar, Scalar]:
        """The first record of a tape, and how many there are."""
        return self.load(tape.spans, (0,)), self.load(tape.spans, (1,))

    def begin_tape(self, tape: TapeMemory) -> Scalar:
        """The number of the record that will be the first of a new tape."""
        return self.load(tape.pools[0], (2,))

    def reserve(self, tape: TapeMemory, records: Scalar) -> None:
        """Make room for so many records in the pool of a tape."""
        limit = self.extent(config.tape_limit)
        self.append(ir.Reserve(self._records(tape), records.operand, limit.operand))

    def end_tape(self, tape: TapeMemory, start: Scalar, count: Scalar) -> None:
        """The tape is the records from `start` on."""
        self.store(tape.spans, (0,), start)
        self.store(tape.spans, (1,), count)
        self.store(tape.pools[0], (2,), start + count)

    def record(self, tape: TapeMemory, number: Scalar) -> Place:
        """A record of the pool of a tape."""
        found = View(self._records(tape), (number,))
        item = tape.aval.item
        return TapeMemory(found, tape.pools[1:], item) if isinstance(item, TapeAval) else found

    def _records(self, tape: TapeMemory) -> ir.BufferDecl:
        place, item = tape.pools[0].place, tape.aval.item
        found = self._tapes.get(place)
        if found is None:
            name = f"{tape.pools[0].name}_records"
            found = self._tapes[place] = self.buffer(name, item.dtype, (1, *item.shape), "tape", place)
        return found

    # --- memory ----------------------------------------------------------------------------------------

    def load(self, buffer: Memory, index: Sequence[Scalar | int]) -> Scalar:
        """One element."""
        if isinstance(buffer, View):
            index, buffer = (*buffer.prefix, *index), buffer.buffer
        place = self._index(index)

        def make() -> Scalar:
            value = ir.Value(buffer.dtype)
            self.append(ir.Load(value, buffer, place))
            return Scalar(self, value)

        return self._remember(("load", id(buffer), place), make) if buffer.role == "in" else make()

    def store(self, buffer: Memory, index: Sequence[Scalar | int], value: Any) -> None:
        """Write one element."""
        if isinstance(buffer, View):
            index, buffer = (*buffer.prefix, *index), buffer.buffer
        self.append(ir.Store(buffer, self._index(index), self.scalar(value, buffer.dtype).operand))

    def copy(self, target: Place, source: Place) -> None:
        """All of `source` into `target`."""
        if isinstance(target, ir.BufferDecl) and isinstance(source, ir.BufferDecl):
            self.append(ir.Copy(target, source))
        elif isinstance(target, TapeMemory) and isinstance(source, TapeMemory):
            if [p.place for p in target.pools] == [p.place for p in source.pools]:
                self.copy(target.spans, source.spans)
            else:
                self._copy_tapes(target, source)
        elif memory_key(target) != memory_key(source):
            assert isinstance(target, Memory)
            assert isinstance(source, Memory)
            self._copy_elements(target, source, ())

    def _copy_elements(self, target: Memory, source: Memory, index: tuple[Scalar, ...]) -> None:
        if len(index) == len(target.shape):
            self.store(target, index, self.load(source, index))
            return
        with self.loop(target.shape[len(index)]) as i:
            self._copy_elements(target, source, (*index, i))

    def _copy_tapes(self, target: TapeMemory, source: TapeMemory) -> None:
        """Records from one pool to another."""
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

    def extern(self, name: str, *args: Any) -> Scalar | None:
        """A BLAS or LAPACK routine by its name without the type letter."""
        dtype = next(b.dtype for b in map(_buffer_of, args) if b is not None)
        passed = tuple(self._argument(a, dtype) for a in args)
        value, letter = None, LETTERS[dtype.name]
        if name in RETURNS:
            value = ir.Value(dtype if RETURNS[name] == "type" else real_dtype(dtype))
            if value.dtype != dtype:
                letter = LETTERS[value.dtype.name] + letter  # scnrm2
        self.append(ir.Call(name, letter, passed, value))
        return None if value is None else Scalar(self, value)

    def host_call(self, entry: Any, memory: Sequence[Memory], reads: int) -> None:
        """Have Python evaluate an equation (`hostcalls.Entry`), from the first so many buffers to the others."""
        self.calls.append(entry)
        refs = tuple([self._argument(m, m.dtype) for m in memory])
        self.append(ir.HostCall(ir.Extent(entry.number), refs, reads))

    def _offset(self, view: View) -> Scalar:
        """How many elements of the buffer stand before a view."""
        offset = self.extent(0)
        for i, n in zip(view.prefix, view.buffer.shape):
            offset = offset * n + i
        return offset * math.prod(view.shape)

    def _argument(self, a: Any, dtype: np.dtype) -> Any:
        if isinstance(a, str):
            return a
        if isinstance(a, LocalHandle):
            return a.var
        if isinstance(a, ir.BufferDecl):
            return ir.Ref(a)
        if isinstance(a, View):
            return ir.Ref(a.buffer, self._offset(a).operand)
        if isinstance(a, tuple):
            buffer, offset = a
            if isinstance(buffer, View):
                return ir.Ref(buffer.buffer, (self._offset(buffer) + offset).operand)
            return ir.Ref(buffer, self.scalar(offset).operand)
        if isinstance(a, (bool, int, np.integer)):
            return ir.Extent(int(a))
        return a.operand if isinstance(a, Scalar) else make_const(a, dtype)


def _simple_power(b: Builder, x: Scalar, y: Scalar) -> Scalar | None:
    """Powers that need no general function, exactly rounded."""
    if type(x.operand) is ir.Const and x.operand.value == 2.0:
        return b.let("exp2", (y,))
    if type(y.operand) is not ir.Const:
        return None
    if y.operand.value == 2.0:
        return x * x
    if y.operand.value == 1.0:
        return x
    return 1.0 / x if y.operand.value == -1.0 else None


def _buffer_of(a: Any) -> Memory | None:
    a = a[0] if isinstance(a, tuple) else a
    return a if isinstance(a, Memory) else None


def memory_key(memory: Place) -> Any:
    """Equal for the same memory."""
    if isinstance(memory, TapeMemory):
        return memory_key(memory.spans)
    return memory.key if isinstance(memory, View) else (memory.place, ())


def _integer(x: ir.Operand) -> Any:
    """The number behind a literal or an extent, else None."""
    return x.value if isinstance(x, (ir.Extent, ir.Const)) else None


def _fold_integers(op: str, x: Scalar, y: Scalar) -> Scalar | None:
    a, b = x.operand, y.operand
    if type(a) is ir.Extent and type(b) is ir.Extent and op in ("add", "sub", "mul"):
        n = a.value + b.value if op == "add" else a.value - b.value if op == "sub" else a.value * b.value
        return x.builder.extent((n + 2**63) % 2**64 - 2**63)  # wraps as int64 does
    known_a, known_b = _integer(a), _integer(b)
    if op == "add" and known_a == 0:
        return y
    if op in ("add", "sub") and known_b == 0:
        return x
    if op == "mul":
        if known_a == 1 or known_b == 0:
            return y
        if known_b == 1 or known_a == 0:
            return x
    return None
