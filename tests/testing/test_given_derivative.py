"""`check(f, derivative=...)`: derivatives from elsewhere, right and wrong."""

import cmath
import math

import numpy as np
import pytest
from scipy import special

import functrans.numpy as fnp
from functrans.errors import ArgumentError
from functrans.testing import LawViolation, check

A = np.array([[1.0, 2.0], [3.0, 5.0]])


def cofactors(a):
    return np.array([[a[1, 1], -a[1, 0]], [-a[0, 1], a[0, 0]]])


def outer_jacobian(x, y):
    return np.einsum("ik,j->ijk", np.eye(x.size), y), np.einsum("i,jk->ijk", x, np.eye(y.size))


RIGHT = {
    "of the standard library": (math.lgamma, (2.5,), special.digamma),
    "of a C function": (lambda x: special.jv(0, np.asarray(x)), (1.5,), lambda x: -special.j1(x)),
    "a gradient": (np.linalg.det, (A,), cofactors),
    "Jacobians of two arguments": (np.outer, (np.array([0.5, 2.0]), np.arange(3.0) + 1), outer_jacobian),
    "trees": (
        lambda d: {"a": d["w"] @ d["w"], "b": d["w"] * 2},
        ({"w": np.array([1.0, 2.0])},),
        lambda d: {"a": {"w": 2 * d["w"]}, "b": {"w": 2 * np.eye(2)}},
    ),
    "holomorphic": (fnp.exp, (0.3 + 0.2j,), cmath.exp),
    "holomorphic, not traceable": (cmath.exp, (0.3 + 0.2j,), cmath.exp),
    "real of complex": (abs, (0.3 + 0.4j,), lambda z: z.conjugate() / abs(z)),
    "single precision": (fnp.sin, (np.float32(0.5),), np.cos),
    "of nothing": (fnp.sin, (np.zeros(0),), lambda x: np.zeros((0, 0))),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_ones_pass_and_wrong_ones_do_not(name):
    f, args, derivative = RIGHT[name]
    check(f, *args, derivative=derivative)
    if name == "of nothing":
        return

    def wrong(*args):
        right = derivative(*args)
        return {**right, "b": {"w": right["b"]["w"] * 1.01}} if isinstance(right, dict) else [1.01 * x for x in right] \
            if isinstance(right, tuple) else 1.01 * right  # fmt: skip

    with pytest.raises(LawViolation, match="the derivative is that of the function"):
        check(f, *args, derivative=wrong)


def test_the_report():
    with pytest.raises(LawViolation) as info:
        check(lambda p, t: fnp.sum(p["w"] ** 2) * t, {"w": np.array([1.0, 2.0])}, 3.0, wrt=0,
              derivative=lambda p, t: {"w": np.array([2.0, 4.5]) * t})  # fmt: skip
    text = str(info.value)
    assert "the derivative in argument 0 ('p')['w'], against forward mode" in text
    assert "index (1,) of shape (2,): it gives 13.5, expected 12.0" in text
    with pytest.raises(
        LawViolation, match=r"(?s)against finite differences \(a trace raised .*estimated error of \d"
    ):
        check(math.lgamma, 2.5, derivative=math.log)


def test_what_cannot_be_compared():
    with pytest.raises(
        ArgumentError, match=r"2 arrays, for argument 0 \('a'\), argument 1 \('b'\), got 1.*wrt="
    ):
        check(lambda a, b: a * b, 1.0, 2.0, derivative=lambda a, b: b)
    with pytest.raises(ArgumentError, match=r"not holomorphic in argument 0 \('z'\)"):
        check(lambda z: z.conjugate() * z, 1 + 2j, derivative=lambda z: z)


def test_slopes_of_each_element_are_not_a_jacobian():
    x = np.array([0.3, 0.8])
    with pytest.raises(LawViolation, match=r"it has shape \(2,\), expected \(2, 2\).*np\.diag") as caught:
        check(np.sin, x, derivative=np.cos)
    assert "or check its sum" in str(caught.value)
    check(np.sin, x, derivative=lambda x: np.diag(np.cos(x)))
    check(lambda x: np.sin(x).sum(), x, derivative=np.cos)
