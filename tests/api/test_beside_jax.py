"""`from_jax`, `to_jax`, and arrays of both: in a process of its own, of an environment that has JAX."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import functrans as ft
from functrans import errors

#: Python of an environment with JAX, if it is another one: ``JAX_PYTHON=path pytest tests/api/test_beside_jax.py``.
PYTHON = os.environ.get("JAX_PYTHON", sys.executable)
HAS_JAX = "JAX_PYTHON" in os.environ or importlib.util.find_spec("jax") is not None


@pytest.mark.slow
@pytest.mark.skipif(
    not HAS_JAX, reason="JAX is not installed: pip install jax, or name a Python with it in JAX_PYTHON"
)
def test_functions_and_arrays_of_both_work_together():
    program = Path(__file__).with_name("beside_jax_program.py")
    environment = {**os.environ, "PYTHONPATH": str(Path(ft.__file__).parents[1])}
    done = subprocess.run(
        [PYTHON, str(program)], capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("convert", [ft.from_jax, ft.to_jax])
def test_what_it_takes(convert):
    with pytest.raises(errors.ArgumentError, match="expected a function"):
        convert(1.0)
    if not HAS_JAX:
        with pytest.raises(errors.MissingLibraryError, match="pip install jax"):
            convert(abs)


def test_not_where_jax_is_functrans():
    program = "import functrans.as_jax, functrans as ft; ft.from_jax(abs)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert "`jax` is functrans in this process" in done.stderr
