"""Modules that load at their first use."""

import builtins
import importlib
import inspect
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import functrans as ft
from functrans.runtime.module_getattr import lazy_import, on_demand


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package with a submodule, and forgets it afterwards."""
    home = tmp_path / "lazy_package"
    home.mkdir()
    (home / "__init__.py").write_text("import time\ntime.sleep(0.3)\nvalue = 3\n")
    (home / "part.py").write_text("value = 4\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "lazy_package"
    for name in ("lazy_package", "lazy_package.part"):
        sys.modules.pop(name, None)


def test_a_module_loads_when_a_name_is_used(package):
    module = lazy_import(package)
    assert package not in sys.modules
    assert module.value == 3
    assert module.part.value == 4
    assert sys.modules[f"{package}.part"] is module.part


@pytest.fixture
def demanding(tmp_path, monkeypatch):
    """Writes a package whose ``__init__`` has a block of imports, and forgets it afterwards."""
    home = tmp_path / "demanding"
    (home / "deep").mkdir(parents=True)
    (home / "__init__.py").write_text(
        "from functrans.runtime.module_getattr import module_attributes, on_demand\n"
        "with on_demand(globals()) as later:\n"
        "    from . import deep\n"
        "    from .deep.part import value, value as other, missing\n"
        "    from .broken import nothing\n"
        "__all__ = ['deep', 'value', 'other', 'missing']\n"
        "__getattr__, __dir__ = module_attributes('demanding', globals(), later=later)\n"
    )
    (home / "deep" / "__init__.py").write_text(
        "from functrans.runtime.module_getattr import module_attributes, on_demand\n"
        "with on_demand(globals()) as later:\n    from .. import value as above\n    from .part import value\n"
        "__all__ = ['above', 'value']\n"
        "__getattr__, __dir__ = module_attributes('demanding.deep', globals(), later=later)\n"
    )
    (home / "deep" / "part.py").write_text("value = [4]\n")
    (home / "broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "demanding"
    for name in [n for n in sys.modules if n.startswith("demanding")]:
        sys.modules.pop(name, None)


def test_what_a_block_names_loads_when_it_is_used(demanding):
    module = importlib.import_module(demanding)
    assert not any(n.startswith("demanding.") for n in sys.modules)
    assert not {"value", "other", "missing", "nothing"} & {*vars(module)}
    assert {"deep", "value", "other"} <= {*dir(module)}
    assert module.value == [4]
    assert vars(module)["value"] is module.value is module.other
    assert module.deep is sys.modules["demanding.deep"]
    assert module.deep.value is module.value is module.deep.above
    from demanding import other

    assert other is module.value


def test_a_block_leaves_errors_as_they_are(demanding):
    module = importlib.import_module(demanding)
    for _ in range(2):
        with pytest.raises(AttributeError, match="has no attribute 'missing'"):
            _ = module.missing
        with pytest.raises(ZeroDivisionError):
            _ = module.nothing
    with pytest.raises(ft.errors.NoAttributeError, match=r"demanding has no 'valu'.*value"):
        _ = module.valu


def test_imports_of_other_threads_and_modules_during_a_block_are_as_ever(demanding):
    before = builtins.__import__
    namespace, loaded = {"__package__": "demanding"}, {}
    with on_demand(namespace) as later:
        exec("from .deep import part", namespace)
        thread = threading.Thread(target=lambda: exec("import colorsys", loaded))
        thread.start()
        thread.join()
    assert builtins.__import__ is before
    assert loaded["colorsys"].rgb_to_hsv
    assert later.homes == {"part": ("demanding.deep", "part")}
    with pytest.raises(ValueError, match="inside"), on_demand(namespace):
        raise ValueError("inside")
    assert builtins.__import__ is before


def test_a_missing_name_is_an_attribute_error(package):
    module = lazy_import(package)
    with pytest.raises(AttributeError, match="'lazy_package' has no attribute 'missing'"):
        _ = module.missing
    assert not hasattr(module, "__wrapped__")


def test_who_looks_what_it_is_loads_nothing(package):
    for module in (lazy_import(package), lazy_import("no_such_module")):
        assert inspect.unwrap(module) is module
        assert not hasattr(module, "__signature__")
    assert package not in sys.modules
    assert lazy_import("numpy").__version__ == np.__version__


def test_doctest_finds_the_functions_of_packages(tmp_path):
    program = """
import doctest, sys
import functrans.numpy, functrans.lax
for module in (functrans.numpy, functrans.lax):
    doctest.DocTestFinder().find(module)
"""
    run(program, tmp_path)


def test_a_missing_module_is_an_import_error():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _ = lazy_import("no_such_module").value


def test_threads_load_it_once(package):
    module, values = lazy_import(package), []
    threads = [threading.Thread(target=lambda: values.append(module.value)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [3] * 8


def run(program, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


WAITING = """
import faulthandler, importlib, os, sys, threading, time
faulthandler.dump_traceback_later(20, exit=True)
sys.path.insert(0, sys.argv[1])
from functrans.runtime.module_getattr import lazy_import
imports = threading.Thread(target=importlib.import_module, args=("waiting",))
loads = threading.Thread(target=lambda: lazy_import("reader").value)
"""


@pytest.fixture
def waiting(tmp_path):
    """A module that loads another one for a name after a while, and one that needs the former."""
    (tmp_path / "waiting.py").write_text(
        "import time\ntime.sleep(0.4)\n"
        "from functrans.runtime.module_getattr import lazy_import\nvalue = lazy_import('colorsys').ONE_THIRD\n"
    )
    (tmp_path / "reader.py").write_text("from waiting import value\n")


def test_threads_that_import_and_load_one_module_at_once(waiting, tmp_path):
    """The first one has the module's lock, and the second one waits for it."""
    program = (
        WAITING
        + "imports.start(); time.sleep(0.2); loads.start(); imports.join(); loads.join(); print('both')"
    )
    assert run(program, tmp_path) == "both\n"


def test_a_thread_imports_scipys_functions_while_another_one_loads_ours(tmp_path):
    """SciPy's module loads ours, which import SciPy's."""
    program = """
import faulthandler, sys, threading, time
faulthandler.dump_traceback_later(40, exit=True)
import functrans as ft
from functrans.scipy import special
errors = []

def run(f):
    try:
        f()
    except BaseException as error:
        errors.append(error)

def theirs():
    import scipy.special

threads = [threading.Thread(target=run, args=(f,)) for f in (theirs, lambda: special.i0(1.0))]
threads[0].start()
while "scipy.special" not in sys.modules:
    time.sleep(1e-4)
threads[1].start()
for thread in threads:
    thread.join()
import scipy.special
print(errors, ft.grad(scipy.special.i0)(0.0), ft.grad(scipy.special.erf)(3.0) > 0.0)
"""
    assert run(program, tmp_path) == "[] 0.0 True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_one_thread_imports_what_another_one_loads(waiting, tmp_path):
    program = f"""{WAITING}
first = threading.Thread(target=lambda: (lazy_import("tabnanny").check, importlib.import_module("waiting")))
first.start(); time.sleep(0.2); loads.start(); time.sleep(0.1)
child = os.fork()
if child == 0:
    print(lazy_import("reader").value > 0.3, lazy_import("wave").open, flush=True)
    os._exit(0)
first.join(); loads.join()
sys.exit(os.waitpid(child, 0)[1])
"""
    assert run(program, tmp_path).startswith("True <function open")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_in_the_midst_of_a_load_leaves_the_child_able_to_use_it(package, tmp_path):
    program = f"""
import os, sys, threading, time
sys.path.insert(0, {str(tmp_path)!r})
from functrans.runtime.module_getattr import lazy_import
module = lazy_import({package!r})
thread = threading.Thread(target=lambda: module.value)
thread.start()
time.sleep(0.1)
child = os.fork()
if child == 0:
    print(module.value, flush=True)
    os._exit(0)
thread.join()
sys.exit(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
