"""The loop IR: structured, typed, in SSA form but for locals; what is left of a jaxpr when its loops are
decided.

A `Kernel` is a list of buffer declarations and a `StatementList` of statements:

=============================== =============================================================================
``Let(value, op, args)``         a pure scalar operation of `OPERATIONS`
``Load(value, buffer, index)``   one element
``Store(buffer, index, x)``      write one element
``For(var, start, stop, body)``  a counted loop, downwards if `reverse`; a long one may be interrupted
``While(test, condition, body)``  repeats while the condition holds, which the statements of `test` compute
``If(condition, then, orelse)``  values leave it through locals
``Declare(var, init)``             declares a scalar variable; ``Get(value, var)``, ``Set(var, x)``
``Copy(target, source)``         a whole buffer
``Call(routine, args, ...)``     BLAS or LAPACK
``Fail(condition, equation)``    reports failure of an equation in the kernel's status
``HostCall(number, refs, reads)``  Python evaluates an equation, unless the status tells of a failure
``Reserve(tape, needed, limit)``  makes room in a pool of tapes, or ends the kernel with a status
=============================== =============================================================================

Operands are `Value` (what a statement defines), `Const` (data literals), `Extent` (numbers that come from
shapes: extents, strides, offsets) and, after outlining, `Param` (a number given at run time). Buffers are
row-major and contiguous; the multi-index of an access is kept until emission. Booleans are one byte in
memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, assert_never

import numpy as np

from ...core.scalar_functions import FUNCTIONS

BOOL = np.dtype(np.bool_)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
#: Operations with the number of their operands. ``cast`` goes to its value's dtype; ``select`` takes a
#: condition first. ``shl``/``shr`` want an amount in range; ``div`` is for floats and complex numbers;
#: ``not`` is bitwise; ``bits`` gives those of a float, as a signed integer.
OPERATIONS: dict[str, int] = {
    **dict.fromkeys(("neg", "not", "cast", "bits"), 1),
    **dict.fromkeys(("add", "sub", "mul", "div", "and", "or", "xor", "shl", "shr"), 2),
    **dict.fromkeys(COMPARISONS, 2),
    "select": 3,
    **{name: f.operands for name, f in FUNCTIONS.items()},
}
#: What each costs, in additions.
COSTS: dict[str, int] = {
    **dict.fromkeys(OPERATIONS, 1),
    "div": 4,
    **{name: f.cost for name, f in FUNCTIONS.items()},
}
#: Functions of the C library on the parts of complex128 numbers; kernels have them after `split_complex`.
C_CALLS: dict[str, int] = {f.complex: 2 * f.operands for f in FUNCTIONS.values() if f.complex}

ROLES = ("in", "out", "scratch", "stack", "pool", "tape")

#: Loops of at most so many rounds, if known, do not look for signals.
SHORT = 32

#: The last bit of a kernel's status that tells of an equation.
LAST_EQUATION = 60
#: The bit that tells of a tape without room.
TAPE_FULL = 1 << 61
#: The bit that tells, in checked mode, of a write beside memory on the stack; the lower ones are the number of its
#: declaration.
OVERWRITTEN = 1 << 62
#: The bit that tells of a pending Python exception: the status is negative.
PENDING = -(1 << 63)


class Value:
    """What a statement defines; its identity is its name."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"Value:{self.dtype.name}"


@dataclass(frozen=True, slots=True)
class Const:
    """A data literal: a Python bool, int, float or complex that `dtype` holds exactly."""

    value: Any
    dtype: np.dtype

    def __eq__(self, other: object) -> bool:
        # repr tells -0.0 from 0.0 and nan from nothing.
        return type(other) is Const and self.dtype == other.dtype and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((repr(self.value), self.dtype))


@dataclass(frozen=True, slots=True)
class Extent:
    """An int64 number that follows from shapes."""

    value: int

    @property
    def dtype(self) -> np.dtype:
        """Always int64."""
        return INT64


@dataclass(frozen=True, slots=True)
class Param:
    """A number given at run time.

    Parameters
    ----------
    slot : int
        Position among the kernel's ``ints`` where `dtype` is int64, else among its ``floats``; a complex
        parameter takes `slot` (real part) and ``slot + 1``.
    dtype : numpy.dtype
        int64, float32, float64, complex64 or complex128.
    """

    slot: int
    dtype: np.dtype


Operand = Value | Const | Extent | Param


@dataclass(eq=False, slots=True)
class BufferDecl:
    """A C-contiguous array in memory.

    Parameters
    ----------
    name : str
        For the printed kernel: a Python identifier.
    dtype : numpy.dtype
    shape : tuple of int (or Param after outlining)
    role : {'in', 'out', 'scratch', 'stack', 'pool', 'tape'}
        'in' is never written. 'stack' has a small literal shape and lives in the kernel's frame. 'pool' is the header
        of a pool (see `core.tape`) that nobody outside the kernel sees; 'tape' the records of the pool whose header is
        its storage: the first axis counts them, its extent means nothing.
    storage : str, optional
        Declarations with the same storage name are the same memory (reuse, reshapes); by default each has
        its own. Different storages never overlap: their pointers are marked ``noalias``.
    """

    name: str
    dtype: np.dtype
    shape: tuple[Any, ...]
    role: str
    storage: str | None = None

    @property
    def size(self) -> int:
        """The number of elements (before outlining)."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def place(self) -> str:
        """The name of the storage."""
        return self.name if self.storage is None else self.storage


class LocalVar:
    """A scalar variable. One with a `block` is a sum, taken in blocks of so many elements (see `blocked`)."""

    __slots__ = ("block", "dtype")

    def __init__(self, dtype: np.dtype, block: int = 0):
        self.dtype = dtype
        self.block = block


@dataclass(frozen=True, slots=True)
class Ref:
    """The address of a buffer's element number `offset`, as an argument of a routine."""

    buffer: BufferDecl
    offset: Operand = Extent(0)


@dataclass(eq=False, slots=True)
class Let:
    """``value = op(*args)``. With `reassoc` a sum may be reordered (reductions)."""

    value: Value
    op: str
    args: tuple[Operand, ...]
    reassoc: bool = False


@dataclass(eq=False, slots=True)
class Load:
    """``value = buffer[index]``; `part` 0 or 1 reads the real or imaginary part of a complex element."""

    value: Value
    buffer: BufferDecl
    index: tuple[Operand, ...]
    part: int | None = None


@dataclass(eq=False, slots=True)
class Store:
    """``buffer[index] = x``; `part` as in `Load`."""

    buffer: BufferDecl
    index: tuple[Operand, ...]
    x: Operand
    part: int | None = None


@dataclass(eq=False, slots=True)
class StatementList:
    """A list of statements."""

    statements: list[Any] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class For:
    """``for var in range(start, stop)``, from ``stop - 1`` down to `start` if `reverse`.

    One that is `interruptible` looks for signals now and then, as every `While` does. The iterations of one that is
    `independent` may run in any order, or at once: none reads or overwrites what another one writes.
    """

    var: Value
    start: Operand
    stop: Operand
    body: StatementList
    reverse: bool = False
    interruptible: bool = False
    independent: bool = False


@dataclass(eq=False, slots=True)
class While:
    """``while True: test; if not condition: break; body``: `test` defines the condition, which `body` does not see."""

    test: StatementList
    condition: Operand
    body: StatementList


@dataclass(eq=False, slots=True)
class If:
    """``if condition: then; else: orelse``."""

    condition: Operand
    then: StatementList
    orelse: StatementList


@dataclass(eq=False, slots=True)
class Declare:
    """Declares a variable, visible to the end of the block."""

    var: LocalVar
    init: Operand


@dataclass(eq=False, slots=True)
class Get:
    """``value = var``."""

    value: Value
    var: LocalVar


@dataclass(eq=False, slots=True)
class Set:
    """``var = x``."""

    var: LocalVar
    x: Operand


@dataclass(eq=False, slots=True)
class Copy:
    """All of `source` into `target`, of equal size and dtype; nothing if they share storage."""

    target: BufferDecl
    source: BufferDecl


@dataclass(eq=False, slots=True)
class Call:
    """``value = routine(*args)`` in Fortran's convention; `letter` is the routine's type.

    Arguments: one-character strings, operands (int64 is passed as int32, the rest as they are; by address),
    `Ref` (arrays), `LocalVar` (int32, written by the routine). `value` is None for a subroutine.
    """

    routine: str
    letter: str
    args: tuple[Any, ...]
    value: Value | None = None


@dataclass(eq=False, slots=True)
class Fail:
    """Set bit ``min(equation, LAST_EQUATION)`` of the kernel's status where the condition holds."""

    condition: Operand
    equation: int


@dataclass(eq=False, slots=True)
class HostCall:
    """Have Python evaluate the equation of this number (`host.host_calls.HostEquation`), if nothing has failed yet.

    `refs` are its operands, of which there are `reads`, and results. What it raises ends the kernel.
    """

    number: Operand
    refs: tuple[Ref, ...]
    reads: int


@dataclass(eq=False, slots=True)
class Reserve:
    """Make room for `needed` records in the pool of a 'tape' buffer; where it would take more than `limit` bytes, the
    kernel returns with `TAPE_FULL` in its status.
    """

    tape: BufferDecl
    needed: Operand
    limit: Operand


Statement = (
    Let | Load | Store | For | While | If | Declare | Get | Set | Copy | Call | Fail | HostCall | Reserve
)


@dataclass(eq=False, slots=True)
class Kernel:
    """A function of buffers and parameters that returns a status, zero for success.

    `ints` and `floats` are the numbers of parameter slots (zero before outlining).
    """

    name: str
    buffers: list[BufferDecl]
    body: StatementList
    ints: int = 0
    floats: int = 0

    @property
    def storages(self) -> list[str]:
        """The storages whose addresses the caller gives, in the order of `CompiledKernel.run`."""
        return list(dict.fromkeys(b.place for b in self.buffers if b.role != "stack"))


def may_fail(block: StatementList) -> bool:
    """Whether anything in a block may set the status."""
    return any(type(s) in (Fail, HostCall) for s in walk(block))


def rounds(loop: For, otherwise: int) -> int:
    """How often a loop runs, if that stands in the code."""
    a, b = loop.start, loop.stop
    return b.value - a.value if type(a) is Extent and type(b) is Extent else otherwise


def is_long(statement: Statement) -> bool:
    """Whether a statement is a loop that looks for signals: it may be interrupted, and is not short."""
    if type(statement) is While:
        return True
    return (
        type(statement) is For and statement.interruptible and not 0 <= rounds(statement, SHORT + 1) <= SHORT
    )


# --- walking -------------------------------------------------------------------------------------------


def blocks_of(statement: Statement) -> tuple[StatementList, ...]:
    """The blocks inside a statement."""
    match statement:
        case For(body=body):
            return (body,)
        case If(then=then, orelse=orelse):
            return (then, orelse)
        case While(test=test, body=body):
            return (test, body)
        case (
            Let()
            | Load()
            | Store()
            | Declare()
            | Get()
            | Set()
            | Copy()
            | Call()
            | Fail()
            | HostCall()
            | Reserve()
        ):
            return ()
        case _:
            assert_never(statement)


def walk(block: StatementList) -> Iterator[Statement]:
    """All statements, outer ones before inner ones."""
    for statement in block.statements:
        yield statement
        for inner in blocks_of(statement):
            yield from walk(inner)


def operands_of(statement: Statement) -> tuple[Any, ...]:
    """The operands a statement reads (for a `Call` its arguments as they are)."""
    match statement:
        case Let(args=args) | Call(args=args):
            return args
        case Load(index=index):
            return index
        case Store(index=index, x=x):
            return (*index, x)
        case For(start=start, stop=stop):
            return (start, stop)
        case If(condition=condition) | Fail(condition=condition) | While(condition=condition):
            return (condition,)
        case Declare(init=x) | Set(x=x):
            return (x,)
        case HostCall(number=number, refs=refs):
            return (number, *refs)
        case Reserve(needed=needed, limit=limit):
            return (needed, limit)
        case Get() | Copy():
            return ()
        case _:
            assert_never(statement)


@dataclass(frozen=True, slots=True)
class Touch:
    """What a statement does with a buffer.

    Parameters
    ----------
    buffer : BufferDecl
    writes : bool
        False if it only reads.
    strided : int
        The first axis whose extent the statement needs to know, with all that follow: 0 for the size of the whole
        buffer, 1 for the address of an element, ``len(buffer.shape)`` for none.
    """

    buffer: BufferDecl
    writes: bool
    strided: int


def touches_of(statement: Statement) -> tuple[Touch, ...]:
    """The buffers that a statement touches, without those of its blocks.

    Whoever decides about memory (which storage, which parameters, which role) must ask here, and nowhere else.
    """
    match statement:
        case Load(buffer=buffer):
            return (Touch(buffer, False, 1),)
        case Store(buffer=buffer) | Reserve(tape=buffer):
            return (Touch(buffer, True, 1),)
        case Copy(target=target, source=source):
            return (Touch(target, True, 0), Touch(source, False, 0))
        case Call(args=args):
            return tuple([Touch(a.buffer, True, len(a.buffer.shape)) for a in args if type(a) is Ref])
        case HostCall(refs=refs, reads=reads):
            return tuple([Touch(a.buffer, i >= reads, len(a.buffer.shape)) for i, a in enumerate(refs)])
        case Let() | For() | While() | If() | Declare() | Get() | Set() | Fail():
            return ()
        case _:
            assert_never(statement)


def touches(block: StatementList) -> Iterator[Touch]:
    """What the statements of a block do with buffers, at any depth."""
    for statement in walk(block):
        yield from touches_of(statement)
