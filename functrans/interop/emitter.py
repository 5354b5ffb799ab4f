"""Instructions for the memory of Numba's arrays, which the code around calls of both directions shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ..core.values import PyTree
from ..runtime.private.numba_names import cgutils, populate_array
from .numba_parts import LLVMBuilder, NumbaType, TargetContext

_I64, _I32, _I8 = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_BYTES = _I8.as_pointer()


def word(n: int) -> Any:
    """A constant word."""
    return ir.Constant(_I64, n)


class ArrayEmitter:
    """Writes instructions; `context` and `builder` are Numba's."""

    def __init__(self, context: TargetContext, builder: LLVMBuilder):
        self.context, self.builder = context, builder

    def stack(self, words: int) -> Any:
        """Words on the stack."""
        return cgutils.alloca_once(self.builder, _I64, size=max(words, 1))

    def at(self, words: Any, i: Any) -> Any:
        """The address of a word."""
        return self.builder.gep(words, [word(i) if isinstance(i, int) else i])

    def load(self, words: Any, i: Any) -> Any:
        """A word."""
        return self.builder.load(self.at(words, i))

    def store(self, value: Any, words: Any, i: Any) -> None:
        """Write a word."""
        if isinstance(value.type, ir.PointerType):
            value = self.builder.ptrtoint(value, _I64)
        self.builder.store(value, self.at(words, i))

    def c_function(self, name: str, result: Any, *arguments: PyTree) -> Any:
        """A function of the process."""
        return cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(result, arguments), name)

    def free(self, address: Any) -> None:
        """Free memory."""
        free = self.c_function("free", ir.VoidType(), _BYTES)
        self.builder.call(free, [self.builder.inttoptr(address, _BYTES)])

    def copy(self, to: Any, source: Any, nbytes: Any) -> None:
        """Copy bytes from one address, a word, to another."""
        to, source = (self.builder.inttoptr(x, _BYTES) for x in (to, source))
        cgutils.raw_memcpy(self.builder, to, source, nbytes, word(1))

    def part(self, value: Any, path: Sequence[int]) -> Any:
        """The value at a place in a tuple of tuples."""
        for k in path:
            value = self.builder.extract_value(value, k)
        return value

    def runtime_memory(self, size: Any, align: Any) -> Any:
        """Memory of Numba's runtime; raises if there is none."""
        return self.context.nrt.meminfo_alloc_aligned(self.builder, size, align)

    def new_array(self, typ: NumbaType, shape: Sequence[Any]) -> Any:
        """A new array, contiguous as all that are made here."""
        b, context = self.builder, self.context
        size = word(context.get_abi_sizeof(context.get_data_type(typ.dtype)))
        for n in shape:
            size = b.mul(size, n)
        align = ir.Constant(_I32, context.get_preferred_array_alignment(typ.dtype))
        memory = self.runtime_memory(size, align)
        return self.array(typ, shape, context.nrt.meminfo_data(b, memory), memory)

    def array(self, typ: NumbaType, shape: Sequence[Any], data: Any, memory: Any = None) -> Any:
        """An array of memory that it owns, unless `memory` is None."""
        b, context = self.builder, self.context
        width = word(context.get_abi_sizeof(context.get_data_type(typ.dtype)))
        strides, size = [], width
        for n in reversed(shape):
            strides.append(size)
            size = b.mul(size, n)
        array = context.make_array(typ)(context, b)
        populate_array(
            array,
            data=b.bitcast(data, array.data.type),
            shape=tuple(shape),
            strides=tuple(reversed(strides)),
            itemsize=width,
            meminfo=memory,
        )
        return array

    def nbytes(self, typ: NumbaType, array: Any) -> Any:
        """The size of an array's elements in bytes."""
        size = array.itemsize
        for n in cgutils.unpack_tuple(self.builder, array.shape, typ.ndim):
            size = self.builder.mul(size, n)
        return size

    def is_tidy(self, typ: NumbaType, array: Any) -> Any:
        """Whether an array is C-contiguous and aligned."""
        expected, tidy = array.itemsize, cgutils.true_bit
        if typ.layout == "C" and typ.aligned:
            return tidy
        shape = cgutils.unpack_tuple(self.builder, array.shape, typ.ndim)
        strides = cgutils.unpack_tuple(self.builder, array.strides, typ.ndim)
        for n, stride in reversed(list(zip(shape, strides))):
            single = self.builder.icmp_signed("<=", n, word(1))
            same = self.builder.icmp_signed("==", stride, expected)
            tidy = self.builder.and_(tidy, self.builder.or_(single, same))
            expected = self.builder.mul(expected, n)
        if not typ.aligned:
            low = self.builder.and_(self.builder.ptrtoint(array.data, _I64), word(15))
            tidy = self.builder.and_(tidy, self.builder.icmp_unsigned("==", low, word(0)))
        return tidy

    def each_element(self, typ: NumbaType, array: Any, contiguous: Any, *, reading: bool) -> None:
        """Copy between a strided array and contiguous memory, from the array if `reading`."""
        shape = cgutils.unpack_tuple(self.builder, array.shape, typ.ndim)
        strides = cgutils.unpack_tuple(self.builder, array.strides, typ.ndim)
        base = self.builder.ptrtoint(array.data, _I64)
        width = self.context.get_abi_sizeof(self.context.get_data_type(typ.dtype))
        with cgutils.loop_nest(self.builder, shape, _I64) as indices:
            place, number = base, word(0)
            for n, stride, i in zip(shape, strides, indices):
                place = self.builder.add(place, self.builder.mul(i, stride))
                number = self.builder.add(self.builder.mul(number, n), i)
            other = self.builder.add(contiguous, self.builder.mul(number, word(width)))
            to, source = (other, place) if reading else (place, other)
            self.copy(to, source, word(width))
