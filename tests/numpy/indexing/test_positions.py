"""Index arrays of triangles and diagonals, meshes, flat and many-dimensional indices."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

K, J = np.array([[2, 0], [1, 1]]), np.array([3, 1])


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_triangles(same, name):
    for args in [(3,), (3, 1), (4, -1, 2), (0,), (1, 5)]:
        same(name, *args)
    for shape, k in (((3, 4), 0), ((2, 2), -1)):
        same(f"{name}_from", np.zeros(shape), k)
        out = ft.jit(lambda x, k=k: getattr(np, f"{name}_from")(x, k))(np.zeros(shape))
        np.testing.assert_array_equal(out, getattr(np, name)(shape[0], k, shape[1]))
    same(f"{name}_from", np.zeros(3))


def test_diagonals(same):
    same("diag_indices", 3)
    same("diag_indices", 2, 3)
    same("diag_indices_from", np.zeros((2, 2, 2)))
    same("diag_indices_from", np.zeros((2, 3)))
    same("diag_indices_from", np.zeros(2))
    gradient = ft.jit(ft.grad(lambda x: fnp.sum(x[np.diag_indices_from(x)] ** 2)))(np.ones((2, 2)))
    np.testing.assert_array_equal(gradient, 2 * np.eye(2))


def test_mask_indices(same):
    for ours, k in ((fnp.triu, 0), (fnp.tril, -1)):
        got = fnp.mask_indices(3, ours, k)
        np.testing.assert_array_equal(got, np.mask_indices(3, getattr(np, ours.__name__), k))
    with pytest.raises(errors.NonConcreteBooleanIndexError):
        ft.jit(lambda x: fnp.mask_indices(3, lambda m, k: m * x))(1)


def test_ix(same):
    same("ix_", [0, 2], [1])
    same("ix_", [True, False, True], [1, 0])
    same("ix_", [], [1, 0])
    same("ix_", [[1]])
    x = np.arange(12.0).reshape(3, 4)
    out = ft.jit(lambda x, i: x[fnp.ix_(i, np.array([0, 3]))])(x, J - 1)
    np.testing.assert_array_equal(out, x[np.ix_(J - 1, [0, 3])])
    np.testing.assert_array_equal(ft.jit(lambda i: np.ix_(i, J)[0])(J), np.ix_(J, J)[0])
    with pytest.raises(errors.NonConcreteBooleanIndexError, match="mask"):
        ft.jit(fnp.ix_)(np.array([True, False]))


@pytest.mark.parametrize("order", "CF")
def test_unravel_index(same, order):
    for i in (5, K, np.array([], int), np.array([0, 23], np.uint8)):
        same("unravel_index", i, (4, 6), order)
    same("unravel_index", 3, 5, order)
    for bad in (24, -1, 1.5):
        same("unravel_index", bad, (4, 6), order)
    same("unravel_index", 1, (4, 6), "K")
    out = ft.jit(lambda i: np.unravel_index(i, (4, 3, 2), order))(np.arange(24))
    np.testing.assert_array_equal(out, np.unravel_index(np.arange(24), (4, 3, 2), order))
    np.testing.assert_array_equal(
        ft.vmap(lambda i: fnp.unravel_index(i, (4, 6), order)[0])(J), J // 6 if order == "C" else J % 4
    )
    for bad in (24, -1):
        with pytest.raises(errors.IndexOutOfBoundsError):
            ft.jit(lambda i: fnp.unravel_index(i, (4, 6), order))(bad)


@pytest.mark.parametrize("order", "CF")
def test_ravel_multi_index(same, order):
    for mode in ("raise", "wrap", "clip", ("clip", "wrap")):
        same("ravel_multi_index", (K, J), (3, 4), mode, order)
        out = ft.jit(lambda i, j, mode=mode: np.ravel_multi_index((i, j), (3, 4), mode, order))(K, J)
        np.testing.assert_array_equal(out, np.ravel_multi_index((K, J), (3, 4), mode, order))
    for mode in ("raise", "wrap", "clip", ("clip", "wrap")):
        same("ravel_multi_index", (K - 3, J + 4), (3, 4), mode, order)
        if mode != "raise":
            out = ft.jit(lambda i, j, mode=mode: np.ravel_multi_index((i, j), (3, 4), mode, order))(
                K - 3, J + 4
            )
            np.testing.assert_array_equal(out, np.ravel_multi_index((K - 3, J + 4), (3, 4), mode, order))
    same("ravel_multi_index", (K,), (3, 4))
    same("ravel_multi_index", (1.5, 2), (3, 4))
    same("ravel_multi_index", (K, J), (3, 4), "drop")
    for bad in (3, -1):
        with pytest.raises(errors.IndexOutOfBoundsError):
            ft.jit(lambda i: fnp.ravel_multi_index((i, 0), (3, 4), order=order))(bad)


def test_meshes_are_no_views_of_arguments():
    rows = np.arange(3)
    (mesh,) = fnp.ix_(rows)
    rows[:] = 9
    np.testing.assert_array_equal(mesh, [0, 1, 2])
