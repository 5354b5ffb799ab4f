"""What functrans found on this machine, and where it cannot do its best: ``python -m functrans`` prints it."""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..arrays.donation import EXPORTS_ARE_KNOWN
from ..errors import ArgumentValueError
from ..lowering.blas import OWN_PRODUCTS, can_set_threads, has_own_products
from ..lowering.llvm.c.native_call import fields_are_known, layout_is_known
from ..lowering.llvm.maths.choice import scalar_functions_of
from ..lowering.llvm.store import opened_disk
from ..lowering.llvm.symbols import has_libmvec
from ..lowering.processor import processor
from ..lowering.run.compile import BACKENDS, best_backend_and_reason
from ..runtime.config import config
from ..runtime.cores import usable_cores
from ..runtime.libraries import llvm
from ..runtime.private.llvmlite_names import frees_passes
from ..runtime.private.numpy_names import c_functions

_MODES = ("stdout", "dicts")


def show_config(mode: str = "stdout") -> dict[str, Any] | None:
    """Print what functrans found on this machine: versions, processor, and how kernels run.

    Each part that is not the best one that functrans has is listed with its reason. ``python -m functrans`` prints the
    same.

    Parameters
    ----------
    mode : {'stdout', 'dicts'}
        Whether to print, or to return a dictionary.

    Returns
    -------
    dict or None
        With 'dicts': a text for each of the parts printed, by name, and under 'reasons' a dictionary with the reason
        for each part that is not the best.

    Raises
    ------
    ArgumentValueError
        If `mode` is another.
    ConfigError
        If ``NUMBA_CPU_NAME`` is no processor of this architecture.

    Examples
    --------
    >>> import functrans as ft
    >>> found = ft.show_config("dicts")
    >>> found["kernels"]
    'llvm'
    >>> sorted(found)[:4]
    ['BLAS', 'cache', 'calls', 'kernels']
    """
    if mode not in _MODES:
        raise ArgumentValueError(f"show_config: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    parts: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for name, describe in _PARTS.items():
        parts[name], *why = describe()
        if reason := "; ".join(why):
            reasons[name] = reason
    if mode == "dicts":
        return {**parts, "reasons": reasons}
    width = max(map(len, parts))
    for name, text in parts.items():
        print(f"{name:{width}}  {text}")
    if reasons:
        print("\nnot the best that functrans has:")
        for name, reason in reasons.items():
            print(f"  {name}: {reason}")
    return None


def _versions() -> Iterator[str]:
    def of(name: str) -> str:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            return f"{name}: none"

    libraries = map(of, ("numpy", "scipy", "numba", "llvmlite"))
    python = f"{sys.implementation.name} {platform.python_version()}"
    yield ", ".join([f"functrans {sys.modules['functrans'].__version__}", python, *libraries])


def _system() -> Iterator[str]:
    yield f"{platform.system()} {platform.release()}, {platform.machine()}, {llvm.get_process_triple()}"


def _processor() -> Iterator[str]:
    cpu = processor()
    has = {"fused multiply-add": cpu.fma, "float16 in hardware": cpu.half}
    width = f"vectors of {cpu.vector_bits} bits" if cpu.vector_bits else "vectors as LLVM chooses"
    yield ", ".join([cpu.name, width, *[name for name, there in has.items() if there]])
    if lacking := [name for name, there in has.items() if not there]:
        yield f"without {', '.join(lacking)}: exp, log, tanh and their kind are calls, or float16 is converted by calls"


def _kernels() -> Iterator[str]:
    if config.backend == "python" or config.disable_jit:
        yield "python"
        option = "disable_jit" if config.disable_jit else "backend"
        yield f"config.{option} is {getattr(config, option)!r}"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reason is printed
        backend, reason = best_backend_and_reason()
    yield backend.name
    if backend is not BACKENDS[0]:
        yield reason


def _calls() -> Iterator[str]:
    known = layout_is_known() and fields_are_known()
    fast = known and c_functions() is not None
    yield "built-in functions" if fast else "Python"
    if not known:
        yield "objects of this Python and NumPy are not laid out as expected, so calls check and convert in Python"
    elif not fast:
        yield "NumPy's table of C functions is not the expected one, so results are made in Python"
    if not EXPORTS_ARE_KNOWN:
        yield "NumPy does not note exported buffers where expected, so donated arrays are copied"
    if not frees_passes():
        yield "llvmlite lacks the function that frees LLVM's passes: each kernel costs some kilobytes more"


def _maths() -> Iterator[str]:
    scalar = scalar_functions_of(processor())
    yield "libmvec (vectors)" if has_libmvec() else "functrans's own (vectors) for some functions"
    if not has_libmvec():
        yield f"this system has no libmvec: {', '.join(scalar)} are computed number by number"


def _blas() -> Iterator[str]:
    own = [letter for letter in OWN_PRODUCTS if has_own_products(letter)]
    yield "SciPy's" + (f", own products of types {', '.join(own)}" if own else "")
    if not can_set_threads():
        yield "its number of threads cannot be set, so kernels with threads may use more than they should"


def _threads() -> Iterator[str]:
    yield f"{config.num_threads} of {usable_cores()} usable cores"
    if sys.platform == "win32":
        yield "loops of kernels run in one thread on Windows"


def _cache() -> Iterator[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        disk = opened_disk()
    if disk is not None:
        yield f"{disk.path}, {disk.size() / 1e6:.1f} MB of at most {config.cache_limit / 1e6:.0f} MB"
        return
    yield "none on disk"
    because = (
        "; ".join(str(w.message) for w in caught) or "there is no directory for it that can be written to"
    )
    yield because if config.cache else "config.cache is False"


_PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "versions": _versions,
    "system": _system,
    "processor": _processor,
    "kernels": _kernels,
    "calls": _calls,
    "maths": _maths,
    "BLAS": _blas,
    "threads": _threads,
    "cache": _cache,
}
