"""The vocabulary in which a primitive describes its computation in a kernel.

Kernel rules live beside their primitives, below `lowering/` in the layers. So they are written against the protocols
declared here, and `lowering/` implements these. There are five kinds of rule, by how they compute an output element:

========== =============================================================================== ==================
`Pointwise` from the operands' elements at the same (broadcast) index                       ``sin``, ``add``
`Indexed`   from operands' elements read at indices computed from the output's index        ``transpose``, ``gather``
`Reduction` by folding a run of operand elements along axes                                 ``reduce_sum``
`Reshape`   the same elements in row-major order under another shape                        ``reshape``
`Block`     by statements that fill whole buffers: loops, BLAS and LAPACK calls             ``dot_general``
========== =============================================================================== ==================

All but `Block` fuse: their operands need not be in memory. A primitive without a rule is evaluated by NumPy in a host
call between two kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from ..runtime.records import NamedTuple, dataclass
from .aval import Aval
from .values import ArrayLike, Params

#: The bytes of a cache line. Two threads that write to the same one are slower than one thread.
CACHE_LINE = 64


class Scalar(Protocol):
    """A scalar in a kernel: combine it with Python's operators, compare it to get booleans.

    ``+ - *`` take two scalars of one dtype (or a Python number as the second); ``/`` only floats and complex
    numbers; ``& | ^ ~`` integers and booleans; ``<< >>`` integers (the shift amount must be in range).
    Comparisons with NaN are false, except ``!=``. Use `ScalarEmitter.where` instead of ``if``.

    Numbers that arrays hold as float16 or bfloat16 are float32 here. They are rounded where they are stored, and by
    `ScalarEmitter.cast`.
    """

    dtype: np.dtype

    def __add__(self, other: ArrayLike) -> Scalar: ...
    def __sub__(self, other: ArrayLike) -> Scalar: ...
    def __mul__(self, other: ArrayLike) -> Scalar: ...
    def __radd__(self, other: ArrayLike) -> Scalar: ...
    def __rsub__(self, other: ArrayLike) -> Scalar: ...
    def __rmul__(self, other: ArrayLike) -> Scalar: ...
    def __truediv__(self, other: ArrayLike) -> Scalar: ...
    def __neg__(self) -> Scalar: ...
    def __and__(self, other: ArrayLike) -> Scalar: ...
    def __or__(self, other: ArrayLike) -> Scalar: ...
    def __xor__(self, other: ArrayLike) -> Scalar: ...
    def __invert__(self) -> Scalar: ...
    def __lshift__(self, other: ArrayLike) -> Scalar: ...
    def __rshift__(self, other: ArrayLike) -> Scalar: ...
    def __lt__(self, other: ArrayLike) -> Scalar: ...
    def __le__(self, other: ArrayLike) -> Scalar: ...
    def __gt__(self, other: ArrayLike) -> Scalar: ...
    def __ge__(self, other: ArrayLike) -> Scalar: ...
    def eq(self, other: ArrayLike) -> Scalar:
        """Whether the two are equal (false for NaN)."""
        ...

    def ne(self, other: ArrayLike) -> Scalar:
        """Whether the two differ (true for NaN)."""
        ...


class ScalarEmitter(Protocol):
    """The operations available to a `Pointwise` rule."""

    def const(self, value: Any, dtype: np.dtype) -> Scalar:
        """A literal number of this dtype."""
        ...

    def call(self, name: str, *args: Scalar) -> Scalar:
        """A function of `scalar_functions.FUNCTIONS`; with complex operands if NumPy supports them.

        ``bits`` returns the bits of a float as a signed integer of its size, and ``from_bits`` the float with the bits
        of an integer. ``multiply`` always rounds the product,
        whereas ``x * y`` and an addition may be contracted.
        ``idiv`` and ``irem`` truncate towards zero and must not divide by zero or overflow: guard with
        `where`. ``min`` and ``max`` propagate NaN. ``opaque`` returns an integer unchanged, and LLVM does not see that
        it is one that it knows.
        """
        ...

    def cast(self, x: Scalar, dtype: np.dtype) -> Scalar:
        """NumPy's ``astype`` of one number (bool from a number is ``x != 0``; real from complex drops the rest)."""
        ...

    def narrowed(self, x: Scalar, dtype: np.dtype) -> Scalar:
        """A float32 as memory of float16 or bfloat16 holds it, for ``bits``; with any other dtype the scalar itself."""
        ...

    def widened(self, x: Scalar) -> Scalar:
        """A scalar from memory with the dtype of scalars: float32 for float16 and bfloat16."""
        ...

    def where(self, condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
        """`x` if the condition holds, else `y`; both are computed."""
        ...


class Operand(Protocol):
    """An operand of an `Indexed` rule, readable at any index."""

    aval: Aval

    def __getitem__(self, index: Sequence[Scalar | int]) -> Scalar:
        """The element at an index tuple (int64 scalars or Python ints), which must be within bounds."""
        ...


class IndexEmitter(ScalarEmitter, Protocol):
    """The additional operations of an `Indexed` rule: integer arithmetic on indices, guarded reads, failures."""

    def guarded(self, condition: Scalar, read: Callable[[], Scalar], otherwise: Scalar) -> Scalar:
        """``read()`` if the condition holds, else `otherwise`; it never reads out of bounds."""
        ...

    def fail_if(self, condition: Scalar) -> None:
        """Report that this equation failed (the wrapper then finds and names the cause)."""
        ...


class Buffer(Protocol):
    """A C-contiguous array in memory, or a row of one, as a `Block` rule sees it."""

    shape: tuple[int, ...]
    dtype: np.dtype


class Local(Protocol):
    """A scalar variable that can be assigned, for accumulators."""

    def get(self) -> Scalar:
        """The current value."""
        ...

    def set(self, value: Scalar) -> None:
        """Assign a value."""
        ...


class BlockEmitter(IndexEmitter, Protocol):
    """The additional operations of a `Block` rule: loops, loads, stores, scratch memory, BLAS and LAPACK."""

    #: Whether sums must follow the written order.
    in_order: bool

    def loop(
        self,
        stop: int | Scalar,
        start: int | Scalar = 0,
        *,
        reverse: bool = False,
        interruptible: bool = False,
        separate: bool = False,
        adds: bool = False,
    ) -> AbstractContextManager[Scalar]:
        """A loop whose context value is an int64 index from `start` to `stop` - 1 (downwards if `reverse`).

        A loop that the user wrote should be `interruptible`, so that Ctrl-C ends it. The iterations of a `separate` one
        may run in several threads: each writes its own elements of the results, and reads no scratch memory that
        another one has written. Those of a loop that `adds` may add to the same elements of results besides, but read
        them for nothing else.
        """
        ...

    def while_(self, test: Callable[[], Scalar], most: int | None = None) -> AbstractContextManager[None]:
        """A loop that runs while ``test()``, evaluated before each iteration, holds; at most so often, if known."""
        ...

    def if_(self, condition: Scalar) -> AbstractContextManager[None]:
        """Statements that run only if the condition holds."""
        ...

    def failures_if(self, condition: Scalar) -> AbstractContextManager[None]:
        """Statements that run only if the condition holds, and of which only the failures count."""
        ...

    def inline(
        self, jaxpr: Any, operands: Sequence[Buffer], results: Sequence[Buffer], spare: Sequence[int] = ()
    ) -> None:
        """Write the statements of a jaxpr without captured arrays, from buffers to buffers.

        A result may share the buffer of an operand, which keeps the old value until the last operand is read. No other
        buffers may overlap. What the operands with the numbers `spare` hold afterwards is left open.
        """
        ...

    def host_call(self, equation: Any, memory: Sequence[Buffer], reads: int, native: bool = False) -> None:
        """Evaluate an equation in Python: its operands are the first buffers, its results the others.

        If `native`, the equation's number is the address of a C function, which is called without Python.
        """
        ...

    def local(self, initial: Scalar) -> Local:
        """A new variable; a register if it is local to one kernel."""
        ...

    def scratch(self, shape: tuple[int, ...], dtype: np.dtype) -> Buffer:
        """Uninitialised memory that lives until the rule's last statement."""
        ...

    def overwritable(self, jaxpr: Any, first: int, places: Sequence[int]) -> list[bool]:
        """Whether each of the first results may overwrite an operand: `places` has their numbers, from `first` on."""
        ...

    def row(self, buffer: Buffer, index: Scalar | int) -> Buffer:
        """The part of a buffer at an index of its first axis, itself a buffer."""
        ...

    def number(self, value: Scalar) -> Buffer:
        """A scalar as a buffer of shape (), to be read only."""
        ...

    def range_of(self, value: Scalar | Buffer) -> tuple[int, int]:
        """The smallest and the largest number that an int64 scalar may be; ``int_ranges.UNKNOWN`` for any."""
        ...

    def ranged(self, value: Scalar, known: tuple[int, int]) -> Scalar:
        """An int64 scalar of which the rule knows that it is in a range."""
        ...

    def window(
        self, buffer: Buffer, starts: tuple[int, ...], shape: tuple[int, ...], axes: tuple[int | None, ...]
    ) -> Buffer:
        """A box of a buffer's elements that begins at `starts`; it can be loaded from and stored to.

        `axes` holds for each axis of the buffer the axis of `shape` along it, or None where the box has one element
        that `shape` does not mention.
        """
        ...

    def span(self, tape: Any) -> tuple[Scalar, Scalar]:
        """The number of the first record of a tape (see `core.tape`), and its number of records."""
        ...

    def begin_tape(self, tape: Any) -> Scalar:
        """The number that the first record of a new tape will have."""
        ...

    def reserve(self, tape: Any, records: Scalar) -> None:
        """Make room for `count` more records in the pool of a tape; the kernel fails if that exceeds the limit."""
        ...

    def record(self, tape: Any, number: Scalar) -> Any:
        """The memory of the record with this number."""
        ...

    def end_tape(self, tape: Any, start: Scalar, count: Scalar) -> None:
        """Make a tape of the records from `start` on."""
        ...

    def load(self, buffer: Buffer, index: Sequence[Scalar | int]) -> Scalar:
        """Read one element."""
        ...

    def store(self, buffer: Buffer, index: Sequence[Scalar | int], value: Scalar) -> None:
        """Write one element."""
        ...

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy `source` to `target`, which has the same size and dtype."""
        ...

    def is_same(self, x: Buffer, y: Buffer) -> bool:
        """Whether two buffers are the same memory, so that copying one to the other is free."""
        ...

    def extern(self, name: str, *args: ArrayLike) -> Scalar | None:
        """Call a BLAS or LAPACK routine by its name without the type letter (``"gemm"``, ``"potrf"``).

        Matrices are in Fortran order. Arguments are one-character strings, Python ints, scalars (both by address: int32
        or the routine's number type), buffers or ``(buffer, offset)`` pairs with an element offset. ``info``
        arguments are `Local`s of int32. The letter is chosen from the first buffer's dtype.
        """
        ...

    def has_quick_products(self, dtype: np.dtype) -> bool:
        """Whether ``gemm`` beats loops for narrow matrices too."""
        ...


class Shifted(NamedTuple):
    """The index along an axis plus a number that is not zero."""

    axis: int
    by: int


#: What an index is in terms of other ones: that along an axis, the same plus a number, or something else (None).
Along = int | Shifted | None


@dataclass(frozen=True)
class Pointwise:
    """``emit(k, *scalars, **params) -> Scalar``: one output element from the operands' elements."""

    emit: Callable[..., Scalar]


@dataclass(frozen=True)
class Indexed:
    """``emit(k, index, *operands, out=Aval, **params) -> Scalar``: the output element at `index`.

    `index` is a tuple of int64 scalars, one for each axis of the output.
    """

    emit: Callable[..., Scalar]


@dataclass(frozen=True)
class Reduction:
    """A fold along ``params['axes']`` of the one operand: sum, prod, max, min, any, all, argmax, argmin.

    max and min propagate NaN; argmax and argmin give the first (NaN counts as extreme), as int64. No loop folds these
    two: the rule `simplify` of their primitives puts others in their place.
    """

    fold: str

    @property
    def is_folded(self) -> bool:
        """Whether a loop can do it."""
        return not self.fold.startswith("arg")


@dataclass(frozen=True)
class Reshape:
    """The operand's elements in row-major order: free, or a change of index, or an alias of the buffer."""


@dataclass(frozen=True)
class Block:
    """``emit(k, operands, results, **params)``: fill the result buffers from the operand buffers.

    `reuse` is the number of the operand whose buffer the first result may overwrite if nothing else reads it (the rule
    must then begin with ``k.copy(results[0], operands[reuse])``, which is free in that case, or copy what it does not
    overwrite, unless `k.is_same`), or None. A rule with
    several such pairs has a function of the operands and parameters, which lists them: (operand, result).

    Operands from number `streamed_from` on are only read with ``k.load``, each element about once. They need not be in
    memory: their computation is inlined at the load.

    ``written(*operands, **params)``, if any, says where a rule with both writes: for each axis of the first result the
    axis of the first streamed operand that runs along it, which may be `Shifted`, or None. It stores each element of
    that operand once, just after loading it; the axes of further streamed operands are the leading ones of the first.
    An `ascending` rule does so in the order of that operand's elements in memory.

    ``over_lanes(k, jaxpr, consts, rows, out_rows, length)``, if any, writes the loop over `length` lanes whose body
    `jaxpr` is this equation alone, in a form that vectorizes. It returns whether it could.

    ``ranges(inputs, **params)``, if any, says what is known of the results as numbers, from what is known of the
    operands (`passes.indices.int_ranges.Facts`).
    """

    emit: Callable[..., None]
    reuse: int | Callable[..., Sequence[tuple[int, int]]] | None = None
    streamed_from: int | None = None
    written: Callable[..., tuple[Along, ...]] | None = None
    ascending: bool = False
    over_lanes: Callable[..., bool] | None = None
    ranges: Callable[..., Sequence[Any]] | None = None

    def overwrites(self, operands: Sequence[Any], params: Params) -> Sequence[tuple[int, int]]:
        """The operands of an equation whose buffers its results may have: pairs of their numbers."""
        if self.reuse is None:
            return ()
        return [(self.reuse, 0)] if isinstance(self.reuse, int) else self.reuse(*operands, **params)


KernelRule = Pointwise | Indexed | Reduction | Reshape | Block
