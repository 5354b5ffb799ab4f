"""bincount and histograms against NumPy; derivatives in weights and edges."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentValueError, ConcretizationTypeError, ShapeError
from functrans.testing import check

RANDOM = np.random.default_rng(6)
DATA = [
    RANDOM.normal(size=50),
    RANDOM.normal(size=(5, 6)).astype(np.float32),
    RANDOM.integers(-3, 9, 40),
    RANDOM.integers(0, 200, 30).astype(np.uint8),
    np.array([True, False, True]),
    np.array([1.0, np.nan, 3.0]),
    np.array([]),
    np.array([2.0, 2.0]),
    [1, 2, 2, 5],
    3.0,
    np.linspace(0, 1, 21)[::-2],
]
BINS = [
    10,
    3,
    1,
    [0.0, 1.0, 2.0],
    np.array([0, 1, 1, 4]),
    "auto",
    "fd",
    0,
    -1,
    [2.0, 1.0],
    "best",
    2.5,
    [[1, 2]],
]


@pytest.mark.parametrize("bins", BINS, ids=str)
def test_histogram(same, bins):
    for x, limits in itertools.product(DATA, (None, (0, 2), (2, 1), (0.0, np.inf))):
        same("histogram", x, bins, limits)
        same("histogram_bin_edges", x, bins, limits)
    for x in DATA:
        same("histogram", x, bins, (0, 2), True)
        same("histogram", x, bins, (0, 2), weights=np.full(np.shape(x), 0.5))


def test_dtypes_of_weights(same):
    x = RANDOM.uniform(0, 3, 20)
    for w in (
        RANDOM.normal(size=20),
        np.arange(20),
        np.ones(20, bool),
        np.full(20, 1j),
        np.ones(20, np.float32),
    ):
        same("histogram", x, 4, weights=w)
        same("histogram", x, [0, 1, 3], weights=w) if w.dtype.kind != "b" else None
        same("histogram", x, 4, weights=w, density=True) if w.dtype.kind != "b" else None
        same("bincount", x.astype(int), w)
    same("histogram", x, 4, weights=np.ones(3))


def test_bincount(same):
    for x in (
        [0, 1, 1, 3],
        [],
        np.array([], int),
        [True, False],
        np.uint8([2, 2]),
        [[1]],
        [-1],
        np.array([1.5]),
        3,
    ):
        same("bincount", x)
        same("bincount", x, minlength=3)
    same("bincount", [1], minlength=-1)
    same("bincount", [1, 2], [0.5, 0.25])
    same("bincount", [1, 2], [0.5])
    x = np.array([0, 5, 2, 2, -4])
    for f in (fnp.bincount, ft.jit(fnp.bincount, static_argnames="length")):
        np.testing.assert_array_equal(f(x, length=3), [2, 0, 2])
    rows = RANDOM.integers(0, 4, (3, 7))
    np.testing.assert_array_equal(
        ft.vmap(lambda r: fnp.bincount(r, length=4))(rows), [np.bincount(r, minlength=4) for r in rows]
    )
    assert fnp.bincount(x, length=3).dtype == np.int64


def test_several_axes(same):
    x, y, w = RANDOM.normal(size=(3, 60))
    edges = np.linspace(-1, 1, 5)
    for bins in (5, [3, 4], [edges[:4], edges], edges, [3, edges], 0, [1, 2, 3]):
        for limits, density in itertools.product((None, [[0, 1], [0, 2]], [[0, 1]]), (False, True)):
            same("histogram2d", x, y, bins, limits, density)
            same("histogram2d", x, y, bins, limits, density, w)
    same("histogram2d", x, y[1:])
    same("histogram2d", 1.0, 2.0)
    points = RANDOM.normal(size=(40, 3))
    same("histogramdd", points, 3)
    same("histogramdd", points.astype(np.float32), (3, 2, 4), density=True)
    same("histogramdd", [x, y], (3, 2), [None, (0, 1)], weights=w)
    same("histogramdd", x, 4)
    same("histogramdd", points, (3, 2))
    same("histogramdd", points, 3, [None])
    same("histogramdd", np.zeros((0, 2)), 3)


@pytest.mark.slow
def test_derivatives_in_weights_and_edges():
    x, y = RANDOM.uniform(0, 1, (2, 12))
    w = RANDOM.normal(size=12)
    check(lambda w: fnp.histogram(x, 3, weights=w)[0] ** 2, w)
    check(lambda w: fnp.histogram2d(x, y, 2, weights=w)[0] ** 2, w)
    check(lambda w: fnp.bincount(np.arange(12) % 4, w) ** 3, w)
    check(lambda x: fnp.histogram_bin_edges(x, 4) ** 2, x, order=1)
    np.testing.assert_array_equal(
        ft.grad(lambda x: fnp.histogram(x, [0.0, 0.5, 1.0])[0].sum() * 1.0)(x), np.zeros(12)
    )


def test_compiled():
    x, w = RANDOM.normal(size=30), RANDOM.normal(size=30)
    for options in ({"bins": 4}, {"bins": 4, "range": (-1, 1)}, {"bins": 4, "density": True}):
        f = ft.jit(lambda x, w: np.histogram(x, weights=w, **options))  # noqa: B023
        for got, want in zip(f(x, w), np.histogram(x, weights=w, **options)):
            np.testing.assert_allclose(got, want, rtol=1e-12)
    edges = np.array([-1.0, 0.0, 0.5])
    np.testing.assert_array_equal(
        ft.jit(lambda x, e: fnp.histogram(x, e)[0])(x, edges), np.histogram(x, edges)[0]
    )
    counts = ft.jit(lambda x: np.histogram2d(x, x, 3)[0])(x)
    np.testing.assert_array_equal(counts, np.histogram2d(x, x, 3)[0])
    mapped = ft.vmap(lambda x: fnp.histogram(x, 3, (-1, 1))[0])(x.reshape(3, 10))
    np.testing.assert_array_equal(mapped, [np.histogram(r, 3, (-1, 1))[0] for r in x.reshape(3, 10)])


def test_errors_name_what_was_met():
    x = np.ones(3)
    with pytest.raises(ConcretizationTypeError, match="bins='auto'"):
        ft.jit(lambda x: fnp.histogram(x, "auto"))(x)
    with pytest.raises(ConcretizationTypeError, match="length="):
        ft.jit(fnp.bincount)(np.array([1]))
    with pytest.raises(ArgumentValueError, match="increase"):
        fnp.histogram(x, [2.0, 1.0])
    with pytest.raises(ShapeError, match=r"weights of shape \(2,\)"):
        fnp.histogram(x, weights=np.ones(2))


def test_weights_of_another_shape():
    for f in (fnp.histogram, fnp.histogram_bin_edges):
        with pytest.raises(ShapeError, match=r"weights of shape \(3,\) for data of shape \(5,\)"):
            f(np.arange(5.0), 3, weights=np.ones(3))
