"""packbits, unpackbits, bitwise_count, frexp."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.testing import check

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, (3, 11))
BYTES = RNG.integers(0, 256, (2, 3), dtype=np.uint8)


@pytest.mark.parametrize("order", ["big", "little"])
def test_packing(same, order):
    for axis in (None, 0, 1, -1, 2):
        same("packbits", BITS, axis, order)
        same("packbits", BITS > 0, axis, order)
        for count in (None, 5, -3, 40, 0, -99):
            same("unpackbits", BYTES, axis, count, order)
    out = ft.jit(lambda x: np.unpackbits(np.packbits(x, 1, order), 1, 11, order))(BITS)
    np.testing.assert_array_equal(out, BITS)
    np.testing.assert_array_equal(
        ft.vmap(lambda x: np.packbits(x, bitorder=order))(BITS), np.packbits(BITS, 1, order)
    )


def test_packing_errors(same):
    same("packbits", [1.0])
    same("unpackbits", [1])
    same("packbits", BITS, bitorder="middle")
    same("packbits", np.zeros((0, 3), int))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_bitwise_count(same, dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 2, 3, info.max, info.min, info.max // 3], dtype)
    same("bitwise_count", x)
    np.testing.assert_array_equal(ft.jit(np.bitwise_count)(x), np.bitwise_count(x))


def test_frexp(same):
    tiny, largest = np.finfo(float).tiny, np.finfo(float).max
    x = np.array(
        [0.0, -0.0, 1.0, 0.5, -0.75, 3.0, 1e300, largest, tiny, tiny / 2, 5e-324, -1e-310, np.inf, np.nan]
    )
    x = np.concatenate(
        [x, 2.0 ** np.arange(-1074, 1024, 7), np.nextafter(2.0 ** np.arange(-900, 900, 37), 0)]
    )
    same("frexp", x)
    same("frexp", np.float32([1e-45, 0.3, 3e38, -7]))
    same("frexp", 3)
    same("frexp", 1j)
    mantissa, exponent = ft.jit(np.frexp)(x)
    np.testing.assert_array_equal(mantissa, np.frexp(x)[0])
    np.testing.assert_array_equal(exponent, np.frexp(x)[1])
    check(lambda x: fnp.frexp(x)[0], np.array([0.3, -5.0, 100.0]))
    with pytest.raises(errors.ImmutableArrayError):
        fnp.frexp(x, out=(x, x))
