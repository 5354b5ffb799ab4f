"""From an outlined kernel to something that runs, with the best backend that works on this machine.

The first of `BACKENDS` is tested on a small kernel once per process; if it fails, the next one is used, with a warning.
"""

from __future__ import annotations

import warnings

import numpy as np

from ...runtime.context import cached_property, new_lock
from ...runtime.module_getattr import lazy_import
from ...runtime.records import dataclass
from ..backend import DEFAULT_OPTIONS, Backend, Code, Options, Run, UnsupportedKernelError
from ..llvm.backend import LLVM
from ..loops import ir
from ..loops.builder import StatementBuilder
from ..processor import processor
from ..python.backend import Njit, Plain
from .checked import checked

emit = lazy_import("functrans.lowering.python.emit")

#: The best first. The last one supports every kernel on every machine.
BACKENDS: tuple[Backend, ...] = (LLVM(), Njit(), Plain())
#: The name in `Options` that stands for the best one that works here. Others stand for themselves.
BEST = BACKENDS[0].name
_by_name = {b.name: b for b in BACKENDS}


@dataclass(eq=False)
class CompiledKernel:
    """A kernel that can be called.

    Attributes
    ----------
    kernel : Kernel
    backend : Backend
        The backend that compiled it.
    code : Code
        The compiled code.
    checked : bool
        Whether calls check guard words around the memory.
    """

    kernel: ir.Kernel
    backend: Backend
    code: Code
    checked: bool = False

    @property
    def route(self) -> str:
        """The name of the backend: 'llvm', 'njit' or 'python'."""
        return self.backend.name

    @property
    def llvm(self) -> str:
        """The kernel's LLVM text; empty for other backends."""
        return self.code.llvm

    @cached_property
    def python_source(self) -> str:
        """The readable Python form."""
        source: str = emit.emit_python(self.kernel)
        return source

    def bind(
        self,
        ints: tuple[int, ...] = (),
        floats: tuple[float, ...] = (),
        *,
        nogil: bool = False,
        named: ir.Kernel | None = None,
    ) -> Run:
        """A function of the buffers alone, with the parameters fixed; the fast way to call a kernel often.

        Parameters
        ----------
        ints, floats : tuples
            The kernel's parameters.
        nogil : bool
            Whether to release the GIL during the call (worthwhile above about 20 us).
        named : Kernel, optional
            A kernel with equal text, whose names are used in the errors of checked mode.

        Returns
        -------
        callable
            ``run(arrays) -> status``: `arrays` must be a tuple of C-contiguous, aligned ndarrays, one for
            each of ``kernel.storages``, large enough for the declarations. Nothing is checked, except in checked mode.
        """
        bound = self.code.bind(ints, floats, nogil)
        return checked(bound, named or self.kernel, ints) if self.checked else bound

    def run(
        self, buffers: tuple[np.ndarray, ...], ints: tuple[int, ...] = (), floats: tuple[float, ...] = ()
    ) -> int:
        """Call once; see `bind`. Returns the status: zero, or the bits of the equations that failed."""
        return self.bind(ints, floats)(buffers)


def compile_kernel(kernel: ir.Kernel, options: Options = DEFAULT_OPTIONS, text: str = "") -> CompiledKernel:
    """Compile an outlined kernel with the best backend that works on this machine and supports it."""
    last = BACKENDS[-1]
    backend = best_backend() if options.backend == BEST else _by_name[options.backend]
    if not backend.takes(kernel):
        backend = last
    try:
        code = backend.compile(kernel, options, text)
    except UnsupportedKernelError as error:
        warnings.warn(f"kernel '{kernel.name}' runs as Python: {error}", RuntimeWarning, stacklevel=2)
        backend, code = last, last.compile(kernel, options)
    return CompiledKernel(kernel, backend, code, options.checked)


# --- the self-test -------------------------------------------------------------------------------------

_best: list[tuple[Backend, str]] = []
_best_lock = new_lock()


def best_backend() -> Backend:
    """The first backend that computes correct values on this machine; tested once per process."""
    return best_backend_and_reason()[0]


def best_backend_and_reason() -> tuple[Backend, str]:
    """The backend, and the reason why it is not the first of `BACKENDS`; empty if it is."""
    if not _best:
        with _best_lock:
            if not _best:
                _best.append(_find_best())
    return _best[0]


def _find_best() -> tuple[Backend, str]:
    processor()  # a wrong NUMBA_CPU_NAME is an error, and no reason for another backend
    reason = ""
    for backend in BACKENDS[:-1]:
        try:
            self_test(backend)
        except Exception as error:
            reason = reason or f"{type(error).__name__}: {error}"
        else:
            break
    else:
        backend = BACKENDS[-1]
    if reason:
        warnings.warn(
            f"kernels cannot be compiled through LLVM here ({reason}); they use the slower backend "
            f"'{backend.name}'",
            RuntimeWarning,
            stacklevel=4,
        )
    return backend, reason


def self_test(backend: Backend) -> None:
    """Compile a small kernel and compare its values with NumPy's.

    Raises
    ------
    RuntimeError
        If they differ.
    """
    f8, n = np.dtype("f8"), 19
    b = StatementBuilder("self_test")
    x = b.buffer("x", f8, (ir.Param(0, ir.INT64),), "in")
    y = b.buffer("y", f8, (ir.Param(0, ir.INT64),), "out")
    total = b.local(b.const(0.0, f8))
    with b.loop(b.parameter(0, ir.INT64)) as i:
        value = b.call("exp", b.load(x, (i,)) * b.parameter(0, f8))
        b.store(y, (i,), value)
        total.set(b.binary("add", total.get(), value, reassoc=True))
        b.equation = 3
        b.fail_if(value > 1e9)
    b.store(y, (0,), total.get())
    kernel = b.finish()
    kernel.ints = kernel.floats = 1
    arrays = np.linspace(-3, 3, n), np.zeros(n)
    expected = np.exp(arrays[0] * 1.5)
    expected[0] = expected.sum()
    compiled = CompiledKernel(kernel, backend, backend.compile(kernel, DEFAULT_OPTIONS))
    status = compiled.run(arrays, (n,), (1.5,)), compiled.run((np.full(n, 50.0), np.zeros(n)), (n,), (1.5,))
    if status != (0, 8) or not np.allclose(arrays[1], expected, rtol=1e-13, atol=0):
        raise RuntimeError("the self-test kernel computes wrong values")
