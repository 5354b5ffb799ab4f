"""Single precision against double: rules that are wrong there alone, and functions that the law leaves out."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import LawViolation, check, single_precision_agrees

X = np.array([0.3, 0.8, 1.7])


def sine(wrong_in):
    f = ft.custom_vjp(lambda x: fnp.sin(x))
    factor = lambda x: 1.1 if x.dtype in wrong_in else 1.0
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * fnp.cos(x) * factor(x),))
    return f


def test_a_rule_that_is_wrong_in_single_precision_alone():
    with pytest.raises(LawViolation, match=r"in single precision it is .*, in double") as caught:
        check(sine(["float32"]), X)
    assert caught.value.name == "single_precision_agrees"
    check(sine([]), X, order=1)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: fnp.exp(x), np.array([100.0, 1.0])),  # overflows in single precision
        (lambda x: 1 - fnp.cos(x), np.array(1e-3)),  # cancels there
        (lambda x: fnp.sin(1e4 * x), X),  # is steep
        (lambda x: x * 1e30 * 1e-30, X),
        (lambda z: z * fnp.conj(z), X + 1j),
        (sine(["float32"]), X.astype("f4")),  # is in single precision already
    ],
)
def test_what_rounding_explains(f, x):
    single_precision_agrees(f, x)


def test_a_function_of_double_precision_alone():
    def f(x):
        if x.dtype != np.float64:
            raise TypeError("double precision only")
        return fnp.sin(x)

    single_precision_agrees(f, X)
