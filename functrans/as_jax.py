"""Run programs and libraries written for JAX on functrans, unmodified: ``import jax`` gives functrans.

Write one of these; without it nothing happens::

    import functrans.as_jax                                # before the first `import jax`
    python -m functrans.as_jax script.py
    python -m functrans.as_jax -m pytest tests
    pytest -p functrans.as_jax

The modules ``jax``, ``jax.numpy``, ``jax.lax`` and so on then have functrans's objects under JAX's names: see
`functrans.jax_modules.names`. A name that functrans does not have raises an `AttributeError`, or an `ImportError`, that
says so.

`config.jax_semantics` is set: dtypes are promoted as in JAX, and have 32 bits unless ``JAX_ENABLE_X64`` is set.
docs/jax_libraries.md lists what differs from JAX.
"""

from __future__ import annotations

import os
import runpy
import sys
from contextlib import suppress

from .errors import ConfigError
from .jax_modules.finder import install
from .runtime import libraries
from .runtime.config import config

__all__: list[str] = []

_USAGE = "usage: python -m functrans.as_jax (script.py | -m module | -c program) [arguments]"


def _reads_as_true(variable: str) -> bool:
    """Whether an environment variable says yes, in one of the words that JAX takes."""
    text = os.environ.get(variable, "0").lower()
    if text not in (*_TRUE, *_FALSE):
        raise ConfigError(f"environment variable {variable} must be 0 or 1, got {text!r}")
    return text in _TRUE


_TRUE, _FALSE = ("1", "true", "t", "yes", "y", "on"), ("0", "false", "f", "no", "n", "off", "")


def main() -> None:
    """Run what the command line names, as Python itself would."""
    if len(sys.argv) < 2 or (sys.argv[1] in ("-m", "-c") and len(sys.argv) < 3):
        raise SystemExit(_USAGE)
    first = sys.argv[1]
    if first == "-m":
        sys.argv = sys.argv[2:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        program = sys.argv[2]
        sys.argv = ["-c", *sys.argv[3:]]
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = sys.argv[1:]
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")


install()
with suppress(ImportError):
    libraries.ml_dtypes.bfloat16  # noqa: B018 (as JAX does, so that NumPy knows the names of its dtypes)
config.jax_semantics = True
config.enable_x64 = _reads_as_true("JAX_ENABLE_X64")
if __name__ == "__main__":
    main()
