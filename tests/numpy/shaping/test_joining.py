"""Joining, splitting, padding: NumPy's functions, compared with NumPy."""

import itertools

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans.errors import ArgumentValueError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
CUBE = RNG.standard_normal((2, 3, 4))
ARRAYS = [
    RNG.standard_normal(4),
    CUBE[0],
    CUBE,
    RNG.integers(-5, 5, (3, 4)).astype(np.int32),
    CUBE[1].astype(np.float32),
    np.zeros((0, 4)),
    np.float64(2.5),
    3,
    [[1, 2.5], [3, 4]],
    CUBE[0] > 0,
]


@pytest.mark.parametrize("name", ["concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"])
def test_pairs(same, name):
    for x, y in itertools.product(ARRAYS, ARRAYS):
        same(name, (x, y))


def test_joining(same):
    for axis in (*range(-4, 4), None):
        same("concatenate", (CUBE, CUBE), axis)
        same("append", CUBE, CUBE, axis)
    for axis in range(-5, 5):
        same("stack", (CUBE, CUBE), axis)
    same("concatenate", ())
    same("concatenate", CUBE)
    same("stack", CUBE, 1)
    same("concatenate", (CUBE[0], CUBE[0]), dtype=np.float32)
    same("append", 3, np.zeros(2, np.int32))


def test_splitting(same):
    for x in ARRAYS[:7]:
        for name, cuts in itertools.product(
            ("split", "array_split", "hsplit", "vsplit", "dsplit"), (2, 3, [1, 2])
        ):
            same(name, np.asarray(x), cuts)
    for axis in range(-4, 4):
        same("split", CUBE, [1], axis)
        same("array_split", CUBE, [-1, 1], axis)
        same("array_split", CUBE, 5, axis)
    same("split", CUBE, 0)
    assert [x.shape for x in fnp.unstack(CUBE, axis=1)] == [(2, 4)] * 3


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_padding(same, mode):
    for x in ARRAYS:
        for width in (0, 1, (2, 1), ((3, 5),)):
            same("pad", x, width, mode=mode)
    same("pad", CUBE, ((1, 0), (0, 2), (1, 1)), mode=mode)


def test_padding_with_numbers(same):
    same("pad", CUBE, ((1, 2),), constant_values=((1, 2), (3, 4), (5, 6)))
    same("pad", CUBE, 2, constant_values=7)
    same("pad", CUBE, 2, constant_values=(1, 2))
    same("pad", CUBE, -1)
    same("pad", CUBE, 1.5)
    same("pad", CUBE, ((1, 2), (3, 4)))


def test_messages():
    with pytest.raises(ShapeError, match=r"concatenate: shapes \(3,\), \(2, 2\) do not match"):
        fnp.concatenate((np.zeros(3), np.zeros((2, 2))))
    with pytest.raises(ArgumentValueError, match="extent 3 cannot be divided into 2 equal parts"):
        fnp.split(np.zeros(3), 2)
    with pytest.raises(ArgumentValueError, match="mode must be one of 'constant'"):
        fnp.pad(np.zeros(3), 1, mode="unknown")


def test_casting(same):
    for name in ("concatenate", "stack", "hstack", "vstack"):
        same(name, ([1j], [2.0]), dtype=np.float32)
        same(name, ([1.5], [2.0]), dtype=int)
        same(name, ([1.5], [2.0]), dtype=int, casting="unsafe")
        same(name, ([1.5], [2.0]), dtype=np.float32, casting="safe")
    with pytest.raises(DtypeError, match="stack: array 1 of dtype complex128 cannot be cast to float32"):
        fnp.stack([1.0, 2j], dtype=np.float32)
