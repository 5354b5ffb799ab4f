"""Transforms along several axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dispatch import implements, owned
from .steps import along_many, operand_of


@implements(np.fft.fftn)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: None = None) -> Any:
    """The discrete Fourier transform along several axes.

    Parameters
    ----------
    a : array_like
        Real or complex numbers.
    s : sequence of int, optional
        The number of points along each axis: the input is cut, or padded with zeros. -1: as many as there are.
    axes : sequence of int, optional
        By default all, or the last ``len(s)``. Along an axis that is named twice the transform is taken twice.
    norm, out
        As for `fft`.

    Returns
    -------
    Array
        Complex.

    Raises
    ------
    ArgumentValueError
        If `s` and `axes` differ in length, or there are no points.


    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.fftn([[1.0, 2.0], [3.0, 4.0]])
    Array([[10.-0.j, -2.-0.j],
           [-4.-0.j,  0.-0.j]])
    """
    return owned(along_many("fftn", "fft", operand_of("fftn", a, out), s, axes, norm), a)


@implements(np.fft.ifftn)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: None = None) -> Any:
    """The inverse of `fftn`.

    Parameters as for `fftn`.


    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.ifftn([[4.0, 0.0], [0.0, 0.0]])
    Array([[1.-0.j, 1.-0.j],
           [1.-0.j, 1.-0.j]])
    """
    return owned(along_many("ifftn", "ifft", operand_of("ifftn", a, out), s, axes, norm), a)


@implements(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: None = None) -> Any:
    """Half of the frequencies of real numbers along several axes.

    The last of `axes` is halved: it is transformed first, as by `rfft`, and the others then as by `fft`. Parameters as
    for `fftn`.


    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.rfftn(fnp.ones((2, 4))).shape
    (2, 3)
    """
    return owned(along_many("rfftn", "rfft", operand_of("rfftn", a, out), s, axes, norm), a)


@implements(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: None = None) -> Any:
    """Real numbers from half of their frequencies along several axes.

    The inverse of `rfftn`, with `s` the shape of the result along `axes`; its last entry is even unless given, as for
    `irfft`.


    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.irfftn(fnp.fft.rfftn(fnp.ones((2, 4))))
    Array([[1., 1., 1., 1.],
           [1., 1., 1., 1.]])
    """
    return owned(along_many("irfftn", "irfft", operand_of("irfftn", a, out), s, axes, norm), a)


@implements(np.fft.fft2)
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: None = None) -> Any:
    """`fftn` along the last two axes.

    Parameters as for `fftn`.


    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.fft2(fnp.ones((2, 2)))
    Array([[4.-0.j, 0.-0.j],
           [0.-0.j, 0.-0.j]])
    """
    return owned(along_many("fft2", "fft", operand_of("fft2", a, out), s, axes, norm), a)


@implements(np.fft.ifft2)
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: None = None) -> Any:
    """`ifftn` along the last two axes.

    Parameters as for `ifftn`.


    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.ifft2(fnp.ones((2, 2)))
    Array([[1.-0.j, 0.-0.j],
           [0.-0.j, 0.-0.j]])
    """
    return owned(along_many("ifft2", "ifft", operand_of("ifft2", a, out), s, axes, norm), a)


@implements(np.fft.rfft2)
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: None = None) -> Any:
    """`rfftn` along the last two axes.

    Parameters as for `rfftn`.


    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.rfft2(fnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    return owned(along_many("rfft2", "rfft", operand_of("rfft2", a, out), s, axes, norm), a)


@implements(np.fft.irfft2)
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: None = None) -> Any:
    """`irfftn` along the last two axes.

    Parameters as for `irfftn`.


    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.irfft2(fnp.ones((2, 2)))
    Array([[1., 0.],
           [0., 0.]])
    """
    return owned(along_many("irfft2", "irfft", operand_of("irfft2", a, out), s, axes, norm), a)
