"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...core.errors import ArgumentValueError, ShapeError
from ...core.trace import concrete, is_abstract
from ...primitives import ufuncs
from ...primitives.operands import finish
from ...primitives.structure.linear import shape_of
from ..creation.filled import zeros, zeros_like
from ..dispatch import array_operand, implements, owned
from ..products import outer
from ..reductions import reductions
from ..shaping.joining import concatenate, stack

__all__ = [
    "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval",
]  # fmt: skip


def coefficients(p: Any, name: str, position: int = 0) -> Any:
    """The coefficients as a vector; a number is one of a constant."""
    x = array_operand(p, name, position)
    if len(shape_of(x)) > 1:
        raise ShapeError(f"{name}: coefficients must be 1-dimensional, got shape {shape_of(x)}")
    return owned(x.reshape(1) if not shape_of(x) else x, p)


def _trimmed(p: Any) -> Any:
    """Without leading zeros, where the numbers are known: else as it is."""
    if is_abstract(p):
        return p
    (places,) = np.nonzero(np.asarray(concrete(p)))
    return p[int(places[0]) :] if len(places) else p[:0]


def _one_at_least(p: Any) -> Any:
    return p if p.shape[0] else zeros(1, p.dtype)


# --- sums and products --------------------------------------------------------------------------------------


def _aligned(a1: Any, a2: Any, name: str) -> tuple[Any, Any]:
    p, q = coefficients(a1, name), coefficients(a2, name, 1)
    n = max(p.shape[0], q.shape[0])
    return tuple(concatenate([zeros(n - v.shape[0], v.dtype), v]) if v.shape[0] < n else v for v in (p, q))


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polyadd([1, 2], [9, 5, 4])
    Array([9, 6, 6])
    """
    return ufuncs.add(*_aligned(a1, a2, "polyadd"))


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polysub([2, 10], [1, 1])
    Array([1, 9])
    """
    return ufuncs.subtract(*_aligned(a1, a2, "polysub"))


def _product(p: Any, q: Any) -> Any:
    """All products of coefficients, those of one power in one column, added."""
    n, m = p.shape[0], q.shape[0]
    table = outer(p, q)
    # Rows one element longer than n + m - 1: read in rows of n + m - 1, each is shifted by one.
    table = concatenate([table, zeros((n, n), table.dtype)], axis=1).reshape(-1)[: n * (n + m - 1)]
    return reductions.sum(table.reshape(n, n + m - 1), 0, dtype=table.dtype)


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials.

    Notes
    -----
    As in NumPy, leading zeros of the factors are left out where their numbers are known; inside ``jit`` they are
    not, and the product has them.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polymul([1, 2], [1, 3])
    Array([1, 5, 6])
    """
    p, q = (_one_at_least(_trimmed(coefficients(a, "polymul", i))) for i, a in enumerate((a1, a2)))
    return _product(p, q)


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """Quotient and remainder of two polynomials.

    Parameters
    ----------
    u, v : array_like, shape (n,), (m,)
        The first coefficient of the divisor is not 0.

    Notes
    -----
    As in NumPy, leading zeros of the remainder are left out where its numbers are known; inside ``jit`` it has as many
    coefficients as the divisor less one (at least one).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    (Array([1.5 , 1.75]), Array([0.25]))
    """
    p, q = coefficients(u, "polydiv"), coefficients(v, "polydiv", 1)
    if not p.shape[0] or not q.shape[0]:
        raise ArgumentValueError("polydiv: u and v must have at least one coefficient")
    rest = p + q[:1] * 0.0
    n, m = p.shape[0], q.shape[0]
    scale = 1.0 / q[0]
    quotient = []
    for k in range(n - m + 1):
        d = scale * rest[k]
        quotient.append(d)
        rest = rest.at[k : k + m].add(-d * q)
    found = stack(quotient) if quotient else zeros(1, rest.dtype)
    left = min(n, max(m - 1, 1))
    kept = rest if n < m else rest[n - left :]
    if is_abstract(rest):
        return found, kept
    numbers = np.asarray(concrete(rest))
    first = 0
    while first < n - 1 and np.isclose(numbers[first], 0.0, rtol=1e-14):
        first += 1
    return found, rest[first:]


# --- values, derivatives, integrals -------------------------------------------------------------------------


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """The value of a polynomial, by Horner's rule.

    Parameters
    ----------
    p : array_like, shape (n,)
    x : array_like
        Of any shape.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polyval([3, 0, 1], 5)
    Array(76)
    """
    weights = array_operand(p, "polyval")
    point = finish(array_operand(x, "polyval", 1))
    if not shape_of(weights):
        raise ShapeError("polyval: coefficients must have an axis, got a number")
    total: Any = zeros_like(point)
    for c in finish(weights):
        total = total * point + c
    return total


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    """The `m`-th derivative of a polynomial.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polyder([1, 1, 1, 1])
    Array([3, 2, 1])
    """
    times = operator.index(m)
    if times < 0:
        raise ArgumentValueError(f"polyder: order of derivative must be positive, got {times}")
    found = coefficients(p, "polyder")
    for _ in range(min(times, found.shape[0])):
        n = found.shape[0] - 1
        found = found[:-1] * np.arange(max(n, 0), 0, -1)
    return found


_MOST_TIMES = 1 << 16


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The `m`-th integral of a polynomial.

    Parameters
    ----------
    p : array_like, shape (n,)
    m : int
    k : array_like, shape (m,), or number, optional
        The constants of integration, in the order of integration; a number for one. By default 0.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polyint([6.0, 2.0, 1.0])
    Array([2., 1., 1., 0.])
    """
    times = operator.index(m)
    if times < 0:
        raise ArgumentValueError(f"polyint: order of integral must be positive, got {times}")
    if times > _MOST_TIMES:
        raise ArgumentValueError(f"polyint: m={times}: more integrals than {_MOST_TIMES}")
    constants = zeros(times, float) if k is None else coefficients(k, "polyint", 2)
    if constants.shape[0] == 1 and times > 1:
        constants = constants * np.ones(times)
    if constants.shape[0] < times:
        raise ArgumentValueError(
            f"polyint: k must be a scalar or of length 1 or >m, got {constants.shape[0]}"
        )
    found = coefficients(p, "polyint")
    for i in range(times):
        found = concatenate([found / np.arange(found.shape[0], 0, -1), constants[i : i + 1]])
    return found
