"""ravel_pytree against NumPy, eagerly and under every transformation."""

import numpy as np
import pytest

import functrans as ft
from functrans.errors import ArgumentError, DtypeError, ShapeError, UnsupportedDtypeError
from functrans.flatten_util import ravel_pytree


def tree_of_three():
    return {"w": np.arange(6.0).reshape(2, 3), "b": (np.float64(7.0), [np.array([8.0, 9.0])])}


def test_leaves_in_order():
    flat, unravel = ravel_pytree(tree_of_three())
    np.testing.assert_array_equal(flat, [7.0, 8.0, 9.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    back = unravel(flat + 1)
    np.testing.assert_array_equal(back["w"], np.arange(6.0).reshape(2, 3) + 1)
    assert back["b"][0].shape == ()
    assert back["b"][0] == 8.0


@pytest.mark.parametrize(
    ("dtypes", "common"),
    [
        (["float32", "float32"], "float32"),
        (["int8", "float32"], "float32"),
        (["int64", "float32"], "float64"),
        (["bool", "uint8"], "uint8"),
        (["float32", "complex64", "float64"], "complex128"),
    ],
)
def test_dtypes_are_promoted_and_restored(dtypes, common):
    flat, unravel = ravel_pytree([np.ones(2, dtype) for dtype in dtypes])
    assert flat.dtype == np.dtype(common)
    assert [leaf.dtype.name for leaf in unravel(flat)] == dtypes


def test_an_optimiser_may_answer_in_double_precision():
    flat, unravel = ravel_pytree([np.ones(2, np.float32)])
    assert unravel(np.asarray(flat, np.float64))[0].dtype == np.float32


def test_empty_trees_and_arrays():
    flat, unravel = ravel_pytree({"a": None, "b": ()})
    assert flat.shape == (0,)
    assert unravel(flat) == {"a": None, "b": ()}
    flat, unravel = ravel_pytree([np.zeros((0, 3)), 1.0])
    assert flat.shape == (1,)
    assert unravel(flat)[0].shape == (0, 3)


def test_unravel_is_hashable():
    a, b = ravel_pytree(tree_of_three())[1], ravel_pytree(tree_of_three())[1]
    assert a == b
    assert hash(a) == hash(b)


def test_errors():
    flat, unravel = ravel_pytree(tree_of_three())
    with pytest.raises(ShapeError, match=r"shape \(8,\).*holds 9 elements"):
        unravel(flat[:-1])
    with pytest.raises(ShapeError, match=r"shape \(3, 3\)"):
        unravel(np.ones((3, 3)))
    with pytest.raises(DtypeError, match="complex128"):
        unravel(np.ones(9, complex))
    with pytest.raises(ArgumentError, match=r"leaf at \['a'\]\[1\] is a str"):
        ravel_pytree({"a": [1.0, "text"]})
    with pytest.raises(UnsupportedDtypeError, match=r"leaf at \[0\] has dtype float128"):
        ravel_pytree([np.ones(2, np.longdouble)])


def loss(tree):
    flat, unravel = ravel_pytree(tree)
    back = unravel(flat * flat)
    return back["w"].sum() + 3.0 * back["b"][0] + (back["b"][1][0] * back["b"][1][0]).sum()


def expected_gradient(tree):
    y = tree["b"][1][0]
    return {"w": 2 * tree["w"], "b": (6 * tree["b"][0], [4 * y**3])}


@pytest.mark.parametrize(
    "transform", [lambda f: ft.grad(f), lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(ft.jit(f))]
)
def test_gradients_go_through(transform):
    tree = tree_of_three()
    result = transform(loss)(tree)
    for got, want in zip(ft.tree.leaves(result), ft.tree.leaves(expected_gradient(tree))):
        np.testing.assert_allclose(got, want, rtol=1e-14)


def test_vmap():
    rows = {"a": np.arange(6.0).reshape(3, 2), "b": np.arange(3.0)}
    flat = ft.vmap(lambda row: ravel_pytree(row)[0])(rows)
    np.testing.assert_array_equal(flat, np.column_stack([rows["a"], rows["b"]]))
