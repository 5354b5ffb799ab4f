"""The logarithm of one plus a complex number, which NumPy computes by rounding that sum."""

import mpmath
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

POINTS = [
    1e-10,
    1e-5,
    1e-10j,
    1e-8 + 1e-8j,
    0.5 + 0.3j,
    -5e-7 + 1e-3j,
    -0.49 + 0.49j,
    3 + 4j,
    -1.5 + 1e-9j,
    1e30 + 1e30j,
]
SPECIAL = [
    complex(a, b)
    for a in (0.0, -0.0, -1.0, -2.0, np.inf, -np.inf, np.nan)
    for b in (0.0, -0.0, np.inf, np.nan)
]


def exact(z):
    with mpmath.workdps(50):
        value = mpmath.log(1 + mpmath.mpc(float(z.real), float(z.imag)))
        return complex(value)


@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_against_mpmath(dtype, how):
    z = np.array(POINTS, dtype)
    f = fnp.log1p if how == "eager" else ft.jit(fnp.log1p)
    found, expected = np.asarray(f(z)), np.array([exact(x) for x in z])
    assert found.dtype == dtype
    assert np.all(np.abs(found - expected) <= 2 * np.finfo(dtype).eps * np.abs(expected))
    assert np.asarray(f(z[3])) == found[3]


def test_special_values_are_those_of_numpy():
    z = np.array(SPECIAL)
    with np.errstate(all="ignore"):
        expected = np.log1p(z)
        for f in (fnp.log1p, ft.jit(fnp.log1p)):
            for part in (np.real, np.imag):  # the angles of C libraries differ by an ulp
                np.testing.assert_allclose(part(f(z)), part(expected), rtol=3e-16)
            signs = [np.signbit(np.nan_to_num(x.imag, nan=1.0)) for x in (np.asarray(f(z)), expected)]
            np.testing.assert_array_equal(*signs)
