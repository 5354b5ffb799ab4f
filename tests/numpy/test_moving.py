"""Elements moved or repeated: NumPy's functions, compared with NumPy."""

import numpy as np
import pytest

RNG = np.random.default_rng(0)
CUBE = RNG.standard_normal((2, 3, 4))
ARRAYS = [
    RNG.standard_normal(4),
    RNG.standard_normal((3, 4)),
    CUBE,
    RNG.integers(-5, 5, (3, 4)).astype(np.int32),
    RNG.standard_normal((3, 4)).astype(np.float32)[::-1, ::2],
    RNG.standard_normal((3, 4)) + 1j,
    np.zeros((0, 3)),
    np.float64(2.5),
    2.5,
    True,
    [[1, 2.5], [3, 4]],
]
CALLS = [
    ("flip",),
    ("fliplr",),
    ("flipud",),
    ("rot90",),
    ("roll", 1),
    ("roll", -2, 0),
    ("roll", (1, 2), (0, 1)),
    ("tile", 2),
    ("tile", (2, 1, 3)),
    ("repeat", 2),
    ("repeat", 2, 0),
    ("repeat", 0),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_on_arrays_of_many_kinds(same, call):
    name, *args = call
    for x in ARRAYS:
        same(name, x, *args)


@pytest.mark.parametrize("axis", range(-4, 4))
def test_every_axis(same, axis):
    for name, *args in (("flip",), ("roll", 2), ("repeat", 2)):
        same(name, CUBE, *args, axis)


def test_roll_along_no_axes(same):
    for shift, axis in (((), ()), (1, ()), ((), 1)):
        same("roll", CUBE, shift, axis)


@pytest.mark.parametrize("k", range(-4, 5))
def test_rot90(same, k):
    same("rot90", CUBE, k)
    same("rot90", CUBE, k, (2, 1))


def test_repeat(same):
    same("repeat", CUBE[0], [1, 2, 0], axis=0)
    same("repeat", CUBE[0], [1, 2], axis=0)
    same("repeat", CUBE, -1)
