"""Transforms along one axis and along several."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.values import ArrayLike, AxisLike, Value
from ...frontend.docstrings import described
from ...primitives.operands import finish
from ..dispatch import implements, owned
from .steps import along_many, along_one, conjugated, operand_of, swapped

_ALONG_ONE = """
Parameters
----------
a : array_like
    Real or complex numbers.
n : int, optional
    The number of points: the input is cropped, or padded with zeros. By default the extent of the axis;
    for `irfft` and `hfft` of `m` frequencies ``2 * (m - 1)``.
axis : int
norm : {None, 'backward', 'ortho', 'forward'}
    Whether to scale by ``1/n`` the inverse (as does None), by its square root both directions, or by ``1/n`` the
    forward one.
out : None
    Not supported: arrays are immutable.

Returns
-------
Array
    Complex; that of `irfft` and `hfft` is real.

Raises
------
AxisError
    If the axis is out of bounds.
ArgumentValueError
    If the number of points is zero, or `norm` is unknown.
"""
_ALONG_SEVERAL = """
Parameters
----------
a : array_like
    Real or complex numbers.
s : sequence of int, optional
    The number of points along each axis: the input is cropped, or padded with zeros. -1 means the extent of the
    axis.
axes : sequence of int, optional
    If None, all, or the last ``len(s)``. An axis that occurs twice is transformed twice.
norm, out
    As for `fft`.

Returns
-------
Array
    Complex; that of `irfftn` and `irfft2` is real.

Raises
------
ArgumentValueError
    If `s` and `axes` differ in length, or a number of points is zero.
"""


@implements(np.fft.fft)
@described(_ALONG_ONE)
def fft(a: ArrayLike, n: ArrayLike = None, axis: int = -1, norm: Any = None, out: None = None) -> Value:
    """Discrete Fourier transform along one axis.

    Frequency 0 comes first, then the positive ones, then the negative ones (see `fftfreq`).

    Notes
    -----
    ``y[k] = sum(x[j] * exp(-2j * pi * j * k / n))``. It is linear, so its derivative is the transform itself. Gradients
    in complex arguments follow JAX: transposed, not conjugated.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.fft([1.0, 0.0, -1.0, 0.0])
    Array([0.-0.j, 2.+0.j, 0.-0.j, 2.-0.j])
    """
    return finish(along_one("fft", "fft", operand_of("fft", a, out), n, axis, norm))


@implements(np.fft.ifft)
@described(_ALONG_ONE)
def ifft(a: ArrayLike, n: ArrayLike = None, axis: int = -1, norm: Any = None, out: None = None) -> Any:
    """The inverse of `fft`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.ifft(fnp.fft.fft([1.0, 2.0, 4.0])).real
    Array([1., 2., 4.])
    """
    return finish(along_one("ifft", "ifft", operand_of("ifft", a, out), n, axis, norm))


@implements(np.fft.rfft)
@described(_ALONG_ONE)
def rfft(a: ArrayLike, n: ArrayLike = None, axis: int = -1, norm: Any = None, out: None = None) -> Value:
    """The first ``n // 2 + 1`` frequencies of real numbers.

    The numbers must be real (`DtypeError`). The other frequencies would be the complex conjugates of these.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.rfft([1.0, 2.0, 3.0])
    Array([ 6. +0.j       , -1.5+0.8660254j])
    """
    return finish(along_one("rfft", "rfft", operand_of("rfft", a, out), n, axis, norm))


@implements(np.fft.irfft)
@described(_ALONG_ONE)
def irfft(a: ArrayLike, n: ArrayLike = None, axis: int = -1, norm: Any = None, out: None = None) -> Value:
    """The inverse of `rfft`: recover real numbers from half of their frequencies.

    Reads frequencies 0 to ``n // 2``, where `n` is the number of points of the result, by default ``2 * (m - 1)`` for
    `m` frequencies, which is even. The imaginary part of frequency 0 (and of ``n / 2``) is
    ignored.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.irfft(fnp.fft.rfft([1.0, 2.0, 3.0]), n=3)
    Array([1., 2., 3.])
    """
    return finish(along_one("irfft", "irfft", operand_of("irfft", a, out), n, axis, norm))


@implements(np.fft.hfft)
@described(_ALONG_ONE)
def hfft(a: ArrayLike, n: ArrayLike = None, axis: int = -1, norm: Any = None, out: None = None) -> Value:
    """The real transform of conjugate symmetric numbers, given one half of them.

    A forward transform: ``irfft(conj(a), n)`` with the scaling of `norm` exchanged; `n` is that of `irfft`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.hfft([1.0, 2.0, 3.0])
    Array([ 8., -2.,  0., -2.])
    """
    x = operand_of("hfft", a, out)
    return finish(along_one("hfft", "irfft", conjugated(x), n, axis, swapped("hfft", norm)))


@implements(np.fft.ihfft)
@described(_ALONG_ONE)
def ihfft(
    a: ArrayLike, n: ArrayLike = None, axis: int = -1, norm: Any = None, out: None = None
) -> Value | None:
    """The inverse of `hfft`: return half of the frequencies of real numbers.

    ``conj(rfft(a, n))`` with the scaling of `norm` exchanged.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.ihfft([10.0, -2.0, 2.0, -2.0])
    Array([2.-0.j, 2.-0.j, 4.-0.j])
    """
    x = operand_of("ihfft", a, out)
    return finish(conjugated(along_one("ihfft", "rfft", x, n, axis, swapped("ihfft", norm))))


@implements(np.fft.fftn)
@described(_ALONG_SEVERAL)
def fftn(a: ArrayLike, s: ArrayLike = None, axes: AxisLike = None, norm: Any = None, out: None = None) -> Any:
    """Discrete Fourier transform along several axes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.fftn([[1.0, 2.0], [3.0, 4.0]])
    Array([[10.-0.j, -2.-0.j],
           [-4.-0.j,  0.-0.j]])
    """
    return owned(along_many("fftn", "fft", operand_of("fftn", a, out), s, axes, norm), a)


@implements(np.fft.ifftn)
@described(_ALONG_SEVERAL)
def ifftn(
    a: ArrayLike, s: ArrayLike = None, axes: AxisLike = None, norm: Any = None, out: None = None
) -> Any:
    """The inverse of `fftn`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.ifftn([[4.0, 0.0], [0.0, 0.0]])
    Array([[1.-0.j, 1.-0.j],
           [1.-0.j, 1.-0.j]])
    """
    return owned(along_many("ifftn", "ifft", operand_of("ifftn", a, out), s, axes, norm), a)


@implements(np.fft.rfftn)
@described(_ALONG_SEVERAL)
def rfftn(
    a: ArrayLike, s: ArrayLike = None, axes: AxisLike = None, norm: Any = None, out: None = None
) -> Any:
    """Half of the frequencies of real numbers along several axes.

    The last of `axes` is halved: it is transformed first, as by `rfft`, then the others, as by `fft`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.rfftn(fnp.ones((2, 4))).shape
    (2, 3)
    """
    return owned(along_many("rfftn", "rfft", operand_of("rfftn", a, out), s, axes, norm), a)


@implements(np.fft.irfftn)
@described(_ALONG_SEVERAL)
def irfftn(
    a: ArrayLike, s: ArrayLike = None, axes: AxisLike = None, norm: Any = None, out: None = None
) -> Any:
    """Recover real numbers from half of their frequencies along several axes.

    The inverse of `rfftn`, with `s` the shape of the result along `axes`; as for `irfft`, the last extent is even by
    default.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.irfftn(fnp.fft.rfftn(fnp.ones((2, 4))))
    Array([[1., 1., 1., 1.],
           [1., 1., 1., 1.]])
    """
    return owned(along_many("irfftn", "irfft", operand_of("irfftn", a, out), s, axes, norm), a)


@implements(np.fft.fft2)
@described(_ALONG_SEVERAL)
def fft2(
    a: ArrayLike, s: ArrayLike = None, axes: AxisLike = (-2, -1), norm: Any = None, out: None = None
) -> Any:
    """`fftn` along the last two axes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.fft2(fnp.ones((2, 2)))
    Array([[4.-0.j, 0.-0.j],
           [0.-0.j, 0.-0.j]])
    """
    return owned(along_many("fft2", "fft", operand_of("fft2", a, out), s, axes, norm), a)


@implements(np.fft.ifft2)
@described(_ALONG_SEVERAL)
def ifft2(
    a: ArrayLike, s: ArrayLike = None, axes: AxisLike = (-2, -1), norm: Any = None, out: None = None
) -> Any:
    """`ifftn` along the last two axes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.ifft2(fnp.ones((2, 2)))
    Array([[1.-0.j, 0.-0.j],
           [0.-0.j, 0.-0.j]])
    """
    return owned(along_many("ifft2", "ifft", operand_of("ifft2", a, out), s, axes, norm), a)


@implements(np.fft.rfft2)
@described(_ALONG_SEVERAL)
def rfft2(
    a: ArrayLike, s: ArrayLike = None, axes: AxisLike = (-2, -1), norm: Any = None, out: None = None
) -> Any:
    """`rfftn` along the last two axes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.rfft2(fnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    return owned(along_many("rfft2", "rfft", operand_of("rfft2", a, out), s, axes, norm), a)


@implements(np.fft.irfft2)
@described(_ALONG_SEVERAL)
def irfft2(
    a: ArrayLike, s: ArrayLike = None, axes: AxisLike = (-2, -1), norm: Any = None, out: None = None
) -> Any:
    """`irfftn` along the last two axes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.irfft2(fnp.ones((2, 2)))
    Array([[1., 0.],
           [0., 0.]])
    """
    return owned(along_many("irfft2", "irfft", operand_of("irfft2", a, out), s, axes, norm), a)
