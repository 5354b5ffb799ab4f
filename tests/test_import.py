"""What ``import functrans`` loads, and what loads later: a script starts a hundred times a day."""

import json
import subprocess
import sys

import pytest

#: Besides the standard library.
LIBRARIES = {"functrans", "numpy"}
#: Of functrans, by the first part of their names.
ROOMS = {"arrays", "core", "errors", "numpy", "runtime", "scipy"}
#: Parts of NumPy and the standard library that take long to load.
HEAVY = {
    "numpy.f2py", "numpy.testing", "numpy.random", "numpy.ma", "numpy.polynomial",
    "asyncio", "email", "http", "importlib.metadata", "multiprocessing", "sqlite3", "subprocess", "unittest", "xml",
}  # fmt: skip
#: How many files of functrans one import may read, and one gradient.
MOST_FILES, MOST_FILES_OF_A_GRADIENT = 58, 170


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
    assert {m for m in own if m.startswith("functrans.numpy.")} == {"functrans.numpy.registered"}
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


def test_a_gradient_loads_what_it_uses():
    modules = loaded(
        "import numpy as np, functrans as ft\nft.grad(lambda x: (np.sin(x) ** 2).sum())(np.ones(3))"
    )
    assert len({m for m in modules if m.startswith("functrans.")}) < MOST_FILES_OF_A_GRADIENT
    left_out = ("functrans.custom", "functrans.numpy.linalg", "functrans.primitives.linalg.")
    assert not any(m.startswith(left_out) for m in modules)


def test_the_first_call_of_a_compiled_function_loads_the_rest(monkeypatch):
    monkeypatch.setenv("FUNCTRANS_CACHE", "0")
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


#: Each line is what a process does first: what it needs has not loaded.
FIRST_USES = [
    "ft.grad(lambda x: np.linalg.norm(x))(np.ones(3))",
    "ft.grad(lambda x: np.fft.rfft(x).real.sum())(np.ones(3))",
    "ft.grad(lambda x: x.T.sum() + x.flatten()[0] + x.conj().real.sum())(np.ones(3))",
    "ft.grad(lambda x: x.at[0].set(1.0).sum())(np.ones(3))",
    "ft.grad(lambda x: np.add.reduce(x))(np.ones(3))",
    "ft.grad(lambda x: np.r_[x, 1.0].sum())(np.ones(3))",
    "ft.grad(lambda x: (x @ x) + np.dot(x, x) + np.matmul(x, x))(np.ones(3))",
    "ft.grad(lambda x: np.amax(x) + x.clip(0.0, 2.0).sum() + x.astype('f4').sum())(np.ones(3))",
    "ft.vmap(lambda x: (x.nbytes, x.itemsize))(np.ones(3))",
    "assert ft.grad(lambda x: x * (1.0 in x.__array_namespace__().ones(1)))(1.0) == 1.0",
    "ft.lax.fori_loop(0, 3, lambda i, x: 2.0 * x, 1.0)",
    "ft.lax.scan(lambda c, x: (c + x, c), 0.0, np.ones(3))",
    "a = fnp.ones(3); a + a; a.sum(); np.sum(a); a[0]; abs(a); a @ a; a.at[0].set(2.0)",
    "with ft.autocast('float32'): assert (fnp.ones((3, 3)) @ fnp.ones(3)).dtype == 'f4'",
    "ft.config.jax_semantics = True; assert (fnp.ones(3) + fnp.ones(3, 'i4')).dtype == 'f4'",
    "ft.config.debug_nans = True; np.exp(fnp.ones(3)); fnp.ones(3) / 2",
    "assert type(pickle.loads(pickle.dumps(fnp.ones(3)))) is ft.Array",
    "ft.grad(lambda x: ft.nn.softmax(ft.nn.relu(x))[0])(np.ones(3)); assert 'scipy' not in sys.modules",
    "ft.jit(lambda k: ft.random.normal(k, (2,)))(ft.random.key(1)); assert 'scipy' not in sys.modules",
    """
from functrans.scipy import special, stats
def total(x):
    return special.expit(x).sum() + special.erf(2.0 * x[0]) + stats.norm.logpdf(x).sum() + special.ndtri(x / 9).sum()
ft.jit(ft.grad(total))(np.ones(3))
assert 'scipy.special' not in sys.modules""",
    "from functrans.scipy.special import wofz, gammaln; assert wofz(1.0).dtype == complex; gammaln(3)",
    "import scipy.special as s; assert ft.grad(lambda x: s.erf(x) + s.fresnel(x)[0])(0.0) > 1.0",
    "ft.lax.sin_p, ft.lax.linalg.cholesky(np.eye(2))",
    "assert ft.devices() and ft.process_count() == 1",
    "ft.make_jaxpr(lambda x: x * 2)(1.0)._repr_html_()",
    "assert ft.ir.primitive('cholesky').name == 'cholesky'",
    "from functrans import *; grad(lambda x: x)(1.0); numpy, lax",
    "from functrans.numpy import *; sum(array([1.0, 2.0])), linalg, fft",
    "assert fnp.float32(1).dtype == np.float32 == fnp.float32 and fnp.bool is fnp.bool_",
    "from scipy.special import logsumexp; ft.grad(logsumexp)(np.ones(3))",
]


@pytest.mark.parametrize("program", FIRST_USES)
def test_what_a_process_uses_first_loads(program):
    loaded(f"import pickle, sys, numpy as np, functrans as ft, functrans.numpy as fnp\n{program}")


def test_errors_suggest_what_has_not_loaded():
    program = """
import numpy as np, functrans as ft
def message(f):
    try:
        ft.grad(f)(np.ones(3))
    except ft.errors.FunctransError as error:
        return str(error)
assert "unsqueeze" in message(lambda x: x.unsqueeze(0)) and "expand_dims" in message(lambda x: x.unsqueeze(0))
assert "cumsum" in message(lambda x: x.cumsun())
assert "functrans.numpy.tile" in message(lambda x: x.tile(2))
assert "no such function" in message(lambda x: np.unwrapp(x) if hasattr(np, "unwrapp") else np.busday_count(x, x))
"""
    loaded(program)


def test_no_part_replaces_what_another_has_registered():
    loaded("""
import functrans
from functrans.core.operators import Table, operators
def register(self, key, value):
    before = dict.get(self, key)
    if before is not None and before is not value:
        assert getattr(before, "__module__", 0) == getattr(value, "__module__", 1), (key, before, value)
    dict.__setitem__(self, key, value)
Table.__setitem__ = register
Table.update = lambda self, other: [register(self, *item) for item in other.items()]
assert operators.load("no such name") and not operators.load("no such name")
assert len(operators.function) > 250
assert len(operators.attribute) > 60
""")


def test_functions_of_math_in_code_for_numba_have_derivatives_whatever_has_loaded():
    loaded("""
import math, numba, functrans as ft
g = numba.njit(lambda x: math.sin(x) * math.exp(x) + math.hypot(x, 2.0))
slope = math.exp(0.5) * (math.sin(0.5) + math.cos(0.5)) + 0.5 / math.hypot(0.5, 2.0)
assert abs(ft.grad(ft.numba_call(g))(0.5) - slope) < 1e-14
""")
