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


def test_doctest_finds_the_functions_of_packages():
    program = """
import doctest, sys
import functrans.numpy, functrans.lax
for module in (functrans.numpy, functrans.lax):
    doctest.DocTestFinder().find(module)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


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
