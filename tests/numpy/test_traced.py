"""Indices, masks and shapes that are traced values: what works, and the errors of what cannot."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax

X = np.arange(5.0)


def read(x, i):
    return x[i] * 2


def test_a_traced_integer_as_an_index():
    assert ft.jit(read)(X, 3) == 6
    assert ft.jit(read)(X, -1) == 8
    np.testing.assert_array_equal(ft.jit(read)(X, np.array([[0, 1], [4, -5]])), 2 * X[[[0, 1], [4, 0]]])
    np.testing.assert_array_equal(ft.vmap(lambda i: fnp.asarray(X)[i])(np.array([1, 2])), [1, 2])
    np.testing.assert_array_equal(ft.jit(lambda x, i: x[[i, 0, i + 1]])(X, 2), [2, 0, 3])
    square = np.arange(25.0).reshape(5, 5)
    np.testing.assert_array_equal(ft.jit(lambda x, i: x[1:, i])(square, 2), square[1:, 2])
    np.testing.assert_array_equal(ft.jit(lambda x, i: x[i, :, None])(square, 2), square[2, :, None])


def total(x, i):
    return fnp.sum(x[i] ** 2)


@pytest.mark.parametrize(
    "call",
    [
        ft.jit(read),
        ft.jit(ft.grad(total)),
        ft.grad(ft.jit(total)),
        ft.grad(total),
        ft.jit(ft.vmap(read, (None, 0))),
    ],
)
def test_an_index_out_of_bounds_names_the_users_line(call):
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 5") as caught:
        call(X, np.array([1, 9]))
    assert "test_traced.py" in str(caught.value)
    assert "x[i]" in str(caught.value)


def test_constant_indices_are_checked_while_tracing():
    with pytest.raises(errors.IndexOutOfBoundsError):
        ft.jit(lambda x: x[np.array([0, 9])])(X)
    with pytest.raises(errors.IndexOutOfBoundsError):
        ft.jit(lambda x: x[9])(X)
    assert "mode=promise_in_bounds" in str(ft.make_jaxpr(lambda x: x[np.array([0, -1])])(X))


def test_writing_at_traced_indices():
    i = np.array([1, 1, 3])
    np.testing.assert_array_equal(ft.jit(lambda x, i: x.at[i].add(1.0))(X, i), [0, 3, 2, 4, 4])
    np.testing.assert_array_equal(
        ft.jit(lambda x, i: x.at[i].add(1.0, mode="drop"))(X, np.array([1, 10, 3])), [0, 2, 2, 4, 4]
    )
    np.testing.assert_array_equal(
        ft.jit(lambda x, i: fnp.take(x, i, mode="clip"))(X, np.array([-4, 9])), [0, 4]
    )
    with pytest.raises(errors.IndexOutOfBoundsError, match="index 10"):
        ft.jit(lambda x, i: x.at[i].set(1.0))(X, np.array([1, 10]))


def test_traced_masks():
    with pytest.raises(errors.NonConcreteBooleanIndexError, match=r"use where\(mask, x, fill\)|Use where"):
        ft.jit(lambda x: x[x > 2])(X)
    np.testing.assert_array_equal(ft.jit(lambda x: x.at[x > 2].set(0.0))(X), [0, 1, 2, 0, 0])
    gradient = ft.jit(ft.grad(lambda x: fnp.sum(x.at[x > 2].multiply(3.0))))(X)
    np.testing.assert_array_equal(gradient, [1, 1, 1, 3, 3])
    rows = np.arange(6.0).reshape(3, 2)
    out = ft.jit(lambda x: x.at[x[:, 0] > 1].add(np.array([10.0, 20.0])))(rows)
    np.testing.assert_array_equal(out, [[0, 1], [12, 23], [14, 25]])
    with pytest.raises(
        errors.NonConcreteBooleanIndexError, match="number of elements under the mask is unknown"
    ):
        ft.jit(lambda x: x.at[x > 2].set(np.array([1.0, 2.0])))(X)
    # Eager differentiation knows the numbers.
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(x[x > 2] ** 2))(X), [0, 0, 0, 6, 8])


def test_traced_slices():
    out = ft.vmap(lambda i, x: lax.dynamic_slice(x, (i,), (2,)), (0, None))(np.array([1, 9]), X)
    np.testing.assert_array_equal(out, [[1, 2], [3, 4]])
    update = ft.jit(ft.vmap(lambda i, x: lax.dynamic_update_slice(x, x[:2] * 10, (i,)), (0, None)))
    np.testing.assert_array_equal(update(np.array([1, 9]), X), [[0, 0, 10, 3, 4], [0, 1, 2, 0, 10]])
    np.testing.assert_array_equal(ft.jit(lambda x, s: fnp.roll(x, s))(X, 2), np.roll(X, 2))
    with pytest.raises(errors.TracerIntegerConversionError, match=r"lax\.dynamic_slice"):
        ft.jit(lambda x, n: x[:n])(X, 3)


@pytest.mark.parametrize("make", [fnp.arange, fnp.zeros, fnp.eye, lambda n: fnp.linspace(0, 1, n)])
def test_shapes_must_be_known(make):
    with pytest.raises(errors.ConcretizationTypeError, match=r"(?i)mark the argument static"):
        ft.jit(make)(3)


def test_no_constant_array_enters_a_jaxpr():
    def program(x):
        ones = fnp.eye(20) + fnp.tri(20) + fnp.zeros((20, 20)) + fnp.full((20, 20), 2.0)
        return x * (ones + fnp.arange(20) + fnp.linspace(0, 1, 20) + fnp.indices((20, 20))[0])

    jaxpr = ft.make_jaxpr(program)(1.0)
    assert not jaxpr.consts
    np.testing.assert_allclose(ft.jit(program)(1.0), program(fnp.asarray(1.0)))


def test_failed_decompositions():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite") as caught:
        ft.jit(lambda a: fnp.linalg.cholesky(a))(-np.eye(2))
    assert "fnp.linalg.cholesky(a)" in str(caught.value)
    with pytest.raises(errors.LinAlgError):
        ft.jit(ft.grad(lambda a: fnp.sum(fnp.linalg.cholesky(a))))(-np.eye(2))
    with ft.config.patch(linalg_errors="nan"):
        assert np.isnan(ft.jit(lambda a: fnp.linalg.cholesky(a))(-np.eye(2))).all()


SCALARS = [2, 2.5, np.float64(2), np.float32(2), np.int8(3)]
DTYPES = [np.float32, np.float64, np.int8, np.complex64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
@pytest.mark.parametrize(
    "f",
    [
        lambda x, s: np.trapezoid(x, dx=s),
        lambda x, s: np.sum(x, initial=s),
        lambda x, s: np.prod(x, initial=s),
        lambda x, s: np.max(x.real, initial=s),
        lambda x, s: np.linspace(x, s, 3),
        lambda x, s: np.average(x, weights=x * s),
        lambda x, s: np.nan_to_num(x, nan=s),
    ],
)
def test_a_traced_scalar_gives_the_dtype_of_a_known_one(f, scalar, dtype):
    x = np.array([1, 2, 4], dtype)
    want = f(x, scalar)
    for got in (ft.jit(f)(x, scalar), ft.jit(lambda x: f(x, scalar))(x)):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_complex_ends_of_linspace():
    np.testing.assert_allclose(ft.jit(lambda s: np.linspace(s, 3, 3))(1j), np.linspace(1j, 3, 3))
    np.testing.assert_allclose(ft.jit(lambda x: np.linspace(x, 1j, 3))(2.0), np.linspace(2.0, 1j, 3))


def test_attributes_there_are_not():
    with pytest.raises(AttributeError, match=r"'summ'\. Nearest: sum"):
        ft.jit(lambda x: x.summ())(np.ones(3))
    with pytest.raises(AttributeError, match=r"'shap'\. Nearest: shape"):
        ft.jit(lambda x: x.shap)(np.ones(3))
