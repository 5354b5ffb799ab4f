"""`functrans.as_jax`: in processes of their own, since what it does lasts as long as the process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from functrans import errors
from functrans.jax_modules import finder
from functrans.jax_modules.names import MISSING, MODULES

#: Names in the table whose objects come with optional libraries.
OPTIONAL = "ml_dtypes"


def run(*arguments, text=None):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, input=text, timeout=300
    )


#: A program that imports ``jax``. It is a file of its own, since tests import no library that is not installed.
PROGRAM = Path(__file__).with_name("imports_jax.py")


def test_a_script_imports_jax():
    done = run("-m", "functrans.as_jax", str(PROGRAM), "a", "b")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("  ")]
    assert lines[0].startswith("jax.no_such_name does not exist in functrans.")
    assert lines[1] == lines[2] == "jax.lax.sinn does not exist in functrans. Nearest: sin, sinh, sign"
    assert lines[3].startswith(
        "jax.experimental.pallas does not exist in functrans. functrans has no kernels"
    )


def test_a_program_uses_name_by_name_what_libraries_need():
    """The same program passes on JAX, which `uses_names` was written beside."""
    pytest.importorskip("ml_dtypes")
    done = run("-m", "functrans.as_jax", str(PROGRAM.with_name("uses_names.py")))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "29 of 29 checks pass on functrans" in done.stdout


@pytest.mark.slow
def test_modules_and_programs_run_with_their_arguments(tmp_path):
    done = run(
        "-m", "functrans.as_jax", "-c", "import jax, sys; print(jax.__functrans__.__name__, sys.argv)", "x"
    )
    assert done.stdout == "functrans ['-c', 'x']\n", done.stderr
    (tmp_path / "test_it.py").write_text("import jax\ndef test_it():\n    assert jax.__functrans__\n")
    done = run("-m", "functrans.as_jax", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path))
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert run("-m", "functrans.as_jax").stderr.startswith("usage:")


@pytest.mark.slow
def test_pytest_takes_it_as_a_plugin(tmp_path):
    (tmp_path / "test_it.py").write_text("import jax\ndef test_it():\n    assert jax.__functrans__\n")
    done = run("-m", "pytest", "-q", "-p", "functrans.as_jax", "-p", "no:cacheprovider", str(tmp_path))
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_every_name_of_the_table_has_an_object():
    program = """
import functrans.as_jax, importlib
from functrans.jax_modules.names import MODULES
for module, row in MODULES.items():
    imported = importlib.import_module(module)
    for name, place in row.names.items():
        if not place.startswith("ml_dtypes"):
            getattr(imported, name)
    dir(imported)
    imported.__doc__
"""
    done = run("-c", program)
    assert done.returncode == 0, done.stderr


def test_jax_itself_is_refused_if_it_was_imported(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setitem(sys.modules, "jax", np)
    with pytest.raises(errors.JaxImportedError, match=r"before the first import of jax.*as_jax script.py"):
        finder.install()
    assert not any(isinstance(f, finder.JaxFinder) for f in sys.meta_path)


def test_other_modules_are_left_to_others():
    found = finder.JaxFinder()
    assert found.find_spec("numpy") is None
    assert found.find_spec("jaxopt") is None
    assert list(found.find_distributions(type("Context", (), {"name": "numpy"}))) == []


def test_cures_are_of_what_does_not_exist():
    assert not {name for name in MISSING if name in MODULES}


def test_importing_functrans_does_nothing():
    program = (
        "import functrans, sys; print(functrans.config.index_errors, 'jax' in sys.modules, sys.meta_path)"
    )
    done = run("-c", program)
    assert done.stdout.startswith("raise False")
    assert "JaxFinder" not in done.stdout


def test_numpy_knows_the_names_of_jaxs_dtypes():
    pytest.importorskip("ml_dtypes")
    done = run("-m", "functrans.as_jax", "-c", "import numpy as np; print(np.dtype('bfloat16'))")
    assert done.stdout == "bfloat16\n", done.stderr
