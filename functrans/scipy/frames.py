"""Signals cut into overlapping segments under a window: what the spectral estimates have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..arrays.array import Array
from ..core import ArgumentValueError, DtypeError, ShapeError, Tracer, concrete, is_inexact
from ..core.dtypes import complex_dtype, real_dtype
from ..core.jax_dtypes import default_float
from ..core.values import ArrayLike, Value
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, shape_of
from ..runtime.libraries import scipy
from ..runtime.records import dataclass


@dataclass(frozen=True)
class Segments:
    """How a signal is cut.

    Attributes
    ----------
    window : array, shape (size,)
        An ndarray if it is known.
    size, step, points : int
        The length of a segment, the distance of two, and the number of points of their transforms.
    """

    window: ArrayLike
    size: int
    step: int
    points: int

    @classmethod
    def of(
        cls, name: str, window: ArrayLike, nperseg: Any, noverlap: Any, nfft: Any, n: int, usual: int
    ) -> Segments:
        """Check the arguments for a signal of length `n`; `usual` is the length of segments by default."""
        if nperseg is not None and nperseg < 1:
            raise ArgumentValueError(f"{name}: nperseg must be a positive integer, got {nperseg}")
        if isinstance(window, (str, tuple)):
            size = usual if nperseg is None else nperseg
            if size > n:
                warnings.warn(f"{name}: nperseg={size} is longer than the signal; using {n}", stacklevel=4)
                size = n
            known: Any = np.asarray(scipy.signal.get_window(window, size))
        else:
            known = array_operand(window, name)
            if len(shape_of(known)) != 1:
                raise ShapeError(f"{name}: window must have one axis, got shape {shape_of(known)}")
            (size,) = shape_of(known)
            if nperseg not in (None, size):
                raise ArgumentValueError(
                    f"{name}: nperseg={nperseg} differs from the length {size} of window"
                )
            if not 0 < size <= n:
                raise ArgumentValueError(
                    f"{name}: window has {size} elements, but x has {n} along axis; expected from 1 to {n}"
                )
        if dtype_of(known).kind == "c":
            raise DtypeError(f"{name}: window must be real, got {dtype_of(known)}")
        points = size if nfft is None else nfft
        overlap = size // 2 if noverlap is None else noverlap
        if points < size:
            raise ArgumentValueError(f"{name}: nfft={points} must be at least nperseg={size}")
        if overlap >= size:
            raise ArgumentValueError(f"{name}: noverlap={overlap} must be less than nperseg={size}")
        return cls(known, size, size - overlap, points)

    def count(self, n: int) -> int:
        """The number of whole segments in a signal of length `n`."""
        return max((n - self.size) // self.step + 1, 0)

    def places(self, count: int) -> Value:
        """The elements of each of `count` segments, as indices of shape (count, size)."""
        starts = ops.mul_p.bind(ops.iota((count, 1), 0), np.int64(self.step))
        return ops.add_p.bind(starts, ops.iota((1, self.size), 1))

    def cut(self, x: Value) -> Value:
        """Segments along the last axis: from shape (..., n) to (..., count, size)."""
        value, last = ops.operand(x, "segments"), x.ndim - 1
        places = self.places(self.count(x.shape[last]))
        out = ops.gather_p.bind(value, places, axes=(last,), mode="promise_in_bounds")
        order = (*range(2, last + 2), 0, 1)
        return finish(ops.transpose_p.bind(out, permutation=order) if last else out)

    def added(self, segments: Value) -> Value:
        """The sum of overlapping segments, the transpose of `cut`: from (..., count, size) to (..., n)."""
        *outer, count, size = segments.shape
        n = (count - 1) * self.step + size
        value, last = ops.operand(segments, "segments"), len(outer)
        order = (last, last + 1, *range(last))
        value = ops.transpose_p.bind(value, permutation=order) if last else value
        zeros = ops.operand(fnp.zeros((*outer, n), segments.dtype), "segments")
        return finish(
            ops.scatter_add_p.bind(
                zeros, value, self.places(count), axes=(last,), mode="promise_in_bounds", unique_indices=False
            )
        )

    def total(self, squared: bool) -> Value:
        """The sum of the window, or of its squares."""
        window = self.window
        return fnp.sum(window * window if squared else window)

    def tapers(self, dtype: np.dtype) -> Value:
        """The window in a dtype."""
        return ops.convert(self.window, dtype)


def rate(name: str, fs: ArrayLike) -> Any:
    """The number of samples per unit of time: a Python number, unless it is traced.

    Raises
    ------
    ArgumentValueError
        If it is known not to be positive and finite.
    DtypeError, ShapeError
        If it is complex, or not a number.
    """
    value = array_operand(fs, f"{name}: fs")
    if shape_of(value):
        raise ShapeError(f"{name}: fs must be a number, got an array of shape {shape_of(value)}")
    if dtype_of(value).kind == "c":
        raise DtypeError(f"{name}: fs must be real, got {dtype_of(value)}")
    known = concrete(value)
    if known is not None and not 0 < known < np.inf:
        raise ArgumentValueError(f"{name}: fs must be positive and finite, got {known}")
    return finish(value) if isinstance(value, Tracer) else float(value)


def signal_of(name: str, x: ArrayLike) -> Value:
    """A signal as real or complex numbers; small integers become float32, as in SciPy."""
    value = array_operand(x, name)
    dtype = dtype_of(value)
    if is_inexact(dtype):
        return finish(value)
    return finish(ops.convert(value, real_dtype(np.result_type(dtype, np.complex64))))


def in_one_dtype(*signals: ArrayLike) -> list[Value]:
    """Signals in their common precision; real ones stay real."""
    real = real_dtype(np.result_type(*[x.dtype for x in signals]))
    return [x.astype(complex_dtype(real) if x.dtype.kind == "c" else real) for x in signals]


def frequencies(points: int, fs: ArrayLike, onesided: bool) -> Array:
    """The frequencies of the transforms, float64 as in SciPy."""
    make = fnp.fft.rfftfreq if onesided else fnp.fft.fftfreq
    return make(points, 1.0 / fs, dtype=default_float())


def transforms(x: ArrayLike, cut: Segments, detrended: Callable[[Any], Any], onesided: bool) -> Any:
    """The transforms of the segments of a signal: from shape (..., n) to (..., count, frequencies)."""
    segments = detrended(cut.cut(x))
    segments = segments * finish(cut.tapers(real_dtype(x.dtype)))
    return (fnp.fft.rfft if onesided else fnp.fft.fft)(segments, cut.points)


def scale_of(name: str, cut: Segments, fs: ArrayLike, scaling: str, density: str = "density") -> Array:
    """The factor of a power spectrum (of a density, if `scaling` says so)."""
    if scaling == density:
        return 1.0 / (fs * cut.total(squared=True))
    if scaling == "spectrum":
        return 1.0 / cut.total(squared=False) ** 2
    raise ArgumentValueError(f"{name}: scaling must be {density!r} or 'spectrum', got {scaling!r}")


def median_bias(n: int) -> float:
    """The expected median of `n` exponentially distributed numbers of mean 1.

    B. Allen and others, "FINDCHIRP", Physical Review D 85 (2012), appendix B.
    """
    k = 2 * np.arange(1.0, (n - 1) // 2 + 1)
    return float(1 + np.sum(1 / (k + 1) - 1 / k))


def covers(cut: Segments, count: int, trimmed: int) -> bool:
    """Whether the squares of a known window add up to more than zero everywhere, so that the sum can be inverted."""
    window = concrete(cut.window)
    if window is None:
        return True
    some = min(count, 2 * (cut.size // cut.step + 1))  # further segments repeat what these have
    total = np.zeros((some - 1) * cut.step + cut.size)
    for k in range(some):
        total[k * cut.step : k * cut.step + cut.size] += np.asarray(window) ** 2
    return bool(np.all(total[trimmed : len(total) - trimmed] > 1e-10))
