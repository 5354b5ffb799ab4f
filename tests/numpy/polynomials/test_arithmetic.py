"""Polynomials, their roots, and fits, against NumPy's."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.testing import check

P, Q = np.array([2.0, -1.0, 0.5, 3.0]), np.array([1.5, 2.0])
POLYNOMIALS = [
    P,
    Q,
    np.array([3.0]),
    np.array([0.0, 0.0, 1.0, 2.0]),
    [1, 2],
    np.float32([1, 2]),
    P + 1j,
    5.0,
    [0.0],
]


@pytest.mark.parametrize("name", ["polyadd", "polysub", "polymul", "polydiv"])
def test_two(same, name):
    for a in POLYNOMIALS:
        for b in POLYNOMIALS[: -1 if name == "polydiv" else None]:
            if name != "polydiv" or np.ravel(b)[0] != 0:
                same(name, a, b)
    if name != "polydiv":
        same(name, P[None], Q)
    function = getattr(np, name)
    out, expected = ft.jit(function)(P, Q), function(P, Q)
    for got, e in zip(out, expected) if name == "polydiv" else [(out, expected)]:
        np.testing.assert_allclose(got, e, rtol=1e-14)
    check(getattr(fnp, name), P, Q)


@pytest.mark.parametrize("p", [p for p in POLYNOMIALS if np.ndim(p)], ids=str)
def test_one(same, p):
    same("polyval", p, 2)
    same("polyval", p, [[0.5, -1.0]])
    for m in (0, 1, 2, 5):
        same("polyder", p, m)
        same("polyint", p, m)
    same("polyint", p, 2, 3.0)
    same("polyint", p, 2, [3.0, 1.0])
    same("polyint", p, 3, [3.0, 1.0])
    same("polyder", p, -1)
    same("polyint", p, -1)


@pytest.mark.slow
def test_derivatives():
    check(lambda p, x: fnp.polyval(p, x), P, Q)
    check(fnp.polyder, P)
    check(lambda p, k: fnp.polyint(p, 2, k), P, Q)
    check(fnp.vander, P)
    check(fnp.poly, P)
    check(lambda p: ft.numpy.real(fnp.roots(p)) ** 2, np.array([1.0, -6.0, 11.0, -6.1]))
    check(lambda x, y, w: fnp.polyfit(x, y, 2, w=w), P, P[::-1] + 1, np.array([1.0, 2.0, 0.5, 1.5]))
    np.testing.assert_allclose(ft.jit(lambda x, y: np.polyfit(x, y, 1))(P, P**2), np.polyfit(P, P**2, 1))
    np.testing.assert_allclose(ft.vmap(np.polyval, (None, 0))(P, Q), np.polyval(P, Q))


def test_poly_and_roots(same):
    for z in (
        [1.0, 2.0, 3.0],
        [1, 2],
        [1j, -1j, 2],
        [1j, 2],
        [],
        [[1.0, 2.0], [3.0, 4.5]],
        np.zeros((2, 3)),
    ):
        same("poly", z)
    for p in ([1.0, -3.0, 2.0], [0, 0, 1, -3, 2, 0], [2.0], [0.0], [1, 0, 1], [1j, 2]):
        got = np.sort_complex(fnp.roots(p))
        np.testing.assert_allclose(got, np.sort_complex(np.roots(p)), rtol=1e-12, atol=1e-14)
    same("roots", [[1.0, 2.0]])
    np.testing.assert_allclose(np.sort_complex(ft.jit(np.roots)(P)), np.sort_complex(np.roots(P)), rtol=1e-10)


def test_roots_are_complex_eagerly_and_compiled():
    for p in ([1.0, -3.0, 2.0], np.float32([1, 0, -4]), [1, 2, 1], [2.0]):
        own, compiled = fnp.roots(p), ft.jit(fnp.roots)(np.asarray(p))
        assert own.dtype == compiled.dtype == (np.complex64 if np.asarray(p).dtype == np.float32 else complex)
        np.testing.assert_allclose(own, compiled, rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_roots_that_nothing_is_stripped_of(wrap):
    """For each leading zero a NaN at the end, as in JAX."""
    roots = wrap(lambda p: fnp.roots(p, strip_zeros=False))
    for zeros_, p in ((0, [1.0, -3.0, 2.0]), (1, [0.0, 1.0, -3.0, 2.0]), (2, [0.0, 0.0, 1.0, 2.0, 0.0])):
        found = roots(np.array(p))
        number = len(p) - 1 - zeros_
        np.testing.assert_allclose(
            np.sort_complex(found[:number]), np.sort_complex(np.roots(p)), rtol=1e-12, atol=1e-14
        )
        assert np.isnan(found[number:]).all()
        assert len(found) == len(p) - 1
    assert np.isnan(roots(np.zeros(4))).all()


def test_vander(same):
    for x in (P, [1, 2, 3], np.float32([1, 2]), [True, False], P + 1j, np.zeros(0), [[1.0]]):
        for n in (None, 0, 1, 4):
            same("vander", x, n)
            same("vander", x, n, increasing=True)
    same("vander", P, -1)


def test_polyfit(same):
    rng = np.random.default_rng(0)
    x, y, w = rng.standard_normal(9), rng.standard_normal((9, 2)), rng.uniform(1, 2, 9)
    for values in (y, y[:, 0]):
        for degree in (0, 1, 3):
            for options in ({}, {"w": w}, {"cov": True}, {"cov": "unscaled", "w": w}, {"rcond": 1e-3}):
                got, expected = (module.polyfit(x, values, degree, **options) for module in (fnp, np))
                for g, e in zip(got, expected) if isinstance(expected, tuple) else [(got, expected)]:
                    assert g.shape == e.shape
                    np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-12)
    got, expected = fnp.polyfit(x, y, 2, full=True), np.polyfit(x, y, 2, full=True)
    for g, e in zip(got, expected):
        np.testing.assert_allclose(g, e, rtol=1e-9)
    for bad in [(x, y[:3], 1), (x[:0], y[:0], 1), (x, y, -1), (y, y, 1)]:
        same("polyfit", *bad)
    same("polyfit", x, y, 1, w=w[:2])
    with pytest.raises(errors.ArgumentValueError, match="covariance"):
        fnp.polyfit(x[:2], y[:2], 1, cov=True)
