"""Kernels for systems that are not here: LLVM makes object files for them, whose symbols those systems export."""

import json
import subprocess
import sys
from pathlib import Path

import exports
import pytest
from cross_compile import SYSTEMS

FOLDER = Path(__file__).parent
#: What is computed by vectors everywhere.
INLINED = ("exp", "log", "tanh", "expm1", "log1p")


def compiled(triple, kernels):
    done = subprocess.run(
        [sys.executable, FOLDER / "cross_compile.py", triple, str(kernels)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(triple, kernels):
    found = compiled(triple, kernels)
    assert len(found["kernels"]) == kernels
    lacking = {name: exports.lacks(triple, s) for name, s in (found["kernels"] | found["parts"]).items()}
    assert {name: names for name, names in lacking.items() if names} == {}
    assert len(found["parts"]) >= 7
    for name, (instructions, called) in found["vectors"].items():
        if exports.has_libmvec(triple):  # vectors are computed there, and the rest of a loop one by one
            assert instructions >= 2 or any(c.startswith("_ZGV") for c in called), name
        elif name in INLINED:
            assert instructions >= 4, name
            assert not called, name


@pytest.mark.parametrize("triple", ["arm64-apple-darwin"])
def test_a_dozen_kernels(triple):
    check(triple, 12)


@pytest.mark.slow
@pytest.mark.parametrize("triple", SYSTEMS)
def test_two_hundred_kernels(triple):
    check(triple, 200)
