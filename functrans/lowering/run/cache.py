"""Compiled kernels of this process, by their outlined text and options."""

from __future__ import annotations

from typing import Any

from ...core.context import new_lock
from ..backend import Options
from ..loops import ir
from ..loops.show import show
from ..undisturbed import undisturbed
from .compile import CompiledKernel, compile_kernel

_Key = tuple[str, Options]


class KernelCache:
    """Compiles each kernel once, also when several threads ask for it at the same moment.

    A thread that asks for a kernel which another one is compiling waits for it.
    """

    def __init__(self) -> None:
        self._kernels: dict[_Key, CompiledKernel] = {}
        self._compiling: dict[_Key, Any] = {}
        self._lock = new_lock()

    def get(self, kernel: ir.Kernel, options: Options) -> tuple[CompiledKernel, bool]:
        """The compiled form of an outlined kernel, and whether it was compiled now."""
        key = show(kernel), options
        known = self._kernels.get(key)
        return (known, False) if known is not None else undisturbed(self._compiled, key, kernel)

    def _compiled(self, key: _Key, kernel: ir.Kernel) -> tuple[CompiledKernel, bool]:
        with self._lock:
            mine = self._compiling.setdefault(key, new_lock())
        try:
            with mine:
                known = self._kernels.get(key)
                if known is not None:
                    return known, False
                compiled = self._kernels[key] = compile_kernel(kernel, key[1])
                return compiled, True
        finally:
            with self._lock:
                self._compiling.pop(key, None)

    def __len__(self) -> int:
        return len(self._kernels)

    def clear(self) -> None:
        """Forget all kernels (those in use stay alive)."""
        with self._lock:
            self._kernels.clear()


#: The kernels of this process.
kernels = KernelCache()
