"""Shapes: NumPy's functions, compared with NumPy."""

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans.errors import ArgumentValueError, AxisError, ShapeError

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
    *[
        (name,)
        for name in (
            "ravel",
            "squeeze",
            "transpose",
            "permute_dims",
            "atleast_1d",
            "atleast_2d",
            "atleast_3d",
        )
    ],
    ("reshape", -1),
    ("reshape", (2, 2)),
    ("reshape", (2, -1), {"order": "F"}),
    ("expand_dims", 0),
    ("expand_dims", (0, -1)),
    ("expand_dims", 4),
    ("broadcast_to", (5, 3, 4)),
    ("swapaxes", 0, -1),
    ("moveaxis", 0, -1),
    ("moveaxis", (0, 1), (1, 0)),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_on_arrays_of_many_kinds(same, call):
    name, *args = call
    kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
    for x in ARRAYS:
        same(name, x, *args, **kwargs)


@pytest.mark.parametrize("axis", range(-4, 4))
def test_every_axis(same, axis):
    for name, *args in (
    ):  # fmt: skip
        same(name, CUBE, *args, axis)
    same("rollaxis", CUBE, 1, axis)
    same("swapaxes", CUBE, axis, 1)
    same("moveaxis", CUBE, axis, 0)


def test_special_cases(same):
    same("reshape", CUBE, (4, -1), order="F")
    same("ravel", CUBE, order="F")
    same("squeeze", np.zeros((1, 2, 1)), 0)
    same("squeeze", np.zeros((1, 2, 1)), (0, 2))
    same("transpose", CUBE, (1, 0, 2))
    same("transpose", CUBE, (1, 1, 0))
    same("atleast_2d", 1, CUBE)
    same("broadcast_arrays", CUBE, CUBE[0, 0], 2)
    same("broadcast_shapes", (2, 1), (3,), 5)
    same("broadcast_shapes", (2,), (3,))
    same("matrix_transpose", CUBE)


def test_messages():
    with pytest.raises(
        ShapeError, match=r"cannot reshape array of shape \(2, 3, 4\) and size 24 into shape \(5, 5\)"
    ):
        fnp.reshape(CUBE, (5, 5))
    with pytest.raises(ArgumentValueError, match="only one axis can be -1"):
        fnp.reshape(CUBE, (-1, -1))
    with pytest.raises(AxisError, match="swapaxes: axis 3 is out of bounds for array of dimension 3"):
        fnp.swapaxes(CUBE, 0, 3)
    with pytest.raises(np.exceptions.AxisError):
        fnp.squeeze(CUBE, 7)
    with pytest.raises(ArgumentValueError, match="duplicate axis"):
        fnp.transpose(CUBE, (0, 0, 1))
