"""`vmap` against a loop over examples: axes, trees, sizes, nesting."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

A = np.arange(24.0).reshape(2, 3, 4) / 10


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_axes_in_and_out(axis, wrap):
    f = lambda x: fnp.sin(x) @ fnp.ones(x.shape[-1]) + x[0, 0]
    expected = [np.sin(x).sum(1) + x[0, 0] for x in np.moveaxis(A, axis, 0)]
    for out_axis in (0, 1, -1, -2):
        actual = wrap(ft.vmap(wrap(f), axis, out_axis))(A)
        np.testing.assert_allclose(actual, np.stack(expected, out_axis))


def test_trees_of_axes():
    f = lambda p, scale, x: {"y": p["w"] * x + scale, "w": p["w"]}
    p = {"w": A[0], "unused": np.ones((4, 5))}
    out = ft.vmap(f, in_axes=({"w": 1, "unused": 0}, None, 0), out_axes={"y": 1, "w": 0})(
        p, 2.0, np.arange(4.0)
    )
    np.testing.assert_allclose(out["y"], A[0] * np.arange(4.0) + 2)
    np.testing.assert_allclose(out["w"], A[0].T)
    out = ft.vmap(f, in_axes=[{"w": None, "unused": None}, None, 0], out_axes={"y": 0, "w": None})(
        p, 2.0, np.ones(5)
    )
    assert out["y"].shape == (5, 3, 4)
    np.testing.assert_array_equal(out["w"], A[0])
    assert not np.shares_memory(out["w"], A)


def test_axis_size():
    np.testing.assert_array_equal(ft.vmap(lambda: 2.0, axis_size=3)(), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(ft.vmap(lambda x: x, None, axis_size=2)(np.ones(3)), np.ones((2, 3)))
    np.testing.assert_array_equal(
        ft.vmap(lambda x: x * 2, axis_size=2)(np.ones((2, 1))), np.full((2, 1), 2.0)
    )
    assert ft.vmap(lambda x: fnp.sum(x))(np.ones((0, 3))).shape == (0,)


def test_keyword_arguments_are_mapped_over_axis_0():
    out = ft.vmap(lambda x, *, y: x * y)(np.arange(3.0), y=np.arange(3.0))
    np.testing.assert_array_equal(out, [0.0, 1.0, 4.0])


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_nested_maps_make_an_outer_product(wrap):
    f = lambda x, y: x * y + fnp.sin(x)
    x, y = np.arange(3.0), np.arange(4.0)
    actual = wrap(ft.vmap(ft.vmap(wrap(f), (None, 0)), (0, None)))(x, y)
    np.testing.assert_allclose(actual, np.outer(x, y) + np.sin(x)[:, None])
    actual = wrap(ft.vmap(ft.vmap(wrap(f), (0, None)), (None, 0)))(x, y)
    np.testing.assert_allclose(actual, (np.outer(x, y) + np.sin(x)[:, None]).T)


def test_captured_batched_values():
    def outer(x):
        return fnp.sum(ft.vmap(lambda y: x * y)(fnp.arange(4.0)))

    np.testing.assert_allclose(ft.vmap(outer)(np.arange(3.0)), np.arange(3.0) * 6)
    np.testing.assert_allclose(ft.vmap(ft.jit(outer))(np.arange(3.0)), np.arange(3.0) * 6)


def test_integers_booleans_and_indices():
    table, i = np.arange(10.0) ** 2, np.array([3, 0, -1])
    np.testing.assert_array_equal(ft.vmap(lambda i: fnp.asarray(table)[i])(i), table[i])
    np.testing.assert_array_equal(
        ft.vmap(lambda r, j: r[j])(A[0], np.array([0, 3, 2])), A[0][range(3), [0, 3, 2]]
    )
    np.testing.assert_array_equal(ft.vmap(lambda m: ~m)(np.array([True, False])), [False, True])
    actual = ft.vmap(lambda x, i: x.at[i].add(10.0))(A[0], np.array([0, 1, 1]))
    expected = A[0].copy()
    expected[range(3), [0, 1, 1]] += 10
    np.testing.assert_array_equal(actual, expected)


def test_per_example_gradients():
    w = np.array([0.5, -1.0])
    x, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 0.0, 2.0])
    loss = lambda w, x, y: (fnp.dot(x, w) - y) ** 2
    expected = 2 * (x @ w - y)[:, None] * x
    for f in (ft.grad(loss), ft.jit(ft.grad(loss)), ft.grad(ft.jit(loss))):
        np.testing.assert_allclose(ft.vmap(f, (None, 0, 0))(w, x, y), expected)
        np.testing.assert_allclose(ft.jit(ft.vmap(f, (None, 0, 0)))(w, x, y), expected)


@pytest.mark.parametrize(
    ("size", "error"),
    [(-1, ft.errors.ArgumentValueError), (1.0, ft.errors.ArgumentError), ("3", ft.errors.ArgumentError)],
)
def test_an_axis_size_that_is_none(size, error):
    with pytest.raises(error, match="axis_size"):
        ft.vmap(lambda: 1.0, axis_size=size)()
