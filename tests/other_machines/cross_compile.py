"""Compile kernels for another system, as functrans does there: ``python cross_compile.py SYSTEM KERNELS [LEVEL]``.

This process pretends to be on that system before it imports functrans: the texts of kernels, and what is compiled of
C, are those that it would make there. LLVM's own back end makes object files of them. The output is JSON: for each
kernel its name and the symbols that the object file does not define; under "vectors" how many instructions on vectors
loops of mathematical functions have, and what they call, on a processor of that level.
"""

import contextlib
import ctypes
import json
import os
import platform
import re
import sys
from pathlib import Path

import exports
import llvmlite.binding as llvm
from object_files import undefined_symbols

#: Each system's name in Python, its architecture, a common processor with what LLVM reports of it, and its vectors.
SYSTEMS = {
    "x86_64-apple-darwin": (
        "darwin",
        "x86_64",
        "haswell",
        "avx avx2 bmi2 f16c fma movbe sse4.2",
        r"[xy]mm\d",
    ),
    "arm64-apple-darwin": ("darwin", "arm64", "apple-m1", "", r"\.(?:2d|4s)\b"),
    "x86_64-pc-windows-msvc": (
        "win32",
        "AMD64",
        "haswell",
        "avx avx2 bmi2 f16c fma movbe sse4.2",
        r"[xy]mm\d",
    ),
    "aarch64-unknown-linux-gnu": (
        "linux",
        "aarch64",
        "neoverse-n1",
        "neon fp-armv8 crc lse",
        r"\.(?:2d|4s)\b",
    ),
}
#: The functions whose loops are looked at, by their names in NumPy.
FUNCTIONS = (
    "exp", "log", "tanh", "expm1", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "power",
    "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "cbrt", "exp2", "log2", "log10",
)  # fmt: skip


class _Features(dict):
    """As llvmlite returns them."""

    def flatten(self):
        return ",".join(f"+{name}" for name in self)


def pretend(triple):
    """Make this process one of another system, as far as functrans sees; functrans is not imported yet."""
    import asyncio  # what looks at `sys.platform` on import looks before
    import multiprocessing
    import subprocess
    import unittest.mock

    import numba
    import pytest
    import scipy.linalg.cython_blas
    import scipy.sparse

    assert "functrans" not in sys.modules
    system, machine, cpu, features, _ = SYSTEMS[triple]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.get_process_triple = lambda: triple
    llvm.get_host_cpu_name = lambda: cpu
    llvm.get_host_cpu_features = lambda: _Features.fromkeys(features.split(), True)
    for variable in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        os.environ.pop(variable, None)
    os.environ["FUNCTRANS_CACHE"] = "0"
    open_library = ctypes.CDLL
    if system == "win32":
        ctypes.CDLL = lambda name, *args, **kwargs: open_library(None if ".so" not in name else name)
    sys.platform, platform.machine = system, lambda: machine

    from functrans.lowering.llvm.maths import choice

    exported = exports.of(triple)
    choice.has_libmvec = lambda: exports.has_libmvec(triple)
    choice.is_in_process = lambda name: name in exported
    return asyncio, multiprocessing, subprocess, unittest, numba, pytest, scipy


def kernels():
    """Kernels of programs, with names: of each program, from each group of programs in turn. Every third is timed."""
    sys.path.append(str(Path(__file__).parents[1] / "lowering"))
    from kernel_work import CASES, ft

    from functrans.lowering.backend import Options
    from functrans.lowering.jaxpr.partition import HostStep
    from functrans.lowering.lower import lower
    from functrans.runtime.config import config

    names = list(CASES)
    for place, name in enumerate(name for start in range(12) for name in names[start::12]):
        f, *args = CASES[name]
        with config.patch(num_threads=2), contextlib.suppress(ft.errors.NumbaTranslationError):
            jaxpr = ft.jit(lambda *args, f=f: f(*args)).lower(*args).jaxpr
            steps = lower(jaxpr, Options(timed=place % 3 == 0)).steps
            yield from (
                (f"{name}, {i}", step.kernel) for i, step in enumerate(steps) if type(step) is not HostStep
            )


def of_kernels(number):
    """The undefined symbols of so many kernels, by name."""
    from functrans.lowering.backend import Options
    from functrans.lowering.llvm.emit import emit_llvm
    from functrans.lowering.llvm.objects import compile_object
    from functrans.lowering.processor import processor

    found = {}
    for name, kernel in kernels():
        if len(found) == number:
            break
        code = emit_llvm(kernel, Options())
        found[name] = undefined_symbols(compile_object(code.text, code.entry, processor()).image)
    return found


def of_parts():
    """The same of what is compiled once in a process: the pool, calls, mathematical functions, doors for Numba."""
    from functrans.interop.jitted import helpers
    from functrans.lowering.llvm.c import memory, native_call, pool
    from functrans.lowering.llvm.maths import library, own_maths
    from functrans.lowering.llvm.objects import compile_object
    from functrans.lowering.processor import processor

    texts = {"pool": (pool._text(), "functrans.pool")}
    made = []
    helpers.obtain = lambda text, cpu, about, make, load, lasting=False: made.append(make())
    for module in (native_call, memory):
        module.obtain = helpers.obtain
        with contextlib.suppress(TypeError):  # nothing is loaded
            module._load()
    for name in (*helpers.HELPERS, "publish"):
        with contextlib.suppress(TypeError):
            helpers._compiled(name)
    made += [compile_object(text, entry, processor(), "code") for text, entry in texts.values()]
    for name in (*own_maths.FUNCTIONS, *own_maths.FORMULAS):
        for t in ("double", "float"):
            text, entry = library.library_text(name, t, processor(), library.target_of(processor()))
            made.append(compile_object(text, entry, processor()))
    return {code.entry: undefined_symbols(code.image) for code in made}


def of_maths(vectors, level):
    """For each function and dtype: instructions on vectors in a loop of it, and functions that it calls."""
    from kernel_work import ft

    from functrans.lowering import blas
    from functrans.lowering.backend import Options
    from functrans.lowering.llvm.backend import assembly_of
    from functrans.lowering.llvm.maths import library
    from functrans.lowering.llvm.objects import compile_assembly
    from functrans.lowering.lower import lower
    from functrans.lowering.processor import processor
    from functrans.passes.scalar_functions import FUNCTIONS as SCALAR

    found = {}
    for name in FUNCTIONS:
        f, libm = getattr(ft.numpy, name), SCALAR[name if name != "power" else "pow"].libm or name
        given = [ft.ShapeDtypeStruct((1000,), "f8")] * (2 if name in ("power", "arctan2") else 1)
        (step,) = lower(ft.jit(lambda *x, f=f: f(*x)).lower(*given).jaxpr, Options()).steps
        assembly = assembly_of(step.kernel, Options(cpu=level))
        if f"{blas.MATHS_PREFIX}{libm}." in assembly or f"{blas.MATHS_PREFIX}{name}." in assembly:
            kernel_name = "pow" if name == "power" else name
            text, _ = library.library_text(kernel_name, "double", processor(), library.target_of(processor()))
            assembly = compile_assembly(text, processor())
        called = re.findall(rf"functrans\.c\.\w+|_ZGV\w+_{libm}\b", assembly)
        found[name] = [len(re.findall(vectors, assembly)), sorted(set(called))]
    return found


def main(triple, number, level="native"):
    """Print what was found."""
    keep = pretend(triple)
    found = {"kernels": of_kernels(number), "parts": of_parts()}
    found["vectors"] = of_maths(SYSTEMS[triple][-1], level)
    assert keep
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
