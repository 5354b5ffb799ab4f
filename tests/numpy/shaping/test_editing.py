"""delete, insert, resize, trim_zeros against NumPy."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.testing import check

A = np.arange(12.0).reshape(3, 4)
V = np.array([10.0, 20.0, 30.0])


@pytest.mark.parametrize(
    "obj",
    [
        *[0, -1, 2, [0, 2], [], [1, 1], slice(None, None, 2), slice(2, None, -1)],
        pytest.param(
            np.array([True, False, True]),
            marks=pytest.mark.needs("numpy>=2.2", reason="insert takes booleans for integers"),
        ),
    ],
)
@pytest.mark.parametrize("x", [A, np.arange(3), A[:, ::-1]], ids=["matrix", "int", "reversed"])
def test_delete_and_insert(same, x, obj):
    for axis in (0, None) if not isinstance(obj, np.ndarray) or x.ndim == 1 else (0,):
        same("delete", x, obj, axis)
        same("insert", x, obj, 7, axis)
    same("insert", x, obj, np.arange(1), 0)


def test_insert_several(same):
    same("insert", A, 1, V[:, None] * np.ones(4), 0)
    same("insert", A, [1], V, 1)
    same("insert", A, 1, V, 1)
    same("insert", A, [1, 3], np.ones((3, 2)), 1)
    same("insert", A, [1, 3], V, 1)
    same("insert", np.arange(3), 1, [5, 6])
    same("insert", np.arange(3), [0, 3], [5, 6])
    same("insert", np.arange(3), 9, [5, 6])
    same("delete", A, 9, 0)
    same("delete", A, [0, 9], 0)
    same("delete", A, 1.5, 0)
    same("delete", np.array(1.0), 0)
    check(lambda x, v: fnp.insert(x, [0, 2], v, axis=0), A, A[:1])


@pytest.mark.wide(3)
@pytest.mark.parametrize("i", [0, 2, -1, 3])
def test_a_traced_position(i):
    x = np.arange(5.0)
    np.testing.assert_array_equal(ft.jit(fnp.delete)(x, i), np.delete(x, i))
    np.testing.assert_array_equal(
        ft.jit(lambda x, i: np.insert(x, i, [7.0, 8.0]))(x, i), np.insert(x, i, [7, 8])
    )
    np.testing.assert_array_equal(
        ft.jit(lambda x, i: np.insert(x, i, 7.0, axis=1))(A, i), np.insert(A, i, 7, 1)
    )
    check(lambda x: ft.jit(lambda x, i: fnp.delete(x, i, axis=1))(x, i), A)


def test_positions_that_are_unknown():
    for f in (lambda x, i: np.delete(x, i), lambda x, i: np.insert(x, i, 0.0)):
        with pytest.raises(errors.ConcretizationTypeError, match="positions"):
            ft.jit(f)(V, np.array([0, 1]))
        with pytest.raises(errors.IndexOutOfBoundsError):
            ft.jit(f)(V, 9)
    with pytest.raises(errors.ConcretizationTypeError, match="zeros"):
        ft.jit(np.trim_zeros)(V)


def test_resize(same):
    for shape in [5, (2, 2), (0, 3), (4, 5), (), (2, -1)]:
        same("resize", A, shape)
    same("resize", np.zeros(0), (2, 2))
    same("resize", 3, 4)
    check(lambda x: np.resize(x, (3, 7)) ** 2, A)


def test_trim_zeros(same):
    z = np.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0])
    for trim in ("fb", "f", "b", "F"):
        same("trim_zeros", z, trim)
        same("trim_zeros", np.zeros(3), trim)
    np.testing.assert_array_equal(ft.grad(lambda x: np.trim_zeros(x)[0] ** 2)(z), [0, 0, 2, 0, 0, 0])


@pytest.mark.needs("numpy>=2.4", reason="trim_zeros takes one axis, and any letter")
def test_trim_zeros_of_several_axes(same):
    same("trim_zeros", A, "x")
    same("trim_zeros", np.pad(A[1:], 2))
    same("trim_zeros", np.pad(A[1:], 2), axis=1)
    same("trim_zeros", np.pad(A[1:], 2), "f", axis=(0, 1))
