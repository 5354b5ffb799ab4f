"""Our own matrix products, called as BLAS's are, beside NumPy's in higher precision."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.blas import has_own_products
from functrans.lowering.llvm.gemm import own_gemm
from functrans.lowering.llvm.symbols import address_of

DTYPES = {"s": np.float32, "d": np.float64}
#: Beside the sizes of tiles, of vectors, and of blocks.
SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65)
DEPTHS = (0, 1, 2, 16, 255, 256, 257, 600)


def gemm(letter, x, y, out, *, x_flat, y_flat, alpha=1.0, beta=0.0):
    """``out = alpha x @ y + beta out`` of row-major matrices that may stand in wider ones, or be transposed."""
    rows, columns = out.shape
    depth = x.shape[1] if x_flat else x.shape[0]
    lead = [a.strides[0] // a.itemsize for a in (y, x, out)]
    integers = [ctypes.c_int(i) for i in (columns, rows, depth, *[max(n, 1) for n in lead])]
    m, n, k, ldy, ldx, ldo = map(ctypes.byref, integers)
    factors = np.array([alpha, beta], DTYPES[letter])
    at = [ctypes.c_void_p(a.ctypes.data) for a in (factors, factors[1:], x, y, out)]
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(own_gemm(letter))
    y_letter, x_letter = (ctypes.c_char_p(b"N" if flat else b"T") for flat in (y_flat, x_flat))
    names = [ctypes.cast(a, ctypes.c_void_p) for a in (y_letter, x_letter)]
    call(*names, m, n, k, at[0], at[3], ldy, at[2], ldx, at[1], at[4], ldo)


def inside_of_nan(rng, shape, dtype):
    """A matrix of numbers with NaN around it."""
    whole = np.full((shape[0] + 2, shape[1] + 5), np.nan, dtype)
    whole[1:-1, 2:-3] = rng.normal(size=shape)
    return whole[1:-1, 2:-3]


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from("sd"),
    st.tuples(st.sampled_from((*SIZES, 300)), st.sampled_from(SIZES), st.sampled_from(DEPTHS)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(((1.0, 0.0), (1.0, 1.0), (-1.0, 1.0), (2.0, 0.5))),
)
def test_products_are_numpys(letter, extents, x_flat, y_flat, factors):
    rows, columns, depth = extents
    alpha, beta = factors
    rng = np.random.default_rng(0)
    x = inside_of_nan(rng, (rows, depth) if x_flat else (depth, rows), DTYPES[letter])
    y = inside_of_nan(rng, (depth, columns) if y_flat else (columns, depth), DTYPES[letter])
    out = inside_of_nan(rng, (rows, columns), DTYPES[letter])
    if not beta:
        out[...] = np.nan
    wide = [a.astype(np.longdouble) for a in (x if x_flat else x.T, y if y_flat else y.T)]
    expected = alpha * (wide[0] @ wide[1]) + (beta * out.astype(np.longdouble) if beta else 0)
    size = abs(alpha) * (abs(wide[0]) @ abs(wide[1])) + (beta * abs(out) if beta else 0)
    gemm(letter, x, y, out, x_flat=x_flat, y_flat=y_flat, alpha=alpha, beta=beta)
    # the bound of any order of the sum (N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 3.5)
    assert np.all(abs(out - expected) <= (depth + 2) * np.finfo(DTYPES[letter]).eps * size)
    around = out.base.copy()
    around[1:-1, 2:-3] = np.nan
    assert np.all(np.isnan(around)), "written beside the result"


@pytest.mark.parametrize("letter", "sd")
def test_the_sum_of_an_element_does_not_depend_on_its_position(letter):
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=s).astype(DTYPES[letter]) for s in ((37, 500), (500, 53)))
    whole, part = np.empty((37, 53), x.dtype), np.empty((3, 5), x.dtype)
    gemm(letter, x, y, whole, x_flat=True, y_flat=True)
    gemm(
        letter,
        np.ascontiguousarray(x[20:23]),
        np.ascontiguousarray(y[:, 40:45].T),
        part,
        x_flat=True,
        y_flat=False,
    )
    np.testing.assert_array_equal(part, whole[20:23, 40:45])


@pytest.mark.parametrize("letter", "sd")
def test_infinities_and_nan_stay_in_their_rows_and_columns(letter):
    x, y = np.ones((20, 40), DTYPES[letter]), np.ones((40, 35), DTYPES[letter])
    x[3, 7], y[9, 33] = np.inf, np.nan
    out = np.empty((20, 35), x.dtype)
    gemm(letter, x, y, out, x_flat=True, y_flat=True)
    expected = np.full((20, 35), 40.0)
    expected[3], expected[:, 33] = np.inf, np.nan
    np.testing.assert_array_equal(out, expected)


@pytest.mark.skipif(not has_own_products("d"), reason="BLAS is used on this processor")
def test_kernels_call_them():
    x = np.random.default_rng(2).normal(size=(40, 50))
    np.testing.assert_allclose(ft.jit(lambda x: fnp.matmul(x, x.T))(x), x @ x.T, rtol=1e-13, atol=1e-13)
    assert address_of("functrans.dgemm") == own_gemm("d")
