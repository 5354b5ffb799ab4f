"""``config.numpy_dtype_promotion = "jax"``: the table of JAX's documentation, with 64 bits enabled."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import config

#: Columns and entries of the table; what is not listed is NumPy's promotion.
FLOATS = ("float16", "float32", "float64", "complex64", "complex128")
INTEGERS = ("int8", "int32", "int64", "uint8", "uint64")


def x(dtype):
    return fnp.ones(2, dtype)


@pytest.fixture(autouse=True)
def _as_jax():
    with config.patch(numpy_dtype_promotion="jax"):
        yield


@pytest.mark.parametrize("floating", FLOATS)
@pytest.mark.parametrize("integer", INTEGERS)
def test_integers_do_not_widen_floats(floating, integer):
    a, b = x(floating), x(integer)
    assert fnp.result_type(a, b) == fnp.promote_types(floating, integer) == floating
    for out in (
        a + b,
        b * a,
        fnp.multiply(a, b),
        fnp.where(b > 0, a, b),
        fnp.stack([a, b]),
        ft.jit(fnp.add)(a, b),
    ):
        assert out.dtype == floating


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_values_and_gradients(wrap):
    a, n = fnp.asarray([1.5, 2.0], "float32"), fnp.asarray([2, 3])
    assert np.array_equal(wrap(lambda a, n: a**n)(a, n), [2.25, 8.0])
    slope = wrap(ft.grad(lambda a: fnp.sum(a * n)))(a)
    assert slope.dtype == "float32"
    assert np.array_equal(slope, [2.0, 3.0])


def test_the_rest_is_as_in_numpy():
    assert (x("int32") + x("int64")).dtype == "int64"
    assert (x("int32") + 1.0).dtype == (x("int32") / x("int32")).dtype == "float64"
    assert (x("float32") + x("float64")).dtype == "float64"
    assert (x("float32") + 1.0).dtype == "float32"
    assert (x("bool") * x("float32")).dtype == "float32"


def test_the_option_is_part_of_the_key():
    f = ft.jit(lambda a, b: a + b)
    assert f(x("float32"), x("int64")).dtype == "float32"
    with config.patch(numpy_dtype_promotion="standard"):
        assert f(x("float32"), x("int64")).dtype == "float64"
        assert (x("float32") + x("int64")).dtype == fnp.stack([x("float32"), x("int64")]).dtype == "float64"
