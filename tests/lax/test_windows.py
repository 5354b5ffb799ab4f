"""reduce_window and reduce against loops over windows, SciPy and NumPy; ties, zeros, trees, errors."""

import operator
from itertools import product

import numpy as np
import pytest
import scipy.ndimage

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.testing import check

RNG = np.random.default_rng(0)
FOLDS = {
    "sum": (lax.add, 0.0, np.sum),
    "prod": (np.multiply, 1.0, np.prod),
    "max": (fnp.maximum, -np.inf, np.max),
    "min": (min, np.inf, np.min),
}


def by_hand(x, init, fold, window, strides, padding, base, dilation):
    """What lies under each window, padding left out."""
    places = [
        max(((n - 1) * b + 1 + lo + hi - (k - 1) * d - 1) // s + 1, 0)
        for n, b, (lo, hi), k, d, s in zip(x.shape, base, padding, window, dilation, strides)
    ]
    out = np.empty(places)
    for p in np.ndindex(*places):
        under = [init]
        for k in np.ndindex(*window):
            at = [a * s + t * d - lo for a, s, t, d, (lo, _) in zip(p, strides, k, dilation, padding)]
            if all(a % b == 0 and 0 <= a // b < n for a, b, n in zip(at, base, x.shape)):
                under.append(x[tuple(a // b for a, b in zip(at, base))])
        out[p] = fold(under)
    return out


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("seed", range(8))
def test_against_the_definition(name, seed):
    rng = np.random.default_rng(seed)
    computation, init, fold = FOLDS[name]
    rank = int(rng.integers(1, 4))
    x = rng.standard_normal(rng.integers(1, 6, rank))
    window, strides, base, dilation = (rng.integers(1, 4, rank).tolist() for _ in range(4))
    padding = [tuple(pair) for pair in rng.integers(-1, 3, (rank, 2)).tolist()]
    params = (window, strides, padding, base, dilation)
    expected = by_hand(x, init, fold, *params)
    function = ft.jit(lambda x: lax.reduce_window(x, init, computation, *params))
    np.testing.assert_allclose(function(x), expected, atol=1e-12)
    written_out = lax.reduce_window(
        x, init, lambda a, b: computation(a, b) if name != "min" else lax.min(a, b), *params
    )
    np.testing.assert_allclose(written_out, expected, atol=1e-12)


def test_pooling_of_images():
    """Max pooling 2x2, and running means 3x3 as of SciPy."""
    x = RNG.standard_normal((2, 3, 6, 8))
    pooled = lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    np.testing.assert_array_equal(pooled, x.reshape(2, 3, 3, 2, 4, 2).max((3, 5)))
    total = ft.jit(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 3), padding="SAME"))(x)
    expected = scipy.ndimage.uniform_filter(x, (1, 1, 3, 3), mode="constant") * 9
    np.testing.assert_allclose(total, expected, atol=1e-12)
    largest = ft.jit(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 3, 3), padding="SAME"))(x)
    np.testing.assert_array_equal(
        largest, scipy.ndimage.maximum_filter(x, (1, 1, 3, 3), mode="constant", cval=-9.0)
    )
    long = ft.jit(lambda x: lax.reduce_window(x, 0.0, lax.add, (50,)))(x.ravel())
    np.testing.assert_allclose(long, np.convolve(x.ravel(), np.ones(50), "valid"), atol=1e-11)


@pytest.mark.parametrize("name", FOLDS)
def test_transformed(name):
    computation, init, _ = FOLDS[name]
    x = RNG.permutation(30).reshape(5, 6) / 7.0 + 0.1

    def f(x):
        return lax.reduce_window(x, init, computation, (2, 3), (2, 1), "SAME")

    check(f, x[:3, :4], order=2)
    rows = np.stack([x, x[::-1]])
    np.testing.assert_allclose(ft.jit(ft.vmap(f))(rows), np.stack(list(map(f, rows))), rtol=1e-12)
    per_lane = ft.vmap(ft.grad(lambda x: fnp.sum(f(x) ** 2)))(rows)
    for lane, row in zip(per_lane, rows):
        np.testing.assert_allclose(lane, ft.jit(ft.grad(lambda x: fnp.sum(f(x) ** 2)))(row), rtol=1e-12)


def test_ties_go_to_the_first():
    def last(computation, init):
        return ft.jacrev(lambda x: lax.reduce_window(x, init, computation, (2,)))

    x = np.array([1.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(last(lax.max, -np.inf)(x), [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    np.testing.assert_array_equal(last(lax.min, np.inf)(x), [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]])


def test_nan_wins():
    x = np.array([1.0, np.nan, 0.0, 2.0])
    for computation, init in ((lax.max, -np.inf), (lax.min, np.inf)):
        f = ft.jit(lambda x, c=computation, i=init: lax.reduce_window(x, i, c, (2,)))
        np.testing.assert_array_equal(np.isnan(f(x)), [True, True, False])
    position = ft.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (4,))[0])(x)
    np.testing.assert_array_equal(position, [0, 1, 0, 0])


def test_products_with_zeros():
    x = np.array([0.0, 2.0, 0.0, 3.0])
    gradient = ft.jacrev(lambda x: lax.reduce_window(x, 1.0, lax.mul, (3,)))
    np.testing.assert_array_equal(gradient(x), [[0, 0, 0, 0], [0, 0, 6, 0]])
    hessian = ft.hessian(lambda x: lax.reduce_window(x, 1.0, lax.mul, (3,))[0])(x)
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = x[2]
    expected[0, 2] = expected[2, 0] = x[1]
    np.testing.assert_array_equal(hessian, expected)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool, np.float32])
def test_dtypes(dtype):
    x = RNG.integers(0, 5, 9).astype(dtype)
    least = False if dtype is bool else 0
    for computation in (operator.or_, np.logical_or) if dtype is bool else (lax.max, lax.add):
        out = ft.jit(lambda x, c=computation: lax.reduce_window(x, least, c, (3,), (2,)))(x)
        windows = np.lib.stride_tricks.sliding_window_view(x, 3)[::2]
        expected = (
            windows.any(1) if dtype is bool else windows.max(1) if computation is lax.max else windows.sum(1)
        )
        assert out.dtype == x.dtype
        np.testing.assert_array_equal(out, expected.astype(dtype))


def test_initial_values_count():
    """XLA begins each fold with the initial value, and pads with it."""
    x = np.arange(4.0)
    np.testing.assert_array_equal(lax.reduce_window(x, 1.0, lax.add, (2,), padding=((1, 0),)), [2, 2, 4, 6])
    np.testing.assert_array_equal(lax.reduce_window(x, 1.5, lax.max, (2,)), [1.5, 2, 3])
    gradient = ft.grad(lambda i: fnp.sum(lax.reduce_window(x, i, lax.add, (2,))))(0.5)
    assert gradient == 3.0


def largest_with_place(a, b):
    keep = a[0] >= b[0]
    return lax.select(keep, a[0], b[0]), lax.select(keep, a[1], b[1])


def test_trees():
    """The largest element with its place, of windows and along axes."""
    x = RNG.standard_normal((4, 6))
    place = np.arange(24).reshape(4, 6)
    values, places = ft.jit(
        lambda x: lax.reduce_window((x, place), (-np.inf, -1), largest_with_place, (2, 3), (2, 3))
    )(x)
    windows = x.reshape(2, 2, 2, 3).transpose(0, 2, 1, 3).reshape(2, 2, 6)
    np.testing.assert_array_equal(values, windows.max(-1))
    np.testing.assert_array_equal(x.ravel()[places], values)
    values, places = lax.reduce((x, place), (-np.inf, -1), largest_with_place, (0,))
    np.testing.assert_array_equal(values, x.max(0))
    np.testing.assert_array_equal(places, place[x.argmax(0), np.arange(6)])


# --- reduce -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [(), (0,), (2, 0), (0, 1, 2)])
def test_reduce(axes):
    x = RNG.standard_normal((3, 1, 5))
    for computation, init, fold in FOLDS.values():
        for shape in ((3, 1, 5), (2, 4, 1)):
            y = RNG.standard_normal(shape)
            np.testing.assert_allclose(lax.reduce(y, init, computation, axes), fold(y, axis=axes), rtol=1e-12)
    any_ = ft.jit(lambda x: lax.reduce(x, 0.0, lambda a, b: a + b + a * b, axes))(x)
    np.testing.assert_allclose(any_, np.prod(1 + x, axis=axes) - 1, atol=1e-12)
    check(lambda x: lax.reduce(x, 0.0, lambda a, b: a + b + a * b, axes), x[:2], order=1)
    with pytest.raises(ft.errors.AxisError):
        lax.reduce(x, 0.0, lax.add, (3,))


def test_reduce_of_nothing():
    x = np.zeros((0, 2))
    np.testing.assert_array_equal(lax.reduce(x, 7.0, lax.add, (0,)), [7, 7])
    np.testing.assert_array_equal(lax.reduce(x, 7.0, lambda a, b: a - b * 0 + b, (0,)), [7, 7])
    assert lax.reduce(x, 7.0, lax.max, (1,)).shape == (0,)
    assert lax.reduce(np.array([True, False]), False, lax.bitwise_or, (0,))


def test_errors():
    x = np.ones((3, 4))
    for window, more in product([(2,), (2, 0), (2, 2, 2)], [{}]):
        with pytest.raises(ft.errors.ArgumentValueError, match="window_dimensions"):
            lax.reduce_window(x, 0.0, lax.add, window, **more)
    with pytest.raises(ft.errors.ArgumentValueError, match="window_strides"):
        lax.reduce_window(x, 0.0, lax.add, (2, 2), (1,))
    with pytest.raises(ft.errors.ArgumentValueError, match="padding"):
        lax.reduce_window(x, 0.0, lax.add, (2, 2), padding="FULL")
    with pytest.raises(ft.errors.ArgumentError, match="initial value"):
        lax.reduce_window((x, x), 0.0, lax.add, (2, 2))
    with pytest.raises(ft.errors.ShapeError, match="different shapes"):
        lax.reduce_window((x, x[:2]), (0.0, 0.0), lambda a, b: a, (2, 2))
    with pytest.raises(ft.errors.ShapeError, match="must be numbers"):
        lax.reduce(x, np.zeros(2), lax.add, (0,))
    with pytest.raises(ft.errors.ArgumentValueError, match="element by element"):
        lax.reduce_window(x, 0.0, lambda a, b: fnp.sum(a + b), (2, 2))
    with pytest.raises(ft.errors.ArgumentValueError, match="preserve types"):
        lax.reduce(x, 0.0, lambda a, b: a > b, (0,))
