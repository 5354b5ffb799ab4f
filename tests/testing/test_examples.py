"""Many points in the lanes of one function: faults at some of them are found, and what has no lanes is tested alone."""

import math

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import LawViolation
from functrans.testing import examples as module
from functrans.testing.examples import check_examples

X = np.array([[0.9, 0.8, 0.7], [0.5, 0.6, 0.4]])


@pytest.fixture
def points(monkeypatch):
    """Shapes of the first argument at each point that is tested."""
    seen, check = [], module._violation

    def spy(f, point, options):
        seen.append(np.shape(point[0]))
        return check(f, point, options)

    monkeypatch.setattr(module, "_violation", spy)
    return seen


def test_points_of_equal_shapes_are_tested_together(points):
    check_examples(lambda x, n: fnp.sum(fnp.sin(x) * n), (X, 3), {"order": 1, "modes": "rev"}, examples=60)
    assert points[0] == (2, 3)
    assert [s for s in points if len(s) == 3] == [(20, 2, 3), (20, 2, 1), (19, 1, 3)]
    assert len(points) == 7


def test_a_fault_far_away_is_found_alone_and_made_small(points):
    @ft.custom_vjp
    def f(x):
        return fnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * fnp.cos(x) * fnp.where(x > 1.0, 1.001, 1.0),))
    with pytest.raises(LawViolation) as caught:
        check_examples(f, (X,), {"order": 1, "modes": "rev"}, examples=40)
    assert caught.value.name == "vjp_is_slope"
    assert len(points[-1]) == 2
    assert "the smallest example found: f([[1." in caught.value.__notes__[0]


def test_without_lanes_points_are_tested_one_by_one(points):
    check_examples(math.lgamma, (2.5,), {"derivative": _digamma}, examples=3)
    f = lambda x: fnp.sum(x**2) if x[0, 0] > 0 else fnp.sum(x)  # no batch of these
    check_examples(f, (X,), {"order": 1, "laws": ["jvp_is_slope", "vjp_is_adjoint"]}, examples=7)
    assert points.count((2, 3)) == 3
    with pytest.raises(LawViolation):
        check_examples(f, (X,), {"laws": "jit_is_eager"}, examples=4)


def _digamma(x):
    return (math.lgamma(x + 1e-5) - math.lgamma(x - 1e-5)) / 2e-5
