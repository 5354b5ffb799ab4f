"""diff and trapezoid, compared with NumPy."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

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


INTEGERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_trapezoid_of_integers_wraps_as_numpys(dtype):
    rng = np.random.default_rng(0)
    info = np.iinfo("int8" if dtype == "bool" else dtype)
    y, x = (rng.integers(info.min, info.max, s, info.dtype, endpoint=True).astype(dtype) for s in ((3, 4), 4))
    for args, options in (
        ((y,), {}),
        ((y, x), {}),
        ((y, y), {"axis": 0}),
        ((y,), {"dx": 2}),
        ((y,), {"dx": np.int8(3)}),
    ):
        expected = np.trapezoid(*args, **options)
        for f in (fnp.trapezoid, ft.jit(lambda *args, o=options: fnp.trapezoid(*args, **o))):
            found = f(*args, **options) if f is fnp.trapezoid else f(*args)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-13)
