"""Discrete Fourier transforms under JAX's name."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Any

from ..core.aval import aval_of
from ..core.checked import checked
from ..core.dtypes import complex_dtype, is_complex, is_inexact
from ..core.errors import ArgumentValueError, DtypeError, ShapeError
from ..primitives.elementwise.arithmetic import convert
from ..primitives.fft import fft_p
from ..primitives.operands import finish
from ..primitives.structure.linear import shape_of
from .elementwise import operands

__all__ = ["FftType", "fft"]


class FftType(enum.IntEnum):
    """Which transform `fft` computes."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


@checked
def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """A discrete Fourier transform along the last axes.

    Parameters
    ----------
    x : array_like
        float or complex; real for 'RFFT'.
    fft_type : FftType or {'FFT', 'IFFT', 'RFFT', 'IRFFT'}
        Inverse transforms are scaled by one over the number of points.
    fft_lengths : sequence of int
        The number of points along each of the last axes. They are extents of `x`; for 'IRFFT' the last of them is that
        of the result, and `x` has ``n // 2 + 1`` frequencies there.

    Returns
    -------
    Array

    Raises
    ------
    ArgumentValueError
        If there is no such transform.
    DtypeError
        If the numbers are integers, or complex for 'RFFT'.
    ShapeError
        If the lengths do not fit.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.fft([1.0, 2.0, 3.0, 4.0], "RFFT", (4,))
    Array([10.+0.j, -2.+2.j, -2.+0.j])
    """
    (value,) = operands("fft", x)
    name = fft_type.name if isinstance(fft_type, FftType) else str(fft_type).upper()
    if name not in FftType.__members__:
        raise ArgumentValueError(f"lax.fft: want one of {', '.join(FftType.__members__)}, got {fft_type!r}")
    lengths = tuple([operator.index(n) for n in fft_lengths])
    ndim = len(shape_of(value))
    if not 0 < len(lengths) <= ndim:
        raise ShapeError(f"lax.fft: {len(lengths)} lengths do not fit an array of shape {shape_of(value)}")
    if not is_inexact(value.dtype) or (name == "RFFT" and is_complex(value.dtype)):
        raise DtypeError(
            f"lax.fft: {name} does not take {value.dtype}; convert with lax.convert_element_type"
        )
    if name == "IRFFT" and not is_complex(value.dtype):
        value = convert(value, complex_dtype(value.dtype))
    params = {"kind": name.lower(), "axes": tuple(range(ndim - len(lengths), ndim)), "lengths": lengths}
    params["norm"] = "backward"
    fft_p.abstract(aval_of(value), **params)  # evaluation does not check shapes
    return finish(fft_p.bind(value, **params))
