"""``functrans.scipy.fft``: discrete cosine, sine and Fourier transforms.

The Fourier transforms and frequencies are those of `functrans.numpy.fft`. Single precision stays single. Transforms
have no kernels: SciPy's functions run between kernels.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..arrays.array import Array
from ..core import (
    FLOAT32,
    ArgumentError,
    ArgumentValueError,
    AxisError,
    default_float,
    is_inexact,
    is_low,
)
from ..core.values import ArrayLike, AxisLike, Value
from ..frontend.checked import checked
from ..frontend.docstrings import with_sections
from ..numpy.dispatch import array_operand, owned
from ..numpy.fft import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)
from ..numpy.fft.steps import length, places_and_sizes, resized, scaling
from ..primitives import ops
from ..primitives.ops import dtype_of, one_axis, shape_of, strong
from ..runtime.libraries import scipy
from ..runtime.module_getattr import module_attributes as _module_attributes

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "idct", "idctn", "idst",
    "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "next_fast_len", "rfft",
    "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
__getattr__, __dir__ = _module_attributes("functrans.scipy.fft", globals())


_SHARED = """
Parameters
----------
x : array_like
    Real or complex numbers.
type : {{1, 2, 3, 4}}
    Type 1 of the cosine transform needs at least two points.
{points}norm : {{None, 'backward', 'ortho', 'forward'}}
    Whether the inverse is scaled (as by None), both directions by the square root, or the forward one.
overwrite_x, workers
    Accepted, without effect: arguments never change.
orthogonalize : bool, optional
    Whether to weight the ends of the axis so that the matrix is orthogonal, up to the scaling. By default only
    for ``norm="ortho"``.

Returns
-------
Array
    With the dtype of `x`; float64 for integers.

Raises
------
AxisError
    {axis}
ArgumentValueError
    If `type` or `norm` is unknown, or there are too few points.
"""
_ALONG_ONE = _SHARED.format(
    axis="If the axis is out of bounds.",
    points="""n : int, optional
    The number of points: the input is cropped, or padded with zeros. By default the extent of the axis.
axis : int
""",
)
_ALONG_SEVERAL = _SHARED.format(
    axis="If an axis is out of bounds, or repeated.",
    points="""s : sequence of int, optional
    The numbers of points; -1 takes the extent of the axis.
axes : sequence of int, optional
    By default the last ``len(s)``, or all.
""",
)


def _of_one_axis(name: str, doc: str) -> Callable[..., Any]:
    kind = name.removeprefix("i")

    def transform(
        x: ArrayLike,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Value:
        return _along_one(kind, name != kind, x, type, n, axis, norm, orthogonalize)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = with_sections(doc, _ALONG_ONE)
    return checked(transform)


def _of_several_axes(name: str, doc: str) -> Callable[..., Any]:
    kind = name.removeprefix("i")

    def transform(
        x: Value,
        type: int = 2,
        s: ArrayLike = None,
        axes: AxisLike = None,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        orthogonalize: bool | None = None,
    ) -> Value:
        return _along_many(kind, name != kind, x, type, s, axes, norm, orthogonalize)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = with_sections(doc, _ALONG_SEVERAL)
    return checked(transform)


dct = _of_one_axis(
    "dct",
    """Discrete cosine transform along one axis.

Notes
-----
Type 2 is ``y[k] = 2 * sum(x[j] * cos(pi * k * (2*j + 1) / (2*n)))``; its inverse is type 3, scaled. SciPy documents
all of them. It is linear, so its derivative is the transform itself; the gradient applies the transpose, which is a
transform of type 1, 3, 2 or 4.

Examples
--------
>>> from functrans.scipy.fft import dct, idct
>>> dct([4.0, 3.0, 5.0, 10.0], norm="ortho").round(3)
Array([11.   , -4.461,  3.   , -0.317])
>>> idct(dct([1.0, 2.0, 4.0])).round(12)
Array([1., 2., 4.])
""",
)
idct = _of_one_axis(
    "idct",
    """The inverse of `dct` of the same type and `norm`.

Examples
--------
>>> from functrans.scipy.fft import dct, idct
>>> idct(dct([1.0, 2.0, 4.0], type=1), type=1).round(12)
Array([1., 2., 4.])
""",
)
dst = _of_one_axis(
    "dst",
    """Discrete sine transform along one axis.

Notes
-----
Type 2 is ``y[k] = 2 * sum(x[j] * sin(pi * (k + 1) * (2*j + 1) / (2*n)))``.

Examples
--------
>>> from functrans.scipy.fft import dst
>>> dst([1.0, 0.0, 0.0], type=1).round(3)
Array([1.414, 2.   , 1.414])
""",
)
idst = _of_one_axis(
    "idst",
    """The inverse of `dst` of the same type and `norm`.

Examples
--------
>>> from functrans.scipy.fft import dst, idst
>>> idst(dst([1.0, 2.0, 4.0])).round(12)
Array([1., 2., 4.])
""",
)
dctn = _of_several_axes(
    "dctn",
    """Discrete cosine transform along several axes.

Examples
--------
>>> from functrans.scipy.fft import dctn
>>> dctn([[1.0, 2.0], [3.0, 4.0]], norm="ortho").round(3)
Array([[ 5., -1.],
       [-2.,  0.]])
""",
)
idctn = _of_several_axes(
    "idctn",
    """The inverse of `dctn` of the same type and `norm`.

Examples
--------
>>> from functrans.scipy.fft import dctn, idctn
>>> idctn(dctn([[1.0, 2.0], [3.0, 4.0]])).round(12)
Array([[1., 2.],
       [3., 4.]])
""",
)
dstn = _of_several_axes(
    "dstn",
    """Discrete sine transform along several axes.

Examples
--------
>>> from functrans.scipy.fft import dstn
>>> dstn([[1.0, 0.0]], type=4, axes=(1,)).round(3)
Array([[0.765, 1.848]])
""",
)
idstn = _of_several_axes(
    "idstn",
    """The inverse of `dstn` of the same type and `norm`.

Examples
--------
>>> from functrans.scipy.fft import dstn, idstn
>>> idstn(dstn([[1.0, 2.0], [3.0, 4.0]])).round(12)
Array([[1., 2.],
       [3., 4.]])
""",
)


@checked
def next_fast_len(target: int, real: bool = False) -> int:
    """The smallest number of points from `target` on that a Fourier transform handles fast.

    Parameters
    ----------
    target : int
        Positive.
    real : bool
        Whether the transform is of real numbers.

    Returns
    -------
    int
        A product of primes up to 11, or up to 5 if `real`.

    Examples
    --------
    >>> from functrans.scipy.fft import next_fast_len
    >>> next_fast_len(13), next_fast_len(13, real=True)
    (14, 15)
    """
    if target < 0:
        raise ArgumentValueError(f"next_fast_len: target must be positive, got {target}")
    return scipy.fft.next_fast_len(target, real)


def _inexact(value: Value) -> Value:
    if is_low(dtype_of(value)):
        return strong(value, FLOAT32)
    return value if is_inexact(dtype_of(value)) else strong(value, default_float())


def _along_one(
    name: str,
    inverse: bool,
    x: ArrayLike,
    type: int,
    n: ArrayLike,
    axis: int,
    norm: Any,
    orthogonalize: bool | None,
) -> Any:
    shown = f"i{name}" if inverse else name
    value = _inexact(array_operand(x, shown))
    d = one_axis(axis, len(shape_of(value)), shown)
    lengths = [length(shown, shape_of(value)[d] if n is None else n)]
    return _transformed(name, inverse, x, value, type, [d], lengths, norm, orthogonalize)


def _along_many(
    name: str,
    inverse: bool,
    x: Value,
    type: int,
    s: ArrayLike,
    axes: AxisLike,
    norm: Any,
    orthogonalize: bool | None,
) -> Array:
    shown = f"i{name}" if inverse else name
    value = array_operand(x, shown)
    shape = shape_of(value)
    places, sizes = places_and_sizes(shown, shape, _integers(shown, s), _integers(shown, axes))
    if len(set(places)) != len(places):
        raise AxisError(f"{shown}: each axis can be transformed once, got axes {tuple(places)}")
    lengths = [length(shown, shape[d] if n == -1 or s is None else n) for d, n in zip(places, sizes)]
    if places:
        value = _inexact(value)
    return _transformed(name[:-1], inverse, x, value, type, places, lengths, norm, orthogonalize)


def _integers(name: str, given: ArrayLike) -> Any:
    """A number as a tuple, which SciPy accepts too; a sequence unchanged."""
    if given is None or isinstance(given, Iterable):
        return given
    try:
        return (operator.index(given),)
    except TypeError:
        raise ArgumentError(
            f"{name}: s and axes must be integers or sequences of them, got {given!r}"
        ) from None


def _transformed(
    kind: str,
    inverse: bool,
    x: Value,
    value: Value,
    type: int,
    axes: Sequence[int],
    lengths: Sequence[int],
    norm: Any,
    orthogonalize: bool | None,
) -> Any:
    """Crop and pad, and bind the primitive; an inverse is the transposed type with the other scaling."""
    name = f"i{kind}" if inverse else kind
    if type not in ops.TRANSPOSED:
        raise ArgumentValueError(f"{name}: type must be 1, 2, 3 or 4, got {type!r}")
    scaled = scaling(name, norm)
    if (kind, type) == ("dct", 1) and min(lengths, default=2) < 2:
        raise ArgumentValueError(f"{name}: type 1 needs at least 2 points along an axis, got {min(lengths)}")
    out = value
    for d, n in zip(axes, lengths):
        out = resized(out, d, n)
    if axes:
        out = ops.dct_p.bind(
            out,
            kind=kind,
            type=ops.TRANSPOSED[type] if inverse else type,
            axes=tuple(axes),
            norm=ops.SWAPPED[scaled] if inverse else scaled,
            orthogonalize=scaled == "ortho" if orthogonalize is None else orthogonalize,
        )
    return owned(out, x)
