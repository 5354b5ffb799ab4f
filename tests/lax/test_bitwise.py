"""Bits of integers and floats, small functions of functrans.lax, and special functions at their edges."""

import numpy as np
import pytest
import scipy.special as sp

import functrans as ft
from functrans import lax
from functrans.errors import ArgumentError, ArgumentValueError, DtypeError, NoRuleError, ShapeError

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def bits_of(x):
    """The bits of each number, the highest first."""
    raw = x.astype(x.dtype.newbyteorder(">")).view(np.uint8).reshape(len(x), -1)
    return np.unpackbits(raw, axis=1)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_counts_of_bits(dtype):
    info = np.iinfo(dtype)
    random = np.random.default_rng(0)
    x = random.integers(info.min, info.max, 60, dtype=dtype, endpoint=True)
    x = x >> random.integers(0, info.bits, 60).astype(dtype)
    x = np.concatenate([x, np.array([info.min, info.max, 0, 1], dtype)])
    bits = bits_of(x)
    first = np.where(bits.any(1), bits.argmax(1), info.bits)
    for f, expected in ((lax.population_count, bits.sum(1)), (lax.clz, first)):
        for g in (f, ft.jit(f)):
            assert g(x).dtype == dtype
            np.testing.assert_array_equal(g(x), expected.astype(dtype))


def test_half_precision_is_numpys():
    random = np.random.default_rng(1)
    x = random.standard_normal(2000).astype(np.float32) * np.float32(10.0) ** random.integers(
        -4, 5, 2000
    ).astype(np.float32)
    x = np.concatenate([x, np.float32([0, -0.0, np.inf, -np.inf, np.nan, 65519, 65520, 2049, 2051])])
    with np.errstate(over="ignore"):
        half = x.astype(np.float16).astype(np.float32)
    normal = np.abs(half) >= np.finfo(np.float16).tiny
    got = np.asarray(lax.reduce_precision(x, 5, 10))
    np.testing.assert_array_equal(got[normal | np.isnan(x)], half[normal | np.isnan(x)])
    assert not got[
        ~normal & ~np.isnan(x)
    ].any()  # zeros, where half precision has numbers below the normal ones
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
    np.testing.assert_array_equal(ft.jit(lambda x: lax.reduce_precision(x, 5, 10))(x), got)


def test_single_precision_is_numpys():
    x = np.random.default_rng(2).standard_normal(500)
    np.testing.assert_array_equal(lax.reduce_precision(x, 8, 23), x.astype(np.float32).astype(float))
    np.testing.assert_array_equal(lax.reduce_precision(x, 11, 52), x)
    z = x[:5] + 1j * x[5:10]
    np.testing.assert_array_equal(lax.reduce_precision(z, 8, 23), z.astype(np.complex64).astype(complex))
    assert ft.grad(lambda x: lax.reduce_precision(x, 5, 2) ** 2)(1.1) == 2 * lax.reduce_precision(1.1, 5, 2)


def test_bits_as_another_dtype():
    x = np.array([[1.0, -2.0], [0.5, np.inf]])
    np.testing.assert_array_equal(lax.bitcast_convert_type(x, np.int64), x.view(np.int64))
    bytes_ = lax.bitcast_convert_type(x, np.uint8)
    assert bytes_.shape == (2, 2, 8)
    np.testing.assert_array_equal(lax.bitcast_convert_type(bytes_, np.float64), x)
    np.testing.assert_array_equal(
        ft.jit(lambda x: lax.bitcast_convert_type(x, np.uint8))(x[:, ::-1]), bytes_[:, ::-1]
    )
    with pytest.raises(ShapeError, match="one float64 takes 8 elements of uint8"):
        lax.bitcast_convert_type(np.zeros(4, np.uint8), float)
    with pytest.raises(DtypeError, match="cannot read the bits of bool"):
        lax.bitcast_convert_type(np.zeros(4, bool), np.uint8)


def test_reduce_xor():
    x = np.random.default_rng(3).integers(0, 99, (3, 4))
    np.testing.assert_array_equal(lax.reduce_xor(x, (1,)), np.bitwise_xor.reduce(x, 1))
    np.testing.assert_array_equal(lax.reduce_xor(x > 50, (0, 1)), np.logical_xor.reduce(x > 50, None))
    with pytest.raises(DtypeError):
        lax.reduce_xor(np.ones(3), (0,))


def test_joining():
    x = np.arange(12.0).reshape(3, 4)
    for got, expected in zip(lax.split(x, (1, 0, 3), axis=1), np.split(x, [1, 1], axis=1)):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(lax.tile(x, (2, 3)), np.tile(x, (2, 3)))
    np.testing.assert_array_equal(lax.stack([x, x], -1), np.stack([x, x], -1))
    np.testing.assert_array_equal(np.stack(lax.unstack(x, 1)), x.T)
    assert lax.broadcast_to_rank(x, 4).shape == (1, 1, 3, 4)
    assert lax.optimization_barrier({"x": x, "n": 2})["n"] == 2
    with pytest.raises(ArgumentValueError, match="do not add up to 4"):
        lax.split(x, (1, 2), axis=1)
    with pytest.raises(ArgumentValueError, match="expected 2 repetitions"):
        lax.tile(x, (2,))
    with pytest.raises(ShapeError):
        lax.stack([x, x[0]])


def test_special_functions_at_their_edges():
    assert lax.erf_inv(1.0) == np.inf
    assert np.isnan(lax.erf_inv(1.5))
    assert ft.grad(lax.bessel_i1e)(0.0) == 0.5
    assert ft.grad(lambda x: lax.igamma(1.0, x))(0.0) == 1.0
    assert float(lax.zeta(2.0, 1.0)) == pytest.approx(sp.zeta(2.0), rel=1e-14)
    assert lax.polygamma(2.0, 0.5) == sp.polygamma(2, 0.5)
    assert lax.polygamma(0, 0.5) == sp.psi(0.5)


def test_derivatives_that_do_not_exist_are_refused():
    with pytest.raises(NoRuleError, match="no closed form"):
        ft.grad(lax.zeta)(1.5, 2.0)
    with pytest.raises(NoRuleError, match="derivative 4 of"):
        ft.grad(ft.grad(ft.grad(ft.grad(lax.igamma))))(1.5, 2.0)
    with pytest.raises(NoRuleError, match="in its parameters a and b"):
        ft.jit(ft.grad(ft.grad(lax.betainc, argnums=1)))(1.5, 2.0, 0.5)
    held = lambda q: lax.zeta(lax.stop_gradient(q), q)
    assert ft.grad(held)(2.0) == pytest.approx(-2 * sp.zeta(3.0, 2.0))
    with pytest.raises(ArgumentError):
        lax.polygamma(1.5, 1.0)
    with pytest.raises(ArgumentValueError):
        lax.polygamma(-1, 1.0)
    with pytest.raises(ArgumentValueError):
        lax.reduce_precision(1.0, 0, 3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_mulhi(dtype):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    ends = np.array([info.min, info.max, 0, 1, info.min, info.max], dtype)
    x = np.concatenate([rng.integers(info.min, info.max, 50, dtype, endpoint=True), ends])
    y = np.concatenate([rng.integers(info.min, info.max, 50, dtype, endpoint=True), ends[::-1]])
    expected = np.array([(int(a) * int(b)) >> info.bits for a, b in zip(x, y)], dtype)
    for f in (lax.mulhi, ft.jit(lax.mulhi)):
        np.testing.assert_array_equal(f(x, y), expected)
    with pytest.raises(DtypeError, match=r"lax\.mulhi: expected integers"):
        lax.mulhi(1.5, 2.5)
