"""The two environments in which libraries run: each has its own ``jax``. They are made at their first use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
VERSIONS = Path(__file__).with_name("versions.txt")
JAX = ("jax==0.10.2", "jaxlib==0.10.2")


class Side(NamedTuple):
    """One of the two implementations of ``jax``.

    Attributes
    ----------
    name : {'functrans', 'jax'}
    python : str
        The interpreter of its environment.
    options : tuple of str
        What stands before ``-m``.
    """

    name: str
    python: str
    options: tuple[str, ...]

    def run(
        self, *module: str, cwd: Path = ROOT, timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a module in a process of this side, with functrans's sources and these programs on its path."""
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        return subprocess.run(
            [self.python, *self.options, "-m", *module],
            capture_output=True, text=True, cwd=cwd, timeout=timeout, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip


def sides(folder: str | None) -> tuple[Side, Side]:
    """The side of functrans and that of JAX, with environments ``functrans`` and ``jax`` in a folder.

    The folder is ``LIBRARIES_ENVIRONMENTS``, or ``.venv-libraries`` beside the sources. Environments that are not there
    are made: that takes some minutes, the network, and 3 GB.
    """
    return functrans_side(folder), Side("jax", _python(_folder(folder) / "jax", *JAX), ())


def functrans_side(folder: str | None = None) -> Side:
    """The side of functrans alone."""
    return Side("functrans", _python(_folder(folder) / "functrans"), ("-m", "functrans.as_jax"))


def _folder(folder: str | None) -> Path:
    return Path(folder or os.environ.get("LIBRARIES_ENVIRONMENTS") or ROOT / ".venv-libraries").absolute()


def _python(environment: Path, *further: str) -> str:
    """The interpreter of an environment that has the libraries."""
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    complete = environment / "pyvenv.cfg"
    if not python.exists() or not complete.exists():
        print(f"making {environment}, with {len(VERSIONS.read_text().split())} packages", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(VERSIONS), *further]
        if subprocess.run(install).returncode:
            complete.unlink()
            raise SystemExit(f"benchmarks: the libraries could not be installed: {' '.join(install)}")
    return str(python)
