"""``functrans.numpy.fft`` against NumPy's: values, dtypes, errors, derivatives, under transformations."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.arrays.array import Array
from functrans.errors import FunctransError, ImmutableArrayError
from functrans.testing import check

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
REAL = ("rfft", "ihfft", "rfftn", "rfft2")
NORMS = (None, "backward", "ortho", "forward")


def numbers(*shape, kind="f", seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=shape)
    return x + 1j * random.normal(size=shape) if kind == "c" else x


def kinds_of(name):
    return "f" if name in REAL else "fc"


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 4, 5, 9])
@pytest.mark.parametrize("name", ONE)
def test_one_axis(same, name, n, norm):
    for kind in kinds_of(name):
        same(f"fft.{name}", numbers(6, kind=kind), n, norm=norm)
        same(f"fft.{name}", numbers(5, 2, 3, kind=kind), n, 1, norm)
        same(f"fft.{name}", numbers(5, 3, kind=kind), n, -2, norm)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("s", "axes"),
    [
        (None, None),
        (None, (0, 2)),
        (None, (-1, 0, 1)),
        ((3, 5), (1, 2)),
        ((2, 7, 3), (0, 1, 2)),
        ((-1, 4), (2, 0)),
        ((4, -1), (2, 0)),
        (None, (1,)),
        (None, (1, 1)),
        ((3, 4), (1, 1)),
        ((3, 2, 4), (0, 2, 0)),
    ],
)
@pytest.mark.parametrize("name", MANY)
def test_several_axes(same, name, s, axes, norm):
    if name.endswith("2") and axes is None:
        axes = (-2, -1)
    for kind in kinds_of(name):
        same(f"fft.{name}", numbers(3, 4, 5, kind=kind), s, axes, norm)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ONE + MANY)
def test_dtypes_are_numpys(same, name, dtype):
    x = (numbers(4, 6) > 0).astype(dtype)
    same(f"fft.{name}", x)


@pytest.mark.parametrize("name", ONE + MANY)
def test_layouts_and_odd_inputs(same, name):
    x = numbers(6, 8)
    same(f"fft.{name}", x.T)
    same(f"fft.{name}", x[::-1, ::2])
    same(f"fft.{name}", np.broadcast_to(x[0], (3, 8)))
    same(f"fft.{name}", np.ones((2, 2)))
    same(f"fft.{name}", [[1, 2, 3], [4, 5, 6]])
    same(f"fft.{name}", np.array([[np.nan, 1.0], [np.inf, 0.0]]))
    same(f"fft.{name}", np.zeros((0, 4)), *(() if name in ONE else (None, (1,))))


@pytest.mark.parametrize("name", ONE)
def test_errors_of_one_axis(same, name):
    x = numbers(3, 4)
    assert same(f"fft.{name}", x, 0) is None
    assert same(f"fft.{name}", x, -2) is None
    assert same(f"fft.{name}", x, 2.5) is None
    assert same(f"fft.{name}", x, None, 2) is None
    assert same(f"fft.{name}", x, norm="none") is None
    assert same(f"fft.{name}", np.zeros((3, 0))) is None
    assert same(f"fft.{name}", 1.0) is None
    assert same(f"fft.{name}", np.ones(3), None, 1.5) is None


@pytest.mark.parametrize("name", MANY)
def test_errors_of_several_axes(same, name):
    x = numbers(3, 4)
    assert same(f"fft.{name}", x, (2,), (0, 1)) is None
    assert same(f"fft.{name}", x, (2, 0), (0, 1)) is None
    assert same(f"fft.{name}", x, None, (0, 2)) is None
    assert same(f"fft.{name}", x, None, 1) is None
    assert same(f"fft.{name}", x, 2, (0, 1)) is None
    assert same(f"fft.{name}", x, None, (0, 1), "none") is None


@pytest.mark.parametrize("name", REAL)
def test_complex_numbers_are_refused_where_real_ones_are_wanted(name):
    with pytest.raises(TypeError, match=f"{name}: expected real numbers, got complex128"):
        getattr(fnp.fft, name)(np.ones((2, 2), complex))


@pytest.mark.parametrize("name", ONE + MANY)
def test_out_is_refused(name):
    with pytest.raises(ImmutableArrayError, match=rf"{name}\(..., out=x\)"):
        getattr(fnp.fft, name)(np.ones((2, 2)), out=np.ones((2, 2), complex))


def test_no_axes():
    x = np.arange(3.0)
    found = fnp.fft.fftn(x, axes=())
    np.testing.assert_array_equal(found, np.fft.fftn(x, axes=()))
    x[0] = 9.0
    assert found[0] == 0.0
    with pytest.raises(FunctransError, match="at least one axis"):
        fnp.fft.rfftn(x, axes=())


# --- frequencies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1.0, 0.1, 3, np.float32(0.5)])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name, n, d):
    found = getattr(fnp.fft, name)(n, d)
    expected = getattr(np.fft, name)(n, float(d))
    assert type(found) is Array
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-6 if isinstance(d, np.float32) else 1e-15)
    np.testing.assert_allclose(ft.jit(lambda d: getattr(fnp.fft, name)(n, d))(d), found, rtol=1e-6)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_by_the_array_api(name):
    f = getattr(fnp.fft, name)
    assert f(4, d=2.0, dtype=fnp.float32, device="cpu").dtype == np.float32
    for bad in (
        {"n": 0},
        {"n": 4, "device": "gpu"},
        {"n": 2.5},
        {"n": 4, "dtype": int},
        {"n": 4, "d": [1.0]},
    ):
        with pytest.raises(FunctransError):
            f(**bad)
    slope = ft.grad(lambda d: fnp.sum(f(4, d) ** 2))(2.0)
    np.testing.assert_allclose(slope, -2 * np.sum(getattr(np.fft, name)(4, 2.0) ** 2) / 2.0)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(same, name):
    for shape in ((5,), (4,), (3, 4), (0,)):
        same(f"fft.{name}", numbers(*shape))
    same(f"fft.{name}", numbers(3, 4, 5), 1)
    same(f"fft.{name}", numbers(3, 4, 5), (0, -1))
    same(f"fft.{name}", np.arange(5))
    assert getattr(fnp.fft, name)(2.0) == 2.0  # where NumPy fails
    assert same(f"fft.{name}", numbers(3), 1) is None
    check(getattr(fnp.fft, name), numbers(3, 4))


# --- derivatives and transformations ------------------------------------------------------------------------


@pytest.mark.wide(2)
@pytest.mark.parametrize("n", [4, 5, 7])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ONE)
def test_derivatives_of_one_axis(name, n, norm):
    for kind in kinds_of(name):
        x = numbers(5, kind=kind)
        check(lambda x: getattr(fnp.fft, name)(x, n, norm=norm), x, order=1)


@pytest.mark.parametrize("name", MANY)
def test_derivatives_of_several_axes(name):
    for kind in kinds_of(name):
        for shape in ((3, 4), (4, 3)):
            check(lambda x: getattr(fnp.fft, name)(x, axes=(0, 1)), numbers(*shape, kind=kind), order=1)


def test_a_power_spectrum_has_second_derivatives():
    def power(x):
        return fnp.sum(fnp.abs(fnp.fft.rfft(x * x)) ** 2)

    check(power, numbers(5))
    x = numbers(5)
    np.testing.assert_allclose(ft.jit(ft.hessian(power))(x), ft.hessian(power)(x), rtol=1e-10)


@pytest.mark.parametrize("name", ONE + MANY)
def test_jit_and_vmap(name):
    x = numbers(3, 4, 6)
    f, reference = getattr(fnp.fft, name), getattr(np.fft, name)
    expected = np.stack([reference(row) for row in x])
    for g in (ft.vmap(f), ft.jit(ft.vmap(f)), ft.vmap(ft.jit(f))):
        np.testing.assert_allclose(g(x), expected, atol=1e-13)
    last = ft.vmap(f, in_axes=2)(x)
    np.testing.assert_allclose(last, np.stack([reference(x[:, :, i]) for i in range(6)]), atol=1e-13)
    compiled = ft.jit(lambda x: 2.0 * f(x + 1.0))(x)
    np.testing.assert_allclose(compiled, 2.0 * reference(x + 1.0), atol=1e-12)


@pytest.mark.parametrize("name", [*ONE, *MANY, "fftshift", "ifftshift"])
def test_numpys_name_on_a_traced_value(name):
    x = numbers(4, 6)
    reference = getattr(np.fft, name)
    found = ft.jit(lambda x: reference(x))(x)
    assert type(found) is Array
    np.testing.assert_allclose(found, reference(x), atol=1e-13)


def test_convolution_by_transforms():
    a, b = numbers(7), numbers(4, seed=1)

    def convolved(a, b):
        n = a.size + b.size - 1
        return fnp.fft.irfft(fnp.fft.rfft(a, n) * fnp.fft.rfft(b, n), n)

    np.testing.assert_allclose(ft.jit(convolved)(a, b), np.convolve(a, b), atol=1e-13)
    check(convolved, a, b)


def test_lax_fft():
    x, z = numbers(2, 4, 6), numbers(2, 4, 4, kind="c")
    lax = ft.lax
    for lengths in ((6,), (4, 6)):
        axes = tuple(range(-len(lengths), 0))
        for kind in ("fft", "IFFT", lax.FftType.RFFT):
            name = kind.name.lower() if isinstance(kind, lax.FftType) else kind.lower()
            expected = getattr(np.fft, f"{name}n")(x, axes=axes)
            np.testing.assert_allclose(lax.fft(x, kind, lengths), expected, atol=1e-13)
        expected = np.fft.irfftn(z, lengths, axes)
        np.testing.assert_allclose(lax.fft(z, "irfft", lengths), expected, atol=1e-13)
    for bad in (
        (x, "dct", (6,)),
        (x, "FFT", (5,)),
        (z, "RFFT", (4,)),
        (x, "FFT", ()),
        (np.arange(3), "FFT", (3,)),
    ):
        with pytest.raises(FunctransError):
            lax.fft(*bad)
