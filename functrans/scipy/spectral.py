"""Spectra of signals, estimated from overlapping segments: stft, istft, csd, welch, periodogram."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..core import ArgumentError, ArgumentValueError, AxisError, ShapeError
from ..core.dtypes import real_dtype
from ..core.values import ArrayLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import finish, one_axis
from . import frames
from .filters import detrend as without_trend
from .frames import Segments

_BOUNDARIES: dict[str, dict[str, Any]] = {
    "even": {"mode": "reflect"},
    "odd": {"mode": "reflect", "reflect_type": "odd"},
    "constant": {"mode": "edge"},
    "zeros": {"mode": "constant"},
}


def _detrending(name: str, detrend: Any, axis: int) -> Callable[[Any], Any]:
    """What removes the trend of segments, whose elements are along the last axis."""
    if detrend is None or detrend is False or (isinstance(detrend, int) and detrend == 0):
        return lambda segments: segments
    if isinstance(detrend, str):
        return lambda segments: without_trend(segments, type=detrend)
    if callable(detrend):
        return lambda segments: fnp.moveaxis(detrend(fnp.moveaxis(segments, -1, axis)), axis, -1)
    raise ArgumentError(f"{name}: detrend must be 'constant', 'linear', False or a function, got {detrend!r}")


@checked
def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: ArrayLike = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Any, Any, Any]:
    """Short-time Fourier transform: the spectra of overlapping segments.

    Parameters
    ----------
    x : array_like, shape (..., n)
        Real or complex.
    fs : number
        The number of samples per unit of time.
    window : str, tuple or array_like, shape (nperseg,)
        What multiplies each segment: a name for `scipy.signal.get_window`, or real numbers, which may be traced.
    nperseg : int
        The length of a segment.
    noverlap : int, optional
        How many elements two segments have in common; by default half. Negative numbers leave gaps.
    nfft : int, optional
        The number of points of each transform, at least `nperseg`, which is the default.
    detrend : {False, 'constant', 'linear'} or callable
        What to remove from each segment, see `detrend`.
    return_onesided : bool
        Whether to leave out the negative frequencies of a real signal.
    boundary : {'zeros', 'even', 'odd', 'constant', None}
        How to extend the signal by half a segment at either end.
    padded : bool
        Whether to append zeros that complete the last segment.
    axis : int
    scaling : {'spectrum', 'psd'}

    Returns
    -------
    f : Array, shape (m,)
        The frequencies.
    t : Array, shape (k,)
        The times of the segments' centers.
    Zxx : Array, shape (..., m, k)
        The transforms: frequencies along `axis`, times along the last axis.

    Raises
    ------
    ArgumentValueError
        If an option is unknown, or the lengths do not fit together.
    AxisError
        If the axis is out of bounds.

    Notes
    -----
    Differentiable in `x`, in `fs`, and in a window that is an array. Single precision stays single.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.signal import stft
    >>> f, t, Z = stft(fnp.cos(fnp.pi * fnp.arange(8.0) / 2), nperseg=4)
    >>> f, t
    (Array([0.  , 0.25, 0.5 ]), Array([0., 2., 4., 6., 8.]))
    >>> abs(Z[:, 2]).round(3)
    Array([0.5, 0.5, 0.5])
    """
    name = "stft"
    x, fs = frames.signal_of(name, x), frames.rate(name, fs)
    d = one_axis(axis, x.ndim, name)
    if boundary is not None and boundary not in _BOUNDARIES:
        raise ArgumentValueError(
            f"{name}: boundary must be None or one of {', '.join(map(repr, _BOUNDARIES))}, got {boundary!r}"
        )
    if not x.size:
        return _nothing(x.shape, 3)
    cut = Segments.of(name, window, nperseg, noverlap, nfft, x.shape[d], nperseg)
    scale = frames.scale_of(name, cut, fs, scaling, "psd")
    x = fnp.moveaxis(x, d, -1)
    half = cut.size // 2
    if boundary is not None and half:
        if half > x.shape[-1] - 1 and boundary in ("even", "odd"):
            raise ArgumentValueError(
                f"{name}: boundary {boundary!r} extends by {half} elements, but the signal has {x.shape[-1]}"
            )
        x = fnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half)], **_BOUNDARIES[boundary])
    if padded:
        missing = (-(x.shape[-1] - cut.size) % cut.step) % cut.size
        x = fnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    onesided = return_onesided and x.dtype.kind != "c"
    out = frames.transforms(x, cut, _detrending(name, detrend, axis), onesided)
    out = out * fnp.astype(fnp.sqrt(scale), real_dtype(out.dtype))
    start = cut.size / 2 if boundary is None else 0.0
    time = (fnp.arange(out.shape[-2]) * cut.step + start) / fs
    return (
        frames.frequencies(cut.points, fs, onesided),
        time,
        fnp.moveaxis(fnp.swapaxes(out, -1, -2), -2, d),
    )


def _nothing(shape: tuple[int, ...], parts: int) -> Any:
    return tuple(fnp.zeros(shape) for _ in range(parts))


@checked
def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: ArrayLike = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Value, Value]:
    """The inverse of `stft`: the signal that is nearest to these transforms.

    Parameters
    ----------
    Zxx : array_like, shape (..., m, k)
    fs, window, noverlap, scaling
        As for `stft`.
    nperseg, nfft : int, optional
        As for `stft`; by default from the number of frequencies, assuming an even one.
    input_onesided : bool
        Whether there are only nonnegative frequencies.
    boundary : bool
        Whether `stft` extended the signal; the extension is removed.
    time_axis, freq_axis : int

    Returns
    -------
    t : Array, shape (n,)
        The times.
    x : Array, shape (..., n)
        The signal: real if `input_onesided`, else complex.

    Raises
    ------
    ArgumentValueError, AxisError, ShapeError
        If the lengths do not fit together, or the axes are one.

    Notes
    -----
    Segments are windowed again, added, and divided by the sum of the squares of the windows (Griffin and Lim, 1984).
    Where that sum is zero, the signal cannot be recovered, and a warning says so.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.signal import istft, stft
    >>> x = fnp.arange(8.0)
    >>> istft(stft(x, nperseg=4)[2])[1].round(12)
    Array([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    name = "istft"
    z, fs = finish(array_operand(Zxx, name)), frames.rate(name, fs)
    if z.ndim < 2:
        raise ShapeError(f"{name}: Zxx must have at least two axes, got shape {z.shape}")
    freq, time = one_axis(freq_axis, z.ndim, name), one_axis(time_axis, z.ndim, name)
    if freq == time:
        raise AxisError(f"{name}: time_axis and freq_axis must differ, both are {freq}")
    z = z.astype(np.result_type(z.dtype, np.complex64))
    z = fnp.moveaxis(z, (time, freq), (-2, -1))
    usual = 2 * (z.shape[-1] - 1) if input_onesided else z.shape[-1]
    if usual < 1:
        raise ShapeError(f"{name}: Zxx has {z.shape[-1]} frequencies along freq_axis; expected at least 2")
    size = usual if nperseg is None else nperseg
    if nfft is None:
        nfft = size if input_onesided and size == usual + 1 else usual
    cut = Segments.of(name, window, size, noverlap, nfft, size, size)
    inverse = fnp.fft.irfft if input_onesided else fnp.fft.ifft
    segments = inverse(z, cut.points)[..., : cut.size]
    real = real_dtype(z.dtype)
    taper = finish(cut.tapers(real))
    scale = fnp.astype(frames.scale_of(name, cut, fs, scaling, "psd") ** -0.5, real)
    x = cut.added(segments * (taper * scale))
    count, trimmed = z.shape[-2], cut.size // 2 if boundary else 0
    norm = cut.added(fnp.broadcast_to(taper * taper, (count, cut.size)))
    if not frames.covers(cut, count, trimmed):
        hint = "" if boundary else ", maybe because boundary=False"
        warnings.warn(
            f"{name}: the windows do not cover the signal, so it is not recovered{hint}", stacklevel=2
        )
    whole = slice(trimmed, x.shape[-1] - trimmed)
    x = x[..., whole] / fnp.where(norm[whole] > 1e-10, norm[whole], 1.0)
    return fnp.arange(x.shape[-1]) / fs, fnp.moveaxis(x, -1, time - (freq < time))


@checked
def csd(
    x: ArrayLike,
    y: ArrayLike,
    fs: ArrayLike = 1.0,
    window: ArrayLike = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Value, Value]:
    """The cross spectral density of two signals, by Welch's method.

    Parameters
    ----------
    x, y : array_like
        Zeros complete the shorter one; their other axes are broadcast. With None for `y`, or twice the same array, the
        result is the real spectrum of `x`.
    fs, window, noverlap, nfft, return_onesided, axis
        As for `stft`. Of complex signals, all frequencies are returned.
    nperseg : int, optional
        The length of a segment; by default 256, or the length of a window that is an array.
    detrend : {'constant', 'linear', False} or callable
        What to remove from each segment.
    scaling : {'density', 'spectrum'}
        Power per frequency, or power.
    average : {'mean', 'median'}
        How to combine the segments; the median is divided by its bias.

    Returns
    -------
    f : Array, shape (m,)
        The frequencies.
    Pxy : Array
        With `m` elements along `axis`: ``conj(X) * Y``, averaged.

    Raises
    ------
    ArgumentValueError, AxisError, ShapeError
        If an option is unknown, or lengths or shapes do not fit together.

    References
    ----------
    P. Welch, IEEE Trans. Audio Electroacoust. 15 (1967), 70-73.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.signal import csd
    >>> x = fnp.cos(fnp.pi * fnp.arange(16.0) / 2)
    >>> f, Pxy = csd(x, 2 * x, nperseg=4)
    >>> f[fnp.argmax(abs(Pxy))]
    Array(0.25)
    """
    return _spectrum(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )


@checked
def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: ArrayLike = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The power spectral density of a signal, averaged over segments; see `csd`.

    Returns
    -------
    f : Array, shape (m,)
        The frequencies.
    Pxx : Array
        Real, with `m` elements along `axis`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.signal import welch
    >>> f, Pxx = welch(fnp.cos(fnp.pi * fnp.arange(16.0) / 2), nperseg=8, scaling="spectrum")
    >>> f, Pxx.round(3)
    (Array([0.   , 0.125, 0.25 , 0.375, 0.5  ]), Array([0.   , 0.125, 0.5  , 0.125, 0.   ]))
    """
    return _spectrum(
        "welch",
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )


@checked
def periodogram(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: ArrayLike = "boxcar",
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[ArrayLike, ArrayLike]:
    """The power spectral density of a signal, of one segment: the signal itself; see `csd`.

    Examples
    --------
    >>> from functrans.scipy.signal import periodogram
    >>> periodogram([1.0, 0.0, -1.0, 0.0])
    (Array([0.  , 0.25, 0.5 ]), Array([0., 2., 0.]))
    """
    name = "periodogram"
    signal = frames.signal_of(name, x)
    d = one_axis(axis, signal.ndim, name)
    if not signal.size:
        return _nothing(signal.shape, 2)
    if nfft is not None and 0 < nfft < signal.shape[d]:
        signal = finish(ops.slice_along(ops.operand(signal, name), d, 0, nfft))
    n = signal.shape[d]
    window = "boxcar" if window is None else window
    return _spectrum(
        name, signal, None, fs, window, n, 0, nfft, detrend, return_onesided, scaling, axis, "mean"
    )


def _spectrum(
    name: str,
    x: ArrayLike,
    y: ArrayLike,
    fs: Any,
    window: ArrayLike,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    detrend: Any,
    return_onesided: bool,
    scaling: str,
    axis: int,
    average: str,
) -> tuple[Any, Any]:
    alone = y is None or y is x
    if average not in ("mean", "median"):
        raise ArgumentValueError(f"{name}: average must be 'mean' or 'median', got {average!r}")
    x, fs = frames.signal_of(name, x), frames.rate(name, fs)
    places = [one_axis(axis, x.ndim, name)]
    signals = [fnp.moveaxis(x, places[0], -1)]
    if not alone:
        y = frames.signal_of(name, y)
        places.append(one_axis(axis, y.ndim, name))
        signals = frames.in_one_dtype(signals[0], fnp.moveaxis(y, places[1], -1))
    outer = fnp.broadcast_shapes(*[s.shape[:-1] for s in signals])
    n = max(s.shape[-1] for s in signals)
    where = max(places)
    if not all(s.size for s in signals):
        shape = (*outer, min(s.shape[-1] for s in signals))
        return tuple(fnp.moveaxis(e, -1, where) for e in _nothing(shape, 2))
    cut = Segments.of(name, window, nperseg, noverlap, nfft, n, 256)
    scale = frames.scale_of(name, cut, fs, scaling)
    onesided = return_onesided and all(s.dtype.kind != "c" for s in signals)
    detrended = _detrending(name, detrend, axis)
    padded = [fnp.pad(s, [(0, 0)] * (s.ndim - 1) + [(0, n - s.shape[-1])]) for s in signals]
    spectra = [frames.transforms(s, cut, detrended, onesided) for s in padded]
    z = spectra[0]
    power = z.real * z.real + z.imag * z.imag if alone else fnp.conj(z) * spectra[1]
    total = _averaged(power, average) * fnp.astype(_doubled(scale, cut.points, onesided), real_dtype(z.dtype))
    return frames.frequencies(cut.points, fs, onesided), fnp.moveaxis(total, -1, where)


def _averaged(power: Value, average: str) -> Value:
    """Combine the segments, which are along the last axis but one."""
    if average == "mean":
        return fnp.mean(power, -2)
    bias = frames.median_bias(power.shape[-2])
    if power.dtype.kind == "c":
        return (fnp.median(power.real, -2) + 1j * fnp.median(power.imag, -2)) / bias
    return fnp.median(power, -2) / bias


def _doubled(scale: ArrayLike, points: int, onesided: bool) -> Value:
    """The factor for each frequency: twice the scale for those whose negative is left out."""
    if not onesided:
        return scale
    k = fnp.arange(points // 2 + 1)
    return scale * fnp.where((k > 0) & (2 * k < points), 2.0, 1.0)
