"""Where Python asks a differentiated value for a number: said on purpose, or a derivative about to be lost."""

import cmath
import math
from math import exp

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp


@pytest.mark.parametrize(
    "fun",
    [
        lambda t: t * float(t),
        lambda t: t * int(t),
        lambda t: t * round(t),
        lambda t: t * len(f"{t:.0f}") * 2,
        lambda t: t * len("%1.0f" % t) * 2,  # noqa: UP031
        lambda t: t * 2 if float(t) > 1 else t,
        lambda t: t * np.float64(float(t)),
    ],
)
def test_an_explicit_conversion_gives_a_constant(fun):
    assert ft.grad(fun)(2.0) == 2.0


@pytest.mark.parametrize(
    ("fun", "taker"),
    [
        (lambda t: math.sin(t) * t, "math.sin"),
        (lambda t: exp(t) * t, "math.exp"),
        (lambda t: abs(cmath.sqrt(t)) * t, "math.sqrt"),
    ],
)
def test_functions_of_the_math_module_are_refused(fun, taker):
    with pytest.raises(
        ft.errors.TracerScalarConversionError, match=f"{taker} of a value .* being differentiated"
    ):
        ft.grad(fun)(2.0)


@pytest.mark.parametrize("write", [lambda b, t: b.__setitem__(0, t), lambda b, t: b.fill(t)])
@pytest.mark.parametrize("transform", [ft.grad, ft.jit])
def test_writing_into_an_array_is_refused(write, transform):
    """NumPy puts a ValueError of its own in front of our error, which is its cause."""

    def fun(t):
        buffer = np.zeros(3)
        write(buffer, t)
        return fnp.sum(buffer) * t

    with pytest.raises(ValueError, match="sequence") as met:
        transform(fun)(2.0)
    assert isinstance(met.value.__cause__, ft.errors.TracerScalarConversionError)
    assert ".at[i].set(v)" in str(met.value.__cause__)


def test_an_assignment_statement_is_refused():
    def fun(t):
        buffer = np.zeros(3)
        buffer[0] = t
        return fnp.sum(buffer) * t

    with pytest.raises(ValueError, match="sequence") as met:
        ft.grad(fun)(2.0)
    assert "assignment into an array" in str(met.value.__cause__)
