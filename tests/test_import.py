"""What ``import functrans`` loads, and what loads later: a script starts a hundred times a day."""

import json
import subprocess
import sys

import pytest

#: Besides the standard library.
LIBRARIES = {"functrans", "numpy"}
#: Of functrans, by the first part of their names.
ROOMS = {
    "api", "arrays", "control", "core", "custom", "errors", "frontend", "numpy", "passes", "primitives", "runtime",
    "scipy", "transforms",
}  # fmt: skip
#: Parts of NumPy and the standard library that take long to load.
HEAVY = {
    "numpy.f2py", "numpy.testing", "numpy.random", "numpy.ma", "numpy.polynomial",
    "asyncio", "email", "http", "importlib.metadata", "multiprocessing", "sqlite3", "subprocess", "unittest", "xml",
}  # fmt: skip
#: How many files of functrans one import may read; raise it only for what the first trace needs.
MOST_FILES = 291


def loaded(program):
    """The modules that are loaded after a program."""
    head, tail = (
        "import sys, json\nbefore = {*sys.modules}",
        "print(json.dumps(sorted({*sys.modules} - before)))",
    )
    text = f"{head}\n{program}\n{tail}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def libraries(modules):
    return {m.partition(".")[0] for m in modules} - sys.stdlib_module_names


def test_import():
    modules = loaded("import functrans")
    own = {m for m in modules if m.startswith("functrans.")}
    assert libraries(modules) == LIBRARIES
    assert {m.split(".")[1] for m in own} == ROOMS
    assert {m for m in own if m.startswith("functrans.scipy.")} == {"functrans.scipy.patched"}
    assert not modules & HEAVY
    assert len(own) < MOST_FILES


@pytest.mark.parametrize(
    "program",
    [
        "ft.grad(lambda x: (np.sin(x) ** 2).sum())(np.ones(3))",
        "ft.value_and_grad(lambda p: fnp.tanh(p['w'] @ p['x']).mean())({'w': np.ones((2, 3)), 'x': np.ones(3)})",
        "ft.vmap(ft.jacfwd(lambda x: fnp.where(x > 0, x, 0.0) * x))(np.ones((2, 3)))",
        "ft.hessian(lambda x: fnp.exp(x).sum())(np.ones(3))",
        "print(ft.make_jaxpr(lambda x: x @ x)(np.ones((3, 3))), file=sys.stderr)",
        "ft.jit(lambda x: 2.0 * x)  # not called",
    ],
)
def test_transformations_outside_jit_load_neither_numba_nor_scipy(program):
    modules = loaded(f"import numpy as np, functrans as ft, functrans.numpy as fnp\n{program}")
    assert libraries(modules) == LIBRARIES
    assert not any(m.startswith("functrans.lowering") for m in modules)


def test_the_first_call_of_a_compiled_function_loads_the_rest():
    modules = loaded("import numpy as np, functrans as ft\nft.jit(lambda x: 2.0 * x)(np.ones(3))")
    assert "llvmlite" in libraries(modules)
    assert "functrans.lowering.run.executable" in modules
    assert "subprocess" not in modules


def test_a_process_that_finds_its_kernels_does_without_what_writes_them(tmp_path, monkeypatch):
    monkeypatch.setenv("FUNCTRANS_CACHE", "1")
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / "cache"))
    program = "import numpy as np, functrans as ft\nft.jit(lambda x: 2.0 * x)(np.ones(3))"
    writers = {"functrans.lowering.llvm.emit", "functrans.lowering.python.emit"}
    assert loaded(program) & writers == {"functrans.lowering.llvm.emit"}
    assert not loaded(program) & writers


def test_checksums_without_the_private_module():
    """Another Python may not have it: then `hashlib` is loaded, with the same results."""
    loaded(
        "import hashlib\nsys.modules['_blake2'] = None\nimport functrans.runtime.private.python_names as names\n"
        "assert names.blake2b is hashlib.blake2b and 'functrans' in sys.modules"
    )
    loaded("import functrans.lowering.llvm.store\nassert 'hashlib' not in sys.modules")


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_is_afterwards_as_it_was_before(collects):
    switch = "gc.enable()" if collects else "gc.disable()"
    program = f"import gc\n{switch}\nimport functrans as ft\nft.jit(lambda x: 2.0 * x)(1.0)"
    loaded(f"{program}\nassert gc.isenabled() is {collects}")
    loaded(f"{program}\nassert gc.get_freeze_count() == 0")


def test_what_was_frozen_before_an_import_stays_frozen():
    loaded(
        "import gc, numpy\ngc.freeze()\nn = gc.get_freeze_count()\n"
        "import functrans\nassert n // 2 < gc.get_freeze_count() <= n"
    )


def test_a_failed_import_leaves_the_collector_on():
    loaded(
        "import gc\n"
        "from functrans.runtime.module_getattr import lazy_import\n"
        "try:\n    lazy_import('functrans.no_such_module').name\n"
        "except ModuleNotFoundError:\n    assert gc.isenabled()\n"
        "else:\n    raise AssertionError\n"
    )


@pytest.mark.parametrize(
    "order", ["import scipy.special, functrans as ft", "import functrans as ft, scipy.special"]
)
def test_ufuncs_of_scipy_take_traced_values_whichever_is_imported_first(order):
    assert "functrans.scipy.special" in loaded(
        f"{order}\nassert abs(ft.grad(scipy.special.erf)(0.0) - 1.1283791670955126) < 1e-15"
    )
