"""The main example, run as a newcomer runs it, against the published fit (Allison 1995, R's survival)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "cox_regression.py"
PUBLISHED = {
    "fin": (-0.379, 0.191),
    "age": (-0.057, 0.022),
    "race": (0.314, 0.308),
    "wexp": (-0.150, 0.212),
    "mar": (-0.434, 0.382),
    "paro": (-0.085, 0.196),
    "prio": (0.091, 0.029),
}


def run(*options):
    return subprocess.run(
        [sys.executable, EXAMPLE, *options],
        capture_output=True,
        text=True,
        cwd=EXAMPLE.parents[1],
        check=False,
    )


def test_the_fit_is_the_published_one():
    done = run()
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(\w+) +(-?[\d.]+)  \(([\d.]+)\)", done.stdout, re.M)
    assert [name for name, _, _ in rows] == list(PUBLISHED)
    for name, *computed in rows:
        assert [float(x) for x in computed] == pytest.approx(PUBLISHED[name], abs=6e-4)


def test_it_shows_jaxpr_kernel_and_route():
    done = run("--show")
    assert done.returncode == 0, done.stderr
    assert "'llvm': 1" in done.stdout
    assert "dot_general" in done.stdout
    assert "def negative_log_likelihood(" in done.stdout
