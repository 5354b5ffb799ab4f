"""The objects that kernel rules work with: scalars, variables and memory (implements `functrans.core.kernel`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ...core.tape import TapeAval
from ...core.values import PyTree
from . import ir
from .ir import INT64


class Writer(Protocol):
    """What scalars and variables ask of the builder that they belong to (see `arithmetic.Arithmetic`)."""

    def binary(self, op: str, x: ScalarHandle, other: Any, *, reassoc: bool = False) -> ScalarHandle: ...  # noqa: D102
    def unary(self, op: str, x: ScalarHandle) -> ScalarHandle: ...  # noqa: D102
    def scalar(self, x: Any, dtype: np.dtype = INT64) -> ScalarHandle: ...  # noqa: D102
    def extent(self, n: int) -> ScalarHandle: ...  # noqa: D102
    def append(self, statement: Any) -> None: ...  # noqa: D102


class ScalarHandle:
    """A scalar of a kernel (see `functrans.core.kernel.Scalar`): an operand and the builder it belongs to."""

    __slots__ = ("builder", "operand")

    def __init__(self, builder: Writer, operand: ir.Operand):
        self.builder = builder
        self.operand = operand

    @property
    def dtype(self) -> np.dtype:
        """The scalar's dtype."""
        return self.operand.dtype

    def _binary(self, op: str, other: Any) -> ScalarHandle:
        return self.builder.binary(op, self, other)

    def _reflected(self, op: str, other: Any) -> ScalarHandle:
        return self.builder.binary(op, self.builder.scalar(other, self.dtype), self)

    def __add__(self, other: Any) -> ScalarHandle:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> ScalarHandle:
        return self._reflected("add", other)

    def __sub__(self, other: Any) -> ScalarHandle:
        return self._binary("sub", other)

    def __rsub__(self, other: Any) -> ScalarHandle:
        return self._reflected("sub", other)

    def __mul__(self, other: Any) -> ScalarHandle:
        return self._binary("mul", other)

    def __rmul__(self, other: Any) -> ScalarHandle:
        return self._reflected("mul", other)

    def __truediv__(self, other: ScalarHandle) -> ScalarHandle:
        return self._binary("div", other)

    def __rtruediv__(self, other: Any) -> ScalarHandle:
        return self._reflected("div", other)

    def __neg__(self) -> ScalarHandle:
        return self.builder.unary("neg", self)

    def __and__(self, other: Any) -> ScalarHandle:
        return self._binary("and", other)

    def __or__(self, other: ScalarHandle) -> ScalarHandle:
        return self._binary("or", other)

    def __xor__(self, other: Any) -> ScalarHandle:
        return self._binary("xor", other)

    def __invert__(self) -> ScalarHandle:
        return self.builder.unary("not", self)

    def __lshift__(self, other: Any) -> ScalarHandle:
        return self._binary("shl", other)

    def __rshift__(self, other: Any) -> ScalarHandle:
        return self._binary("shr", other)

    def __lt__(self, other: Any) -> ScalarHandle:
        return self._binary("lt", other)

    def __le__(self, other: Any) -> ScalarHandle:
        return self._binary("le", other)

    def __gt__(self, other: Any) -> ScalarHandle:
        return self._binary("gt", other)

    def __ge__(self, other: Any) -> ScalarHandle:
        return self._binary("ge", other)

    def eq(self, other: Any) -> ScalarHandle:
        """Equality (``==`` compares the Python objects)."""
        return self._binary("eq", other)

    def ne(self, other: Any) -> ScalarHandle:
        """Inequality (true for NaN)."""
        return self._binary("ne", other)

    def __bool__(self) -> bool:
        raise TypeError("a kernel's scalar has no truth value: use `where`, `guarded` or `if_`")

    def __repr__(self) -> str:
        return f"ScalarHandle({self.operand!r})"


class View:
    """A part of a buffer: the elements with certain first indices. Rules treat it as a buffer."""

    __slots__ = ("buffer", "prefix", "shape")

    def __init__(self, buffer: ir.BufferDecl, prefix: tuple[ScalarHandle, ...]):
        self.buffer = buffer
        self.prefix = prefix
        self.shape = buffer.shape[len(prefix) :]

    @property
    def dtype(self) -> np.dtype:
        """The buffer's dtype."""
        return self.buffer.dtype

    @property
    def key(self) -> PyTree:
        """Whether the other is a view of the same memory."""
        return self.buffer.place, tuple([i.operand for i in self.prefix])

    def place(self, index: Sequence[ScalarHandle | int]) -> tuple[ScalarHandle | int, ...]:
        """The index in the buffer of the element at an index."""
        return (*self.prefix, *index)


class Window(View):
    """A box of a memory's elements, in a shape with other axes of extent 1 (see `BlockEmitter.window`)."""

    __slots__ = ("axes", "inside", "starts")

    def __init__(
        self, inside: Memory, starts: tuple[int, ...], shape: tuple[int, ...], axes: tuple[int | None, ...]
    ):
        self.inside = inside
        self.buffer = inside.buffer if isinstance(inside, View) else inside
        self.prefix = ()
        self.shape = shape
        self.starts = starts
        self.axes = axes

    @property
    def key(self) -> Any:
        """Whether the other is a view of the same memory."""
        return memory_key(self.inside), self.starts, self.shape, self.axes

    def place(self, index: Sequence[ScalarHandle | int]) -> tuple[ScalarHandle | int, ...]:
        """The index in the buffer of the element at an index."""
        whole = [
            start if d is None else index[d] + start if start else index[d]
            for start, d in zip(self.starts, self.axes)
        ]
        return self.inside.place(whole) if isinstance(self.inside, View) else tuple(whole)


class Known:
    """A number that a rule reads as it reads memory of one element, which would have this `dtype`."""

    __slots__ = ("dtype", "shape", "value")

    def __init__(self, value: ScalarHandle, shape: tuple[int, ...] = (), dtype: np.dtype | None = None):
        self.value = value
        self.shape = shape
        self.dtype = value.dtype if dtype is None else dtype


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
Place = Memory | Known | TapeMemory


class LocalHandle:
    """A scalar variable of a kernel (see `functrans.core.kernel.Local`)."""

    __slots__ = ("builder", "var")

    def __init__(self, builder: Writer, var: ir.LocalVar):
        self.builder = builder
        self.var = var

    def get(self) -> ScalarHandle:
        """The variable's current value."""
        value = ir.Value(self.var.dtype)
        self.builder.append(ir.Get(value, self.var))
        return ScalarHandle(self.builder, value)

    def set(self, value: ScalarHandle) -> None:
        """Assign a value."""
        self.builder.append(ir.Set(self.var, self.builder.scalar(value, self.var.dtype).operand))


def storages_of(memory: Place) -> tuple[str, ...]:
    """The storages of some memory."""
    if isinstance(memory, TapeMemory):
        return (*storages_of(memory.spans), *[pool.place for pool in memory.pools])
    if isinstance(memory, Known):
        return ()
    return (memory.buffer.place if isinstance(memory, View) else memory.place,)


def memory_key(memory: Place) -> Any:
    """Whether both are the same memory."""
    if isinstance(memory, TapeMemory):
        return memory_key(memory.spans)
    if isinstance(memory, Known):
        return memory.value
    return memory.key if isinstance(memory, View) else (memory.place, ())
