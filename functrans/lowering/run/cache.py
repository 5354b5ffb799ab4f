"""The compiled kernels in use in this process, by their outlined text and options."""

from __future__ import annotations

from typing import Any

from ...runtime.context import LivingValues, new_lock
from ...runtime.private.python_names import blake2b
from ..backend import Options, Origin
from ..llvm.c import memory
from ..llvm.objects import libraries
from ..llvm.store import forget
from ..loops import ir
from ..loops.show import show
from ..undisturbed import undisturbed
from .compile import CompiledKernel, compile_kernel

_Key = tuple[bytes, tuple[Any, ...]]


class KernelCache:
    """Compiles each kernel once, even if several threads ask for it at the same time.

    A thread that needs a kernel which another one is compiling waits for it. A kernel lives as long as it is
    referenced: its machine code is freed after the last function that runs it, when another kernel is made or `clear`
    is called.
    """

    def __init__(self) -> None:
        self._kernels: LivingValues[_Key, CompiledKernel] = LivingValues()
        self._compiling: dict[_Key, Any] = {}
        self._lock = new_lock()

    def get(self, kernel: ir.Kernel, options: Options) -> tuple[CompiledKernel, Origin]:
        """The compiled form of an outlined kernel, and where it comes from."""
        text = show(kernel)
        key = blake2b(text.encode(), digest_size=24).digest(), options.key
        known = self._kernels.get(key)
        return (
            (known, "memory")
            if known is not None
            else undisturbed(self._compiled, key, kernel, options, text)
        )

    def _compiled(
        self, key: _Key, kernel: ir.Kernel, options: Options, text: str
    ) -> tuple[CompiledKernel, Origin]:
        libraries.run()
        with self._lock:
            mine = self._compiling.setdefault(key, new_lock())
        try:
            with mine:
                known = self._kernels.get(key)
                if known is not None:
                    return known, "memory"
                compiled = self._kernels[key] = compile_kernel(kernel, options, text)
                return compiled, compiled.code.origin
        finally:
            with self._lock:
                self._compiling.pop(key, None)

    def __len__(self) -> int:
        return len(self._kernels)

    def clear(self) -> None:
        """Forget all kernels, except those in use, the object code of those that were in use, and memory of results."""
        with self._lock:
            self._kernels.clear()
        forget()
        memory.forget()
        undisturbed(libraries.run)


#: The kernels of this process.
kernels = KernelCache()
