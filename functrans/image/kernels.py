"""Kernels of resampling: the weights of elements by their distance, for numbers that are known or traced."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import ArgumentValueError
from ..core.values import Value


class ResizeMethod(enum.Enum):
    """How an image is resampled.

    Attributes
    ----------
    NEAREST
        Take the nearest element.
    LINEAR
        Interpolate linearly.
    CUBIC
        Cubic convolution (R. G. Keys, IEEE Trans. ASSP 29, 1981).
    CUBIC_PYTORCH
        As PyTorch: the same with antialiasing; without, with a steeper kernel, and the edges repeated.
    LANCZOS3, LANCZOS5
        A windowed sinc of radius 3 or 5.
    AREA
        Average what a new element covers.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name, such as ``'bilinear'``.

        Raises
        ------
        ArgumentValueError
            If there is none.

        Examples
        --------
        >>> from functrans.image import ResizeMethod
        >>> ResizeMethod.from_string("bicubic")
        <ResizeMethod.CUBIC: 4>
        """
        if isinstance(s, ResizeMethod):
            return s
        if s not in _NAMES:
            raise ArgumentValueError(
                f"image: method must be a ResizeMethod or one of {', '.join(map(repr, _NAMES))}, got {s!r}"
            )
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


def _triangle(x: Value) -> Value:
    return np.maximum(0.0, 1.0 - x)


def _cubic(a: float) -> Callable[[Any], Any]:
    """Keys's kernel with slope `a` at 1."""

    def kernel(x: Value) -> Value:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x >= 2, 0.0, np.where(x >= 1, far, near))

    return kernel


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def kernel(x: Value) -> Value:
        apart = np.where(x > 1e-3, x, 1.0)
        wave = radius * np.sin(np.pi * apart) * np.sin(np.pi * apart / radius) / (np.pi**2 * apart**2)
        return np.where(x > radius, 0.0, np.where(x > 1e-3, wave, 1.0))

    return kernel


#: The radius of each kernel, and its weights by distance.
KERNELS: dict[ResizeMethod, tuple[int, Callable[[Any], Any]]] = {
    ResizeMethod.LINEAR: (1, _triangle),
    ResizeMethod.LANCZOS3: (3, _lanczos(3.0)),
    ResizeMethod.LANCZOS5: (5, _lanczos(5.0)),
    ResizeMethod.CUBIC: (2, _cubic(-0.5)),
    ResizeMethod.CUBIC_PYTORCH: (2, _cubic(-0.75)),
}
