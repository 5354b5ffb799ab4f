"""Compiled kernels of this process, by their outlined text and options."""

from __future__ import annotations

from threading import Lock

from . import loopir as ir
from .compile import CompiledKernel, Options, compile_kernel
from .loopshow import show

_Key = tuple[str, Options]


class KernelCache:
    """Compiles each kernel once, also when several threads ask for it at the same moment.

    A thread that asks for a kernel which another one is compiling waits for it; other kernels compile
    meanwhile.
    """

    def __init__(self) -> None:
        self._kernels: dict[_Key, CompiledKernel] = {}
        self._compiling: dict[_Key, Lock] = {}
        self._lock = Lock()

    def get(self, kernel: ir.Kernel, options: Options) -> tuple[CompiledKernel, bool]:
        """The compiled form of an outlined kernel, and whether it was compiled now."""
        key = show(kernel), options
        found = self._kernels.get(key)
        if found is not None:
            return found, False
        with self._lock:
            mine = self._compiling.setdefault(key, Lock())
        with mine:
            found = self._kernels.get(key)
            if found is not None:
                return found, False
            compiled = compile_kernel(kernel, options)
            self._kernels[key] = compiled
        with self._lock:
            self._compiling.pop(key, None)
        return compiled, True

    def __len__(self) -> int:
        return len(self._kernels)

    def clear(self) -> None:
        """Forget all kernels (those in use stay alive)."""
        with self._lock:
            self._kernels.clear()


#: The kernels of this process.
kernels = KernelCache()
