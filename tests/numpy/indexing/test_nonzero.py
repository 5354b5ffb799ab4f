"""Places of true elements, with known numbers and with `size`."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentValueError, ConcretizationTypeError

RANDOM = np.random.default_rng(9)
CASES = [
    np.array([0, 3, 0, 4]),
    RANDOM.integers(0, 2, (3, 4)),
    RANDOM.integers(0, 2, (2, 3, 2)).astype(bool),
    np.array([0.0, np.nan, -0.0, 2.0]),
    np.zeros((0, 3)),
    np.zeros(3),
    np.array([1 + 0j, 0j, 1j]),
    [[1, 0], [0, 1]],
]


@pytest.mark.parametrize("name", ["nonzero", "argwhere", "flatnonzero", "where"])
def test_known(same, name):
    for x in CASES:
        same(name, x)


@pytest.mark.needs("numpy>=2.1", reason="nonzero takes numbers")
@pytest.mark.parametrize("name", ["nonzero", "argwhere", "flatnonzero", "where"])
def test_numbers(same, name):
    same(name, 3.0)
    same(name, 0)


@pytest.mark.parametrize("x", CASES, ids=lambda x: str(np.shape(x)))
def test_with_size(x):
    x = np.asarray(x)
    places = np.nonzero(x)
    count = len(places[0])
    for size in (0, 1, count, count + 2, x.size + 3):
        for f in (fnp.nonzero, ft.jit(fnp.nonzero, static_argnames=("size", "fill_value"))):
            found = f(x, size=size, fill_value=-7)
            for got, want in zip(found, places, strict=True):
                assert got.dtype == np.int64
                np.testing.assert_array_equal(got, [*want[:size], *[-7] * (size - count)])
    rows = ft.jit(lambda x: fnp.argwhere(x, size=count + 1))(x)
    np.testing.assert_array_equal(rows, [*np.argwhere(x).tolist(), [0] * x.ndim])


def test_fill_for_each_axis():
    found = fnp.nonzero(np.eye(2), size=3, fill_value=(5, 6))
    np.testing.assert_array_equal(found, [[0, 1, 5], [0, 1, 6]])
    with pytest.raises(ArgumentValueError, match="fill values"):
        fnp.nonzero(np.eye(2), size=3, fill_value=(5,))
    with pytest.raises(ArgumentValueError, match="negative"):
        fnp.nonzero(np.eye(2), size=-1)


@pytest.mark.parametrize(
    "name", ["nonzero", "argwhere", "flatnonzero", "where", "unique", "unique_all", "bincount"]
)
def test_unknown_numbers_want_a_size(name):
    x = np.array([1, 0, 2])
    with pytest.raises(ConcretizationTypeError, match=r"(size|length)="):
        ft.jit(getattr(fnp, name))(x)
    with pytest.raises(ConcretizationTypeError, match=r"(size|length)="):
        ft.vmap(getattr(np, name))(x[None])
    ft.grad(lambda v: (getattr(fnp, name)(x), v)[1])(1.0)


def test_mapped():
    x = RANDOM.integers(0, 2, (4, 5))
    got = ft.vmap(lambda x: fnp.flatnonzero(x, size=5, fill_value=9))(x)
    want = [[*np.flatnonzero(r), *[9] * (5 - np.count_nonzero(r))] for r in x]
    np.testing.assert_array_equal(got, want)


def test_extract_and_compress(same):
    x = RANDOM.normal(size=(3, 4))
    same("extract", x > 0, x)
    same("extract", [1, 0, 2], [1, 2, 3])
    same("compress", [True, False, True], x, axis=0)
    same("compress", [True, False], x, axis=1)
    same("compress", [0, 1, 1], x)
    same("compress", [0, 0, 0, 0, 1], x, axis=1)
    same("compress", [0, 0, 0, 0, 0], x, axis=1)
    same("compress", [[True]], x)
    same("compress", [True], x, axis=5)
    method = ft.jit(lambda x: x.compress(np.array([True, False, True]), axis=0))
    np.testing.assert_array_equal(method(x), x[[0, 2]])


def test_extract_of_a_size():
    x = np.array([1.0, -2.0, 3.0, -4.0])

    def positive(x):
        return fnp.extract(x > 0, x, size=3, fill_value=9.0)

    np.testing.assert_array_equal(ft.jit(positive)(x), [1, 3, 9])
    np.testing.assert_array_equal(ft.jit(ft.grad(lambda x: (positive(x) ** 2).sum()))(x), [2, 0, 6, 0])
    rows = ft.jit(lambda m: fnp.compress(m, np.eye(3), 1, size=2))(np.array([False, True, False]))
    np.testing.assert_array_equal(rows, [[0, 0], [1, 0], [0, 0]])


def test_eager_derivatives_see_numbers():
    def f(x):
        return fnp.sum(x[fnp.nonzero(x > 1)] ** 2) + fnp.sum(np.extract(x < 0, x))

    np.testing.assert_array_equal(ft.grad(f)(np.array([2.0, -1.0, 0.5])), [4, 1, 0])


def test_one_argument_where():
    x = np.array([0, 1, 1])
    np.testing.assert_array_equal(ft.jit(lambda x: fnp.where(x, size=2)[0])(x), [1, 2])
    with pytest.raises(ArgumentValueError, match="both"):
        fnp.where(x, x)
