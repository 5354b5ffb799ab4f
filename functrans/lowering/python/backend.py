"""The backends of the Python form: plain Python, and plain ``@njit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import is_low
from ...runtime.context import run_quietly
from ...runtime.libraries import numba
from ...runtime.module_getattr import lazy_import
from ...runtime.records import dataclass
from ..backend import Options, Origin, Run, UnsupportedKernelError
from ..loops import ir, queries
from . import runtime

emit = lazy_import("functrans.lowering.python.emit")


class Plain:
    """Implements `Backend`: Python runs the Python form. It supports every kernel."""

    name = "python"

    def takes(self, kernel: ir.Kernel) -> bool:
        """It supports every kernel."""
        return True

    def compile(self, kernel: ir.Kernel, options: Options, text: str = "") -> PythonCode:
        """See `Backend.compile`."""
        return PythonCode(kernel, runtime.python_function(kernel, emit.emit_python(kernel)))


class Njit:
    """Implements `Backend`: Numba compiles the Python form."""

    name = "njit"

    def takes(self, kernel: ir.Kernel) -> bool:
        """It supports kernels without BLAS, host calls and tapes, and without what Numba computes otherwise than NumPy:
        float16, bfloat16 and complex numbers, and the operations of `_differs`.
        """
        if any(is_low(b.dtype) or b.dtype.kind == "c" for b in kernel.buffers):
            return False
        return not any(
            type(s) in (ir.Call, ir.HostCall, ir.Reserve) or (type(s) is ir.Let and _differs(s))
            for s in queries.walk(kernel.body)
        )

    def compile(self, kernel: ir.Kernel, options: Options, text: str = "") -> PythonCode:
        """See `Backend.compile`."""
        names = runtime.njit_namespace()
        exec(compile(emit.emit_python(kernel, explicit=True), f"<kernel {kernel.name}>", "exec"), names)
        arrays = [
            numba.types.Array(numba.from_dtype(b.dtype), len(b.shape), "C")
            for b in kernel.buffers
            if b.role != "stack"
        ]
        numbers = [numba.types.int64] * kernel.ints + [numba.types.float64] * kernel.floats
        signature: Any = (*arrays, *numbers)
        try:
            return PythonCode(kernel, numba.njit(signature, error_model="numpy")(names[kernel.name]))
        except Exception as error:  # Numba's errors have no common base class
            raise UnsupportedKernelError(f"Numba cannot compile it: {error}") from error


def _differs(s: ir.Let) -> bool:
    """Operations on complex numbers, powers of integers, `lgamma`, and casts of floats to unsigned integers."""
    kind = s.value.dtype.kind
    cast = s.op == "cast" and kind == "u" and s.args[0].dtype.kind == "f"
    return kind == "c" or cast or s.op == "lgamma" or (s.op == "pow" and kind in "iu")


@dataclass(frozen=True, eq=False)
class PythonCode:
    """Implements `Code`; `entry` takes the declared buffers and the parameters."""

    kernel: ir.Kernel
    entry: Callable[..., int]
    llvm: str = ""
    origin: Origin = "compiled"
    size: int = 0

    def bind(self, ints: tuple[int, ...], floats: tuple[float, ...], nogil: bool) -> Run:
        """See `Code.bind`; the GIL is never released."""
        function, kernel = self.entry, self.kernel
        typed = tuple(map(float, floats))

        def run(arrays: tuple[np.ndarray, ...]) -> int:
            return int(run_quietly(function, *runtime.views(kernel, arrays, ints), *ints, *typed))

        return run
