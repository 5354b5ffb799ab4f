"""Concatenate, pad, rev, slice, dynamic slices and creation: every rule against NumPy."""

import numpy as np
import pytest

from functrans.core.aval import Aval
from functrans.errors import ArgumentValueError, DtypeError, ShapeError
from functrans.primitives.structure.dynamic import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.structure.shape import concatenate_p, eye, full, iota, iota_p, pad_p, rev_p, slice_p

DTYPES = [np.float64, np.float32, np.complex128, np.int32, np.uint8, bool]


def values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, shape) if np.dtype(dtype).kind in "iub" else rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def linear(dtype, *operands):
    return operands if np.dtype(dtype).kind in "fc" else ()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shapes", "dimension"),
    [([(2, 3), (2, 4)], 1), ([(0, 3), (2, 3), (1, 3)], 0), ([(3,)], 0), ([(2, 1, 2), (2, 3, 2)], 1)],
)
def test_concatenate(check, dtype, shapes, dimension):
    xs = [values(s, dtype, i) for i, s in enumerate(shapes)]
    every = tuple(range(len(xs)))
    out = check(concatenate_p, *xs, linear=linear(dtype, every, (0,)), dimension=dimension)
    np.testing.assert_array_equal(out, np.concatenate(xs, dimension))


def test_concatenate_of_other_shapes_is_refused():
    f8 = np.dtype(float)
    with pytest.raises(ShapeError, match=r"\(2, 3\), \(3, 4\) must agree on all axes except axis 1"):
        concatenate_p.abstract(Aval((2, 3), f8), Aval((3, 4), f8), dimension=1)
    with pytest.raises(DtypeError, match="float64, int64"):
        concatenate_p.abstract(Aval((2,), f8), Aval((2,), np.dtype(int)), dimension=0)


def padded(x, value, config):
    """Padding by its definition: write every element to its place, leave out what falls outside."""
    extents = [lo + hi + n + max(n - 1, 0) * i for n, (lo, hi, i) in zip(x.shape, config)]
    out = np.full(extents, value, x.dtype)
    for index in np.ndindex(x.shape):
        place = tuple(lo + j * (i + 1) for j, (lo, _, i) in zip(index, config))
        if all(0 <= p < n for p, n in zip(place, extents)):
            out[place] = x[index]
    return out


CONFIGS = [
    ((1, 2, 0), (0, 0, 0)),
    ((-1, 2, 1), (0, -2, 0)),
    ((-2, -2, 3), (1, 1, 2)),
    ((0, 0, 0), (0, 0, 0)),
    ((-3, 5, 0), (2, -2, 1)),
    ((-5, 4, 1), (-1, -3, 0)),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int32])
@pytest.mark.parametrize("config", CONFIGS)
def test_pad(check, dtype, config):
    x, value = values((3, 4), dtype), values((), dtype, 1)
    out = check(pad_p, x, value, linear=linear(dtype, (0, 1), (0,), (1,)), padding_config=config)
    np.testing.assert_array_equal(out, padded(x, value, config))


def test_pad_of_nothing_and_of_nan(check):
    check(pad_p, np.zeros((0, 2)), np.float64(3), padding_config=((2, 1, 4), (0, 1, 0)))
    out = pad_p.bind(np.ones(2), np.float64(np.nan), padding_config=((1, 0, 0),))
    np.testing.assert_array_equal(out, [np.nan, 1, 1])
    with pytest.raises(ShapeError, match="crops more elements"):
        pad_p.abstract(Aval((2,), np.dtype(float)), Aval((), np.dtype(float)), padding_config=((-2, -1, 0),))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rev_and_slice(check, dtype):
    x = values((5, 6), dtype)
    np.testing.assert_array_equal(
        check(rev_p, x, linear=linear(dtype, (0,)), dimensions=(0, 1)), x[::-1, ::-1]
    )
    np.testing.assert_array_equal(
        check(rev_p, x.T[::-1], linear=linear(dtype, (0,)), dimensions=(1,)), x.T[::-1, ::-1]
    )
    for start, limit, strides in (
        ((1, 0), (4, 6), (2, 5)),
        ((2, 0), (2, 6), (1, 1)),
        ((0, 1), (5, 6), (1, 3)),
    ):
        params = {"start_indices": start, "limit_indices": limit, "strides": strides}
        out = check(slice_p, x, linear=linear(dtype, (0,)), **params)
        np.testing.assert_array_equal(out, x[tuple(map(slice, start, limit, strides))])


def test_slice_out_of_bounds_is_refused():
    with pytest.raises(ArgumentValueError, match=r"0 <= start <= limit"):
        slice_p.abstract(Aval((3,), np.dtype(float)), start_indices=(1,), limit_indices=(4,), strides=(1,))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.int32, bool])
@pytest.mark.parametrize("start", [(2, -4), (9, 1), (0, 0)])
@pytest.mark.parametrize("sizes", [(3, 2), (5, 6), (5, 2), (1, 0)])
def test_dynamic_slices_are_clamped(check, dtype, start, sizes):
    x = values((5, 6), dtype)
    starts = (np.int64(start[0]), np.int32(start[1]))
    begin = [min(max(s, 0), n - m) for s, n, m in zip(start, x.shape, sizes)]
    window = tuple(slice(b, b + m) for b, m in zip(begin, sizes))

    def lanes(operand, value, n):
        return value + n if value.ndim == 0 else np.roll(value, n)

    out = check(dynamic_slice_p, x, *starts, linear=linear(dtype, (0,)), lanes=lanes, slice_sizes=sizes)
    np.testing.assert_array_equal(out, x[window])
    update = values(sizes, dtype, 1)
    out = check(
        dynamic_update_slice_p, x, update, *starts, linear=linear(dtype, (0, 1), (0,), (1,)), lanes=lanes
    )
    expected = x.copy()
    expected[window] = update
    np.testing.assert_array_equal(out, expected)


def test_dynamic_slice_refuses_what_does_not_fit():
    x, i = Aval((3,), np.dtype(float)), Aval((), np.dtype(int))
    with pytest.raises(ShapeError, match="must be within the shape"):
        dynamic_slice_p.abstract(x, i, slice_sizes=(4,))
    with pytest.raises(DtypeError, match="must be integers"):
        dynamic_slice_p.abstract(x, Aval((), np.dtype(float)), slice_sizes=(2,))


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.uint8, np.complex128])
def test_iota(check, dtype):
    out = check(iota_p, batch=False, dtype=np.dtype(dtype), shape=(300, 2), dimension=0)
    np.testing.assert_array_equal(out, np.indices((300, 2))[0].astype(dtype))


def test_full_and_eye():
    np.testing.assert_array_equal(full((2, 3), 7, np.dtype(np.int8)), np.full((2, 3), 7, np.int8))
    for k in (-4, -1, 0, 2, 5):
        np.testing.assert_array_equal(eye(3, 4, k, np.dtype(float)), np.eye(3, 4, k))
    assert iota((2, 0), 1).shape == (2, 0)
