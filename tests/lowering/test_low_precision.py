"""float16 and bfloat16 in kernels: how they are widened and rounded, bit for bit against NumPy and ml_dtypes."""

import platform

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core.dtypes import FLOAT16, FLOAT32, FLOAT64, is_low
from functrans.lowering.backend import Options
from functrans.lowering.loops import ir
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.check import verify
from functrans.lowering.run.compile import compile_kernel

try:
    import ml_dtypes

    LOW = [FLOAT16, np.dtype(ml_dtypes.bfloat16)]
except ImportError:
    LOW = [FLOAT16]

#: The first level has no instructions for float16.
LEVELS = ["native", "x86-64"] if platform.machine() in ("x86_64", "AMD64") else ["native"]
ALL = np.arange(1 << 16, dtype=np.uint16)
low = pytest.mark.parametrize("dtype", LOW, ids=str)
levels = pytest.mark.parametrize("cpu", LEVELS)


def converted(x, to, options, compute=lambda b, x: x):
    """``compute(x)`` as a kernel stores it into an array of another dtype."""
    b = StatementBuilder("convert")
    n = ir.Param(0, ir.INT64)
    source, target = b.buffer("x", x.dtype, (n,), "in"), b.buffer("y", to, (n,), "out")
    with b.loop(b.parameter(0, ir.INT64)) as i:
        b.store(target, (i,), compute(b, b.load(source, (i,))))
    kernel = b.finish()
    kernel.ints = 1
    verify(kernel)
    out = np.empty(x.shape, to)
    assert compile_kernel(kernel, options).run((x, out), (x.size,)) == 0
    return out


def bits(x):
    return x.view(f"u{x.dtype.itemsize}")


def assert_same_bits(a, b):
    """Equal bits, except that a signalling NaN may have become quiet."""
    different = bits(a) != bits(b)
    assert np.isnan(a[different]).all()
    assert np.isnan(b[different]).all()
    assert not (is_quiet(b) & different).any()


def is_quiet(x):
    fields = {FLOAT16: 9, FLOAT32: 22, FLOAT64: 51}
    return (bits(x) >> fields.get(x.dtype, 6)) & 1 == 1


def finite(dtype):
    """All finite numbers."""
    with np.errstate(invalid="ignore"):  # ml_dtypes raises the flag for a signalling NaN
        return ALL.view(dtype)[np.isfinite(ALL.view(dtype))]


def near_ties(dtype):
    """Every number, every number between two neighbours, and the float32 numbers just beside it; limits and NaNs."""
    numbers = np.unique(finite(dtype).astype(FLOAT64))
    ties = ((numbers[:-1] + numbers[1:]) / 2).astype(FLOAT32)
    up, down = np.nextafter(ties, FLOAT32.type(np.inf)), np.nextafter(ties, FLOAT32.type(-np.inf))
    limits = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        65519.996,
        65520.0,
        3.3895314e38,
        3.3961775e38,
        3.4e38,
        1e-45,
        1e-38,
    ]
    nans = np.array([0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0x7F800001, 0xFFA12345], np.uint32).view(FLOAT32)
    return np.concatenate([numbers.astype(FLOAT32), ties, up, down, np.array(limits, FLOAT32), nans])


@low
@levels
def test_every_value_is_widened_as_numpy_does(dtype, cpu):
    x = ALL.view(dtype)
    assert_same_bits(converted(x, FLOAT32, Options(cpu=cpu)), x.astype(FLOAT32))


@low
@levels
def test_every_value_is_copied_unchanged(dtype, cpu):
    x = ALL.view(dtype)
    np.testing.assert_array_equal(bits(converted(x, dtype, Options(cpu=cpu))), ALL)


@low
@levels
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.filterwarnings("ignore:invalid value")
def test_float32_is_rounded_to_nearest_even(dtype, cpu):
    anything = np.random.default_rng(0).integers(0, 1 << 32, 200_000, dtype=np.uint32).view(FLOAT32)
    for x in (near_ties(dtype), anything):
        y, expected = converted(x, dtype, Options(cpu=cpu)), x.astype(dtype)
        quiet = is_quiet(x) | ~np.isnan(x)
        np.testing.assert_array_equal(bits(y)[quiet], bits(expected)[quiet])
        assert np.isnan(y[~quiet]).all()


@low
@levels
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.filterwarnings("ignore:invalid value")
def test_float64_is_rounded_as_numpy_and_ml_dtypes_do(dtype, cpu):
    """NumPy rounds once: a float32 between would move numbers just beside a tie onto it. ml_dtypes has one between."""
    x = near_ties(dtype).astype(FLOAT64)
    rest = np.array([1e300, -1e300, 5e-324, 2.0**-25 * (1 + 2**-40)])
    x = np.concatenate([x, x * (1 + 1e-14), x * (1 - 1e-14), rest])
    y, expected = converted(x, dtype, Options(cpu=cpu), lambda b, x: b.cast(x, dtype)), x.astype(dtype)
    quiet = is_quiet(x) | ~np.isnan(x)
    np.testing.assert_array_equal(bits(y)[quiet], bits(expected)[quiet])


@low
def test_python_form_rounds_as_the_native_one(dtype):
    x = near_ties(dtype)[::97].copy()
    python, native = (
        converted(x, dtype, Options(backend=b), lambda b, x: x * 1.1) for b in ("python", "llvm")
    )
    np.testing.assert_array_equal(bits(python), bits(native))


@low
def test_arithmetic_is_that_of_float32_and_a_literal_is_rounded(dtype):
    x = finite(dtype)
    y = converted(x, dtype, Options(), lambda b, x: (x * x + b.const(0.1, dtype)) / 3.0)
    wide = x.astype(FLOAT32)
    exact = wide.astype(FLOAT64) ** 2 + FLOAT64.type(dtype.type(0.1))
    with np.errstate(over="ignore", invalid="ignore"):
        fused = exact.astype(FLOAT32) / FLOAT32.type(3)
        separate = (wide * wide + FLOAT32.type(dtype.type(0.1))) / FLOAT32.type(3)
        either = [v.astype(dtype) for v in (fused, separate)]
    assert ((bits(y) == bits(either[0])) | (bits(y) == bits(either[1]))).all()


@low
@pytest.mark.parametrize("other", ["b1", "i1", "u1", "i4", "i8", "u8", "c8", "c16"])
def test_casts_go_by_way_of_float32(dtype, other):
    other = np.dtype(other)
    rng = np.random.default_rng(1)
    x = (
        rng.integers(0, 100, 1000).astype(other)
        if other.kind in "biu"
        else rng.normal(size=1000).astype(other)
    )
    if other.itemsize >= 4 and other.kind in "iu":
        x[:500] = rng.integers(0, 1 << 31, 500)
    with np.errstate(over="ignore"):
        expected = (x.real if other.kind == "c" else x).astype(dtype)
    np.testing.assert_array_equal(
        bits(converted(x, dtype, Options(), lambda b, x: b.cast(x, dtype))), bits(expected)
    )
    y = (x.real if other.kind == "c" else x % 100).astype(dtype)
    back = converted(y, other, Options(), lambda b, x: b.cast(x, other))
    np.testing.assert_array_equal(back, y.astype(other))


@low
def test_no_register_is_low(dtype):
    """Kernel rules see float32 alone."""
    b = StatementBuilder("registers")
    x = b.buffer("x", dtype, (), "in")
    value = b.load(x, ())
    seen = [
        value,
        value * 2.0,
        b.const(1.5, dtype),
        b.cast(b.const(0.1, FLOAT64), dtype),
        b.call("exp", value),
    ]
    assert all(v.dtype == FLOAT32 for v in seen)
    assert is_low(b.narrowed(value, dtype).dtype)


def test_a_product_with_a_vector_reads_two_bytes():
    """No float32 copy of the matrix; as exact as a sum in float32, along any axes."""
    rng = np.random.default_rng(2)
    x, y, z = (rng.normal(size=shape).astype(FLOAT16) for shape in ((30, 40), (40,), (3, 30, 40)))

    def products(x, y, z):
        batched = lax.dot_general(z, x[:3], (((2,), (1,)), ((0,), (0,))))
        swapped = lax.dot_general(z, x.T, (((1, 2), (1, 0)), ((), ())))
        return x @ y, y @ x.T, y @ y, batched, swapped

    assert "gemm" not in ft.jit(products).lower(x, y, z).as_text("python")
    exact = products(*[ft.numpy.asarray(a.astype(FLOAT64)) for a in (x, y, z)])
    for found, expected in zip(ft.jit(products)(x, y, z), exact, strict=True):
        assert found.dtype == FLOAT16
        np.testing.assert_allclose(found.astype(FLOAT64), expected, rtol=5e-4, atol=1e-5)
