"""`functrans.donate`: the memory of an argument for a result, for one call."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp


def address(x):
    return x.__array_interface__["data"][0]


def test_a_donated_ndarray_shows_the_result():
    memory = np.arange(6.0).reshape(2, 3)
    step = ft.jit(lambda x, y: (fnp.sum(x), x + y), donate_argnums=0)
    x = ft.donate(memory)
    assert not memory.flags.writeable
    for _ in range(3):
        _, x = step(x, 10.0)
    np.testing.assert_array_equal(memory, np.arange(6.0).reshape(2, 3) + 30.0)
    assert address(x) == address(memory)


def test_it_shows_the_result_also_where_that_is_computed_elsewhere():
    for f in (
        lambda a, b: (b, a),
        lambda a, b: (a + 1.0, a),
        lambda a, b: (a[::-1] + b, b @ fnp.outer(a, b)),
        lambda a, b: (a, b),
    ):
        a, b = np.arange(3.0), np.array([5.0, -1.0, 2.0])
        expected = f(fnp.array(a), fnp.array(b))
        outs = ft.jit(f, donate_argnums=(0, 1))(ft.donate(a), ft.donate(b))
        for memory, out, target in zip((a, b), outs, expected, strict=True):
            np.testing.assert_allclose(memory, target)
            np.testing.assert_allclose(out, target)


def test_a_view_of_what_was_donated_keeps_its_values():
    memory = np.zeros(3)
    x = ft.donate(memory)
    part = x[1:]
    y = ft.jit(lambda x: x + 1.0, donate_argnums=0)(x)
    np.testing.assert_array_equal(part, [0.0, 0.0])
    np.testing.assert_array_equal(y, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(memory, np.zeros(3))


def test_without_a_place_that_takes_it_nothing_happens():
    memory = np.ones(3)
    x = ft.donate(memory)
    np.testing.assert_array_equal(ft.jit(lambda x: 2.0 * x)(x) + x, [3.0, 3.0, 3.0])
    np.testing.assert_array_equal(memory, np.ones(3))


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (3.0, ft.errors.ArgumentError, "expected an ndarray, got float"),
        ([1.0], ft.errors.ArgumentError, "expected an ndarray, got list"),
        (fnp.ones(2), ft.errors.ArgumentError, "expected an ndarray, got Array"),
        (np.ones((3, 4)).T, ft.errors.ArgumentValueError, "not C-contiguous"),
        (np.broadcast_to(1.0, 3), ft.errors.ArgumentValueError, "read-only"),
        (np.ones(3, "g"), ft.errors.UnsupportedDtypeError, "float128"),
        (np.ones(3, ">f8"), ft.errors.UnsupportedDtypeError, "dtype >f8"),
    ],
)
def test_what_cannot_be_donated(bad, error, message):
    with pytest.raises(error, match=f"donate: .*{message}"):
        ft.donate(bad)
