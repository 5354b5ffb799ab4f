"""take, diagonals, triangles: NumPy's functions, compared with NumPy."""

from array import array
from collections import deque

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentError, IndexOutOfBoundsError, InvalidIndexError

RNG = np.random.default_rng(0)
CUBE = RNG.standard_normal((2, 3, 4))
ARRAYS = [
    CUBE[0, 0],
    CUBE[0],
    CUBE,
    RNG.integers(-5, 5, (3, 4)).astype(np.int8),
    np.zeros((0, 3)),
    np.float64(2),
    True,
]


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_take(same, mode):
    for x in ARRAYS:
        for i in ([0, 1], [[0, -1]], 0, [], [-7, 7], 100):
            same("take", x, i, mode=mode)
            same("take", x, i, axis=0, mode=mode)
            if np.size(x):  # NumPy does not look at the indices where nothing is read
                same("take", x, i, axis=-1, mode=mode)


def test_take_fills():
    np.testing.assert_array_equal(fnp.take(np.arange(3.0), [5, 0], mode="fill"), [np.nan, 0])


def test_take_along_axis(same):
    x = CUBE[0]
    same("take_along_axis", x, np.argsort(x, 1), 1)
    same("take_along_axis", x, np.argmax(x, 0)[None], 0)
    same("take_along_axis", x, np.array([0, 3]), None)
    same("take_along_axis", CUBE, np.zeros((1, 1, 2), int), -1)
    same("take_along_axis", CUBE, np.zeros((1, 2), int), -1)
    same("take_along_axis", x, np.full((3, 1), 9), 1)


@pytest.mark.parametrize("k", range(-4, 6))
def test_diagonals_and_triangles(same, k):
    for x in ARRAYS:
        for name in ("diag", "diagonal", "diagflat", "trace"):
            same(name, x, k)
        if np.ndim(x):
            same("tril", x, k)
            same("triu", x, k)
    same("diagonal", CUBE, k, 2, 0)
    same("trace", CUBE, k, 1, 2)


def test_dtypes_of_trace(same):
    x = np.ones((3, 3))
    for dtype in (np.int8, np.uint16, bool, np.float32, np.complex64):
        same("trace", x.astype(dtype))
    same("trace", x.astype(np.int32), dtype=np.float32)


def test_messages():
    with pytest.raises(IndexOutOfBoundsError, match="index 4 is out of bounds for axis 0 with size 3"):
        fnp.take(np.zeros(3), [0, 4])
    with pytest.raises(ArgumentError, match="indices must be integers, got dtype float64"):
        fnp.take(np.zeros(3), [0.5])


class Whole:
    """An integer."""

    def __index__(self):
        return 2


class Made:
    """What NumPy makes an array of."""

    def __array__(self, dtype=None, copy=None):
        return np.array([0, 2, 2])


class Counted:
    """A sequence."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return [1, 3][i]


def odd_indices():
    """Everything that NumPy takes for an index and is no array, list or integer."""
    pd = pytest.importorskip("pandas")
    mask = np.array([True, False, True, False, True])
    yield from (
        range(1, 4),
        Whole(),
        Made(),
        Counted(),
        deque([1, 2]),
        array("l", [1, 0]),
        bytearray(b"\x01"),
    )
    yield from (
        memoryview(np.array([1, 2])),
        memoryview(mask),
        pd.Series(mask),
        pd.Series([1, 2]),
        pd.Index([0, 3]),
    )
    yield from (pd.Series([1, 2], dtype="int8"), pd.array([1, 2], dtype="Int64"), range(0))
    yield from (
        (pd.Series(mask), 1),
        (range(2), range(2)),
        (slice(1, 3), memoryview(np.array([1, 2]))),
        (None, Made()),
    )
    yield slice(Whole(), None)


def test_any_object_that_numpy_takes_for_an_index():
    x = np.arange(20.0).reshape(5, 4)
    for i in odd_indices():
        expected, written = x[i], x.copy()
        written[i] = -1.0
        read = (lambda x, i=i: x[i], lambda x, i=i: x.at[i].get())
        write = lambda x, i=i: x.at[i].set(-1.0)
        for transform in (lambda f: f, ft.jit, lambda f: lambda x: ft.jvp(f, (x,), (x,))[1]):
            for f in read:
                np.testing.assert_array_equal(transform(f)(fnp.asarray(x)), expected, str(i))
        for transform in (lambda f: f, ft.jit, lambda f: lambda x: ft.vmap(f)(np.stack([x, x]))[1]):
            np.testing.assert_array_equal(transform(write)(fnp.asarray(x)), written, str(i))
        if not isinstance(i, tuple | slice):
            found = ft.jit(lambda x, i=i: fnp.take(x, i, 0))(x)
            np.testing.assert_array_equal(found, np.take(x, i, 0), str(i))


@pytest.mark.parametrize(
    "wrong",
    [{1}, "a", b"a", 1.0, object(), deque(["a"]), range, array("d", [1.0])],
    ids=lambda x: type(x).__name__,
)
def test_objects_that_are_no_indices(wrong):
    with pytest.raises(InvalidIndexError, match="only integers, slices"):
        ft.jit(lambda x: x[wrong])(np.ones(3))
