"""Numbers in order and meshes: NumPy's functions, compared with NumPy."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import check

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


@pytest.mark.parametrize(
    "args",
    [
        (-1, -8, 4),
        (1, -8, 4),
        (1j, 8j, 4),
        (1 + 1j, 3 - 2j, 5),
        (2, 32, 5, False),
        (np.array([1.0, -2]), np.array([[4.0, -16]]), 3, True, None, -1),
        (1, 1000, 1),
        (1, 5, 0),
        (1e-300, 1e300, 3),
        (3.0, 7.0, 9),
        (1, 0, 3),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_geomspace(same, args):
    same("geomspace", *args)
    if np.all(args[1]):
        got = ft.jit(lambda a, b: fnp.geomspace(a, b, *args[2:]))(*args[:2])
        want = np.geomspace(*args)
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert got.dtype == want.dtype


@pytest.mark.parametrize("ends", [(2.0, 7.0), (-2.0, -7.0)])
def test_slope_of_geomspace(ends):
    check(lambda a, b: fnp.geomspace(a, b, 5), *ends)
