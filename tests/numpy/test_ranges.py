"""Numbers in order and meshes: NumPy's functions, compared with NumPy."""

import numpy as np
import pytest

A1 = np.linspace(-1, 1, 4)
A2 = np.arange(12.0).reshape(3, 4)


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


def test_meshes(same):
    same("meshgrid", A1, [1, 2])
    same("meshgrid", A1, [1, 2], indexing="ij")
    same("meshgrid", A1, [1, 2], [1.5], sparse=True)
    same("meshgrid", A1)
    same("meshgrid", 3, A2)
    same("meshgrid", A1, indexing="zz")
    same("indices", (2, 3))
    same("indices", (2, 3), sparse=True)
    same("indices", ())
