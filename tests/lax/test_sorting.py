"""lax.sort, sort_key_val and top_k against NumPy and JAX's contracts."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ArgumentError, ArgumentValueError, AxisError, DtypeError, ShapeError
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


FORMS = {"eager": lambda f: f, "jit": ft.jit, "vmap": lambda f: lambda x: ft.vmap(f)(x[None])}


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", fnp.bfloat16])
@pytest.mark.parametrize("n", [1, 5, 40, 100])
def test_approximate_k_is_exact(n, dtype):
    """With ties, both zeros and infinities."""
    x = np.random.default_rng(n).integers(-9, 9, (3, n)).astype(dtype)
    x[0, ::3], x[1, ::4], x[2, ::5] = -0.0, np.inf, -np.inf
    for k in {1, (n + 1) // 2, n}:
        down = np.argsort(-x.astype("f8"), axis=1, kind="stable")[:, :k]
        up = np.argsort(x.astype("f8"), axis=1, kind="stable")[:, :k]
        for f, places in ((lax.approx_max_k, down), (lax.approx_min_k, up)):
            for form in FORMS.values():
                values, found = form(lambda x, f=f, k=k: f(x, k))(x)
                np.testing.assert_array_equal(np.reshape(found, places.shape), places)
                expected = np.take_along_axis(x, places, 1)
                np.testing.assert_array_equal(np.reshape(values, places.shape), expected)
                assert (found.dtype, values.dtype) == (np.int32, x.dtype)


def test_approximate_k_of_an_axis_and_of_all():
    x = np.array([[3.0, 1.0], [2.0, 5.0], [4.0, 0.0]])
    for f, order in ((lax.approx_max_k, -x), (lax.approx_min_k, x)):
        places = np.argsort(order, axis=0, kind="stable")
        np.testing.assert_array_equal(f(x, 2, 0)[1], places[:2])
        np.testing.assert_array_equal(f(x, k=1, reduction_dimension=-2, aggregate_to_topk=False)[1], places)
        np.testing.assert_array_equal(
            f(x, 1, recall_target=0.5, reduction_input_size_override=8)[0].shape, (3, 1)
        )


def test_approximate_k_with_nan():
    x = np.array([1.0, np.nan, -1.0, 2.0])
    for form in (lambda f: f, ft.jit):
        np.testing.assert_array_equal(form(lambda x: lax.approx_max_k(x, 2))(x)[1], [1, 3])
        np.testing.assert_array_equal(form(lambda x: lax.approx_min_k(x, 4))(x)[1], [2, 0, 3, 1])


def test_approximate_k_derivatives():
    x = np.random.default_rng(0).permutation(50.0 * np.arange(50) - 3.0) / 100
    for f in (lax.approx_max_k, lax.approx_min_k):
        for k in (3, 40):
            check(lambda x: (f(x, k)[0] ** 2).sum(), x)  # noqa: B023
    gradient = ft.jit(ft.grad(lambda x: lax.approx_min_k(x, 2)[0].sum()))(np.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [0, 1, 1])


@pytest.mark.parametrize("f", [lax.approx_max_k, lax.approx_min_k])
def test_approximate_k_refuses(f):
    x = np.ones((2, 3))
    for operand in (np.arange(3), np.ones(3, complex), np.ones(3, bool)):
        with pytest.raises(DtypeError, match="real floating-point numbers"):
            f(operand, 1)
    with pytest.raises(AxisError):
        f(1.0, 1)
    for k in (0, -1, 4):
        with pytest.raises(ArgumentValueError, match="k must be from 1 to 3, the extent of axis 1"):
            f(x, k)
    for options in ({"recall_target": 0.0}, {"recall_target": 1.1}, {"reduction_input_size_override": 2}):
        with pytest.raises(ArgumentValueError, match=next(iter(options))):
            f(x, 1, **options)
    with pytest.raises(AxisError):
        f(x, 1, 2)
