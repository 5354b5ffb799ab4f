"""Which frequencies the transforms give, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.arguments import Device
from ...core.checked import checked
from ...core.dtypes import FLOAT64, canonical, is_float
from ...core.errors import ArgumentValueError, DtypeError, ShapeError
from ...primitives.axes import axes_or_all
from ...primitives.elementwise.arithmetic import convert, div_p, lt_p, mul_p, select_p, sub_p
from ...primitives.operands import finish
from ...primitives.structure.create import iota
from ...primitives.structure.linear import shape_of
from ..dispatch import array_operand, implements, owned
from ..shaping.moving import roll
from .steps import length, operand_of


@checked
def fftfreq(n: int, d: Any = 1.0, device: Device = None, *, dtype: Any = None) -> Any:
    """The frequencies, in cycles per unit of `d`, at which `fft` of `n` points gives its results.

    Parameters
    ----------
    n : int
    d : number
        The distance of the points; may be traced.
    device : {None, 'cpu'}
    dtype : dtype, optional
        float64 by default.

    Returns
    -------
    Array, shape (n,)
        ``[0, 1, ..., (n-1)//2, -(n//2), ..., -1] / (n * d)``

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.fftfreq(5, 0.1)
    Array([ 0.,  2.,  4., -4., -2.])
    """
    count = length("fftfreq", n)
    k = iota((count,), 0)
    positive = lt_p.bind(k, np.int64((count - 1) // 2 + 1))
    return _spaced(
        "fftfreq", select_p.bind(positive, k, sub_p.bind(k, np.int64(count))), count, d, device, dtype
    )


@checked
def rfftfreq(n: int, d: Any = 1.0, device: Device = None, *, dtype: Any = None) -> Any:
    """The frequencies, in cycles per unit of `d`, at which `rfft` of `n` points gives its results.

    Parameters as for `fftfreq`.

    Returns
    -------
    Array, shape (n // 2 + 1,)
        ``[0, 1, ..., n // 2] / (n * d)``

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.rfftfreq(5, 0.1)
    Array([0., 2., 4.])
    """
    count = length("rfftfreq", n)
    return _spaced("rfftfreq", iota((count // 2 + 1,), 0), count, d, device, dtype)


def _spaced(name: str, k: Any, n: int, d: Any, device: Any, dtype: Any) -> Any:
    if device not in (None, "cpu"):
        raise ArgumentValueError(
            f"{name}: there is one device only: device must be None or 'cpu', got {device!r}"
        )
    to = FLOAT64 if dtype is None else canonical(dtype, f"{name}: dtype")
    if not is_float(to):
        raise DtypeError(f"{name}: frequencies are float numbers, got dtype {to}")
    distance = operand_of(name, d, None)
    if shape_of(distance):
        raise ShapeError(
            f"{name}: the distance d must be a number, got an array of shape {shape_of(distance)}"
        )
    step = div_p.bind(distance.dtype.type(1), mul_p.bind(distance.dtype.type(n), distance))
    return finish(convert(mul_p.bind(convert(k, step.dtype), step), to))


@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    """Frequency 0 moved to the middle: each axis rolled by half of its length.

    Parameters
    ----------
    x : array_like
    axes : int or sequence of int, optional
        By default all.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.fftshift(fnp.fft.fftfreq(5, 0.1))
    Array([-4., -2.,  0.,  2.,  4.])
    """
    return _rolled("fftshift", x, axes, 1)


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`, also for odd lengths.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.ifftshift(fnp.fft.fftshift([0.0, 1.0, 2.0]))
    Array([0., 1., 2.])
    """
    return _rolled("ifftshift", x, axes, -1)


def _rolled(name: str, x: Any, axes: Any, sign: int) -> Any:
    value = array_operand(x, name)
    shape = shape_of(value)
    places = axes_or_all(axes, len(shape), name)
    if not places:
        return owned(value, x)
    return roll(x, tuple([sign * (shape[d] // 2) for d in places]), places)
