"""lax.sort, sort_key_val and top_k against NumPy and JAX's contracts."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.errors import ArgumentError, ArgumentValueError, AxisError, ShapeError
from functrans.testing import check

RANDOM = np.random.default_rng(8)


def test_several_operands():
    a, b, c = RANDOM.integers(0, 3, (3, 4, 30))
    c = c * 0.5
    order = np.lexsort((b, a))
    want = [np.take_along_axis(x, order, -1) for x in (a, b, c)]
    for f in (lax.sort, ft.jit(lax.sort, static_argnames="num_keys")):
        for got, w in zip(f((a, b, c), num_keys=2), want):
            np.testing.assert_array_equal(got, w)
    order = np.argsort(a, axis=0, kind="stable")
    keys, values = lax.sort_key_val(a, c, 0)
    np.testing.assert_array_equal(keys, np.take_along_axis(a, order, 0))
    np.testing.assert_array_equal(values, np.take_along_axis(c, order, 0))
    assert type(lax.sort(a)) is ft.Array
    assert type(lax.sort([a])) is tuple


def test_values_carry_the_derivative():
    keys = np.array([3, 1, 2])
    weights = np.array([1.0, 10.0, 100.0])

    def f(x):
        return (weights * lax.sort_key_val(keys, x)[1] ** 2).sum()

    check(f, np.array([1.0, 2.0, 3.0]))
    check(ft.jit(f), np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("n", [1, 5, 100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.bool_, np.uint8])
def test_top_k(n, dtype):
    x = RANDOM.integers(0, 9, (3, n)).astype(dtype)
    for k in sorted({0, 1, n // 2, n, min(n, 40)}):
        at = np.argsort(x.astype(float) * -1.0, axis=-1, kind="stable")[:, :k]
        for f in (lax.top_k, ft.jit(lax.top_k, static_argnums=1)):
            values, places = f(x, k)
            assert values.dtype == dtype
            assert places.dtype == np.int32
            np.testing.assert_array_equal(places, at)
            np.testing.assert_array_equal(values, np.take_along_axis(x, at, -1))
    values, places = lax.top_k(x, 1, axis=0)
    np.testing.assert_array_equal(values[0], x.max(0))


def test_nan_is_largest():
    x = np.array([1.0, np.nan, np.inf, np.nan, -np.inf])
    for f in (lax.top_k, ft.jit(lax.top_k, static_argnums=1)):
        np.testing.assert_array_equal(f(x, 4)[1], [1, 3, 2, 0])


def test_top_k_derivative():
    x = RANDOM.permutation(50) * 0.1
    for k in (3, 40):
        check(lambda x: (lax.top_k(x, k)[0] ** 2).sum(), x)  # noqa: B023
    mapped = ft.vmap(lambda x: lax.top_k(x, 2)[0])(x.reshape(5, 10))
    np.testing.assert_array_equal(mapped, np.sort(x.reshape(5, 10))[:, :-3:-1])


def test_errors():
    x = np.ones((2, 3))
    with pytest.raises(ArgumentValueError, match="k must be from 0 to 3"):
        lax.top_k(x, 4)
    with pytest.raises(AxisError):
        lax.top_k(x, 1, axis=2)
    with pytest.raises(ShapeError, match="different shapes"):
        lax.sort((x, x[0]))
    with pytest.raises(ArgumentValueError, match="num_keys"):
        lax.sort((x, x), num_keys=3)
    with pytest.raises(ArgumentError):
        lax.sort(())
    with pytest.raises(AxisError):
        lax.sort(1.0)
