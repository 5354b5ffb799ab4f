"""convolve, correlate, interp and unwrap, compared with NumPy, and their derivatives."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import check

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal(7), RNG.standard_normal(4)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid", "most"])
def test_sliding(same, name, mode):
    for x in (A, B, A[:1], A + 1j * A[::-1], A.astype(np.float32), np.arange(5), A > 0, 2.0, [1, 2], A[::-2]):
        for y in (A, B, B[:1], B[::-1] * 1j, np.arange(3, dtype=np.int8), B > 0, 3):
            same(name, x, y, mode)
    same(name, A, [], mode)
    same(name, [], B, mode)
    same(name, np.ones((2, 2)), B, mode)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_sliding_transformed(name, mode):
    f, reference = getattr(fnp, name), getattr(np, name)
    for x, y in ((A, B), (B, A), (A, A[:6])):
        np.testing.assert_allclose(
            ft.jit(lambda x, y: f(x, y, mode))(x, y), reference(x, y, mode), atol=1e-13
        )
    rows = RNG.standard_normal((3, 7))
    mapped = ft.jit(ft.vmap(lambda x: f(x, B, mode)))(rows)
    np.testing.assert_allclose(mapped, [reference(row, B, mode) for row in rows], atol=1e-13)
    check(lambda x, y: f(x, y, mode), A, B, order=1)
    check(lambda x, y: f(x, y, mode), B + 1j, A - 2j, order=1)


def test_long_sequences():
    x, y = RNG.standard_normal(5000), RNG.standard_normal(90)
    np.testing.assert_allclose(ft.jit(fnp.convolve)(x, y), np.convolve(x, y), atol=1e-11)
    np.testing.assert_allclose(ft.jit(fnp.correlate)(x, x), np.correlate(x, x), rtol=1e-12)


# --- interp -------------------------------------------------------------------------------------------------

XP = np.array([-1.0, 0.0, 0.5, 2.0])
FP = np.array([3.0, -1.0, 4.0, 1.5])


def test_interp(same):
    x = np.array([-2.0, -1.0, -0.3, 0.0, 0.2, 0.5, 1.9, 2.0, 5.0, np.nan, np.inf, -np.inf])
    for fp in (FP, FP + 1j * FP[::-1], np.arange(4), FP.astype(np.float32)):
        same("interp", x, XP, fp)
        same("interp", x, XP, fp, left=-7.0)
        same("interp", x, XP, fp, left=np.nan, right=9)
        same("interp", x.reshape(3, 4), XP, fp, -1.0, 1.0)
        same("interp", 0.7, XP, fp)
        same("interp", np.float32(0.7), XP.astype(np.float32), fp)
        same("interp", [], XP, fp)
        same("interp", x, XP[:1], fp[:1])
        same("interp", x, XP[:1], fp[:1], 7.0, 8.0)
    same("interp", [1, 2], [0, 1, 3], [0, 10, 30])
    same("interp", x, [0.0, 1.0, 1.0, 2.0], FP)  # a jump
    same("interp", 0.0, XP, [1.0, 1.0, np.inf, np.inf])
    same("interp", [-0.5, 0.2, 0.5, 1.0], XP, [-np.inf, 1.0, np.inf, 2.0])
    same("interp", x, XP, FP[:3])
    same("interp", x, [], [])
    same("interp", x, XP.reshape(2, 2), FP.reshape(2, 2))
    same("interp", x * 1j, XP, FP)


def test_interp_with_period(same):
    x = np.array([-180.0, -170.0, -185.0, 185.0, -10.0, -5.0, 0.0, 365.0])
    same("interp", x, [190, -190, 350, -350], [5, 10, 3, 4], period=360)
    same("interp", x, [190, -190, 350, -350], [5, 10j, 3, 4], period=-360)
    same("interp", x, [190], [5], period=100.0, left=3.0)
    same("interp", x, [190, 20], [5, 6], period=0)


@pytest.mark.wide(3)
@pytest.mark.parametrize("period", [None, 3.1])
def test_interp_transformed(period):
    x = np.array([[-0.9, 0.1], [0.6, 1.2]])

    def f(x, xp, fp):
        return fnp.interp(x, xp, fp, period=period)

    expected = np.interp(x, XP, FP, period=period)
    np.testing.assert_allclose(ft.jit(f)(x, XP, FP), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ft.vmap(f, (0, None, None))(x, XP, FP), expected, rtol=1e-12, atol=1e-14)
    many = ft.jit(ft.vmap(f, (None, None, 0)))(x, XP, np.stack([FP, 2 * FP]))
    np.testing.assert_allclose(many, [expected, 2 * expected], rtol=1e-12, atol=1e-14)
    check(f, x, XP, FP, order=2)
    np.testing.assert_array_equal(ft.grad(lambda t: np.interp(t, XP, FP))(7.0), 0.0)


# --- unwrap -------------------------------------------------------------------------------------------------


def test_unwrap(same):
    x = np.cumsum(RNG.uniform(-9, 9, (3, 8)), 1)
    for axis in (-1, 0, 5):
        same("unwrap", x, axis=axis)
        same("unwrap", x, 4.0, axis=axis)
        same("unwrap", x, axis=axis, period=5)
    same("unwrap", x.astype(np.float32))
    same("unwrap", np.array([0, 1, 2, -1, 0, 2, 6]), period=4)
    same("unwrap", np.array([0, 1, 2, -1, 0, 3]), period=5)
    same("unwrap", np.array([2, 3, 4, 5, 2, 3]), period=4)
    same("unwrap", np.array([1, 5, 9, 2]), period=6.5)
    same("unwrap", x[:, :1])
    same("unwrap", x[:, :0])
    same("unwrap", 3.0)
    same("unwrap", np.array([0.0, np.nan, 7.0]))


def test_unwrap_transformed():
    x = np.array([0.1, 3.0, -3.0, 0.2, 9.0])
    np.testing.assert_allclose(ft.jit(fnp.unwrap)(x), np.unwrap(x), rtol=1e-14)
    np.testing.assert_allclose(
        ft.vmap(fnp.unwrap)(np.stack([x, x[::-1]])), np.unwrap([x, x[::-1]]), rtol=1e-14
    )
    np.testing.assert_array_equal(ft.jacrev(lambda x: np.unwrap(x))(x), np.eye(5))
