"""Convolution and correlation of arrays against scipy.signal."""

import numpy as np
import pytest
import scipy.signal as reference

import functrans as ft
from functrans.scipy import signal
from functrans.testing import check

RNG = np.random.default_rng(0)
SHAPES = [((7,), (3,)), ((3,), (6,)), ((5, 4), (2, 3)), ((2, 2), (4, 3)), ((3, 4, 2), (2, 1, 2)), ((), ())]


@pytest.mark.parametrize("name", ["convolve", "correlate", "convolve2d", "correlate2d"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_against_scipy(name, mode, a, b):
    f, expected = getattr(signal, name), getattr(reference, name)
    if name.endswith("2d") and len(a) != 2:
        with pytest.raises(ft.errors.ShapeError, match="matrices"):
            f(np.ones(a), np.ones(b))
        return
    x, y = RNG.standard_normal(a), RNG.standard_normal(b)
    numbers = [(x, y), (x.astype(np.float32), y)]
    if a and not (
        name == "correlate2d" and mode == "valid" and a < b
    ):  # there SciPy conjugates the other one
        numbers.append((x + 1j * x[::-1], 1j * y))
    for u, v in numbers:
        for g in (f, ft.jit(f, static_argnums=2)):
            got, want = g(u, v, mode), expected(u, v, mode)
            assert (got.shape, got.dtype) == (np.shape(want), np.asarray(want).dtype)
            np.testing.assert_allclose(got, want, atol=1e-12)
    if mode == "same" and a == (5, 4):
        check(lambda x, y: f(x, y, mode), x, y, order=1)


def test_errors():
    with pytest.raises(ft.errors.ShapeError, match="number of axes"):
        signal.convolve(np.ones(3), np.ones((3, 3)))
    with pytest.raises(ft.errors.ShapeError, match="within"):
        signal.convolve(np.ones((3, 5)), np.ones((4, 2)), "valid")
    with pytest.raises(ft.errors.ArgumentValueError, match="mode"):
        signal.correlate(np.ones(3), np.ones(3), "most")
    with pytest.raises(ft.errors.ArgumentValueError, match="boundary"):
        signal.convolve2d(np.ones((3, 3)), np.ones((2, 2)), boundary="wrap")
    with pytest.raises(ft.errors.DtypeError):
        signal.convolve(np.array([True]), np.array([True]))


@pytest.mark.parametrize("name", ["convolve", "correlate", "convolve2d", "correlate2d"])
def test_of_nothing(name):
    """Two empty arrays have no positions at which they overlap, eagerly and compiled."""
    f = getattr(signal, name)
    for wrap in (lambda f: f, ft.jit):
        assert wrap(f)(np.ones((0, 4)), np.ones((0, 3))).shape == (0, 6)
        assert wrap(f)(np.ones((2, 3)), np.ones((0, 4))).shape == (1, 6)
