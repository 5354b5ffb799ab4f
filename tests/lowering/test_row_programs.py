"""Programs over tall data: `benchmarks/workloads/rows.py` beside formulas in NumPy, and loops over rows in Numba."""

import functools
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.scipy import special

sys.path.append(str(Path(__file__).parents[1] / "support"))

from benchmark_modules import benchmark_module

PROGRAMS = {program.name: program for program in benchmark_module("workloads.rows").ROW_PROGRAMS}
SPACES = {"np": fnp, "lax": lax, "special": special}
#: Rows of one block of the kernels, and of several with one that is not full.
FEW, MANY = 301, 5003
CASES = [
    (name, rows)
    for name in PROGRAMS
    for rows in (FEW, MANY)
    if rows == FEW or not name.startswith("attention")
]


def compiled(name, arguments):
    """What the benchmark measures of a program: its derivative, or its value."""
    program = PROGRAMS[name]
    wanted = inspect.getfullargspec(program.f).kwonlyargs
    f = functools.partial(program.f, **{space: SPACES[space] for space in wanted if space in SPACES})
    if program.transform:
        f = getattr(ft, program.transform)(f, program.argnums)
    return ft.jit(f)(*arguments)


def assert_close(found, expected):
    found, expected = ft.tree.leaves(found), ft.tree.leaves(expected)
    for x, y in zip(found, expected, strict=True):
        assert np.shape(x) == np.shape(y)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11 * np.max(np.abs(y)))


def by_hand(module, name):
    return getattr(benchmark_module(f"workloads.{module}"), PROGRAMS[name].by_hand)


@pytest.mark.parametrize(("name", "rows"), CASES)
def test_numpy(name, rows):
    arguments = PROGRAMS[name].arguments(rows)
    assert_close(compiled(name, arguments), by_hand("rows_numpy", name)(*arguments))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows"), CASES)
def test_by_hand(name, rows):
    arguments = PROGRAMS[name].arguments(rows)
    assert_close(compiled(name, arguments), by_hand("rows_handwritten", name)(*arguments))
