"""The vocabulary in which a primitive tells how it is computed in a kernel.

A kernel rule stands beside its primitive, below `lowering/`; so the rules are written against the protocols
declared here and `lowering/` implements them. There are five kinds of rule, by how an output element is found:

========== =============================================================================== ==================
`Pointwise` from the operands' elements at the same (broadcast) index                       ``sin``, ``add``
`Indexed`   from operands' elements read at indices computed from the output's index        ``transpose``, ``gather``
`Reduction` by folding a run of operand elements along axes                                 ``reduce_sum``
`Reshape`   the same elements in row-major order under another shape                        ``reshape``
`Block`     by statements that fill whole buffers: loops, BLAS and LAPACK calls             ``dot_general``
========== =============================================================================== ==================

All but the last fuse: they never need their operands in memory. A primitive without a rule is evaluated by
NumPy in a host call between two kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .aval import Aval


class Scalar(Protocol):
    """A scalar of a kernel: combine with Python's operators, compare to get booleans.

    ``+ - *`` take two scalars of one dtype (or a Python number as the second); ``/`` only floats and complex
    numbers; ``& | ^ ~`` integers and booleans; ``<< >>`` integers (the shift amount must be in range).
    Comparisons with NaN are false but for ``!=``. Use `ScalarEmitter.where` instead of ``if``.
    """

    dtype: np.dtype

    def __add__(self, other: Any) -> Scalar: ...
    def __sub__(self, other: Any) -> Scalar: ...
    def __mul__(self, other: Any) -> Scalar: ...
    def __radd__(self, other: Any) -> Scalar: ...
    def __rsub__(self, other: Any) -> Scalar: ...
    def __rmul__(self, other: Any) -> Scalar: ...
    def __truediv__(self, other: Any) -> Scalar: ...
    def __neg__(self) -> Scalar: ...
    def __and__(self, other: Any) -> Scalar: ...
    def __or__(self, other: Any) -> Scalar: ...
    def __xor__(self, other: Any) -> Scalar: ...
    def __invert__(self) -> Scalar: ...
    def __lshift__(self, other: Any) -> Scalar: ...
    def __rshift__(self, other: Any) -> Scalar: ...
    def __lt__(self, other: Any) -> Scalar: ...
    def __le__(self, other: Any) -> Scalar: ...
    def __gt__(self, other: Any) -> Scalar: ...
    def __ge__(self, other: Any) -> Scalar: ...
    def eq(self, other: Any) -> Scalar:
        """Whether the two are equal (false for NaN)."""
        ...

    def ne(self, other: Any) -> Scalar:
        """Whether the two differ (true for NaN)."""
        ...


class ScalarEmitter(Protocol):
    """What a `Pointwise` rule may say."""

    def const(self, value: Any, dtype: np.dtype) -> Scalar:
        """A literal number of the given dtype."""
        ...

    def call(self, name: str, *args: Scalar) -> Scalar:
        """A function of `scalar_functions.FUNCTIONS`; complex operands where NumPy takes them.

        ``bits`` gives the bits of a float as a signed integer of its size. ``multiply`` always rounds the product,
        where ``x * y`` and an addition may become one operation.
        ``idiv`` and ``irem`` truncate towards zero and must not meet a zero divisor or overflow: guard with
        `where`. ``min`` and ``max`` propagate NaN.
        """
        ...

    def cast(self, x: Scalar, dtype: np.dtype) -> Scalar:
        """NumPy's ``astype`` of one number (bool from a number is ``x != 0``; real from complex drops the rest)."""
        ...

    def where(self, condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
        """`x` where the condition holds, else `y`; both are computed."""
        ...


class Operand(Protocol):
    """An operand of an `Indexed` rule: something that can be read at an index."""

    aval: Aval

    def __getitem__(self, index: Sequence[Scalar | int]) -> Scalar:
        """The element at an index tuple (int64 scalars or Python ints), which must be within bounds."""
        ...


class IndexEmitter(ScalarEmitter, Protocol):
    """What an `Indexed` rule may say besides: integer arithmetic on indices, guarded reads, failures."""

    def guarded(self, condition: Scalar, read: Callable[[], Scalar], otherwise: Scalar) -> Scalar:
        """``read()`` where the condition holds, else `otherwise`; nothing out of bounds is touched."""
        ...

    def fail_if(self, condition: Scalar) -> None:
        """Make the kernel report failure of this equation (the wrapper then finds and names the culprit)."""
        ...


class Buffer(Protocol):
    """A C-contiguous array in memory, or a row of one, as a `Block` rule sees it."""

    shape: tuple[int, ...]
    dtype: np.dtype


class Local(Protocol):
    """A scalar variable that can be assigned, for accumulators."""

    def get(self) -> Scalar:
        """The value now."""
        ...

    def set(self, value: Scalar) -> None:
        """Assign."""
        ...


class BlockEmitter(IndexEmitter, Protocol):
    """What a `Block` rule may say besides: loops, loads, stores, scratch memory, BLAS and LAPACK."""

    #: Whether sums are to be taken in the order that is written.
    in_order: bool

    def loop(
        self,
        stop: int | Scalar,
        start: int | Scalar = 0,
        *,
        reverse: bool = False,
        interruptible: bool = False,
    ) -> AbstractContextManager[Scalar]:
        """A loop whose context value is the int64 index from `start` to `stop` - 1 (downwards if `reverse`).

        One that the user wrote should be `interruptible`: Ctrl-C ends it.
        """
        ...

    def while_(self, test: Callable[[], Scalar]) -> AbstractContextManager[None]:
        """A loop that runs as long as ``test()``, evaluated before each iteration, holds."""
        ...

    def if_(self, condition: Scalar) -> AbstractContextManager[None]:
        """Statements that run only where the condition holds."""
        ...

    def inline(self, jaxpr: Any, operands: Sequence[Buffer], results: Sequence[Buffer]) -> None:
        """The statements of a jaxpr without captured arrays, from buffers to buffers.

        A result may be the buffer of an operand: it holds the old value until the last operand is read. All other
        memory is apart.
        """
        ...

    def host_call(self, entry: Any, memory: Sequence[Buffer], reads: int) -> None:
        """Have Python evaluate an equation: its operands are the first so many buffers, its results the others."""
        ...

    def local(self, initial: Scalar) -> Local:
        """A new variable; as a register if it lives in one kernel."""
        ...

    def scratch(self, shape: tuple[int, ...], dtype: np.dtype) -> Buffer:
        """Memory that lives until the rule's last statement, uninitialised."""
        ...

    def overwritable(self, jaxpr: Any, first: int, count: int) -> list[bool]:
        """Whether each of the first results may be written over the operand of its number from `first` on."""
        ...

    def row(self, buffer: Buffer, index: Scalar | int) -> Buffer:
        """The part of a buffer at an index of its first axis; it is a buffer, too."""
        ...

    def span(self, tape: Any) -> tuple[Scalar, Scalar]:
        """Of a tape (see `core.tape`) the number of its first record, and how many there are."""
        ...

    def begin_tape(self, tape: Any) -> Scalar:
        """The number of the record that will be the first of a new tape."""
        ...

    def reserve(self, tape: Any, records: Scalar) -> None:
        """Make room for so many records in the pool of a tape; the kernel fails where that is beyond the limit."""
        ...

    def record(self, tape: Any, number: Scalar) -> Any:
        """The memory of a record, by its number."""
        ...

    def end_tape(self, tape: Any, start: Scalar, count: Scalar) -> None:
        """Make a tape of the records from `start` on."""
        ...

    def load(self, buffer: Buffer, index: Sequence[Scalar | int]) -> Scalar:
        """One element."""
        ...

    def store(self, buffer: Buffer, index: Sequence[Scalar | int], value: Scalar) -> None:
        """Write one element."""
        ...

    def copy(self, target: Buffer, source: Buffer) -> None:
        """All of `source` into `target`, of equal size and dtype."""
        ...

    def extern(self, name: str, *args: Any) -> Scalar | None:
        """Call a BLAS or LAPACK routine by its name without the type letter (``"gemm"``, ``"potrf"``), Fortran order.

        Arguments are one-character strings, Python ints, scalars (both passed by address as Fortran wants: int32
        or the routine's number type), buffers or ``(buffer, offset)`` pairs with an element offset. ``info``
        arguments are `Local`s of int32. The letter is chosen from the first buffer's dtype.
        """
        ...

    def has_quick_products(self, dtype: np.dtype) -> bool:
        """Whether ``gemm`` is quicker than loops for narrow matrices, too."""
        ...


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

    max and min propagate NaN; argmax and argmin give the first (NaN counts as extreme), as int64.
    """

    fold: str


@dataclass(frozen=True)
class Reshape:
    """The operand's elements in row-major order; costs nothing, or changes the index, or aliases the buffer."""


@dataclass(frozen=True)
class Block:
    """``emit(k, operands, results, **params)``: fill the result buffers from the operand buffers.

    `reuse` names the operand whose buffer the first result may overwrite when nobody else reads it (the rule must
    then begin with ``k.copy(results[0], operands[reuse])``, which costs nothing in that case); None for none.

    Operands from number `streamed_from` on are only read by ``k.load``, each element about once. They need not be in
    memory: what computes them is put in the place of the load.
    """

    emit: Callable[..., None]
    reuse: int | None = None
    streamed_from: int | None = None


KernelRule = Pointwise | Indexed | Reduction | Reshape | Block
