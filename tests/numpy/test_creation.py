"""New arrays: NumPy's functions, compared with NumPy."""

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans.core.array import Array
from functrans.core.errors import ArgumentValueError, UnsupportedDtypeError

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
    with pytest.raises(UnsupportedDtypeError, match="float16"):
        fnp.asarray(np.zeros(2, np.float16))


def test_an_array_is_taken_as_it_is_and_an_ndarray_copied():
    x = fnp.asarray(A1)
    assert type(x) is Array
    assert not np.shares_memory(x, A1)
    assert np.shares_memory(fnp.asarray(x), x)


@pytest.mark.parametrize(
    "args",
    [
        (5,),
        (2, 5),
        (0, 1, 0.1),
        (5, 0, -1),
        (0, 0),
        (3.5,),
        (1, 10, 3),
        (0, 10, 2.5),
        (np.int32(5),),
        (0, 5, np.float32(1)),
    ],
    ids=str,
)
def test_arange(same, args):
    same("arange", *args)
    same("arange", *args, dtype=np.float32)


@pytest.mark.parametrize(
    "args",
    [
        (0, 1, 5),
        (0, 1),
        (1, 0, 3),
        (A1, A2, 4),
        (0, 10, 3),
        (0, 1, 0),
        (0, 1, 1),
        (np.float32(0), 1, 4),
        (1j, 2, 3),
    ],
    ids=str,
)
def test_linspace(same, args):
    same("linspace", *args)
    same("linspace", *args, endpoint=False)
    if np.iscomplexobj(args[0]):
        return
    same("linspace", *args, dtype=int)
    same("linspace", *args, axis=-1)
    if args[-1] not in (0, 1):
        same("linspace", *args, retstep=True)


def test_counted(same):
    same("linspace", 0, 1, -1)
    same("logspace", 0, 2, 3)
    same("logspace", 0, 2, 3, base=2)
    same("logspace", 0, 2, 4, False)


@pytest.mark.parametrize("k", range(-4, 5))
def test_diagonals(same, k):
    same("eye", 3, 4, k)
    same("eye", 3, k=k, dtype=int)
    same("tri", 3, 4, k)


def test_meshes(same):
    same("identity", 3)
    same("meshgrid", A1, [1, 2])
    same("meshgrid", A1, [1, 2], indexing="ij")
    same("meshgrid", A1, [1, 2], [1.5], sparse=True)
    same("meshgrid", A1)
    same("meshgrid", 3, A2)
    same("meshgrid", A1, indexing="zz")
    same("indices", (2, 3))
    same("indices", (2, 3), sparse=True)
    same("indices", ())
    with pytest.raises(ArgumentValueError, match="negative dimensions"):
        fnp.zeros(-1)
