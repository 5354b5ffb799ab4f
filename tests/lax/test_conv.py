"""Convolutions against a loop over all elements, and SciPy; layouts, groups, words for padding, errors."""

from itertools import product

import numpy as np
import pytest
import scipy.signal

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.testing import check

RNG = np.random.default_rng(0)


def by_hand(x, w, strides, padding, base, dilation, features=1, batches=1):
    """The definition: every product of an element and a tap goes to its place."""
    (n, _, *spatial), (o, i, *window) = x.shape, w.shape
    room = [(m - 1) * b + 1 + lo + hi for m, b, (lo, hi) in zip(spatial, base, padding)]
    places = [max((r - (k - 1) * d - 1) // s + 1, 0) for r, k, d, s in zip(room, window, dilation, strides)]
    out = np.zeros((n // batches, o, *places), np.result_type(x, w))
    for b, p, q, k in product(range(n // batches), range(o), np.ndindex(*places), np.ndindex(*window)):
        at = [a * s + t * d - lo for a, s, t, d, (lo, _) in zip(q, strides, k, dilation, padding)]
        if any(a % e or not 0 <= a // e < m for a, e, m in zip(at, base, spatial)):
            continue
        at = [a // e for a, e in zip(at, base)]
        example = b + p // (o // batches) * (n // batches)
        first = p // (o // features) * i
        out[(b, p, *q)] += (x[(example, slice(first, first + i), *at)] * w[(p, slice(None), *k)]).sum()
    return out


def random_case(rng):
    rank = int(rng.integers(0, 4))
    groups = int(rng.integers(1, 3))
    features, batches = (groups, 1) if rng.integers(2) else (1, groups)
    n, i, o = (int(m) for m in rng.integers(1, 3, 3))
    spatial, window = rng.integers(1, 6, rank).tolist(), rng.integers(1, 4, rank).tolist()
    x = rng.standard_normal((n * batches, i * features, *spatial))
    w = rng.standard_normal((o * groups, i, *window))
    strides, base, dilation = (rng.integers(1, 3, rank).tolist() for _ in range(3))
    padding = [tuple(pair) for pair in rng.integers(-1, 3, (rank, 2)).tolist()]
    return x, w, (strides, padding, base, dilation), features, batches


@pytest.mark.parametrize("seed", range(40))
def test_against_the_definition(seed):
    x, w, params, features, batches = random_case(np.random.default_rng(seed))
    expected = by_hand(x, w, *params, features, batches)
    strides, padding, base, dilation = params

    def f(x, w):
        return lax.conv_general_dilated(
            x, w, strides, padding, base, dilation, feature_group_count=features, batch_group_count=batches
        )

    np.testing.assert_allclose(f(x, w), expected, atol=1e-12)
    if seed % 4 == 0:
        np.testing.assert_allclose(ft.jit(f)(x, w), expected, atol=1e-12)
        check(f, x, w, order=2 if seed % 8 == 0 and expected.size < 60 else 1)
    if seed % 4 == 1:
        many = np.stack([x, 2 * x]), np.stack([w, -w])
        for axes in ((0, None), (None, 0), (0, 0)):
            given = [a[0] if d is None else a for a, d in zip(many, axes)]
            mapped = ft.vmap(f, axes)(*given)
            for lane in range(2):
                xi, wi = (a if d is None else a[lane] for a, d in zip(given, axes))
                np.testing.assert_allclose(mapped[lane], f(xi, wi), atol=1e-12)


LAYOUTS = [
    ("NHWC", "HWIO", "NHWC"),
    ("NCHW", "OIHW", "NHWC"),
    ("CHWN", "IWHO", "WNCH"),
    ((3, 0, 1, 2), (0, 3, 1, 2), (1, 3, 0, 2)),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layouts(layout):
    x, w = RNG.standard_normal((2, 3, 6, 5)), RNG.standard_normal((4, 3, 3, 2))
    axes = lax.conv_dimension_numbers(x.shape, w.shape, layout)
    strides, padding = (1, 2), ((1, 0), (0, 2))
    expected = by_hand(x, w, strides, padding, (1, 1), (1, 1))
    back = [np.argsort(spec) for spec in axes]
    got = lax.conv_general_dilated(
        x.transpose(back[0]), w.transpose(back[1]), strides, padding, dimension_numbers=layout
    )
    np.testing.assert_allclose(got, expected.transpose(back[2]), atol=1e-12)
    again = lax.conv_general_dilated(
        x.transpose(back[0]), w.transpose(back[1]), strides, padding, dimension_numbers=axes
    )
    np.testing.assert_array_equal(got, again)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, np.complex64, np.complex128])
def test_dtypes(dtype):
    x, w = (
        (9 * RNG.standard_normal((2, 3, 9))).astype(dtype),
        (9 * RNG.standard_normal((4, 3, 4))).astype(dtype),
    )
    expected = by_hand(x, w, (1,), ((0, 0),), (1,), (1,))
    for f in (lax.conv, ft.jit(lax.conv, static_argnums=(2, 3))):
        got = f(x, w, (1,), "VALID")
        assert got.dtype == dtype
        np.testing.assert_allclose(got, expected.astype(dtype), rtol=2e-5, atol=1e-4)
    wide = lax.conv(
        x.real.astype(np.float32), w.real.astype(np.float32), (1,), "VALID", preferred_element_type=float
    )
    assert wide.dtype == np.float64


def test_against_scipy():
    x, w = RNG.standard_normal((30, 41)), RNG.standard_normal((5, 4))
    for word, mode in (("VALID", "valid"), ("SAME", None)):
        got = ft.jit(lax.conv, static_argnums=(2, 3))(x[None, None], w[None, None], (1, 1), word)[0, 0]
        expected = scipy.signal.correlate2d(x, w, "full")[2:-2, 2:-1] if mode is None else None
        if mode:
            expected = scipy.signal.correlate2d(x, w, mode)
        np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize(("n", "k", "s"), [(7, 3, 1), (7, 3, 2), (8, 3, 2), (5, 2, 3), (6, 4, 2), (4, 1, 3)])
def test_words_for_padding(n, k, s):
    x, w = RNG.standard_normal((1, 1, n)), RNG.standard_normal((1, 1, k))
    for word, low_first in (("SAME", 0), ("SAME_LOWER", 1), ("same", 0)):
        total = max((-(-n // s) - 1) * s + k - n, 0)
        low = (total + low_first) // 2
        got = lax.conv(x, w, (s,), word)
        assert got.shape == (1, 1, -(-n // s))
        expected = by_hand(x, w, (s,), ((low, total - low),), (1,), (1,))
        np.testing.assert_allclose(got, expected, atol=1e-13)
        assert lax.padtype_to_pads((n,), (k,), (s,), word) == [(low, total - low)]
    assert lax.conv(x, w, (s,), "VALID").shape == (1, 1, max((n - k) // s + 1, 0))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("n", "k", "s"), [(7, 3, 1), (8, 3, 2), (6, 4, 2), (4, 2, 3)])
def test_transposed(padding, n, k, s):
    """With `transpose_kernel` it is the transpose of a convolution, where the shapes tell."""
    w = RNG.standard_normal((k, 2, 3))
    layout = ("NHC", "HIO", "NHC")

    def conv(y):
        return lax.conv_general_dilated(y, w, (s,), padding, dimension_numbers=layout)

    x = RNG.standard_normal((2, n, 3))
    got = lax.conv_transpose(x, w, (s,), padding, transpose_kernel=True)
    assert got.shape == (2, n * s if padding == "SAME" else n * s + max(k - s, 0), 2)
    assert conv(got).shape == x.shape
    (expected,) = ft.linear_transpose(conv, got)(x)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_transposed_padding_in_numbers():
    x, w = RNG.standard_normal((1, 5, 1)), RNG.standard_normal((3, 1, 1))
    plain = lax.conv_transpose(x, w, (2,), [(1, 2)])
    expected = by_hand(x.transpose(0, 2, 1), w.transpose(2, 1, 0), (1,), ((1, 2),), (2,), (1,))
    np.testing.assert_allclose(plain, expected.transpose(0, 2, 1), atol=1e-13)
    consistent = lax.conv_transpose(x, w, (2,), [(1, 0)], use_consistent_padding=True)
    np.testing.assert_array_equal(consistent, plain)


SIZES = [  # chosen so that every way of computing it is taken
    ((4, 3, 12, 12), (5, 3, 3, 3), (1, 1)),
    ((2, 20, 9, 9), (30, 20, 3, 3), (2, 2)),
    ((2, 20, 8, 8), (30, 20, 1, 1), (1, 1)),
    ((2, 24, 6, 6), (24, 24, 3, 3), (1, 1)),
    ((2, 2, 30, 30), (3, 2, 7, 7), (1, 1)),
    ((1, 2, 300), (2, 2, 50), (1,)),
]


@pytest.mark.parametrize(("x", "w", "strides"), SIZES)
def test_kernels_of_all_sizes(x, w, strides):
    """Values and both gradients in kernels, against SciPy's correlation, channel by channel."""
    x, w = RNG.standard_normal(x), RNG.standard_normal(w)
    pick = tuple(slice(None, None, s) for s in strides)

    def valid(a, b):
        return scipy.signal.correlate(a, b, "valid", method="direct")[pick]

    expected = np.array([[sum(map(valid, xi, wo)) for wo in w] for xi in x])
    f = ft.jit(lambda x, w: lax.conv(x, w, strides, "VALID"))
    np.testing.assert_allclose(f(x, w), expected, atol=1e-10)
    ct = RNG.standard_normal(expected.shape)
    eager = ft.vjp(lambda x, w: lax.conv(x, w, strides, "VALID"), x, w)[1](ct)
    compiled = ft.jit(ft.grad(lambda x, w: fnp.sum(lax.conv(x, w, strides, "VALID") * ct), (0, 1)))(x, w)
    for a, b, name in zip(eager, compiled, "xw"):
        np.testing.assert_allclose(a, b, atol=1e-10, err_msg=name)
    # The derivative is the adjoint: <J (dx, dw), ct> = <(dx, dw), J^T ct>.
    dx, dw = RNG.standard_normal(x.shape), RNG.standard_normal(w.shape)
    forward = np.vdot(f(dx, w) + f(x, dw), ct)
    np.testing.assert_allclose(forward, np.vdot(dx, compiled[0]) + np.vdot(dw, compiled[1]), rtol=1e-9)


def test_errors():
    x, w = np.ones((2, 4, 5)), np.ones((3, 4, 2))
    with pytest.raises(ft.errors.ShapeError, match="feature_group_count"):
        lax.conv(x, np.ones((3, 2, 2)), (1,), "VALID")
    with pytest.raises(ft.errors.ShapeError, match="same number of axes"):
        lax.conv(x, np.ones((3, 4)), (1,), "VALID")
    with pytest.raises(ft.errors.ArgumentValueError, match="window_strides"):
        lax.conv(x, w, (1, 1), "VALID")
    with pytest.raises(ft.errors.ArgumentValueError, match="'SAME', 'SAME_LOWER', 'VALID'"):
        lax.conv(x, w, (1,), "FULL")
    with pytest.raises(ft.errors.ArgumentError, match="pairs of integers"):
        lax.conv(x, w, (1,), [1])
    with pytest.raises(ft.errors.ArgumentValueError, match="conv_transpose"):
        lax.conv_with_general_padding(x, w, (1,), "SAME", (2,), None)
    with pytest.raises(ft.errors.DtypeError, match="float32"):
        lax.conv(x.astype(np.float32), w, (1,), "VALID")
    with pytest.raises(ft.errors.DtypeError, match="bool"):
        lax.conv(x > 0, w > 0, (1,), "VALID")
    with pytest.raises(ft.errors.ArgumentValueError, match="one of them 1"):
        lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=2, batch_group_count=2)
    for layout in (("NCH", "OIH"), "NCH", 3):
        with pytest.raises(ft.errors.ArgumentError, match="three strings"):
            lax.conv_dimension_numbers(x.shape, w.shape, layout)
    for layout in (
        ("NCW", "OIH", "NCH"),
        ("NHH", "OIH", "NCH"),
        ((0, 1, 1), (0, 1, 2), (0, 1, 2)),
        ("NC",) * 3,
    ):
        with pytest.raises(ft.errors.ArgumentValueError):
            lax.conv_dimension_numbers(x.shape, w.shape, layout)
    with pytest.raises(ft.errors.ArgumentValueError, match="SAME"):
        lax.conv_transpose(np.ones((1, 4, 2)), np.ones((2, 2, 2)), (1,), "LOWER")
