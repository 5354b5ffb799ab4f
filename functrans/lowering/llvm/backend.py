"""The LLVM backend: kernels inside Numba-jitted entries.

One intrinsic serves all kernels: its literal argument is a number that identifies the kernel's LLVM text. The entry is
an ``@njit`` function that consists of this intrinsic, so compiling it compiles the kernel, in Numba's library and with
Numba's symbol resolution. Entries have no CPython wrapper (it would cost 10 ms each): Python calls kernels through
`native_call`.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backend import Options, Run, UnsupportedKernelError
from ..blas import MissingRoutineError, publish
from ..loops import ir
from .emit import LLVMKernel, emit_llvm
from .gemm import publish_products
from .native_call import ARRAY_DATA, TUPLE_ITEMS, native_call


class LLVM:
    """Implements `Backend`: native code from a kernel's LLVM text."""

    name = "intrinsic"

    def takes(self, kernel: ir.Kernel) -> bool:
        """It supports every kernel."""
        return True

    def compile(self, kernel: ir.Kernel, options: Options) -> NativeCode:
        """See `Backend.compile`; fails if SciPy or the C library lacks a routine that the kernel calls."""
        if not layout_is_known():
            raise UnsupportedKernelError("arrays have an unknown memory layout")
        code = emit_llvm(kernel, strict=options.strict, checked=options.checked)
        try:
            entry, address = compile_entry(code)
        except MissingRoutineError as error:
            raise UnsupportedKernelError(error.args[0]) from error
        return NativeCode(entry, code.text, address)


@dataclass(frozen=True, eq=False)
class NativeCode:
    """Implements `Code`; `address` is that of the kernel's machine code."""

    entry: Any
    llvm: str
    address: int

    def bind(self, ints: tuple[int, ...], floats: tuple[float, ...], nogil: bool) -> Run:
        """See `Code.bind`."""
        numbers = struct.pack(f"{len(ints)}q{len(floats)}d", *ints, *floats)
        return native_call(self.address, numbers, nogil, self.entry)


_texts: dict[int, LLVMKernel] = {}
_numbers = itertools.count()


def compile_entry(code: LLVMKernel) -> tuple[Any, int]:
    """The jitted entry of a kernel and the address of the kernel's code.

    Jitted code may call the entry with two integers, the addresses of a tuple of arrays and of the parameter words;
    Python calls it through `native_call`.
    """
    import numba
    from numba.core import types

    publish_products(code.symbols)
    publish(sorted(code.symbols))
    number = next(_numbers)
    _texts[number] = code
    try:
        options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "no_rewrites": True}
        entry = numba.njit(types.intp(types.intp, types.intp), **options)(
            _make_entry(number, _kernel_intrinsic())
        )
    finally:
        del _texts[number]
    result: Any = next(iter(entry.overloads.values()))
    address = result.library.get_pointer_to_function(code.entry)
    if not address:
        raise RuntimeError(f"Numba's library has no symbol {code.entry}")
    return entry, address


def _make_entry(number: int, kernel: Callable[..., Any]) -> Callable[[int, int], int]:
    def entry(arrays: int, numbers: int) -> int:
        return kernel(number, arrays, numbers)

    return entry


@functools.cache
def _kernel_intrinsic() -> Any:
    """The intrinsic that adds a kernel's LLVM to the library being compiled and calls it."""
    import llvmlite.binding as llvm
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    word = ir.IntType(64)

    @intrinsic(prefer_literal=True)
    def kernel(typing_context: Any, number: Any, arrays: Any, numbers: Any) -> Any:
        code = _texts[number.literal_value]

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            context.active_code_library.add_llvm_module(llvm.parse_assembly(code.text))
            function = ir.Function(builder.module, ir.FunctionType(word, [word, word]), code.entry)
            return builder.call(function, args[1:])

        return types.intp(number, types.intp, types.intp), generate

    return kernel


@functools.cache
def layout_is_known() -> bool:
    """Whether tuples and arrays have the memory layout that kernels assume."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    arrays = tuple(np.zeros(n) for n in (1, 5, 2))
    items = (ctypes.c_size_t * 3).from_address(id(arrays) + TUPLE_ITEMS)
    if [*items] != [id(a) for a in arrays]:
        return False
    found = [ctypes.c_size_t.from_address(id(a) + ARRAY_DATA).value for a in arrays]
    return found == [a.ctypes.data for a in arrays]
