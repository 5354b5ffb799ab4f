"""What rewriting rules ask of equations and their operands."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.api.encoding import known_primitives
from functrans.passes.rewriter import Rewriter, is_number
from functrans.primitives.elementwise.arithmetic import mul_p


@pytest.mark.parametrize(
    ("value", "number", "same"),
    [
        (2.0, 2.0, True),
        (2, 2.0, True),
        (2.0, -2.0, False),
        (0.0, 0.0, True),
        (-0.0, 0.0, False),
        (0.0, -0.0, False),
        (-0.0, -0.0, True),
        (0, 0.0, True),
        (0, -0.0, True),
        (-1.0, -1.0, True),
        (float("nan"), 1.0, False),
        (True, 1.0, False),
        (1 + 0j, 1.0, False),
        (None, 0.0, False),
        (float("nan"), float("nan"), True),
        (float("inf"), float("inf"), True),
        (1j, 1j, True),
        (0j, 0.0, False),
        (1.0, 1 + 0j, False),
        (True, True, True),
        (False, 0, False),
        (1, True, False),
    ],
)
def test_zeros_of_opposite_sign_are_two_numbers(value, number, same):
    assert is_number(value, number) is same


COMMUTING = {
    "add",
    "mul",
    "max",
    "min",
    "and",
    "or",
    "xor",
    "gcd",
    "lcm",
    "eq",
    "ne",
    "hypot",
    "logaddexp",
    "logaddexp2",
}


def test_operations_that_commute():
    """Also for NaN and infinities. (Of zeros of opposite sign, `maximum` returns the first.)"""
    known = known_primitives()
    assert {name for name, p in known.items() if p.commutes} == COMMUTING
    numbers = np.array([-2.0, 0.0, 1.0, 3.0, np.inf, -np.inf, np.nan])
    for name in COMMUTING:
        dtype = int if name in ("and", "or", "xor", "gcd", "lcm") else float
        xs = np.arange(-3, 4) if dtype is int else numbers
        x, y = (a.ravel() for a in np.meshgrid(xs, xs))
        with np.errstate(all="ignore"):
            assert np.array_equal(known[name].impl(x, y), known[name].impl(y, x), equal_nan=dtype is float), (
                name
            )


def test_the_number_that_fills_an_array():
    def f(x):
        return x + fnp.full((3,), 2.5), x * np.float64(0.5), x - x

    jaxpr = ft.make_jaxpr(f)(np.ones(3))
    rw = Rewriter()
    for eqn in jaxpr.eqns:
        rw.emit(eqn)
    found = {e.primitive.name: rw.uniform(e.invars[1]) for e in jaxpr.eqns if len(e.invars) == 2}
    assert found == {"add": 2.5, "mul": 0.5, "sub": None}
    assert type(found["mul"]) is float
    (add,) = [e for e in jaxpr.eqns if e.primitive.name == "add"]
    assert rw.made_by(add.outvars[0], add.primitive) is add
    assert rw.made_by(add.outvars[0], mul_p) is None
    assert rw.made_by(jaxpr.invars[0], add.primitive) is None
