"""sort and its like, searchsorted and digitize, against NumPy: arrays with ties, NaN and signed zeros; derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import (
    ArgumentValueError,
    AxisError,
    ImmutableArrayError,
    ShapeError,
    TracerIntegerConversionError,
)
from functrans.testing import check

RANDOM = np.random.default_rng(5)
DTYPES = [
    np.bool_,
    np.int8,
    np.uint16,
    np.int32,
    np.int64,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]


@st.composite
def with_ties(draw, max_dims=3):
    """Arrays of few different values, among them NaN, infinities and both zeros."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(arrays.array_shapes(min_dims=1, max_dims=max_dims, min_side=0, max_side=40))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    pool = np.array([0.0, -0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf, 7.0])
    with np.errstate(invalid="ignore"):
        if dtype.kind in "fc":
            x = random.choice(pool, shape).astype(dtype)
            return x + (1j * random.choice(pool[:6], shape)).astype(dtype) if dtype.kind == "c" else x
        return random.integers(0, 5, shape).astype(dtype)


def identical(got, expected):
    expected = np.asarray(expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(got), expected)


def bits(x):
    """The signs of zeros too."""
    x = np.asarray(x)
    parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
    return [np.signbit(p[p == 0]).tolist() for p in parts if p.dtype.kind == "f"]


@pytest.mark.slow
@settings(max_examples=40)
@given(with_ties(), st.booleans())
def test_sort_and_argsort_are_numpys_stable_ones(x, last):
    axis = -1 if last else 0
    expected = np.sort(x, axis=axis, kind="stable")
    order = np.argsort(x, axis=axis, kind="stable")
    for f in (fnp.sort, ft.jit(lambda x: fnp.sort(x, axis=axis))):
        got = f(x, axis=axis) if f is fnp.sort else f(x)
        identical(got, expected)
        assert bits(got) == bits(expected)
    identical(fnp.argsort(x, axis=axis), order)
    identical(ft.jit(lambda x: fnp.argsort(x, axis=axis))(x), order)


@pytest.mark.wide(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 33, 127, 128, 129, 700])
def test_rows_of_every_length(dtype, n):
    x = (RANDOM.integers(-100, 100, (2, n)) * 1.5).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[:, :: max(1, n // 3)] = np.nan
    identical(ft.jit(fnp.sort)(x), np.sort(x, axis=-1))
    identical(ft.jit(fnp.argsort)(x), np.argsort(x, axis=-1, kind="stable"))
    wide = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
    if wide:
        x = RANDOM.integers(wide.min, wide.max, n, dtype=dtype, endpoint=True)
        identical(ft.jit(fnp.sort)(x), np.sort(x))


@settings(max_examples=25)
@given(with_ties(max_dims=2), st.integers(0, 2**31))
def test_lexsort(x, seed):
    other = np.random.default_rng(seed).integers(0, 3, x.shape)
    identical(fnp.lexsort((other, x)), np.lexsort((other, x)))
    identical(ft.jit(lambda a, b: fnp.lexsort((a, b)))(x, other), np.lexsort((x, other)))


def test_options(same):
    x = RANDOM.normal(size=(3, 4))
    for name in ("sort", "argsort"):
        same(name, x, axis=None)
        same(name, x, axis=0, kind="stable")
        same(name, x, stable=True)
        same(name, x, axis=2)
        same(name, x, kind="quick")
        same(name, x, kind="foo")
        same(name, x, kind="stable", stable=True)
        same(name, x, order="field")
    same("sort", 3.0)
    same("sort", 3.0, axis=None)
    same("argsort", 3.0)
    same("sort", [[3, 1], [2, 5]])
    same("lexsort", ())
    same("lexsort", ([1, 2], [1]))
    same("lexsort", np.ones((2, 3)))
    for x in ([2 - 1j, 1.0], np.float32([2, 1]), np.int8([2, 1]), [2, 1], [True, False]):
        same("sort_complex", x)


def test_descending():
    x = np.array([[2.0, 1.0, 2.0, np.nan], [0.0, -0.0, 5.0, 1.0]])
    for f in (fnp.argsort, ft.jit(fnp.argsort, static_argnames=("axis", "descending"))):
        np.testing.assert_array_equal(f(x, descending=True), [[3, 0, 2, 1], [2, 3, 0, 1]])
        np.testing.assert_array_equal(f(x, axis=0, descending=True), [[0, 0, 1, 0], [1, 1, 0, 1]])
    np.testing.assert_array_equal(fnp.sort(x, descending=True), np.sort(x)[:, ::-1])
    assert bits(fnp.sort(x, descending=True)) == [[False, True]]
    assert fnp.array(x).argsort().shape == x.shape


def test_partition():
    x = RANDOM.permutation(20).reshape(4, 5).astype(float)
    for axis, kth in ((-1, 2), (0, [1, -1]), (None, 7)):
        got, expected = fnp.partition(x, kth, axis), np.partition(x, kth, axis)
        d = 0 if axis is None else axis
        np.testing.assert_array_equal(np.take(got, kth, d), np.take(expected, kth, d))
        at = fnp.argpartition(x, kth, axis)
        source = x.reshape(-1) if axis is None else x
        np.testing.assert_array_equal(np.take_along_axis(source, np.asarray(at), d), got)
    with pytest.raises(ArgumentValueError, match="out of bounds"):
        fnp.partition(x, 5)
    with pytest.raises(ArgumentValueError, match="kind"):
        fnp.partition(x, 1, kind="sort")
    with pytest.raises(TracerIntegerConversionError):
        ft.jit(fnp.partition)(x, 1)


def test_derivatives():
    x = RANDOM.permutation(12).reshape(3, 4) * 0.37
    weights = RANDOM.normal(size=(3, 4))
    for axis in (0, 1):
        check(lambda x: fnp.sum(weights * fnp.sort(x, axis=axis) ** 3), x)  # noqa: B023
    check(lambda x: fnp.sum(fnp.sort(x, axis=None)[2:5] ** 2), x)
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sort(x)[1])(np.zeros(3)), [0, 1, 0])
    jitted = ft.jit(ft.grad(lambda x: fnp.sort(x)[-1] ** 2))
    np.testing.assert_array_equal(jitted(np.array([1.0, 3.0, 2.0])), [0, 6, 0])
    z = np.array([2 + 1j, 1 - 1j, 1 + 0j])
    _, t = ft.jvp(fnp.sort, (z,), (np.array([1.0, 2.0, 3.0]) + 0j,))
    np.testing.assert_array_equal(t, [2, 3, 1])


def test_mapped():
    x = RANDOM.normal(size=(5, 3, 4))
    for f in (fnp.sort, fnp.argsort, lambda x: fnp.sort(x, axis=0)):
        expected = np.stack([np.asarray(f(x[:, i])) for i in range(3)], 1)
        np.testing.assert_array_equal(ft.vmap(f, in_axes=1, out_axes=1)(x), expected)


def test_numpys_functions_and_methods_of_traced_values():
    x = np.array([3.0, 1.0, 2.0])
    f = ft.jit(
        lambda x: (np.sort(x), x.argsort(), np.argsort(x), np.sort(x).searchsorted(2.0), x.argpartition(1))
    )
    for got, expected in zip(f(x), (np.sort(x), [1, 2, 0], [1, 2, 0], 1, [1, 2, 0])):
        np.testing.assert_array_equal(got, expected)
    for method in ("sort", "partition"):
        with pytest.raises(ImmutableArrayError, match=rf"functrans\.numpy\.{method}|np\.{method}"):
            ft.jit(lambda x: getattr(x, method)(0))(x)  # noqa: B023
        with pytest.raises(ImmutableArrayError, match=rf"functrans\.numpy\.{method}|np\.{method}"):
            getattr(fnp.array(x), method)(0)
    assert type(fnp.array(x).argpartition(1)) is ft.Array


# --- search -----------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(with_ties(max_dims=1), with_ties(max_dims=2), st.sampled_from(["left", "right"]))
def test_searchsorted(a, v, side):
    a = np.sort(a)
    expected = np.searchsorted(a, v, side)
    identical(fnp.searchsorted(a, v, side), expected)
    identical(ft.jit(lambda a, v: fnp.searchsorted(a, v, side))(a, v), expected)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [np.int8, np.float64, np.complex64])
def test_searchsorted_of_every_length(side, dtype):
    """Each number of the array and those between; NaN, infinities, signed zeros."""
    for n in (0, 1, 2, 3, 6, 9, 64, 1000):
        a = (RANDOM.integers(-n, n + 1, n) // 2).astype(dtype)
        v = np.arange(-n - 1, n + 2).astype(dtype) / dtype(2) if a.dtype.kind in "fc" else a[::-1]
        if a.dtype.kind in "fc":
            special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], dtype)
            a[: n // 3] = RANDOM.choice(special, n // 3)
            v = np.concatenate([v, special])
        a = np.sort(a)
        got = ft.jit(lambda a, v: fnp.searchsorted(a, v, side))(a, v)
        identical(got, np.searchsorted(a, v, side))


def test_searchsorted_options(same):
    a = np.array([3.0, 1.0, 2.0])
    same("searchsorted", a, [0.5, 2.0], sorter=np.argsort(a))
    same("searchsorted", a, [0.5, 2.0], sorter=[0, 1])
    same("searchsorted", a, [0.5, 2.0], sorter=[0.0, 1.0, 2.0])
    same("searchsorted", a, 2.0, "middle")
    same("searchsorted", np.ones((2, 2)), 2.0)
    same("searchsorted", [1, 2, 3], 2.5)
    same("searchsorted", np.arange(1000), np.arange(-5, 1005))
    rows = np.sort(RANDOM.normal(size=(4, 6)))
    v = RANDOM.normal(size=(4, 3))
    for axes, want in (
        ((0, 0), [np.searchsorted(r, x) for r, x in zip(rows, v)]),
        ((0, None), [np.searchsorted(r, v) for r in rows]),
        ((None, 0), [np.searchsorted(rows[0], x) for x in v]),
    ):
        a, b = rows if axes[0] == 0 else rows[0], v
        np.testing.assert_array_equal(ft.vmap(fnp.searchsorted, in_axes=axes)(a, b), want)


def test_digitize(same):
    x = np.array([[0.2, 6.4], [3.0, np.nan]])
    bins = np.array([0.0, 1.0, 2.5, 3.0])
    for right in (False, True):
        for edges in (bins, bins[::-1], bins[:1], np.ones(3), bins[:0]):
            same("digitize", x, edges, right)
            want = np.digitize(x, edges, right)
            np.testing.assert_array_equal(ft.jit(lambda x, e: fnp.digitize(x, e, right))(x, edges), want)  # noqa: B023
    same("digitize", x, [1.0, 3.0, 2.0])
    same("digitize", x, bins[None])
    same("digitize", x + 0j, bins)


def test_errors_name_what_was_met():
    with pytest.raises(AxisError, match="sort: axis 3"):
        fnp.sort(np.ones((2, 2)), axis=3)
    with pytest.raises(ShapeError, match=r"lexsort.*\(2,\), \(3,\)"):
        fnp.lexsort((np.ones(2), np.ones(3)))
