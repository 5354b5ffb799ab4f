"""Calls that write their results to memory of the caller's, ``g.into(out, ...)``: the check of types, and the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...frontend.arguments import name_of
from ...runtime.private.numba_names import cgutils
from ..numba_parts import NumbaType
from .arguments import TypesError, types
from .lowering import CallEmitter, word


def check_memory(jitted: Any, out: Any, result: Any, place: str = "out") -> None:
    """Check the type of the memory for results.

    Raises
    ------
    TypesError
        If it is not a writable array, or a tuple of them, for these results.
    """
    where = f"into of {name_of(jitted.__wrapped__)}: {place}"
    if isinstance(result, types.BaseTuple):
        if not isinstance(out, types.BaseTuple) or len(out) != len(result):
            raise TypesError(f"{where} must be a tuple of {len(result)}, as the result is; got a {out}")
        for i, (o, r) in enumerate(zip(out, result)):
            check_memory(jitted, o, r, f"{place}[{i}]")
        return
    if isinstance(result, types.NoneType):
        if not isinstance(out, types.NoneType):
            raise TypesError(f"{where} must be None, as the result is; got a {out}")
        return
    ndim, dtype = (result.ndim, result.dtype) if isinstance(result, types.Array) else (0, result)
    if not isinstance(out, types.Array):
        raise TypesError(f"{where} must be an array of {ndim} axes and dtype {dtype}; got a {out}")
    if (out.ndim, out.dtype) != (ndim, dtype):
        raise TypesError(
            f"{where} is an array of {out.ndim} axes and dtype {out.dtype}; the result has {ndim} and dtype {dtype}"
        )
    if not out.mutable:
        raise TypesError(f"{where} is read-only")


class IntoEmitter(CallEmitter):
    """A call that writes its results to memory of the caller's."""

    def emit(self, values: Sequence[Any], memory: Any) -> Any:
        """Write the call; `values` are the memory of the results, whose type is `memory`, and the arguments."""
        self.take(values[1:])
        self.find()
        arrays = []
        for _, path in self.outs:
            typ = memory
            for k in path:
                typ = typ[k]
            value = self.part(values[0], path)
            arrays.append((typ, self.context.make_array(typ)(self.context, self.builder, value)))
        self.check_sizes(arrays)
        written: list[tuple[Any, Any]] = []
        blocks = [self.place(j, typ, array, written) for j, (typ, array) in enumerate(arrays)]
        self.run()
        for (typ, array), block in zip(arrays, blocks):
            copy = self.builder.load(block)
            with self.builder.if_then(self.builder.icmp_unsigned("!=", copy, word(0)), likely=False):
                self.deliver(typ, array, copy)
        self.free_temporary()
        return self.context.get_dummy_value()

    def check_sizes(self, arrays: Sequence[tuple[Any, Any]]) -> None:
        """Return with an error unless the memory has the sizes of the results."""
        b = self.builder
        sizes = [n for typ, array in arrays for n in cgutils.unpack_tuple(b, array.shape, typ.ndim)]
        same = cgutils.true_bit
        for i, n in enumerate(sizes):
            same = b.and_(same, b.icmp_signed("==", self.load(self.entry, 1 + len(self.sizes) + i), n))
        with b.if_then(b.not_(same), likely=False):
            given = self.stack(len(sizes))
            for i, n in enumerate(sizes):
                self.store(n, given, i)
            self.leave_if_raised(self.helper("refuse", self.table, self.entry, given))

    def place(self, j: int, typ: NumbaType, array: Any, written: list[tuple[Any, Any]]) -> Any:
        """Choose where result `j` is written; returns where the address of memory for a copy is, or zero.

        The kernel writes to the caller's array if that is contiguous, and overlaps no argument and no array that
        is written too.
        """
        b = self.builder
        address, size = b.ptrtoint(array.data, word(0).type), self.nbytes(typ, array)
        direct = self.is_tidy(typ, array)
        for other, other_size in [*self.read, *written]:
            before = b.icmp_unsigned("<=", b.add(address, size), other)
            after = b.icmp_unsigned("<=", b.add(other, other_size), address)
            direct = b.and_(direct, b.or_(before, after))
        written.append((address, size))
        block, place = self.stack(1), self.stack(1)
        self.store(word(0), block, 0)
        self.store(address, place, 0)
        with b.if_then(b.not_(direct), likely=False):
            copy = self.malloc(size)
            self.store(copy, block, 0)
            self.store(copy, place, 0)
        self.temporary.append(block)
        self.store(b.load(place), self.data, self.count + j)
        return block

    def deliver(self, typ: NumbaType, array: Any, copy: Any) -> None:
        """Write a result from contiguous memory to the caller's array."""
        b = self.builder
        with b.if_else(self.is_tidy(typ, array)) as (tidy, strided):
            with tidy:
                self.copy(b.ptrtoint(array.data, copy.type), copy, self.nbytes(typ, array))
            with strided:
                self.each_element(typ, array, copy, reading=False)
