"""Products of all elements of long arrays: NumPy's numbers, whatever the products of the first elements are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.primitives.reductions.long_product import _CHUNKS, _LONG, _PARTS

RNG = np.random.default_rng(5)
#: Runs of factors: with both signs, and products that leave the normal numbers and return.
FACTORS = {
    "near one": lambda n: 1 + 0.01 * RNG.standard_normal(n),
    "both signs": lambda n: RNG.choice([-1.0, 1.0], n) * RNG.uniform(0.5, 2.0, n),
    "small": lambda n: np.full(n, 0.75),
    "large": lambda n: np.full(n, 1 / 0.75),
    "opposite": lambda n: np.where(np.arange(n) % 2, 1e30, 1e-30),
    "tiny": lambda n: np.full(n, 1e-30),
    "huge": lambda n: np.full(n, 1e30),
    "zero": np.zeros,
    "infinite": lambda n: np.full(n, np.inf),
    "NaN": lambda n: np.full(n, np.nan),
    "subnormal": lambda n: np.full(n, 1e-310),
}


def of_parts(parts, n, dtype):
    """An array of `n` ones with runs of other factors in it."""
    x = np.ones(n)
    for kind, length, place in parts:
        start = int(place * (n - length))
        x[start : start + length] = FACTORS[kind](length)
    return x.astype(dtype)


def product(x, **options):
    with ft.config.patch(**options):
        return np.asarray(ft.jit(fnp.prod)(x))


def assert_is_product(found, x):
    with np.errstate(all="ignore"):
        expected = np.prod(x)
    assert found.dtype == expected.dtype
    assert found.shape == ()
    kind = np.finfo(x.dtype)
    if np.isfinite(expected) and abs(expected) >= kind.tiny:
        np.testing.assert_allclose(found, expected, rtol=4 * np.sqrt(x.size) * kind.eps)
    else:
        np.testing.assert_array_equal(found, expected)


RUNS = st.lists(
    st.tuples(
        st.sampled_from(sorted(FACTORS)), st.sampled_from([1, 2, 7, 300, 2000, 20000]), st.floats(0, 1)
    ),
    max_size=5,
)
SIZES = [_LONG - 1, _LONG, _LONG + 1, 40_000, 3 * _LONG + _CHUNKS * _PARTS - 1]


@settings(max_examples=60)
@given(RUNS, st.sampled_from(SIZES), st.sampled_from(["f4", "f8"]))
def test_products_are_those_of_numpy(parts, n, dtype):
    x = of_parts(parts, n, dtype)
    found = product(x)
    assert_is_product(found, x)
    for threads in (1, 2):
        np.testing.assert_array_equal(product(x, num_threads=threads), found)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("place", [0.0, 0.37, 1.0])
@pytest.mark.parametrize("pair", [("tiny", "huge"), ("huge", "tiny")], ids=" ".join)
def test_products_of_first_elements_that_leave_the_numbers_and_return(pair, place, dtype):
    """They are zero or infinite by the order of multiplication, though the product of parts is near one."""
    x = np.ones(_LONG + 5)
    start = int(place * (x.size - 200))
    x[start : start + 100] = FACTORS[pair[0]](100)
    x[start + 100 : start + 200] = FACTORS[pair[1]](100)
    x = x.astype(dtype)
    found = product(x)
    assert not np.isfinite(found) if pair[0] == "huge" else found == 0
    assert_is_product(found, x)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_parts_have_another_rounding_and_strict_has_the_order_of_numpy(dtype):
    x = FACTORS["near one"](100_000).astype(dtype)
    in_order = np.multiply.accumulate(x)[-1]
    assert product(x, strict=True) == in_order
    assert product(x) != in_order
    assert_is_product(product(x), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: fnp.prod(x.reshape(200, -1)),
        lambda x: fnp.prod(x.reshape(200, -1).T),
        lambda x: fnp.prod(1 + 1e-3 * x[::-1]),
        lambda x: fnp.prod(x.reshape(1, -1), axis=1, keepdims=True),
        lambda x: fnp.prod(x) * x[:3],
        lambda x: ft.lax.fori_loop(0, 3, lambda i, c: c + fnp.prod(x + 1e-6 * i), 0.0),
        lambda x: ft.vmap(fnp.prod)(x.reshape(2, -1)),
        lambda x: ft.lax.cond(x[0] > 0, fnp.prod, lambda x: x[0], x),
        lambda x: fnp.prod(x.astype("f2")),
    ],
)
def test_programs_with_long_products(function):
    x = 1 + 1e-3 * RNG.standard_normal(80_000)
    with ft.disable_jit():
        expected = function(fnp.asarray(x))
    np.testing.assert_allclose(ft.jit(function)(x), expected, rtol=1e-11 if expected.dtype == "f8" else 1e-2)


def test_derivatives():
    x = 1 + 1e-3 * RNG.standard_normal(_LONG + 3)
    value, gradient = ft.jit(ft.value_and_grad(fnp.prod))(x)
    assert_is_product(np.asarray(value), x)
    np.testing.assert_allclose(gradient, np.prod(x) / x, rtol=1e-11)
    _, tangent = ft.jit(lambda x: ft.jvp(fnp.prod, (x,), (x,)))(x)
    np.testing.assert_allclose(tangent, x.size * np.prod(x), rtol=1e-11)
