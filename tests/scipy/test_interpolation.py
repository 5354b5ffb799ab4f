"""RegularGridInterpolator and map_coordinates against SciPy, and by what an interpolation must do."""

import numpy as np
import pytest
import scipy.interpolate
import scipy.ndimage

import functrans as ft
from functrans.scipy.interpolate import RegularGridInterpolator
from functrans.scipy.ndimage import map_coordinates
from functrans.testing import check

RNG = np.random.default_rng(0)
GRID = [np.cumsum(RNG.uniform(0.1, 1, n)) for n in (4, 5, 3)]
LAWS = ["jvp_is_slope", "vjp_is_adjoint"]


def positions(n):
    x = np.stack([RNG.uniform(g[0] - 0.3, g[-1] + 0.3, 30) for g in GRID[:n]], -1)
    x[0] = [g[0] for g in GRID[:n]]
    x[1] = [g[-1] for g in GRID[:n]]
    x[2] = [g[1] for g in GRID[:n]]
    x[3, 0] = np.nan
    return x


@pytest.mark.parametrize("fill_value", [np.nan, None, 0.5])
@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_grids_against_scipy(n, method, fill_value):
    x = positions(n)
    for further in ((), (2,)):
        for dtype in (float, complex):
            values = RNG.standard_normal((*map(len, GRID[:n]), *further)).astype(dtype)
            for grid in (GRID[:n], [g[::-1] for g in GRID[:n]]):
                args = (grid, values, method, False, fill_value)
                ours, theirs = (
                    RegularGridInterpolator(*args),
                    scipy.interpolate.RegularGridInterpolator(*args),
                )
                got, expected = ours(x), theirs(x)
                assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
                np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
                np.testing.assert_array_equal(ours(tuple(x.T)), got)


def test_an_interpolator_is_an_argument():
    values = RNG.standard_normal((4, 5))
    f = RegularGridInterpolator(GRID[:2], values)
    x = np.stack([0.4 * g[[0, 2]] + 0.6 * g[[1, 3]] for g in GRID[:2]], -1)
    np.testing.assert_allclose(ft.jit(lambda f, x: f(x))(f, x), f(x))
    several = ft.vmap(lambda v: RegularGridInterpolator(GRID[:2], v)(x))(np.stack([values, 2 * values]))
    np.testing.assert_allclose(several, [f(x), 2 * f(x)])
    check(lambda v, x: RegularGridInterpolator(GRID[:2], v)(x), values, x, order=2, laws=LAWS)
    check(lambda g: RegularGridInterpolator([g, GRID[1]], values)(x), GRID[0], order=1, laws=LAWS)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: RegularGridInterpolator(([0, 0, 1],), [1, 2, 3]),
            ft.errors.ArgumentValueError,
            "increasing",
        ),
        (lambda: RegularGridInterpolator(([0, 1, 2],), [1, 2]), ft.errors.ShapeError, "expected 2"),
        (lambda: RegularGridInterpolator(([0, 1],), [1, 2], "cubic"), ft.errors.ArgumentValueError, "method"),
        (lambda: RegularGridInterpolator(3.0, [1, 2]), ft.errors.ArgumentError, "sequence"),
        (lambda: RegularGridInterpolator(([0, 1],), [1, 2], fill_value=1j), ValueError, "does not fit"),
        (lambda: RegularGridInterpolator(([0, 1],), [1, 2])([[1, 2]]), ft.errors.ShapeError, "coordinates"),
        (
            lambda: RegularGridInterpolator(([0, 1],), [1, 2], bounds_error=True)([2.0]),
            ValueError,
            "out of bounds",
        ),
        (
            lambda: ft.jit(RegularGridInterpolator(([0, 1],), [1, 2], bounds_error=True))(np.ones(1)),
            ft.errors.ArgumentValueError,
            "bounds_error=False",
        ),
        (lambda: map_coordinates(np.ones(3), [[0.0]], 6), ft.errors.ArgumentValueError, "order"),
        (lambda: map_coordinates(np.ones(3), [[0.0]], 1, "around"), ft.errors.ArgumentValueError, "mode"),
        (
            lambda: map_coordinates(np.ones(3), [[0.0], [1.0]], 1),
            ft.errors.ShapeError,
            "one array for each axis",
        ),
        (lambda: map_coordinates(np.ones(3), [[0.0]], 1, cval=[1, 2]), ft.errors.ShapeError, "cval"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- map_coordinates ----------------------------------------------------------------------------------------

MODES = {
    "constant": "grid-constant",
    "wrap": "grid-wrap",
    "mirror": "mirror",
    "reflect": "reflect",
    "nearest": "nearest",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1, 2, 3, 4, 5])
def test_samples_against_scipy(order, mode):
    for shape in [(7,), (5, 6), (4, 1, 3)]:
        for dtype in (float, complex, np.float32, int) if order < 2 else (float,):
            x = (20 * RNG.standard_normal(shape)).astype(dtype)
            at = [RNG.uniform(-2.5 * n, 3.5 * n, (3, 8)) for n in shape]
            expected = scipy.ndimage.map_coordinates(x, at, order=order, mode=MODES[mode], cval=2)
            got = map_coordinates(x, at, order, mode, 2)
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            # SciPy's filters for the orders above 1 are cut off near the edges, except for these modes.
            exact = order < 2 or mode in ("mirror", "wrap")
            slack = 1e-4 if dtype == np.float32 else 1e-11 if exact else 2e-2
            np.testing.assert_allclose(got, expected, rtol=slack, atol=20 * slack)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_splines_go_through_the_samples(order, mode):
    x = RNG.standard_normal((6, 5))
    at = np.indices(x.shape)
    np.testing.assert_allclose(map_coordinates(x, at, order, mode), x, atol=1e-12)
    if mode in ("mirror", "reflect", "wrap"):  # and continue it
        period = {"mirror": lambda n: 2 * n - 2, "reflect": lambda n: 2 * n, "wrap": lambda n: n}[mode]
        beyond = at + np.array([period(6), -period(5)])[:, None, None]
        np.testing.assert_allclose(map_coordinates(x, beyond, order, mode), x, atol=1e-12)


def test_large_integers_stay_exact():
    assert map_coordinates([1, 2**60 + 1, 3], [[1]], 0)[0] == 2**60 + 1
    assert map_coordinates(np.array([1, 4], np.uint8), [[0.5]], 1)[0] == 3  # a half, away from zero


def test_derivatives_of_splines():
    x, at = RNG.standard_normal((5, 4)), RNG.uniform(0.2, 2.8, (2, 3))
    check(lambda x, at: map_coordinates(x, at, 3, "reflect"), x, at, order=1, laws=LAWS)
    check(lambda x, at: map_coordinates(x, at, 1, "constant", 2.0), x, at, order=1, laws=LAWS)
