"""``functrans.scipy.signal``: convolution and correlation of arrays with any number of axes, spectra and filters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..arrays.arguments import one_of
from ..arrays.array import Array
from ..core import BOOL, ArgumentValueError, DtypeError, ShapeError, is_float, is_inexact
from ..core.values import ArrayLike, AxisLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand, in_one_dtype
from ..numpy.linalg.norms import all_inexact
from ..primitives import ops
from ..primitives.ops import axes_or_all, dtype_of, finish, shape_of
from ..runtime.module_getattr import module_attributes as _module_attributes
from .fft import next_fast_len
from .filters import detrend, lfilter
from .spectral import csd, istft, periodogram, stft, welch

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "lfilter",
    "periodogram", "stft", "welch",
]  # fmt: skip
_MODES = ("full", "same", "valid")
_METHODS = ("auto", "direct", "fft")
__getattr__, __dir__ = _module_attributes("functrans.scipy.signal", globals())


@checked
def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto") -> Value:
    """The convolution of two arrays with the same number of axes.

    Parameters
    ----------
    in1, in2 : array_like
    mode : {'full', 'same', 'valid'}
        'full': all positions at which they overlap. 'same': the middle positions, as many as `in1` has elements.
        'valid': positions at which one lies within the other.
    method : {'auto', 'direct', 'fft'}
        Whether to add products, or to multiply Fourier transforms, which rounds integers and spreads infinities and
        NaN. 'auto' transforms floating point numbers where that is faster, as SciPy does.

    Returns
    -------
    Array
        In the common dtype.

    Raises
    ------
    ShapeError
        If they have different numbers of axes, or if with ``valid`` no array fits within the other.
    ArgumentValueError
        If the mode or the method is unknown.
    DtypeError
        If they are boolean.

    Notes
    -----
    Linear in each argument. The direct cost is the product of the sizes; see `fftconvolve`.

    Examples
    --------
    >>> import functrans.scipy.signal
    >>> functrans.scipy.signal.convolve([1.0, 2.0, 3.0], [1.0, 1.0], "same")
    Array([1., 3., 5.])
    """
    return _convolved("convolve", in1, in2, mode, reverse=True, method=method)


@checked
def correlate(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto") -> Value:
    """The cross-correlation of two arrays: `convolve` with the conjugate of `in2`, reversed along all axes.

    Examples
    --------
    >>> import functrans.scipy.signal
    >>> functrans.scipy.signal.correlate([1.0, 2.0, 3.0], [1.0, 0.0], "valid")
    Array([1., 2.])
    """
    return _convolved("correlate", in1, in2, mode, reverse=False, method=method)


@checked
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: AxisLike = None) -> Array:
    """The convolution of two arrays, by the product of their Fourier transforms.

    Parameters
    ----------
    in1, in2 : array_like
        With the same number of axes. Axes along which they are not convolved are broadcast.
    mode : {'full', 'same', 'valid'}
        As for `convolve`.
    axes : int or sequence of int, optional
        By default all.

    Returns
    -------
    Array
        In the common dtype; float64 for integers.

    Raises
    ------
    ShapeError
        If the shapes do not match, or with ``valid`` no array fits within the other.
    ArgumentValueError
        If the mode is unknown, or `axes` is empty.
    AxisError
        If an axis is out of bounds, or repeated.

    Notes
    -----
    Linear in each argument. The error of each element is relative to the largest one.

    Examples
    --------
    >>> from functrans.scipy.signal import fftconvolve
    >>> fftconvolve([1.0, 2.0, 3.0], [1.0, 1.0]).round(12)
    Array([1., 3., 5., 3.])
    """
    name = "fftconvolve"
    one_of(mode, _MODES, f"{name}: mode")
    a, b = fnp.shape(in1), fnp.shape(in2)
    if len(a) != len(b):
        raise ShapeError(f"{name}: arrays of shapes {a} and {b} must have the same number of axes")
    if not a:
        return fnp.multiply(in1, in2)
    x, y = all_inexact(name, in1, in2)
    if 0 in a or 0 in b:
        return fnp.zeros(0)
    places = axes_or_all(axes, len(a), name)
    if not places:
        raise ArgumentValueError(f"{name}: axes must name at least one axis")
    places = tuple([d for d in places if a[d] != 1 and b[d] != 1])
    if any(n != m and 1 not in (n, m) for d, (n, m) in enumerate(zip(a, b)) if d not in places):
        raise ShapeError(f"{name}: shapes {a} and {b} do not match outside of axes {places}")
    if mode == "valid" and any(a[d] < b[d] for d in places):
        x, y, a, b = y, x, b, a
        if any(a[d] < b[d] for d in places):
            raise ShapeError(
                f"{name}: mode 'valid' needs one array that fits within the other, got shapes {b} and {a}"
            )
    out = _product_of_transforms(finish(x), finish(y), places)
    extents = list(shape_of(out))
    if mode == "same":
        extents = list(a)
    elif mode == "valid":
        extents = [a[d] - b[d] + 1 if d in places else n for d, n in enumerate(extents)]
    starts = [(n - m) // 2 for n, m in zip(shape_of(out), extents)]
    return out[tuple([slice(i, i + m) for i, m in zip(starts, extents)])]


def _product_of_transforms(x: ArrayLike, y: ArrayLike, axes: Sequence[int]) -> Any:
    """The full convolution along these axes."""
    if not axes:
        return x * y
    real = is_float(dtype_of(x))
    extents = {d: x.shape[d] + y.shape[d] - 1 for d in axes}
    points = [next_fast_len(n, real) for n in extents.values()]
    there, back = (fnp.fft.rfftn, fnp.fft.irfftn) if real else (fnp.fft.fftn, fnp.fft.ifftn)
    out = back(there(x, points, axes) * there(y, points, axes), points, axes)
    return out[tuple([slice(extents.get(d)) for d in range(x.ndim)])]


def _transforms_are_faster(a: tuple[int, ...], b: tuple[int, ...], dtype: np.dtype, mode: str) -> bool:
    """Whether to convolve floating point numbers by their transforms: by the number of products, as measured."""
    if not is_inexact(dtype) or 0 in a or 0 in b:
        return False
    full = [n + m - 1 for n, m in zip(a, b)]
    outs = {"full": full, "same": a, "valid": [abs(n - m) + 1 for n, m in zip(a, b)]}[mode]
    direct = math.prod(outs) * math.prod(map(min, a, b))
    size = math.prod(full)
    return direct > 64 * size * math.log2(size + 1) + 20_000


@checked
def convolve2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0
) -> Any:
    """`convolve` of two matrices, padded with zeros (``boundary="fill"``).

    Raises
    ------
    ArgumentValueError
        For any other boundary: pad `in1` first, with `functrans.numpy.pad`.

    Examples
    --------
    >>> import functrans.scipy.signal
    >>> functrans.scipy.signal.convolve2d([[1.0, 2.0]], [[1.0], [1.0]])
    Array([[1., 2.],
           [1., 2.]])
    """
    _check_matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _convolved("convolve2d", in1, in2, mode, reverse=True)


@checked
def correlate2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0
) -> Any:
    """`correlate` of two matrices; see `convolve2d`.

    Notes
    -----
    With ``same`` and an even extent of `in2`, the middle is rounded up, as in SciPy. With ``valid`` and a complex `in1`
    that lies within `in2`, SciPy conjugates `in1` instead; functrans always conjugates `in2`.

    Examples
    --------
    >>> import functrans.scipy.signal
    >>> functrans.scipy.signal.correlate2d([[1.0, 2.0]], [[1.0, 1.0]], "valid")
    Array([[3.]])
    """
    _check_matrices("correlate2d", in1, in2, boundary, fillvalue)
    return _convolved("correlate2d", in1, in2, mode, reverse=False)


def _check_matrices(name: str, in1: ArrayLike, in2: ArrayLike, boundary: str, fillvalue: float) -> None:
    for i, x in enumerate((in1, in2)):
        shape = shape_of(array_operand(x, name, i))
        if len(shape) != 2:
            raise ShapeError(
                f"{name}: expected matrices, but argument {i} has shape {shape}; use {name[:-2]}"
            )
    if boundary != "fill" or fillvalue != 0:
        raise ArgumentValueError(
            f"{name}: boundary={boundary!r}, fillvalue={fillvalue}: only zero padding is supported; pad in1 first with "
            "functrans.numpy.pad, and use mode='valid'"
        )


def _convolved(
    name: str, in1: Value, in2: Value, mode: str, *, reverse: bool, method: str = "direct"
) -> Value:
    x, y = in_one_dtype([array_operand(in1, name), array_operand(in2, name, 1)], None, name)
    if dtype_of(x) == BOOL:
        raise DtypeError(f"{name}: booleans are not supported; convert with .astype(int)")
    a, b = shape_of(x), shape_of(y)
    if len(a) != len(b):
        raise ShapeError(f"{name}: arrays of shapes {a} and {b} must have the same number of axes")
    one_of(mode, _MODES, f"{name}: mode")
    one_of(method, _METHODS, f"{name}: method")
    if not reverse and dtype_of(y).kind == "c":
        y = ops.conj_p.bind(y)
    if not a:
        return finish(ops.mul_p.bind(x, y))
    axes = tuple(range(len(a)))
    if method == "fft" or (method == "auto" and _transforms_are_faster(a, b, dtype_of(x), mode)):
        out = fftconvolve(finish(x), finish(y if reverse else ops.rev_p.bind(y, dimensions=axes)), mode)
        whole = dtype_of(x).kind in "iu"
        return fnp.astype(fnp.round(out), dtype_of(x)) if whole else out
    window = ops.rev_p.bind(y, dimensions=axes) if reverse else y
    if mode == "valid" and any(n < m for n, m in zip(a, b)):
        if any(n > m for n, m in zip(a, b)):
            raise ShapeError(
                f"{name}: mode 'valid' needs one array that fits within the other, got shapes {a} and {b}"
            )
        # in2 slides under in1 as in1 over in2, but the other way round.
        flipped = ops.rev_p.bind(x, dimensions=axes)
        return finish(
            _slid(y, flipped, "valid") if reverse else ops.rev_p.bind(_slid(y, x, "valid"), dimensions=axes)
        )
    return finish(_slid(x, window, mode, late=name == "correlate2d"))


def _slid(x: Value, window: Value, mode: str, late: bool = False) -> Value:
    a, b = shape_of(x), shape_of(window)
    padding = [(0, 0) if mode == "valid" else (m - 1, m - 1) for m in b]
    if mode == "same":
        # The middle of the full result: the cut in front is half of the surplus, rounded down.
        # Of correlate2d SciPy rounds it up.
        cut = [m // 2 if late else (m - 1) // 2 for m in b]
        padding = [(m - 1 - c, c) for m, c in zip(b, cut)]
    ones = (1,) * len(a)
    out = ops.conv_p.bind(
        ops.reshape_p.bind(x, shape=(1, 1, 1, *a)),
        ops.reshape_p.bind(window, shape=(1, 1, 1, *b)),
        window_strides=ones,
        padding=tuple(padding),
        lhs_dilation=ones,
        rhs_dilation=ones,
    )
    extents = tuple([max(n + low + high - m + 1, 0) for n, m, (low, high) in zip(a, b, padding)])
    return ops.reshape_p.bind(out, shape=extents)
