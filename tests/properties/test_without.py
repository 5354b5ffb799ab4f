"""Random programs without one optimisation, and without all of them: the numbers are the same, and the IR is valid."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans import tree
from functrans.core.passes import PASSES

_spec = importlib.util.spec_from_file_location(
    "functrans_test_loop_programs", Path(__file__).with_name("loop_programs.py")
)
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
NAMES = [p.name for p in PASSES]
DRAWN = st.one_of(programs.programs(), programs.array_loops(), programs.mixtures())


def values_and_gradients(program, seed, without):
    """The results of a program, and the gradient of a number made of them, compiled without optimisations."""
    floats, ints = program.point(seed)

    def loss(floats, ints):
        outs = program.native(floats, ints)
        return programs.loss(outs), outs

    with ft.config.patch(without=without, verify=True):
        (_, outs), gradient = ft.jit(ft.value_and_grad(loss, has_aux=True))(floats, ints)
    return outs, gradient


def assert_same(program, found, expected):
    rtol = 2e-4 if "'q'" in repr(program) else 1e-9  # numbers of single precision may be on the way
    for a, b in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def check(program, seed, *settings_of_passes):
    expected = values_and_gradients(program, seed, frozenset(NAMES))
    for without in settings_of_passes:
        assert_same(program, values_and_gradients(program, seed, without), expected)


@settings(max_examples=12, suppress_health_check=QUIET)
@given(DRAWN, st.integers(0, 99), st.sets(st.sampled_from(NAMES), max_size=12))
def test_without_some(program, seed, without):
    check(program, seed, (), without)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, suppress_health_check=QUIET)
@given(program=DRAWN, seed=st.integers(0, 99))
def test_without_one(name, program, seed):
    check(program, seed, {name})


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=QUIET)
@given(DRAWN, st.integers(0, 99))
def test_all_together(program, seed):
    check(program, seed, ())
