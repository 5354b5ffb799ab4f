"""Domains for property tests: where the numbers of an argument may be.

An `Interval` bounds every element. Other domains make arrays of free numbers by a smooth map: Hypothesis draws and
shrinks the free numbers, so that each smaller example lies in the domain, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..errors import ArgumentValueError, ShapeError
from ..frontend.checked import checked
from ..runtime.module_getattr import module_attributes as _module_attributes
from .domain import MARGIN, Interval

__all__ = ["Shaped", "away_from", "interval", "orthogonal", "permutation", "positive", "simplex", "spd"]

_FREE = Interval(-2.0, 2.0, avoid=())


@dataclass(frozen=True)
class Shaped:
    """Arrays that a function makes of free numbers.

    Parameters
    ----------
    name : str
    make : callable
        From an array of free numbers to an array of the domain, of the same shape.
    axes : {'n', 'nn'}
        What the last axes are: a vector, or a square matrix.
    kinds : str
        The dtype kinds of the free numbers.
    """

    name: str
    make: Callable[[np.ndarray], np.ndarray]
    axes: str = "n"
    kinds: str = "f"

    @property
    def free(self) -> Interval:
        """Where the free numbers are."""
        return _FREE

    def check(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Refuse a shape or dtype that arrays of the domain cannot have."""
        last = shape[len(shape) - len(self.axes) :]
        if len(shape) < len(self.axes) or 0 in last or len(set(last)) > 1:
            wanted = "(..., n, n)" if self.axes == "nn" else "(..., n)"
            raise ShapeError(f"domain {self.name}: arrays have a shape {wanted} with n > 0, got {shape}")
        if dtype.kind not in self.kinds:
            raise ArgumentValueError(
                f"domain {self.name}: no arrays of dtype {dtype}; use float64 or float32"
            )


AnyDomain = Interval | Shaped


@checked
def interval(low: float, high: float, *, avoid: tuple[float, ...] = (), margin: float = MARGIN) -> Interval:
    """Numbers from `low` to `high`.

    Parameters
    ----------
    low, high : float
    avoid : tuple of float
        Points, of kinks for example, from which all numbers keep a distance.
    margin : float
        This distance.

    Returns
    -------
    Interval

    Raises
    ------
    ArgumentValueError
        If nothing is left of the interval.

    Examples
    --------
    >>> from functrans.testing import domains
    >>> domains.interval(0.0, 1.0, avoid=(0.5,), margin=0.1)
    Interval(low=0.0, high=1.0, avoid=(0.5,), complex_range=(0.0, 1.0), integers=(-6, 6), margin=0.1)
    """
    ends = sorted([low, *[p for p in avoid if low - margin < p < high + margin], high])
    # Between two points to avoid, twice the margin must fit; at an end that is none, only once.
    room = [b - a - margin * ((a in avoid) + (b in avoid)) for a, b in pairwise(ends)]
    if not low < high or margin < 0 or max(room) <= 0:
        raise ArgumentValueError(
            f"interval({low}, {high}, avoid={avoid}, margin={margin}) is empty: choose a smaller margin"
        )
    return Interval(low, high, avoid, complex_range=(low, high), margin=margin)


@checked
def away_from(*points: float, margin: float = MARGIN, low: float = -2.0, high: float = 2.0) -> Interval:
    """Numbers that keep a distance from points, such as the kinks of a function.

    Parameters
    ----------
    *points : float
    margin : float
        The distance.
    low, high : float
        The interval around.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from functrans.testing import domains
    >>> domains.away_from(-1.0, 1.0, margin=0.05).avoid
    (-1.0, 1.0)
    """
    return interval(low, high, avoid=points, margin=margin)


@checked
def positive(least: float = 1e-2, most: float = 4.0) -> Interval:
    """Positive numbers.

    Parameters
    ----------
    least, most : float

    Returns
    -------
    Interval

    Examples
    --------
    >>> from functrans.testing import domains
    >>> domains.positive().low
    0.01
    """
    if least <= 0:
        raise ArgumentValueError(f"positive: least={least} is not positive")
    return interval(least, most)


def simplex() -> Shaped:
    """Probabilities: positive numbers whose sum along the last axis is 1.

    Returns
    -------
    Shaped

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.testing import domains
    >>> domains.simplex().make(np.zeros(4))
    array([0.25, 0.25, 0.25, 0.25])
    """

    def softmax(x: np.ndarray) -> np.ndarray:
        e = np.exp(x)
        return e / e.sum(-1, keepdims=True)

    return Shaped("simplex", softmax)


def spd() -> Shaped:
    """Symmetric positive definite matrices (of complex numbers: Hermitian ones), well conditioned.

    Returns
    -------
    Shaped

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.testing import domains
    >>> domains.spd().make(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """

    def gram(x: np.ndarray) -> np.ndarray:
        n = x.shape[-1]
        return x @ np.swapaxes(x, -1, -2).conj() / n + np.eye(n, dtype=x.dtype)

    return Shaped("spd", gram, axes="nn", kinds="fc")


def orthogonal() -> Shaped:
    """Orthogonal (of complex numbers: unitary) matrices, as Cayley's transforms of antisymmetric ones.

    Returns
    -------
    Shaped

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.testing import domains
    >>> q = domains.orthogonal().make(np.array([[0.0, 1.0], [0.5, 2.0]]))
    >>> np.allclose(q @ q.T, np.eye(2))
    True
    """

    def cayley(x: np.ndarray) -> np.ndarray:
        half, one = (x - np.swapaxes(x, -1, -2).conj()) / 2, np.eye(x.shape[-1], dtype=x.dtype)
        return np.linalg.solve(one - half, one + half)

    return Shaped("orthogonal", cayley, axes="nn", kinds="fc")


def permutation() -> Shaped:
    """Permutations of 0 to n - 1 along the last axis, for arguments that are indices.

    Returns
    -------
    Shaped

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.testing import domains
    >>> domains.permutation().make(np.array([0.5, -1.0, 0.7]))
    array([1, 0, 2])
    """
    return Shaped("permutation", lambda x: np.argsort(x, axis=-1, kind="stable"))


__getattr__, __dir__ = _module_attributes("functrans.testing.domains", globals())
