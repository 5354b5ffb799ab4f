"""Spectra, filters, trends and integrals of samples against SciPy, over options, shapes and dtypes."""

import itertools

import numpy as np
import pytest
import scipy.integrate
import scipy.signal

import functrans as ft
from functrans.scipy import fft, integrate, signal

RNG = np.random.default_rng(0)
SHAPES = [((100,), -1), ((3, 70), 1), ((64, 2), 0), ((5,), -1)]
DTYPES = [float, np.float32, complex, np.int16]
OPTIONS = [
    {},
    {"nperseg": 15, "noverlap": 4},
    {"nperseg": 16, "nfft": 32, "window": "hamming"},
    {"window": ("kaiser", 4.0), "nperseg": 8, "fs": 3},
    {"window": np.arange(1.0, 4.0), "nperseg": 3},
    {"return_onesided": False, "nperseg": 16},
    {"detrend": "linear", "nperseg": 16},
    {"detrend": lambda s: s * 2.0, "nperseg": 16},
    {"nperseg": 1},
]
pytestmark = pytest.mark.filterwarnings("ignore")


def same(got, expected):
    assert len(got) == len(expected)
    for g, e in zip(got, expected):
        assert (g.shape, g.dtype) == (e.shape, e.dtype)
        slack = 2e-5 if e.dtype in (np.float32, np.complex64) else 1e-11
        np.testing.assert_allclose(g, e, rtol=slack, atol=slack * np.max(np.abs(e), initial=0))


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_spectra(dtype, shape, axis):
    x, y = ((10 * RNG.standard_normal(shape)).astype(dtype) for _ in range(2))
    for options in OPTIONS:
        same(signal.stft(x, axis=axis, **options), scipy.signal.stft(x, axis=axis, **options))
        for more in ({}, {"scaling": "spectrum", "average": "median"}):
            same(
                signal.welch(x, axis=axis, **options, **more),
                scipy.signal.welch(x, axis=axis, **options, **more),
            )
            same(
                signal.csd(x, y, axis=axis, **options, **more),
                scipy.signal.csd(x, y, axis=axis, **options, **more),
            )
    for nfft in (None, 3, 128):
        same(signal.periodogram(x, nfft=nfft, axis=axis), scipy.signal.periodogram(x, nfft=nfft, axis=axis))


@pytest.mark.parametrize("boundary", ["even", "odd", "constant", "zeros", None])
def test_boundaries(boundary):
    x = RNG.standard_normal((2, 33))
    for padded, scaling in itertools.product((True, False), ("spectrum", "psd")):
        options = {"boundary": boundary, "padded": padded, "scaling": scaling, "nperseg": 10}
        same(signal.stft(x, **options), scipy.signal.stft(x, **options))


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"nperseg": 9, "noverlap": 6}, {"nfft": 12}, {"scaling": "psd", "fs": 3.0}]
)
def test_inverse(options, onesided):
    x, options = RNG.standard_normal(40), {"nperseg": 8, **options}
    z = scipy.signal.stft(x, return_onesided=onesided, **options)[2]
    for more in ({}, {"boundary": False}):
        got = signal.istft(z, input_onesided=onesided, **options, **more)
        same(got, scipy.signal.istft(z, input_onesided=onesided, **options, **more))
    np.testing.assert_allclose(signal.istft(z, input_onesided=onesided, **options)[1][:40], x, atol=1e-12)


def test_a_window_that_does_not_cover_the_signal():
    with pytest.warns(UserWarning, match="do not cover"):
        signal.istft(np.ones((5, 4)), noverlap=0, boundary=False)


def test_gradients_of_a_window_and_a_rate():
    x = RNG.standard_normal(20)

    def power(window, fs):
        return ft.numpy.sum(signal.welch(x, fs, window)[1])

    w = RNG.uniform(0.5, 1, 6)
    ft.testing.check(power, w, 2.0, order=1, laws=["jvp_is_slope", "vjp_is_adjoint"])


@pytest.mark.parametrize(
    ("a", "b"), [((7,), (3,)), ((3,), (7,)), ((5, 4), (2, 3)), ((3, 4, 2), (3, 2, 2)), ((4, 1), (4, 5))]
)
def test_convolutions_by_transforms(a, b):
    for mode, dtype in itertools.product(("full", "same", "valid"), (float, np.float32, complex)):
        x, y = RNG.standard_normal(a).astype(dtype), RNG.standard_normal(b).astype(dtype)
        for axes in (None, 0, -1) if len(a) > 1 else (None,):
            try:
                expected = scipy.signal.fftconvolve(x, y, mode, axes)
            except ValueError:
                with pytest.raises(ft.errors.ShapeError):
                    signal.fftconvolve(x, y, mode, axes)
            else:
                same([signal.fftconvolve(x, y, mode, axes)], [expected])


def test_large_convolutions_choose_transforms():
    x, y = RNG.standard_normal(20_000), RNG.standard_normal(5_000)
    for name in ("convolve", "correlate"):
        got = getattr(signal, name)(x, y, "same")
        direct = getattr(signal, name)(x[:6000], y, "same", "direct")
        same([got[:3000]], [getattr(scipy.signal, name)(x, y, "same")[:3000]])
        same([getattr(signal, name)(x[:6000], y, "same", "fft")], [np.asarray(direct)])
    whole = signal.convolve(np.arange(5), np.arange(3), method="fft")
    same([whole], [np.convolve(np.arange(5), np.arange(3))])


@pytest.mark.parametrize(
    ("b", "a"), [([1.0], [1.0, -0.5]), ([1.0, 2, 3], [2.0, 0.5]), ([1.0, 2.0], [1.0]), ([1j], [1.0, 0.2])]
)
def test_filters(b, a):
    for shape, axis in [((30,), -1), ((3, 8), 1), ((8, 3), 0)]:
        x = RNG.standard_normal(shape)
        same([signal.lfilter(b, a, x, axis)], [scipy.signal.lfilter(b, a, x, axis)])
        state = list(shape)
        state[axis] = max(len(a), len(b)) - 1
        zi = RNG.standard_normal(state)
        same(signal.lfilter(b, a, x, axis, zi), scipy.signal.lfilter(b, a, x, axis, zi))


@pytest.mark.parametrize("options", [{}, {"type": "constant"}, {"bp": [3, 11]}])
def test_trends(options):
    for shape, axis in [((20,), -1), ((4, 19), 1), ((18, 3), 0)]:
        x = RNG.standard_normal(shape)
        same([signal.detrend(x, axis, **options)], [scipy.signal.detrend(x, axis, **options)])


@pytest.mark.parametrize("n", range(1, 8))
def test_integrals_of_samples(n):
    y, x = RNG.standard_normal((3, n)), np.cumsum(RNG.uniform(0.1, 1, n))
    for options in ({}, {"dx": 0.5}, {"x": x}, {"x": np.repeat(x, 2)[:n]}):
        same([integrate.simpson(y, **options)], [scipy.integrate.simpson(y, **options)])
        got = integrate.cumulative_trapezoid(y, initial=0, **options)
        same([got], [scipy.integrate.cumulative_trapezoid(y, initial=0, **options)])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: signal.welch(np.ones(9), nperseg=0), ft.errors.ArgumentValueError, "nperseg"),
        (lambda: signal.welch(np.ones(9), fs=-1.0), ft.errors.ArgumentValueError, "fs must be positive"),
        (lambda: signal.stft(np.ones(9), nperseg=4, noverlap=4), ft.errors.ArgumentValueError, "noverlap"),
        (lambda: signal.stft(np.ones(9), boundary="none"), ft.errors.ArgumentValueError, "boundary"),
        (lambda: signal.csd(np.ones(9), np.ones(9), average="mode"), ft.errors.ArgumentValueError, "average"),
        (lambda: signal.istft(np.ones(9)), ft.errors.ShapeError, "two axes"),
        (lambda: signal.lfilter([1.0], [0.0, 1.0], np.ones(3)), ft.errors.ArgumentValueError, r"a\[0\]"),
        (lambda: signal.lfilter([1.0], [1.0, 1.0], np.ones(3), zi=[1.0, 2.0]), ft.errors.ShapeError, "zi"),
        (
            lambda: signal.convolve(np.ones(3), np.ones(3), method="slow"),
            ft.errors.ArgumentValueError,
            "method",
        ),
        (lambda: signal.detrend(np.ones(3), bp=9), ft.errors.ArgumentValueError, "bp"),
        (lambda: fft.dct(np.ones(3), type=5), ft.errors.ArgumentValueError, "type must be"),
        (lambda: fft.dct(np.ones(1), type=1), ft.errors.ArgumentValueError, "at least 2"),
        (lambda: fft.dctn(np.ones((2, 2)), axes=(0, 0)), ft.errors.AxisError, "once|repeated|duplicate"),
        (lambda: integrate.simpson(np.ones(0)), ft.errors.ArgumentValueError, "at least one sample"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
