"""Modules that load at their first use."""

import os
import subprocess
import sys
import threading

import pytest

from functrans.runtime.module_getattr import lazy_import


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


def test_a_missing_name_is_an_attribute_error(package):
    module = lazy_import(package)
    with pytest.raises(AttributeError, match="'lazy_package' has no attribute 'missing'"):
        _ = module.missing
    assert not hasattr(module, "__wrapped__")


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
