"""Random programs under random stacks of transformations, against NumPy and finite differences."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft

_spec = importlib.util.spec_from_file_location(
    "functrans_test_programs", Path(__file__).with_name("programs.py")
)
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def check_values(case):
    program, x = case
    before = x.copy()
    expected = program.reference(x)
    for run in (program, ft.jit(program), ft.jit(ft.jit(program)), lambda x: ft.vjp(program, x)[0]):
        found = np.asarray(run(x))
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
        assert not np.shares_memory(found, x) or run is program
    np.testing.assert_array_equal(x, before)


def check_stack(case, names):
    program, x = case
    f, oracle, _ = programs.apply_stack(program, names)
    before = x.copy()
    expected, found = np.asarray(oracle(x)), np.asarray(f(x))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(x, before)


def check_modes(case):
    """Forward and reverse mode are each other's transpose, eager, compiled either way, and batched."""
    program, x = case
    out, pull = ft.vjp(program, x)
    d, ct = programs.direction(x), programs.direction(out)
    slope = np.asarray(ft.jvp(program, (x,), (d,))[1])
    back = np.asarray(pull(ct)[0])
    np.testing.assert_allclose(np.sum(ct * slope), np.sum(back * d), rtol=1e-9, atol=1e-10)
    jitted = ft.jit(program)
    for other in (
        ft.vjp(jitted, x)[1](ct)[0],
        ft.jit(lambda x, ct: ft.vjp(program, x)[1](ct)[0])(x, ct),
        ft.vmap(lambda ct: pull(ct)[0])(np.stack([ct, 2 * ct]))[0],
        ft.vmap(lambda x: ft.vjp(jitted, x)[1](ct)[0])(np.stack([x, x]))[1],
    ):
        np.testing.assert_allclose(other, back, rtol=1e-9, atol=1e-10)
    for other in (
        ft.linearize(jitted, x)[1](d),
        ft.jit(lambda x, d: ft.jvp(program, (x,), (d,))[1])(x, d),
        ft.linear_transpose(lambda ct: pull(ct)[0], ct)(d)[0],
    ):
        np.testing.assert_allclose(other, slope, rtol=1e-9, atol=1e-10)


@settings(max_examples=20, suppress_health_check=QUIET)
@given(programs.programs())
def test_values(case):
    check_values(case)


@settings(max_examples=20, suppress_health_check=QUIET)
@given(programs.programs(4), programs.stacks())
def test_stacks(case, names):
    check_stack(case, names)


@settings(max_examples=10, suppress_health_check=QUIET)
@given(programs.programs())
def test_modes(case):
    check_modes(case)


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=QUIET)
@given(programs.programs(10), programs.stacks(), st.sampled_from([check_values, check_modes, check_stack]))
def test_many(case, names, check):
    check(case, names) if check is check_stack else check(case)
