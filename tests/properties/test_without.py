"""Random programs without one optimisation, and without all of them: the numbers are the same, and the IR is valid."""

import numpy as np
import pytest
from generator import drawing
from generator.comparing import compare
from generator.conditions import of_loss, places_of_floats, steady, tolerance_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans.runtime.passes import PASSES

QUIET = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
]
NAMES = [p.name for p in PASSES]
DRAWN = st.one_of(drawing.programs(drawing.WITHOUT_NUMBA, most=5), drawing.programs(drawing.WRITING, most=3))


def values_and_gradients(program, xs, without):
    """The results of a program, and the gradient of a number made of them, compiled without optimisations."""

    def loss(*xs):
        return of_loss(program)(*xs), program(*xs)

    with ft.config.patch(without=without, verify=True):
        (_, outs), gradient = ft.jit(ft.value_and_grad(loss, places_of_floats(xs), has_aux=True))(*xs)
    return outs, gradient


def check(program, seed, *settings_of_passes):
    for xs in steady(program, [seed]):
        expected = values_and_gradients(program, xs, frozenset(NAMES))
        for without in settings_of_passes:
            found = values_and_gradients(program, xs, without)
            compare(found, expected, tolerance_of(program, 1e-8), f"without {without}")


@settings(max_examples=12, suppress_health_check=QUIET)
@given(DRAWN, st.integers(0, 99), st.sets(st.sampled_from(NAMES), max_size=12))
def test_without_some(program, seed, without):
    check(program, seed, (), without)


#: The passes that are turned off in the same programs: the numbers without all of them are computed once.
GROUPS = [NAMES[k::8] for k in range(8)]


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
@settings(max_examples=8, suppress_health_check=QUIET)
@given(program=DRAWN, seed=st.integers(0, 99))
def test_without_one(group, program, seed):
    check(program, seed, *[{name} for name in group])


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=QUIET)
@given(DRAWN, st.integers(0, 99))
def test_all_together(program, seed):
    check(program, seed, ())


def test_places_of_extremes():
    """No loop computes them: rewriting them is not an optimisation."""
    x = np.array([[0.3, -0.6, -1.1], [-1.2, 0.8, 1.0]])
    with ft.config.patch(without=frozenset(NAMES)):
        assert [*ft.jit(lambda x: ft.numpy.argmax(x, axis=0))(x)] == [0, 1, 1]
        assert [*ft.jit(lambda x: ft.numpy.argmin(x, axis=1))(x)] == [2, 0]
