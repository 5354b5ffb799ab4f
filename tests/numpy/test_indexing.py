"""take, diagonals, triangles: NumPy's functions, compared with NumPy."""

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans.core.errors import ArgumentError, IndexOutOfBoundsError

RNG = np.random.default_rng(0)
CUBE = RNG.standard_normal((2, 3, 4))
ARRAYS = [
    CUBE[0, 0],
    CUBE[0],
    CUBE,
    RNG.integers(-5, 5, (3, 4)).astype(np.int8),
    np.zeros((0, 3)),
    np.float64(2),
    True,
]


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_take(same, mode):
    for x in ARRAYS:
        for i in ([0, 1], [[0, -1]], 0, [], [-7, 7], 100):
            same("take", x, i, mode=mode)
            same("take", x, i, axis=0, mode=mode)
            if np.size(x):  # NumPy does not look at the indices where nothing is read
                same("take", x, i, axis=-1, mode=mode)


def test_take_fills():
    np.testing.assert_array_equal(fnp.take(np.arange(3.0), [5, 0], mode="fill"), [np.nan, 0])


def test_take_along_axis(same):
    x = CUBE[0]
    same("take_along_axis", x, np.argsort(x, 1), 1)
    same("take_along_axis", x, np.argmax(x, 0)[None], 0)
    same("take_along_axis", x, np.array([0, 3]), None)
    same("take_along_axis", CUBE, np.zeros((1, 1, 2), int), -1)
    same("take_along_axis", CUBE, np.zeros((1, 2), int), -1)
    same("take_along_axis", x, np.full((3, 1), 9), 1)


@pytest.mark.parametrize("k", range(-4, 6))
def test_diagonals_and_triangles(same, k):
    for x in ARRAYS:
        for name in ("diag", "diagonal", "diagflat", "trace"):
            same(name, x, k)
        if np.ndim(x):
            same("tril", x, k)
            same("triu", x, k)
    same("diagonal", CUBE, k, 2, 0)
    same("trace", CUBE, k, 1, 2)


def test_dtypes_of_trace(same):
    x = np.ones((3, 3))
    for dtype in (np.int8, np.uint16, bool, np.float32, np.complex64):
        same("trace", x.astype(dtype))
    same("trace", x.astype(np.int32), dtype=np.float32)


def test_messages():
    with pytest.raises(IndexOutOfBoundsError, match="index 4 is out of bounds for axis 0 with size 3"):
        fnp.take(np.zeros(3), [0, 4])
    with pytest.raises(ArgumentError, match="indices must be integers, got dtype float64"):
        fnp.take(np.zeros(3), [0.5])
