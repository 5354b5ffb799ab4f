"""The LLVM backend: kernels as native code.

LLVM compiles a kernel's text to object code, with the settings that Numba uses. The object is loaded and called by its
address. This does not need Numba itself, whose import and first use take half a second. Numba comes in where jitted
code of the user's is to call a kernel: `NativeCode.entry`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...runtime.context import cached_property
from ...runtime.libraries import llvmlite, numba
from ...runtime.module_getattr import lazy_import
from ...runtime.passes import LLVM_PASSES
from ..backend import Options, Run, UnsupportedKernelError
from ..blas import MissingRoutineError
from ..loops import ir
from ..loops.show import show
from ..processor import processor
from ..steps import packed_numbers
from .c.native_call import layout_is_known, native_call
from .objects import Effort, LoadedCode, ObjectCode, compile_assembly, compile_object
from .store import Origin, object_code, obtain
from .symbols import address_of, load

#: A process that finds its kernels in the cache does without it.
emit = lazy_import("functrans.lowering.llvm.emit")


class LLVM:
    """Implements `Backend`: native code from a kernel's LLVM text."""

    name = "llvm"

    def takes(self, kernel: ir.Kernel) -> bool:
        """It supports every kernel."""
        return True

    def compile(self, kernel: ir.Kernel, options: Options, text: str = "") -> NativeCode:
        """See `Backend.compile`; fails if SciPy or the C library lacks a routine that the kernel calls."""
        if not layout_is_known():
            raise UnsupportedKernelError("arrays have an unknown memory layout")
        cpu = processor(options.cpu)
        key_text = _key_text(kernel, options, text)
        try:
            loaded, origin = obtain(key_text, cpu, kernel.name, lambda: compile_text(kernel, options), load)
        except MissingRoutineError as error:
            raise UnsupportedKernelError(error.args[0]) from error
        return NativeCode(kernel, options, loaded, origin)


def kernel_code(kernel: ir.Kernel, options: Options) -> tuple[str, ObjectCode]:
    """The object code of a kernel and its key, from the cache or compiled."""
    cpu = processor(options.cpu)
    return object_code(_key_text(kernel, options), cpu, kernel.name, lambda: compile_text(kernel, options))


def _key_text(kernel: ir.Kernel, options: Options, text: str = "") -> str:
    key_text = f"{text or show(kernel)}\nstrict={options.strict} checked={options.checked}"
    return key_text + f" without={sorted(options.without)}" * bool(options.without)


def compile_text(kernel: ir.Kernel, options: Options) -> ObjectCode:
    """The object code of a kernel."""
    code = emit.emit_llvm(kernel, options)
    for name in code.symbols:
        address_of(name)
    return compile_object(code.text, code.entry, processor(options.cpu), _effort(options))


def assembly_of(kernel: ir.Kernel, options: Options) -> str:
    """The assembly code of a kernel, as it is compiled."""
    return compile_assembly(emit.emit_llvm(kernel, options).text, processor(options.cpu), _effort(options))


def _effort(options: Options) -> Effort:
    return "all" if options.runs(LLVM_PASSES) else "little"


class NativeCode:
    """Implements `Code`.

    Attributes
    ----------
    address : int
        Of the kernel's machine code: a function of the address of a tuple of arrays and that of the parameter words,
        which returns the status. It is good for as long as this object lives.
    """

    def __init__(self, kernel: ir.Kernel, options: Options, loaded: LoadedCode, origin: Origin):
        self.origin = origin
        self._kernel = kernel
        self._options = options
        self._loaded = loaded
        self.address = loaded.address

    @property
    def size(self) -> int:
        """See `Code`."""
        return self._loaded.size

    @property
    def llvm(self) -> str:
        """See `Code`."""
        text: str = emit.emit_llvm(self._kernel, self._options).text
        return text

    @cached_property
    def entry(self) -> Any:
        """The kernel as a function that Numba jitted, of two integers: see `address`. Jitted code may call it."""
        return _jitted(self.address, self._loaded)

    def bind(
        self,
        ints: tuple[int, ...],
        floats: tuple[float, ...],
        nogil: bool,
        leaves: Sequence[np.dtype | None] = (),
    ) -> Run:
        """See `Code.bind`. Some arrays may be Python's numbers: those with a dtype in `leaves` (see `native_call`)."""
        return native_call(self.address, packed_numbers(ints, floats), nogil, self._loaded, leaves)


def _jitted(address: int, keep: LoadedCode) -> Any:
    """A jitted function that jumps to an address."""
    jump = _jump()

    def kernel(arrays: int, numbers: int) -> int:
        return jump(address, arrays, numbers)

    kernel.__dict__["keep"] = keep
    return numba.njit(numba.types.intp(numba.types.intp, numba.types.intp))(kernel)


@functools.cache
def _jump() -> Any:
    """The jitted form of a call of an address."""
    word = llvmlite.ir.IntType(64)

    @numba.extending.intrinsic
    def jump(typing_context: Any, address: Any, arrays: Any, numbers: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], llvmlite.ir.FunctionType(word, [word, word]).as_pointer())
            status = builder.call(pointer, args[1:])
            # A negative one says that an exception is pending.
            with builder.if_then(builder.icmp_signed("<", status, word(0)), likely=False):
                context.call_conv.return_exc(builder)
            return status

        return numba.types.intp(numba.types.intp, numba.types.intp, numba.types.intp), generate

    return jump
