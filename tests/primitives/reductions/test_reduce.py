"""prod, max, min, all, any, argmax, argmin (and sum): every rule, zeros, ties, NaN, empty arrays."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.core.aval import Aval
from functrans.errors import DtypeError, ShapeError
from functrans.primitives.reductions import reduce as r
from functrans.primitives.structure.linear import reduce_sum_p
from functrans.testing.finite_difference import directional_derivative
from functrans.transforms.jvp import jvp

NUMPY = {
    reduce_sum_p: np.sum, r.reduce_prod_p: np.prod, r.reduce_max_p: np.max, r.reduce_min_p: np.min,
    r.reduce_and_p: np.all, r.reduce_or_p: np.any, r.argmax_p: np.argmax, r.argmin_p: np.argmin,
}  # fmt: skip
NUMBERS = [reduce_sum_p, r.reduce_prod_p, r.reduce_max_p, r.reduce_min_p]
TRUTHS = [r.reduce_and_p, r.reduce_or_p]
POSITIONS = [r.argmax_p, r.argmin_p]
X = np.random.default_rng(0).normal(size=(3, 4, 5))


def values(dtype):
    dtype = np.dtype(dtype)
    return (X > -1.5 if dtype.kind == "b" else X + 1j * X[::-1] if dtype.kind == "c" else X * 3).astype(dtype)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("prim", [*NUMBERS, *TRUTHS], ids=str)
def test_axes(check, prim, axes):
    x = X > -0.5 if prim in TRUTHS else X
    linear = [(0,)] if prim is reduce_sum_p else ()
    out = check(prim, x, axes=axes, linear=linear)
    np.testing.assert_allclose(out, NUMPY[prim](x, axis=axes), rtol=1e-14)


@pytest.mark.parametrize("d", [0, 1, 2])
@pytest.mark.parametrize("prim", POSITIONS, ids=str)
def test_positions(check, prim, d):
    for x in (X, np.round(X), X > 0):
        np.testing.assert_array_equal(check(prim, x, axes=(d,)), NUMPY[prim](x, d))


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.complex64, np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("prim", [*NUMBERS, *POSITIONS], ids=str)
def test_dtypes(check, prim, dtype):
    if np.dtype(dtype).kind == "c" and prim not in (reduce_sum_p, r.reduce_prod_p):
        pytest.skip("the order of complex numbers has a test of its own")
    out = check(prim, values(dtype), axes=(1,), backends=("llvm",))
    assert out.dtype == (np.int64 if prim in POSITIONS else dtype)


@pytest.mark.parametrize("layout", ["reversed", "strided", "fortran", "broadcast", "one"])
@pytest.mark.parametrize("prim", [*NUMBERS, *POSITIONS], ids=str)
def test_layouts(check, prim, layout):
    x = {
        "reversed": X[::-1, :, ::-1], "strided": X[:, ::2, 1::2], "fortran": X.T,
        "broadcast": np.broadcast_to(X[:, :1], X.shape), "one": X[:1, :1],
    }[layout]  # fmt: skip
    check(prim, x, axes=(1,), jvp=False)


def test_empty(check):
    x = np.zeros((0, 3))
    for prim, neutral in ((reduce_sum_p, 0.0), (r.reduce_prod_p, 1.0)):
        assert check(prim, x, axes=(0,)).tolist() == [neutral] * 3
    assert check(r.reduce_max_p, x, axes=(1,)).shape == (0,)
    with pytest.raises(ShapeError, match="no elements along axes"):
        r.reduce_max_p.abstract(Aval((0, 3), np.dtype(float)), axes=(0,))
    with pytest.raises(ValueError, match="identity"):
        r.reduce_max_p.bind(x, axes=(0,))
    with pytest.raises(DtypeError):
        r.reduce_and_p.abstract(Aval((3,), np.dtype(float)), axes=(0,))
    with pytest.raises(ShapeError, match="axes"):
        r.reduce_max_p.abstract(Aval((3,), np.dtype(float)), axes=(1,))


def test_nan_wins_everywhere(check):
    x = X.copy()
    x[1, 2, 3] = np.nan
    for prim in (*NUMBERS, *POSITIONS):
        np.testing.assert_array_equal(check(prim, x, axes=(1,), jvp=False), NUMPY[prim](x, axis=1))


def second(f, x, v, w):
    """The mixed second derivative of f at x along v and w, by differences of first derivatives."""

    def slope(y):
        return jvp(lambda a: [f(a)], [y[0]], [v])[1]

    return directional_derivative(slope, [x], [w])[0][0]


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_product_with_zeros_to_second_order(zeros, n):
    rng = np.random.default_rng(n)
    x, v, w = rng.normal(size=(3, n))
    x[:zeros] = 0.0

    def f(a):
        return r.reduce_prod_p.bind(a, axes=(0,))

    def slope(a):
        return jvp(lambda b: [f(b)], [a], [v])[1][0]

    value = directional_derivative(lambda a: [np.prod(a[0])], [x], [v])[0][0]
    np.testing.assert_allclose(slope(x), value, atol=1e-9)
    _, (found,) = jvp(lambda a: [slope(a)], [x], [w])
    # The second derivative of a product, by definition: pairs of factors replaced.
    expected = sum(v[i] * w[j] * np.prod(np.delete(x, [i, j])) for i in range(n) for j in range(n) if i != j)
    np.testing.assert_allclose(found if n > 1 else 0.0, expected, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_others(check, n):
    x = np.random.default_rng(n).normal(size=(n, 2))
    x[0, 0] = 0.0
    expected = np.array([np.prod(np.delete(x, i, 0), 0) for i in range(n)])
    np.testing.assert_allclose(check(r.others_p, x, axis=0), expected, rtol=1e-13)
    np.testing.assert_allclose(check(r.others_p, x.T, axis=1), expected.T, rtol=1e-13)
    check(r.others_p, x[:, 0], axis=0)
    check(r.others_p, x[::-1] * (1 + 2j), axis=0)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("shape", [(9, 10, 11), (10, 1, 12), (1, 9, 1), (2, 13, 1)])
def test_gradients_of_products_along_long_axes(axes, shape):
    x = np.random.default_rng(1).uniform(0.5, 1.5, shape)
    x[..., -1] = -x[..., -1]
    x[0, 0, 0] = 0.0
    left = np.random.default_rng(2).normal(size=np.prod(x, axis=axes).shape)
    found = ft.jit(ft.grad(lambda x: (left * fnp.prod(x, axis=axes)).sum()))(x)
    ones = np.where(np.eye(x.size, dtype=bool).reshape(x.size, *shape), 1.0, x)  # each factor but one
    own = np.broadcast_to(np.expand_dims(left, axes), shape).ravel()
    moved = np.prod(ones, axis=tuple(d + 1 for d in axes), keepdims=True)
    places = np.broadcast_to(moved, ones.shape).reshape(x.size, x.size).diagonal()
    np.testing.assert_allclose(np.ravel(found), own * places, rtol=1e-12, atol=1e-14)


def test_ties_share_evenly():
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    t = np.array([[1.0, 2.0, 4.0], [1.0, 2.0, 6.0]])
    np.testing.assert_allclose(r.reduce_max_p.jvp((x,), (t,), axes=(1,))[1], [3.0, 3.0])
    np.testing.assert_allclose(r.reduce_min_p.jvp((x,), (t,), axes=(1,))[1], [1.0, 3.0])
    np.testing.assert_allclose(r.reduce_max_p.jvp((x,), (t,), axes=(0, 1))[1], 3.0)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(8, 32), (7, 32), (9, 33), (30, 5, 40), (1000, 64), (8, 31)])
@pytest.mark.parametrize("threads", [1, 2])
def test_products_of_long_rows_are_in_order(dtype, shape, threads):
    """Another order may overflow: the elements are multiplied as NumPy's `accumulate` does."""
    x = np.random.default_rng(0).normal(size=shape).astype(dtype) * 10.0 ** np.random.default_rng(1).integers(
        -9, 9, shape
    )
    x = x.astype(dtype)
    x[0, ..., -1], x[-1, ..., 0], x[3, ..., 5] = np.inf, np.nan, 0.0
    with np.errstate(all="ignore"), ft.config.patch(num_threads=threads):
        expected = np.multiply.accumulate(x, axis=-1)[..., -1]
        np.testing.assert_array_equal(ft.jit(lambda x: fnp.prod(x, axis=-1))(x), expected)
        computed = ft.jit(lambda x: fnp.prod(x + 0, axis=-1))(x)  # not of an array in memory
        np.testing.assert_array_equal(computed, expected)
