"""The loop IR, to which a jaxpr is lowered: structured, typed, and in SSA form except for locals.

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
``Mark(counters, site)``          the time from here on is that of a site (only while a profile is open)
=============================== =============================================================================

Operands are `Value` (defined by a statement), `Const` (data literals), `Extent` (numbers that come from shapes:
extents, strides, offsets) and, after outlining, `Param` (numbers that arrive at run time). Buffers are row-major and
contiguous; accesses have multi-indices until emission. Booleans take one byte in memory.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

import numpy as np

from ...passes.scalar_functions import FUNCTIONS
from ...runtime.records import NamedTuple, dataclass

BOOL = np.dtype(np.bool_)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)

#: C library functions on the parts of complex128 numbers; kernels contain them after `split_complex`.
C_CALLS: dict[str, int] = {f.complex: 2 * f.operands for f in FUNCTIONS.values() if f.complex}

ROLES = ("in", "update", "out", "scratch", "stack", "pool", "tape")

#: Loops with at most this many iterations, if known, do not check for signals.
SHORT = 32

#: The most iterations of a ``while`` loop that need not be interrupted if each does little.
BRIEF = 1 << 16

#: The last status bit that stands for an equation.
LAST_EQUATION = 60
#: The status bit for a tape without room.
TAPE_FULL = 1 << 61
#: In checked mode, the status bit for a write outside memory on the stack; the lower bits hold the number of its
#: declaration.
OVERWRITTEN = 1 << 62
#: The status bit for a pending Python exception: it makes the status negative.
PENDING = -(1 << 63)


class Value:
    """The result of a statement; its identity is its name."""

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
        # repr distinguishes -0.0 from 0.0, and makes nan equal itself.
        return type(other) is Const and self.dtype == other.dtype and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((repr(self.value), self.dtype))


@dataclass(frozen=True, slots=True)
class Extent:
    """An int64 number that follows from shapes; with `outlined` it becomes a parameter however small it is."""

    value: int
    outlined: bool = False

    @property
    def dtype(self) -> np.dtype:
        """Always int64."""
        return INT64


@dataclass(frozen=True, slots=True)
class Param:
    """A number that arrives at run time.

    Parameters
    ----------
    slot : int
        Its position among the kernel's ``ints`` if `dtype` is int64, else among its ``floats``; a complex parameter
        takes `slot` (real part) and ``slot + 1``.
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
    role : {'in', 'update', 'out', 'scratch', 'stack', 'pool', 'tape'}
        'in' is never written. 'update' is an input whose storage is also an output's. 'stack' has a small literal shape
        and lives in the kernel's frame. 'pool' is the header of a pool (see `core.tape`) that is invisible outside the
        kernel; 'tape' is the records of the pool whose header is its storage: its first axis counts them, and the
        extent of that axis means nothing.
    storage : str, optional
        Declarations with the same storage name share the same memory (reuse, reshapes); by default each has one.
        Different storages never overlap: their pointers are marked ``noalias``.
    dealt : bool
        Whether its first axis counts the threads or the chunks of a loop that a team runs.
    """

    name: str
    dtype: np.dtype
    shape: tuple[Any, ...]
    role: str
    storage: str | None = None
    dealt: bool = False

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
    """A scalar variable. If it has a `block`, it is a sum, computed in blocks of that many elements (see `blocked`).

    If it has a `fold`, its loops only combine it with elements by that operation, in any order.
    """

    __slots__ = ("block", "dtype", "fold")

    def __init__(self, dtype: np.dtype, block: int = 0, fold: str = ""):
        self.dtype = dtype
        self.block = block
        self.fold = fold


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a buffer's element with number `offset`, as an argument of a routine."""

    buffer: BufferDecl
    offset: Operand = Extent(0)


@dataclass(eq=False, slots=True)
class Let:
    """``value = op(*args)``. With `reassoc` a sum may be reordered (in reductions)."""

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


@dataclass(frozen=True, slots=True)
class Team:
    """At most `size` threads that share the iterations of a loop; in its body, `worker` is the number of the thread.

    If the work of an iteration is unknown (`uneven`), the first one is measured.
    """

    worker: Value
    size: Operand
    uneven: bool


@dataclass(eq=False, slots=True)
class For:
    """``for var in range(start, stop)``, from ``stop - 1`` down to `start` if `reverse`.

    An `interruptible` loop checks for signals from time to time, as every `While` does. The iterations of an
    `independent` loop may run in any order or in parallel: none reads or overwrites what another one writes. Those of a
    `separate` loop hand nothing from one to the next either, except elements of folds, but may use the same scratch
    memory one after the other: `parallel` gives it a `team`, whose threads have separate memory. Those of a loop that
    `adds` hand on the elements of arrays to which they only add, too, or of which they keep the least or the greatest.
    If the bounds are computed, a loop runs at most `most` times; zero if that is unknown.
    """

    var: Value
    start: Operand
    stop: Operand
    body: StatementList
    reverse: bool = False
    interruptible: bool = False
    independent: bool = False
    separate: bool = False
    adds: bool = False
    team: Team | None = None
    most: int = 0


@dataclass(eq=False, slots=True)
class While:
    """``while True: test; if not condition: break; body``: `test` defines the condition; `body` cannot see it.

    A `brief` loop ends after at most `BRIEF` iterations.
    """

    test: StatementList
    condition: Operand
    body: StatementList
    brief: bool = False


@dataclass(eq=False, slots=True)
class If:
    """``if condition: then; else: orelse``."""

    condition: Operand
    then: StatementList
    orelse: StatementList


@dataclass(eq=False, slots=True)
class Declare:
    """Declare a variable, visible until the end of the block."""

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
    """Copy all of `source` to `target`, which has the same size and dtype; a no-op if they share storage."""

    target: BufferDecl
    source: BufferDecl


@dataclass(eq=False, slots=True)
class Call:
    """``value = routine(*args)`` in Fortran's convention; `letter` is the routine's type.

    Arguments: one-character strings, operands (by address; int64 as int32, others unchanged),
    `Address` (arrays), `LocalVar` (int32, written by the routine). `value` is None for a subroutine.
    """

    routine: str
    letter: str
    args: tuple[Any, ...]
    value: Value | None = None


@dataclass(eq=False, slots=True)
class Fail:
    """Set bit ``min(equation, LAST_EQUATION)`` of the kernel's status if the condition holds."""

    condition: Operand
    equation: int


@dataclass(eq=False, slots=True)
class HostCall:
    """Have Python evaluate the equation with this number (`host.host_calls.HostEquation`), unless something failed.

    `refs` are its operands, `reads` in number, followed by its results. If it raises, the kernel ends.
    If `native`, the number is the address of a C function ``int64_t f(void **memory)``; it returns 0 unless it fails.
    """

    number: Operand
    refs: tuple[Address, ...]
    reads: int
    native: bool = False


@dataclass(eq=False, slots=True)
class Reserve:
    """Make room for `needed` records in the pool of a 'tape' buffer.

    If that takes more than `limit` bytes, the kernel returns with `TAPE_FULL` in its status.
    """

    tape: BufferDecl
    needed: Operand
    limit: Operand


@dataclass(eq=False, slots=True)
class Mark:
    """From here on, time is that of a site of the kernel, until the next mark; `counters` adds it up (see `sites`).

    The kernel's first statement and its last one are marks with that `place`.
    """

    counters: BufferDecl
    site: Operand
    place: Literal["first", "next", "last"] = "next"


Statement = (
    Let
    | Load
    | Store
    | For
    | While
    | If
    | Declare
    | Get
    | Set
    | Copy
    | Call
    | Fail
    | HostCall
    | Reserve
    | Mark
)


class WorkingCopy(NamedTuple):
    """A buffer that loops write while they read `original`, and that is copied there afterwards.

    The first indices of all accesses to both are those in `prefix`.
    """

    buffer: BufferDecl
    original: BufferDecl
    prefix: tuple[Operand, ...]


@dataclass(eq=False, slots=True)
class Kernel:
    """A function of buffers and parameters that returns a status, zero for success.

    Attributes
    ----------
    ints, floats : int
        The number of parameter slots (zero before outlining).
    copies : list of WorkingCopy
        What `late_reads` makes superfluous.
    """

    name: str
    buffers: list[BufferDecl]
    body: StatementList
    ints: int = 0
    floats: int = 0
    copies: list[WorkingCopy] = field(default_factory=list)

    @property
    def storages(self) -> list[str]:
        """The storages whose addresses the caller passes, in the order of `CompiledKernel.run`."""
        return list(dict.fromkeys(b.place for b in self.buffers if b.role != "stack"))
