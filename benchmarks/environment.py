"""One core and one thread for every contestant, or all of them, set before any module reads it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys

_MARK = "FUNCTRANS_BENCHMARKS_CORE"
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
    # Reading a compiled program from disk would not measure a compile.
    "JAX_ENABLE_COMPILATION_CACHE": "0",
    "FUNCTRANS_CACHE": "0",
}


def require(*packages: str) -> None:
    """Exit with code 2 and a message if packages of the `bench` extra are missing."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"benchmarks: {' and '.join(missing)} not installed. They come with the extra `bench`:"
            " python -m pip install '.[bench]'",
            file=sys.stderr,
        )
        raise SystemExit(2)


def pin(*, all_cores: bool = False) -> None:
    """Restart this process, pinned to one core and with single-threaded libraries, unless it already is.

    With `all_cores` it keeps its cores, and each library its threads.
    """
    if _MARK in os.environ:
        return
    if all_cores:
        environment = {
            k: v for k, v in _ENVIRONMENT.items() if not k.endswith("_NUM_THREADS") and k != "XLA_FLAGS"
        }
        mark = f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores"
    else:
        mark = "any core"
        if hasattr(os, "sched_setaffinity"):
            # The last one: the first serves most interrupts.
            core = max(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {core})
            mark = f"core {core}"
        flags = " ".join(filter(None, (os.environ.get("XLA_FLAGS"), _ENVIRONMENT["XLA_FLAGS"])))
        environment = {**_ENVIRONMENT, "XLA_FLAGS": flags}
    os.execve(
        sys.executable,
        [sys.executable, "-m", __package__, *sys.argv[1:]],
        {**os.environ, **environment, _MARK: mark},
    )


def describe() -> str:
    """Machine and versions, as one line above every table."""
    names = ("functrans", "jax", "autograd", "numpy", "scipy", "numba", "llvmlite")
    versions = []
    for name in names:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            if name == "functrans":
                versions.append(f"{name} from the source tree")
    where = f"{_processor()}, {os.environ[_MARK]}"
    return f"{where}; Python {platform.python_version()}, {', '.join(versions)}\n"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
