"""Modules of the benchmarks, which are not installed."""

import importlib
import importlib.util
import sys
from pathlib import Path

_PACKAGE = Path(__file__).parents[2] / "benchmarks" / "__init__.py"


def benchmark_module(name):
    """Import ``benchmarks.name`` from the source tree."""
    if "benchmarks" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "benchmarks", _PACKAGE, submodule_search_locations=[str(_PACKAGE.parent)]
        )
        sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"benchmarks.{name}")
