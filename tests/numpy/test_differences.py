"""diff and trapezoid, compared with NumPy."""

import numpy as np
import pytest

RNG = np.random.default_rng(0)
CUBE = RNG.standard_normal((2, 3, 4))


@pytest.mark.parametrize("n", [0, 1, 2, 5, -1])
def test_diff(same, n):
    for x in (CUBE, CUBE > 0, (CUBE * 9).astype(np.uint8), CUBE.astype(np.complex64), np.array([1, 3, 2])):
        for axis in (-1, 0):
            same("diff", x, n, axis)
    same("diff", CUBE, n, 5)


def test_diff_with_ends(same):
    same("diff", CUBE[0, 0], prepend=0)
    same("diff", CUBE, prepend=0, append=[[[1.0]]])
    same("diff", CUBE, axis=1, append=CUBE)
    same("diff", np.arange(3), append=1.5)


def test_trapezoid(same):
    same("trapezoid", CUBE)
    same("trapezoid", CUBE, axis=0)
    same("trapezoid", CUBE, dx=0.1)
    same("trapezoid", CUBE, np.array([0, 1, 3]), axis=1)
    same("trapezoid", CUBE, CUBE.cumsum(2))
    same("trapezoid", [1, 2, 4])
    same("trapezoid", CUBE.astype(np.float32))
    same("trapezoid", CUBE, np.arange(7))


def test_geomspace(same):
    same("geomspace", 1, 256, 9)
    same("geomspace", np.array([1.0, 2.0]), 3.0, 5)
    same("geomspace", 10.0, 1.0, 4, endpoint=False)
