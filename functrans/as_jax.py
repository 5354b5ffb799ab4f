"""Run programs and libraries written for JAX on functrans, unmodified: ``import jax`` gives functrans.

Write one of these; without it nothing happens::

    import functrans.as_jax                                # before the first `import jax`
    python -m functrans.as_jax script.py
    python -m functrans.as_jax -m pytest tests
    pytest -p functrans.as_jax

The modules ``jax``, ``jax.numpy``, ``jax.lax`` and so on then have functrans's objects under JAX's names: see
`functrans.jax_modules.names`. A name that functrans does not have raises an `AttributeError`, or an `ImportError`, that
says so.

Options are set to what JAX does: `config.index_errors` and `config.linalg_errors`. Other semantics stay NumPy's:
docs/jax_libraries.md lists them.
"""

from __future__ import annotations

import os
import runpy
import sys

from .jax_modules.finder import install
from .runtime.config import config

__all__: list[str] = []

_USAGE = "usage: python -m functrans.as_jax (script.py | -m module | -c program) [arguments]"


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
config.index_errors, config.linalg_errors = "clamp", "nan"
if __name__ == "__main__":
    main()
