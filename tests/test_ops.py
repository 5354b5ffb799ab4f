"""Segments: modes, buckets, empty segments, booleans, errors."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, ops
from functrans.errors import ArgumentValueError, ConcretizationTypeError, DtypeError, ShapeError

IDS = np.array([0, 3, -1, 1, 3, 7])
X = np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (None, [2, 7, 0, 14]),
        ("drop", [2, 7, 0, 14]),
        (lax.GatherScatterMode.FILL_OR_DROP, [2, 7, 0, 14]),
        ("clip", [7, 7, 0, 27]),
        ("wrap", [2, 7, 0, 32]),
    ],
)
def test_modes(mode, expected):
    for bucket in (None, 1, 4, 100):
        np.testing.assert_array_equal(ops.segment_sum(X, IDS, 4, mode=mode, bucket_size=bucket), expected)
    np.testing.assert_array_equal(ft.jit(lambda i: ops.segment_sum(X, i, 4, mode=mode))(IDS), expected)


def test_empty_segments():
    kept = np.abs(IDS)
    for dtype in (np.float32, np.int8, np.uint16):
        for f, ufunc in ((ops.segment_max, np.maximum), (ops.segment_min, np.minimum)):
            out = f(X.astype(dtype), kept, 9)
            empty = out[2]  # absorbs nothing
            assert out.dtype == dtype
            assert (ufunc(empty, X.astype(dtype)) == X.astype(dtype)).all()
    assert ops.segment_sum(np.ones((0, 2)), np.zeros(0, int)).shape == (0, 2)
    np.testing.assert_array_equal(ops.segment_prod(np.ones((0, 2)), np.zeros(0, int), 1), [[1.0, 1.0]])
    np.testing.assert_array_equal(ops.segment_max(np.array([True, False, False]), [0, 0, 2]), [1, 0, 0])
    np.testing.assert_array_equal(ops.segment_min(np.array([True, False, False]), [0, 0, 2]), [0, 1, 0])


def test_derivatives_with_zeros_and_ties():
    f = lambda x: ops.segment_prod(x, [0, 0, 1], 2)
    np.testing.assert_array_equal(ft.jacrev(f)(np.array([0.0, 3.0, 0.0])), [[3.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    g = lambda x: fnp.sum(ops.segment_max(x, [0, 0, 1], 2))
    np.testing.assert_array_equal(ft.grad(g)(np.array([2.0, 2.0, 5.0])), [0.5, 0.5, 1.0])
    h = ft.grad(lambda x: fnp.sum(ops.segment_sum(x, IDS, 4, bucket_size=2) ** 2))
    np.testing.assert_array_equal(h(X), [4, 28, 0, 14, 28, 0])


def test_mapped_segments():
    ids = np.stack([np.arange(6) % 2, np.arange(6) % 3])
    got = ft.jit(ft.vmap(lambda i: ops.segment_sum(X, i, 3)))(ids)
    np.testing.assert_array_equal(got, [np.bincount(i, X, 3) for i in ids])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ops.segment_sum(X, X), DtypeError, "segment_ids must be integers, got dtype float64"),
        (lambda: ops.segment_sum(X, [0, 1]), ShapeError, r"\(6,\) and \(2,\)"),
        (lambda: ops.segment_sum(X, IDS, -1), ArgumentValueError, "num_segments must not be negative"),
        (
            lambda: ops.segment_sum(X, IDS, 4, bucket_size=0),
            ArgumentValueError,
            "bucket_size must be positive",
        ),
        (lambda: ops.segment_sum(X, IDS, 4, mode="raise"), IndexError, "index 7"),
        (lambda: ops.segment_max(X * 1j, IDS), DtypeError, "no order"),
        (lambda: ft.jit(ops.segment_sum)(X, IDS), ConcretizationTypeError, "num_segments="),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
