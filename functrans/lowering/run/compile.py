"""From an outlined kernel to something that runs.

Three routes: ``intrinsic`` (LLVM inside a Numba-jitted entry), ``njit`` (the Python form under plain
``@njit``) and ``python`` (the Python form as it is). The first is tested on a small kernel once per process;
where it fails, the others serve, with a warning.
"""

from __future__ import annotations

import functools
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.locks import new_lock
from ..blas import MissingRoutineError
from ..llvm.emit import emit_llvm
from ..llvm.entry import caller, compile_entry, layout_is_known, unique_symbol
from ..loops import ir
from ..loops.builder import Builder
from ..python import runtime
from ..python.emit import emit_python
from .checked import checked

Run = Callable[[tuple[np.ndarray, ...]], int]


@dataclass(frozen=True)
class Options:
    """What changes the code of a kernel besides its text; part of a cache's key.

    Parameters
    ----------
    strict : bool
        The C library's scalar functions and no contraction: arithmetic equals NumPy's bit for bit.
    backend : {'llvm', 'python'}
        'python' forces the Python form.
    checked : bool
        Look for writes beside the memory that the kernel is given.
    """

    strict: bool = False
    backend: str = "llvm"
    checked: bool = False


@dataclass(eq=False)
class CompiledKernel:
    """A kernel that can be called.

    Attributes
    ----------
    kernel : Kernel
    route : {'intrinsic', 'njit', 'python'}
    llvm : str
        The LLVM text given to Numba; empty on the other routes.
    entry : callable
        The Numba dispatcher, or the Python function.
    checked : bool
        Whether calls look at guard words around the memory.
    """

    kernel: ir.Kernel
    route: str
    entry: Any
    llvm: str = ""
    checked: bool = False
    _address: int = field(default=0, repr=False)

    @functools.cached_property
    def python_source(self) -> str:
        """The readable Python form."""
        return emit_python(self.kernel)

    def bind(
        self,
        ints: tuple[int, ...] = (),
        floats: tuple[float, ...] = (),
        *,
        nogil: bool = False,
        named: ir.Kernel | None = None,
    ) -> Run:
        """A function of the buffers alone, with the parameters fixed; the quick way to call a kernel often.

        Parameters
        ----------
        ints, floats : tuples
            The kernel's parameters.
        nogil : bool
            Release the GIL during the call (worth it above some 20 us).
        named : Kernel, optional
            One of equal text, whose names errors of checked mode tell.

        Returns
        -------
        callable
            ``run(arrays) -> status``: `arrays` must be a tuple of C-contiguous, aligned ndarrays, one for
            each of ``kernel.storages``, large enough for the declarations. Nothing is checked, but in checked mode.
        """
        run = self._bind_native if self.route == "intrinsic" else self._bind_python
        bound = run(ints, floats, nogil)
        return checked(bound, named or self.kernel, ints) if self.checked else bound

    def _bind_native(self, ints: tuple[int, ...], floats: tuple[float, ...], nogil: bool) -> Run:
        words = np.frombuffer(
            struct.pack(f"{len(ints)}q{len(floats)}d", *ints, *floats) or bytes(8), np.int64
        )
        numbers, address, call = words.ctypes.data, self._address, caller(nogil)

        def run(arrays: tuple[np.ndarray, ...], _keep: Any = (words, self.entry)) -> int:
            return call(address, id(arrays), numbers)

        return run

    def _bind_python(self, ints: tuple[int, ...], floats: tuple[float, ...], nogil: bool) -> Run:
        function, kernel = self.entry, self.kernel
        typed = tuple(map(float, floats))

        def run(arrays: tuple[np.ndarray, ...]) -> int:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                return int(function(*runtime.views(kernel, arrays, ints), *ints, *typed))

        return run

    def run(
        self, buffers: tuple[np.ndarray, ...], ints: tuple[int, ...] = (), floats: tuple[float, ...] = ()
    ) -> int:
        """Call once; see `bind`. Returns the status: zero, or the bits of the equations that failed."""
        return self.bind(ints, floats)(buffers)


def compile_kernel(kernel: ir.Kernel, options: Options = Options()) -> CompiledKernel:
    """Compile an outlined kernel by the best route that works here."""
    route = "python" if options.backend == "python" else best_route()
    if route == "intrinsic":
        try:
            return _by_intrinsic(kernel, options)
        except MissingRoutineError as error:
            warnings.warn(
                f"kernel '{kernel.name}' runs as Python: {error.args[0]}", RuntimeWarning, stacklevel=2
            )
    if route == "njit" and not any(
        type(s) in (ir.Call, ir.HostCall, ir.Reserve) for s in ir.walk(kernel.body)
    ):
        try:
            return _by_njit(kernel, options)
        except Exception as error:
            warnings.warn(
                f"Numba cannot compile kernel '{kernel.name}': {error}", RuntimeWarning, stacklevel=2
            )
    entry = runtime.python_function(kernel, emit_python(kernel))
    return CompiledKernel(kernel, "python", entry, checked=options.checked)


def _by_intrinsic(kernel: ir.Kernel, options: Options) -> CompiledKernel:
    code = emit_llvm(kernel, unique_symbol(), strict=options.strict, checked=options.checked)
    entry, address = compile_entry(code)
    return CompiledKernel(kernel, "intrinsic", entry, code.text, options.checked, _address=address)


def _by_njit(kernel: ir.Kernel, options: Options = Options()) -> CompiledKernel:
    import numba

    names = runtime.njit_namespace()
    exec(compile(emit_python(kernel, explicit=True), f"<kernel {kernel.name}>", "exec"), names)
    arrays = [
        numba.types.Array(numba.from_dtype(b.dtype), len(b.shape), "C")
        for b in kernel.buffers
        if b.role != "stack"
    ]
    numbers = [numba.types.int64] * kernel.ints + [numba.types.float64] * kernel.floats
    signature: Any = (*arrays, *numbers)
    entry = numba.njit(signature, error_model="numpy")(names[kernel.name])
    return CompiledKernel(kernel, "njit", entry, checked=options.checked)


# --- the self-test -------------------------------------------------------------------------------------

_route: list[str] = []
_route_lock = new_lock()


def best_route() -> str:
    """The first route whose values are right on this machine; tried once per process."""
    if not _route:
        with _route_lock:
            if not _route:
                _route.append(_find_route())
    return _route[0]


def _find_route() -> str:
    try:
        if not layout_is_known():
            raise RuntimeError("arrays lie in memory in an unknown way")
        self_test(lambda kernel: _by_intrinsic(kernel, Options()))
        return "intrinsic"
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    try:
        self_test(_by_njit)
        route = "njit"
    except Exception:
        route = "python"
    warnings.warn(
        f"kernels cannot be compiled through LLVM here ({reason}); they run by the slower route '{route}'",
        RuntimeWarning,
        stacklevel=3,
    )
    return route


def self_test(build: Callable[[ir.Kernel], CompiledKernel]) -> None:
    """Compile a small kernel and compare its values with NumPy's.

    Raises
    ------
    RuntimeError
        If they differ.
    """
    f8, n = np.dtype("f8"), 19
    b = Builder("self_test")
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
    compiled = build(kernel)
    status = compiled.run(arrays, (n,), (1.5,)), compiled.run((np.full(n, 50.0), np.zeros(n)), (n,), (1.5,))
    if status != (0, 8) or not np.allclose(arrays[1], expected, rtol=1e-13, atol=0):
        raise RuntimeError("the self-test kernel computes wrong values")
