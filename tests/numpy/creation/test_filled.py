"""New arrays: NumPy's functions, compared with NumPy."""

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans.arrays.array import Array
from functrans.errors import ArgumentValueError, UnsupportedDtypeError

A1 = np.linspace(-1, 1, 4)
A2 = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("shape", [3, (2, 3), (), (0, 2), [2, 2], -1, (2, -1), 1.5])
def test_filled(same, shape):
    for name in ("zeros", "ones"):
        same(name, shape)
        same(name, shape, dtype=np.int32)
    same("full", shape, 7)
    same("full", shape, 1.5, dtype=int)


def test_full_and_like(same):
    same("full", (2, 3), np.arange(3))
    same("full", (2,), [1, 2, 3])
    same("full", 2, True)
    for x in (A1, A2.astype(np.float32), 3, 2.5, [1, 2]):
        for name in ("zeros_like", "ones_like"):
            same(name, x)
            same(name, x, dtype=np.int8, shape=(2,))
        same("full_like", x, 3)
        same("full_like", x, 2.5, dtype=float)
        same("copy", x)
        same("array", x)
        same("asarray", x)


def test_from_lists(same):
    same("array", [[1, 2], [3, 4.0]])
    same("array", A1, ndmin=3)
    same("array", [1, 2], dtype=np.float32)
    same("asarray", [[1, 2], [3]])
    with pytest.raises(UnsupportedDtypeError, match="float128"):
        fnp.asarray(np.zeros(2, np.longdouble))


def test_an_array_is_taken_as_it_is_and_an_ndarray_copied():
    x = fnp.asarray(A1)
    assert type(x) is Array
    assert not np.shares_memory(x, A1)
    assert np.shares_memory(fnp.asarray(x), x)


@pytest.mark.parametrize("k", range(-4, 5))
def test_diagonals(same, k):
    same("eye", 3, 4, k)
    same("eye", 3, k=k, dtype=int)
    same("identity", abs(k))
    same("tri", 3, 4, k)


def test_messages():
    with pytest.raises(ArgumentValueError, match="negative dimensions"):
        fnp.zeros(-1)


def test_full_refuses_what_does_not_fit(same):
    same("full", (2,), [[1, 2], [3, 4]])
    same("full", (2,), np.ones((2, 3, 2)))
    for number, dtype in [(300, np.int8), (-1, np.uint8)]:
        for f in (lambda: fnp.full(2, number, dtype), lambda: fnp.full_like(np.zeros(2, dtype), number)):  # noqa: B023
            with pytest.raises(OverflowError, match="out of bounds"):
                f()
    same("full_like", np.zeros(2, np.int8), -2.5)
    same("full", (2, 3), [[1], [2]])
