"""Inputs for calling a function eagerly and compiled, and the comparison of what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from coverage_table import Call, Entry

import functrans as ft
from functrans.core.kernel import Pointwise

DTYPES = ("float64", "float32", "int64", "int32", "bool", "complex128", "complex64", "uint8")


# --- inputs -------------------------------------------------------------------------------------------------


def specials(dtype: Any) -> np.ndarray:
    """NaN, infinities, zeros of both signs, the ends of the range, ones, halves, numbers that are no integers."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([True, False])
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        below = [-1, -2, -3, -7] if dtype.kind == "i" else []
        numbers = [
            ends.min,
            ends.min + 1,
            ends.max,
            ends.max - 1,
            ends.max // 2 + 1,
            0,
            1,
            2,
            3,
            5,
            7,
            63,
            64,
            100,
        ]
        return np.array(numbers + below, dtype)
    if dtype.kind == "c":
        parts = specials("float64" if dtype.itemsize == 16 else "float32")[
            [0, 1, 2, 3, 4, 5, 7, 11, 13, 15, 19, 28, 31]
        ]
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    ends = np.finfo(dtype)
    size = [
        0.0,
        ends.smallest_subnormal,
        ends.tiny,
        ends.max,
        ends.eps,
        1,
        0.5,
        1.5,
        2,
        2.5,
        3,
        0.3,
        1.7,
        10,
        30.1,
    ]
    size += [1 - ends.eps, 1 + ends.eps, 100, 300, 1e5, 2.0**31, 1e10, 2.0**63, 1e22]
    return np.array([np.nan, np.inf, -np.inf, *[s * x for x in size for s in (1, -1)]], dtype)


def retyped(x: np.ndarray, dtype: Any) -> np.ndarray:
    """A drawn argument in another dtype: floats change to any, integers to integers, complex numbers to complex."""
    dtype, kind = np.dtype(dtype), x.dtype.kind
    if kind == "b" or (kind in "iu" and dtype.kind not in "iu"):
        return x
    if kind in "iu":
        return x.astype(dtype)
    if kind == "c":
        return x.astype(np.complex64 if dtype in (np.float32, np.complex64) else complex)
    if dtype.kind in "fc":
        return x.astype(dtype)
    return x > 0.6 if dtype.kind == "b" else np.round(10 * np.abs(x)).astype(dtype)


#: The place of the form without elements.
EMPTY = 2


def odd_shapes(values: list[np.ndarray]) -> Iterator[list[Any]]:
    """The same numbers in other forms: one element, none, 0-d, strided, backwards, Python's numbers."""
    yield [x[::-1].copy()[::-1] if x.ndim else x for x in values]
    yield [np.repeat(x, 2, -1)[..., ::2] if x.ndim else x for x in values]
    yield [x[:0] if x.ndim else x for x in values]
    yield [x[:1] if x.ndim else x for x in values]
    yield [x.ravel()[0] if x.size else x for x in values]
    yield [x.ravel()[0].item() if x.size else x for x in values]


def inputs(
    values: list[np.ndarray], elementwise: bool, random: np.random.Generator, rounds: int, tame: bool = False
) -> Iterator[list[np.ndarray]]:
    """The drawn arguments; for elementwise functions pairs of special numbers; one special number in each.

    With `tame`, no number is infinite, NaN, or near the ends of its range.
    """
    yield values
    numbers = [specials(x.dtype) for x in values]
    if tame:
        numbers = [x[(x == 0) | ((_size(x) > 1e-10) & (_size(x) < 1e4))] for x in numbers]
    if elementwise and len(values) == 1:
        yield numbers
    elif elementwise and len(values) == 2:
        few = [random.permutation(x)[:40] for x in numbers]
        yield [x.ravel().copy() for x in np.meshgrid(*few)]
    elif elementwise:
        yield [random.choice(x, 500) for x in numbers]
    for _ in range(rounds):
        found = [x.copy() for x in values]
        for x, own in zip(found, numbers):
            if x.size and random.random() < 0.8:
                x.ravel()[random.integers(x.size)] = random.choice(own)
        yield found


#: Ulps of the exponent of an exponential.
TAIL = 8


# --- comparison ---------------------------------------------------------------------------------------------


def steps_of(f: Callable[..., Any], values: list[Any]) -> int | None:
    """How many operations an elementwise function has; None for others."""
    try:
        jaxpr = ft.make_jaxpr(f)(*values)
    except Exception:
        return None
    return _steps(getattr(jaxpr, "jaxpr", jaxpr))


def _steps(jaxpr: Any) -> int | None:
    total = 0
    for e in jaxpr.eqns:
        inner = [p for p in e.params.values() if hasattr(p, "eqns")]
        found = [_steps(p) for p in inner]
        if None in found or not (
            inner or isinstance(e.primitive.kernel, Pointwise) or e.primitive.moves_data
        ):
            return None
        total += sum(found) if inner else not e.primitive.moves_data
    return total


def error_or(f: Callable[[], Any]) -> Any:
    """The result, or the error."""
    try:
        return f()
    except Exception as error:
        return error


def first_line(error: Exception) -> str:
    """Without the user's line, and without the arguments, which are shown as they are."""
    return str(error).split("\n")[0].split(". It was called with")[0]


def difference(
    eager: Any, compiled: Any, ulps: float | None, slack: float, terms: float = 0.0, tails: bool = False
) -> str | None:
    """What differs between two arrays: shape, dtype, weakness, NaN, infinity, sign of zero, numbers.

    Numbers may differ by so many ulps of the larger one, or of `terms`, of which they are differences. With `tails`,
    they are exponentials: a rounding of x is one of exp(x) times x.
    """
    if isinstance(eager, np.ndarray) and getattr(eager, "weak_type", None) != getattr(
        compiled, "weak_type", None
    ):
        return f"weak_type {eager.weak_type} and {compiled.weak_type}"
    a, b = np.asarray(eager), np.asarray(compiled)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"type {a.dtype}{a.shape} and {b.dtype}{b.shape}"
    if a.dtype.kind not in "fc":
        return _where(a != b, a, b, "values")
    for what, test in (("NaN", np.isnan), ("infinity", np.isinf)):
        if np.any(test(a) != test(b)):
            return _where(test(a) != test(b), a, b, what)
    signs = _signs(a, b, zeros=ulps is not None)
    if np.any(signs):
        return _where(signs, a, b, "signs")
    finite = np.isfinite(a)
    size = np.maximum(np.maximum(_size(a), _size(b)), np.asarray(terms, a.real.dtype))
    if ulps is None:
        least = {"float16": 4e-3, "float32": 3e-5, "complex64": 3e-5}.get(a.dtype.name, 0.0)
        limit = max(slack, least) * np.max(size, initial=0, where=finite)
    else:
        size = np.where(finite, size, 1)
        magnified = abs(np.log(np.maximum(size, np.finfo(size.dtype).tiny))) if tails else 0.0
        limit = (ulps + TAIL * magnified) * np.spacing(size)
    apart = np.where(finite, a, 0) - np.where(finite, b, 0)
    return _where(_size(apart) > limit, a, b, "numbers")


def _size(x: np.ndarray) -> np.ndarray:
    return np.maximum(np.abs(x.real), np.abs(x.imag)) if x.dtype.kind == "c" else np.abs(x)


def _signs(a: np.ndarray, b: np.ndarray, zeros: bool) -> np.ndarray:
    """Where infinities have other signs; for real numbers, also zeros."""
    wrong = np.zeros(a.shape, bool)
    for x, y in ((a.real, b.real), (a.imag, b.imag)):
        wrong |= np.isinf(x) & (x != y) & np.isinf(y)
        if zeros and a.dtype.kind == "f":
            wrong |= (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
    return wrong


def _where(wrong: np.ndarray, a: np.ndarray, b: np.ndarray, what: str) -> str | None:
    places = np.argwhere(wrong)
    if not len(places):
        return None
    place = tuple(places[0].tolist())
    return f"{what} at {place}: {a[place]!r} and {b[place]!r}, {len(places)} places of {a.size}"


# --- a call, both ways --------------------------------------------------------------------------------------


class BothWays:
    """One call of an entry as a function of its drawn arguments, eagerly and compiled.

    Parameters
    ----------
    entry : Entry
    call : Call
    leaves : callable
        The arrays and numbers of a result.
    """

    def __init__(self, entry: Entry, call: Call, leaves: Callable[[Any], list[Any]]):
        self.rtol = max(entry.rtol, 1e-10)
        self.eager = lambda *values: tuple(leaves(call(entry.subject, values)))
        self.compiled = ft.jit(self.eager)

    def compare(
        self, values: list[Any], ulps: float | None, terms: float = 0.0, tails: bool = False
    ) -> tuple[str, str] | None:
        """The kind of the difference, and the difference."""
        eager = error_or(lambda: self.eager(*values))
        compiled = error_or(lambda: self.compiled(*values))
        if isinstance(eager, Exception) or isinstance(compiled, Exception):
            if type(eager) is not type(compiled):
                return "error", f"{_told(eager)} and {_told(compiled)}"
            if first_line(eager) != first_line(compiled):
                return "message", f"{first_line(eager)!r} and {first_line(compiled)!r}"
            return None
        if len(eager) != len(compiled):
            return "type", f"{len(eager)} results and {len(compiled)}"
        for a, b in zip(eager, compiled):
            found = difference(a, b, ulps, self.rtol, terms, tails)
            if found is not None:
                kind = "type" if found.startswith(("type", "weak")) else found.split(" ")[0]
                return kind, found
        return None


def _told(result: Any) -> str:
    return repr(result)[:300] if isinstance(result, Exception) else "a result"
