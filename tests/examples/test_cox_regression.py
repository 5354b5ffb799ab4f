"""The main example, run as a newcomer runs it, against the published fit (Allison 1995, R's survival)."""

import json
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


def test_the_fit_is_the_published_one(tmp_path):
    copy = tmp_path / "again.csv"
    copy.write_text((EXAMPLE.parent / "data" / "rossi.csv").read_text())
    done = run("--json", "--data", str(copy))
    assert done.returncode == 0, done.stderr
    fit = json.loads(done.stdout)
    for name, (coefficient, error) in PUBLISHED.items():
        assert fit["coef"][name] == pytest.approx(coefficient, abs=6e-4)
        assert fit["se"][name] == pytest.approx(error, abs=6e-4)


def test_it_shows_jaxpr_kernel_and_route():
    done = run("--show")
    assert done.returncode == 0, done.stderr
    assert "'llvm': 1" in done.stdout
    assert "dot_general" in done.stdout
    assert "def negative_log_likelihood(" in done.stdout


@pytest.mark.parametrize(("text", "words"), [(None, "cannot read"), ("week,arrest\n1,1\n", "column")])
def test_bad_data_is_said_in_a_line(tmp_path, text, words):
    path = tmp_path / "bad.csv"
    if text is not None:
        path.write_text(text)
    done = run("--data", str(path))
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
