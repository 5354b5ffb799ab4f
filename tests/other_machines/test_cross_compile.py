"""Kernels for systems that are not here: LLVM makes object files for them, whose symbols those systems export."""

import json
import subprocess
import sys
from pathlib import Path

import exports
import pytest
from cross_compile import FUNCTIONS, SYSTEMS

FOLDER = Path(__file__).parent
#: Whose loops have a branch to the C library, for arguments that are far from zero.
BRANCH = ("sin", "cos", "tan")
#: What old processors of x86-64, without fused multiply-add, call number by number, since that is faster there.
SLOW = {"exp", "exp2", "power", "arcsinh", "arccosh"}


def compiled(triple, kernels, *level):
    done = subprocess.run(
        [sys.executable, FOLDER / "cross_compile.py", triple, str(kernels), *level],
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
    assert set(found["vectors"]) == set(FUNCTIONS)
    for name, (instructions, called) in found["vectors"].items():
        if exports.has_libmvec(triple):  # vectors are computed there, and the rest of a loop one by one
            assert instructions >= 2 or any(c.startswith("_ZGV") for c in called), name
        else:
            assert instructions >= 4, name
            assert called == of_far_arguments(name), name


def of_far_arguments(name):
    """What a loop calls in a branch."""
    return [f"functrans.c.{name}"] if name in BRANCH else []


@pytest.mark.parametrize("triple", ["arm64-apple-darwin"])
def test_a_dozen_kernels(triple):
    check(triple, 12)


@pytest.mark.parametrize("triple", ["x86_64-pc-windows-msvc"])
def test_without_fused_multiply_add(triple):
    vectors = compiled(triple, 0, "x86-64")["vectors"]
    assert {name for name, (_, called) in vectors.items() if called != of_far_arguments(name)} == SLOW


@pytest.mark.slow
@pytest.mark.parametrize("triple", SYSTEMS)
def test_two_hundred_kernels(triple):
    check(triple, 200)
