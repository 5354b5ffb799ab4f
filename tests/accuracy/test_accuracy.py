"""Functions and derivatives at special and ordinary points are as accurate as docs/accuracy.md says."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from functions import ENTRIES  # noqa: E402
from sweep import RUNS, measured, points_of  # noqa: E402


def page():
    path = HERE.parents[1] / "docs" / "scripts" / "generate_accuracy.py"
    spec = importlib.util.spec_from_file_location("generate_accuracy", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


STATED = page().stated()


def check(entry, points, dtypes, runs):
    for dtype, found in measured(entry, points, dtypes, runs).items():
        assert not found.wrong, f"{len(found.wrong)} wrong, as {found.wrong[:3]}"
        stated = STATED[entry.name][np.dtype(dtype).name]
        # Another processor has other vector functions.
        beyond = [order for order, (e, s) in enumerate(zip(found.worst, stated)) if e > 2 * s + 1]
        assert not beyond, f"errors {found.worst} ulp, of which the page says {stated}: orders {beyond}"


def test_the_page_lists_the_functions():
    assert list(STATED) == [e.name for e in ENTRIES], "run python docs/scripts/generate_accuracy.py"


@pytest.mark.wide(2)
@pytest.mark.parametrize("entry", [e for e in ENTRIES if not e.slow], ids=lambda e: e.name)
def test_few_points(entry):
    points = points_of(entry, ordinary=4)
    if len(entry.domain) > 1:
        points = points[::2]
    check(entry, points, [np.float64], ["jit", "eager"])


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_all_points(entry):
    """Of functions of several arguments those points that the quick test leaves out."""
    points = points_of(entry)
    check(entry, points if len(entry.domain) == 1 else points[1::2], [np.float64, np.float32], RUNS)
