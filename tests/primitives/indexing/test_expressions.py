"""Index expressions and ``.at``: thousands of random ones against NumPy, and the errors."""

import random

import numpy as np
import pytest

from functrans.arrays.array import Array, wrap
from functrans.errors import (
    ArgumentValueError,
    DtypeError,
    IndexOutOfBoundsError,
    InvalidIndexError,
    ShapeError,
)
from functrans.primitives.indexing.expressions import getitem

UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}


def random_slice(rng, n):
    bounds = [None, *range(-n - 2, n + 3)]
    return slice(rng.choice(bounds), rng.choice(bounds), rng.choice([None, 1, 2, 3, -1, -2]))


def random_array(rng, n, common):
    shape = tuple(rng.choice([1, k]) for k in common[rng.randint(0, len(common)) :])
    return np.random.default_rng(rng.randrange(1 << 30)).integers(-n, n, shape)


def random_index(rng, shape):
    """An index expression of any kind that NumPy takes, now and then one that it does not."""
    entries, d, ellipsis = [], 0, False
    common = rng.choice([(2,), (3, 2), (1,), ()])
    while d < len(shape) and rng.random() < 0.9:
        kind, n = rng.random(), shape[d]
        if kind < 0.2:
            entries.append(rng.randrange(-n, n))
        elif kind < 0.5:
            entries.append(random_slice(rng, n))
        elif kind < 0.6:
            entries.append(None)
        elif kind < 0.7 and not ellipsis:
            ellipsis = True
            entries.append(Ellipsis)
            d += rng.choice([0, 1])
            continue
        elif kind < 0.75:
            entries.append(rng.choice([True, False]))
        elif kind < 0.77:
            entries.append(np.random.default_rng(rng.randrange(1 << 30)).random(n) < 0.5)
        else:
            i = random_array(rng, n, common)
            entries.append(i.tolist() if kind < 0.85 else i)
        d += entries[-1] is not None and not isinstance(entries[-1], bool)
    return entries[0] if entries and rng.random() < 0.2 else tuple(entries)


def random_case(seed):
    rng = random.Random(seed)
    shape = tuple(rng.choice([1, 2, 3, 4]) for _ in range(rng.randint(0, 4)))
    x = np.random.default_rng(seed).uniform(0.5, 2, shape)
    return rng, x, random_index(rng, shape)


@pytest.mark.parametrize("block", range(4))
def test_getitem_is_numpys(block):
    for seed in range(block * 1000, block * 1000 + 1000):
        _, x, index = random_case(seed)
        try:
            expected = x[index]
        except IndexError:
            with pytest.raises(IndexError):
                getitem(x, index)
            continue
        got = getitem(x, index)
        assert got.shape == np.shape(expected), index
        np.testing.assert_array_equal(got, expected, err_msg=str(index))


@pytest.mark.filterwarnings(
    "error:Out of bound index:DeprecationWarning"
)  # before NumPy 2.3, of empty arrays
@pytest.mark.parametrize("method", ["set", *UFUNCS])
def test_at_is_numpys_assignment(method):
    for seed in range(600):
        rng, x, index = random_case(seed)
        try:
            shape = np.shape(x[index])
        except (IndexError, DeprecationWarning):
            continue
        shape = tuple(rng.choice([1, n]) if rng.random() < 0.2 else n for n in shape)[rng.choice([0, 0, 1]) :]
        v = np.random.default_rng(seed + 1).uniform(0.5, 2, shape)
        expected = x.copy()
        if method == "set":
            expected[index] = v
        else:
            UFUNCS[method].at(expected, index, np.broadcast_to(v, np.shape(x[index])))
        before = x.copy()
        got = getattr(wrap(x).at[index], method)(v)
        assert type(got) is Array
        np.testing.assert_allclose(got, expected, err_msg=str((x.shape, index)))
        np.testing.assert_array_equal(x, before)


def test_out_of_bounds():
    x = np.zeros((2, 3))
    for index in (2, -3, (0, 3), (slice(None), -4)):
        with pytest.raises(IndexOutOfBoundsError, match="out of bounds for axis"):
            getitem(x, index)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 1 with size 3"):
        getitem(x, (slice(None), np.array([0, 5])))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (
            (0, 0, 0),
            r"too many indices for array: array is 2-dimensional \(shape \(2, 3\)\), but 3 were indexed",
        ),
        (1.0, "only integers, slices"),
        ("a", "only integers, slices"),
        (np.array([0.0]), "dtype float64"),
        ((Ellipsis, Ellipsis), "single ellipsis"),
        (slice(None, None, 0), "step cannot be zero"),
        (([0, 1], [0, 1, 2]), r"broadcast together with shapes \(2,\) \(3,\)"),
        (np.array([True, False, True]), "size of axis is 2 but size of corresponding boolean axis is 3"),
    ],
)
def test_what_is_no_index(index, message):
    with pytest.raises(InvalidIndexError, match=message) as caught:
        getitem(np.zeros((2, 3)), index)
    assert "getitem(np.zeros((2, 3)), index)" in str(caught.value)


def test_modes_of_at():
    x = wrap(np.array([10.0, 20.0, 30.0]))
    i = np.array([0, 5, -1, -7])
    np.testing.assert_array_equal(x.at[i].get(mode="clip"), [10, 30, 30, 10])
    np.testing.assert_array_equal(x.at[i].get(mode="wrap"), [10, 30, 30, 30])
    np.testing.assert_array_equal(x.at[i].get(mode="fill"), [10, np.nan, 30, np.nan])
    np.testing.assert_array_equal(x.at[i].get(mode="fill", fill_value=-1), [10, -1, 30, -1])
    np.testing.assert_array_equal(x.at[i].get(mode="promise_in_bounds"), [10, 30, 30, 10])
    np.testing.assert_array_equal(x.at[i].set(1.0, mode="drop"), [1, 20, 1])
    np.testing.assert_array_equal(x.at[i].add(1.0, mode="clip"), [12, 20, 32])
    np.testing.assert_array_equal(x.at[7].get(mode="fill", fill_value=0), 0)
    np.testing.assert_array_equal(x.at[7].set(1.0, mode="drop"), x)
    with pytest.raises(IndexOutOfBoundsError):
        x.at[i].get()
    with pytest.raises(ArgumentValueError, match="mode must be one of"):
        x.at[i].get(mode="nearest")


def test_apply():
    x = wrap(np.array([1.0, 4.0, 9.0]))
    np.testing.assert_array_equal(x.at[1:].apply(np.sqrt), [1, 2, 3])


def test_values_are_cast_as_numpy_casts():
    x = wrap(np.zeros(3, np.int32))
    assert x.at[0].set(2.7).dtype == np.int32
    np.testing.assert_array_equal(x.at[0].set(2.7), [2, 0, 0])
    with pytest.raises(DtypeError, match=r"dtype int32: with the value 1.5 the result is float64"):
        x.at[0].add(1.5)
    with pytest.raises(OverflowError):
        wrap(np.zeros(3, np.uint8)).at[0].set(300)
    with pytest.raises(ShapeError, match=r"shape \(2,\) do not broadcast to shape \(3,\)"):
        x.at[:].set([1, 2])


def test_the_result_does_not_share_memory_with_the_values():
    v = np.ones(3)
    y = wrap(np.zeros(3)).at[:].set(v)
    v[:] = 7
    np.testing.assert_array_equal(y, 1)
