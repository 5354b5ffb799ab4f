"""sinc, i0, and windows."""

import math

import numpy as np
import pytest
import scipy.special

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.testing import check


def test_sinc(same):
    for x in (
        0.0,
        0,
        [0.0, 1.0, 1e-9, 0.3, -0.32, 5.25],
        np.arange(-3, 4),
        np.float32([0, 0.1, 2]),
        0.1 + 2j,
        np.nan,
    ):
        same("sinc", x)
    assert ft.jit(np.sinc)(0.25) == pytest.approx(np.sinc(0.25), rel=1e-15)


@pytest.mark.slow
def test_all_derivatives_of_sinc_at_zero():
    """The derivative of order 2k is (-1)**k pi**(2k) / (2k + 1), those of odd order are 0."""
    f = fnp.sinc
    for order in range(7):
        expected = 0.0 if order % 2 else (-1) ** (order // 2) * math.pi**order / (order + 1)
        assert f(0.0) == pytest.approx(expected, rel=1e-13, abs=1e-9)
        # The derivatives on both sides of the series' end agree.
        edge = 1 / math.pi
        assert f(edge * (1 - 1e-12)) == pytest.approx(f(edge * (1 + 1e-12)), rel=1e-6, abs=1e-6)
        f = ft.grad(f)


def test_derivatives():
    check(fnp.sinc, np.array([0.1, -0.31, 0.33, 2.5]))
    check(fnp.i0, np.array([0.0, 0.5, -3.0, 12.0]))
    check(lambda beta: fnp.kaiser(7, beta), 3.5)
    third = ft.grad(ft.grad(ft.grad(fnp.i0)))(1.5)
    assert third == pytest.approx(scipy.special.ivp(0, 1.5, 3), rel=1e-12)


def test_i0(same):
    for x in (0, 1.5, [[-2.0, 20.0]], np.float32(3), np.zeros(0), np.inf, np.nan):
        same("i0", x)
    with pytest.raises(errors.DtypeError):
        fnp.i0(1j)
    x = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(ft.jit(np.i0)(x), np.i0(x), rtol=1e-14)
    np.testing.assert_allclose(ft.vmap(fnp.i0)(x), np.i0(x), rtol=1e-14)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 12])
def test_windows(same, name, count):
    same(name, count)
    np.testing.assert_allclose(
        ft.jit(lambda x: x * getattr(fnp, name)(count))(1.0), getattr(np, name)(count), atol=1e-15
    )


def test_kaiser(same):
    for count in (0, 1, 2, 5):
        for beta in (0, 3.5, 14):
            same("kaiser", count, beta)
