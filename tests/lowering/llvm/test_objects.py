"""Object code: what LLVM's passes share from one module to the next, and where code lies in memory."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.llvm import objects
from functrans.lowering.processor import LEVELS, processor
from functrans.lowering.run.compile import best_backend
from functrans.runtime.libraries import llvm

TEXT = "define i64 @one() {\n  ret i64 1\n}\n"


def test_pass_builders_are_renewed(monkeypatch):
    """A builder calls the callbacks of all its runs, so compiling would get slower and slower."""
    runs, builders = Counter(), []
    run = objects._run

    def counted(passes, module, builder):
        builders.append(builder)  # alive, so that no other has its id
        runs[id(builder)] += 1
        run(passes, module, builder)

    monkeypatch.setattr(objects, "_run", counted)
    for _ in range(3 * objects._RUNS):
        objects.compile_object(TEXT, "one", processor())
    assert sum(runs.values()) == 6 * objects._RUNS
    assert max(runs.values()) <= objects._RUNS


@pytest.mark.parametrize(("without", "level", "runs"), [((), 3, 2), (("llvm_passes",), 0, 1)])
def test_llvm_optimises_little_if_asked(monkeypatch, without, level, runs):
    best_backend()  # compiles a kernel when it is first called
    passes, levels = [], []
    run, target = objects._run, llvm.Target.create_target_machine
    monkeypatch.setattr(objects, "_run", lambda *args: (passes.append(args), run(*args)))
    monkeypatch.setattr(
        llvm.Target,
        "create_target_machine",
        lambda self, *args, **options: (levels.append(options["opt"]), target(self, *args, **options))[1],
    )
    objects._compiler.cache_clear()
    x = np.linspace(0, 1, 7 + level)
    with ft.config.patch(without=without, cache=False):
        y = ft.jit(lambda x: np.exp(1.8125 * x) - level)(x)
    assert (levels[0], len(passes)) == (level, runs)
    np.testing.assert_allclose(y, np.exp(1.8125 * x) - level, rtol=1e-14)


@pytest.mark.skipif("x86-64-v4" not in LEVELS, reason="x86-64 alone has such instructions")
@pytest.mark.parametrize(
    ("f", "by_numpy"),
    [
        (lambda x: fnp.sum(x, axis=1), lambda x: np.sum(x, axis=1)),
        (lambda x: fnp.max(x, axis=1), lambda x: np.max(x, axis=1)),
        (lambda x: fnp.cumsum(x, axis=1), lambda x: np.cumsum(x, axis=1)),
        (
            lambda x: lax.fori_loop(0, 100, lambda _, y: x[:10] @ y, x[10]),
            lambda x: np.linalg.matrix_power(x[:10], 100) @ x[10],
        ),
    ],
    ids=["sum", "max", "cumsum", "product"],
)
def test_short_rows_are_read_without_gathers(f, by_numpy):
    """LLVM would compute eight rows at a time, with vectors of elements that are a row apart."""
    rng = np.random.default_rng(0)
    x = np.concatenate([np.linalg.qr(rng.normal(size=(10, 10)))[0], rng.normal(size=(10, 10))])
    compiled = ft.jit(f).lower(x).compile()
    assembly = objects.compile_assembly(compiled.as_text("llvm"), processor("x86-64-v4"))
    assert "gather" not in assembly
    np.testing.assert_allclose(compiled(x), by_numpy(x), rtol=1e-11)


#: Leaves two free places for memory: a page between what is mapped, and the rest, gigabytes below it.
FAR_APART = """
import ctypes, mmap
import numpy as np
import functrans as ft, functrans.numpy as fnp

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def reserve(nbytes):
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return libc.mmap(None, nbytes, 0, flags, -1, 0)

def waves(x, n, np):
    for _ in range(n):
        x = np.sin(1.37 * x) + np.cos(x)
    return x

big = reserve(6 << 30)
x = np.linspace(0, 1, 50)
for n in range(1, 9):
    for power in range(12, -1, -1):
        while (place := reserve(mmap.PAGESIZE << power)) > big:
            last = place
    libc.munmap(last, mmap.PAGESIZE)
    np.testing.assert_allclose(ft.jit(lambda x: waves(x, n, fnp))(x), waves(x, n, np), rtol=1e-9)
print("computed")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for memory")
@pytest.mark.skipif(
    "EMULATION_FACTOR" in os.environ, reason="the emulator fills the pages that are only reserved"
)
def test_gigabytes_between_free_pages(tmp_path):
    """An object's code must not be out of reach of its constants."""
    assert run(FAR_APART, FUNCTRANS_CACHE_DIR=str(tmp_path)) == (0, "computed\n")


def test_functions_that_outlive_the_modules():
    """What Python reads of a function when the interpreter ends is not freed before."""
    code = """if True:
        import os
        import numpy as np
        import functrans as ft
        os.jitted = f = ft.jit(lambda x: 2 * x)  # a module that ends after functrans's
        print(float(f(np.ones(3))[0]))
    """
    # The C library fills freed memory, and Python leaves all to it.
    assert run(code, PYTHONMALLOC="malloc", MALLOC_PERTURB_="255") == (0, "2.0\n")


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout
