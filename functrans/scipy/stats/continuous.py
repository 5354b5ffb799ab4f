"""Continuous distributions: what a record says, and how its functions are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.values import ArrayLike, Value
from ...runtime.context import cached_property
from ...runtime.records import dataclass
from .derived import complete, every, where

Formula = Callable[..., Any]
_FORMULAS = ("logpdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")
#: Values below and above the support.
_BEYOND = {
    "logpdf": (-math.inf, -math.inf),
    "pdf": (0.0, 0.0),
    "cdf": (0.0, 1.0),
    "sf": (1.0, 0.0),
    "logcdf": (-math.inf, 0.0),
    "logsf": (0.0, -math.inf),
}


def positive(*shapes: ArrayLike) -> Value:
    """Whether shape parameters are positive; NaN is not."""
    return every(*[a > 0 for a in shapes])


@dataclass(frozen=True, kw_only=True)
class Continuous:
    """A continuous distribution.

    Formulas are those of location 0 and scale 1, written in NumPy and SciPy. They get points inside of the support and
    valid shape parameters. `derived.complete` adds those that are missing.

    Parameters
    ----------
    name, summary, density : str
        The density is a formula, for the docstrings.
    shapes : tuple of str
        The names of the shape parameters.
    example : tuple of float
        A point and shape parameters, for the docstrings; formulas get these shape parameters instead of invalid ones.
    support : tuple of float, or callable
        The two ends, or a function of the shape parameters that returns them.
    at_ends : str
        The density at the finite ends: 'formula' follows the formula; 'guarded' does too, and may be 0; 'zero' is 0,
        which the formula need not say.
    valid : callable
        Whether shape parameters are valid.
    conditions : str
        The same in words.
    inside : float or callable
        A point inside of the support, or a function of the shape parameters that returns one.
    symmetric : bool
        Whether ``-x`` has the same distribution.
    logpdf, cdf, sf, logcdf, logsf : callable
        ``f(x, *shapes)``.
    ppf, isf : callable
        ``f(q, *shapes)``, for `q` between 0 and 1.
    entropy : callable
        ``f(*shapes)``.
    """

    name: str
    summary: str
    density: str
    shapes: tuple[str, ...] = ()
    example: tuple[float, ...] = (0.4,)
    support: tuple[float, float] | Formula = (-math.inf, math.inf)
    at_ends: str = "formula"
    valid: Formula = positive
    conditions: str = "the shape parameters are positive"
    inside: float | Formula = 0.5
    symmetric: bool = False
    logpdf: Formula
    cdf: Formula | None = None
    sf: Formula | None = None
    logcdf: Formula | None = None
    logsf: Formula | None = None
    ppf: Formula | None = None
    isf: Formula | None = None
    entropy: Formula | None = None

    parameters: ClassVar[tuple[tuple[str, int], ...]] = (("loc", 0), ("scale", 1))

    @cached_property
    def formulas(self) -> dict[str, Formula]:
        """All formulas by name."""
        given = {name: f for name in _FORMULAS if (f := getattr(self, name)) is not None}
        return complete(given, self._inside, symmetric=self.symmetric, guarded=self.at_ends == "guarded")

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the public functions."""
        return (*self.formulas, "entropy") if self.entropy is not None else tuple(self.formulas)

    @property
    def notes(self) -> str:
        """For the docstrings."""
        text = f"Standard density ``{self.density}``; `loc` shifts it, `scale` stretches it."
        return f"{text} Valid if {self.conditions} and ``scale > 0``." if self.shapes else text

    def _inside(self, *shapes: ArrayLike) -> Any:
        return self.inside(*shapes) if callable(self.inside) else self.inside

    def _ends(self, *shapes: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
        return self.support(*shapes) if callable(self.support) else self.support

    def evaluate(self, function: str, x: Value, shapes: Sequence[Value], loc: Value, scale: Value) -> Value:
        """The value of a function, for operands of one floating point dtype; `loc` and `scale` may be None."""
        valid = self.valid(*shapes)
        shapes = [where(valid, a, typical) for a, typical in zip(shapes, self.example[1:])]
        if scale is not None:
            valid = every(valid, scale > 0)
            scale = where(scale > 0, scale, 1.0)
        if function == "entropy":
            assert self.entropy is not None
            value = self.entropy(*shapes)
            value = value if scale is None else value + np.log(scale)
        elif function in ("ppf", "isf"):
            value = self._quantile(function, x, shapes, loc, scale)
        else:
            value = self._at(function, x, shapes, loc, scale)
        return where(valid, value, math.nan)

    def _at(self, function: str, x: Value, shapes: Sequence[Value], loc: Value, scale: Value) -> Value:
        z = x if loc is None else x - loc
        z = z if scale is None else z / scale
        low, high = self._ends(*shapes)
        if function in ("logpdf", "pdf"):
            zero = self.at_ends == "zero"
            below = z <= low if zero or _infinite(low) else z < low
            above = z >= high if zero or _infinite(high) else z > high
        else:
            below, above = z <= low, z >= high
        value = self.formulas[function](np.where(below | above, self._inside(*shapes), z), *shapes)
        if scale is not None and function in ("logpdf", "pdf"):
            value = value / scale if function == "pdf" else value - np.log(scale)
        first, last = _BEYOND[function]
        return np.where(below, first, np.where(above, last, value))

    def _quantile(
        self, function: str, q: ArrayLike, shapes: Sequence[ArrayLike], loc: Value, scale: Value
    ) -> Value:
        def moved(z: Value) -> Value:
            if _infinite(z):
                return z
            z = z if scale is None else z * scale
            return z if loc is None else z + loc

        ends = self._ends(*shapes)
        first, last = ends if function == "ppf" else ends[::-1]
        between = (q > 0) & (q < 1)
        value = moved(self.formulas[function](np.where(between, q, 0.5), *shapes))
        value = np.where(between, value, math.nan)
        return np.where(q == 0, moved(first), np.where(q == 1, moved(last), value))


def _infinite(end: Value) -> bool:
    """Whether an end is infinite whatever the shape parameters."""
    return isinstance(end, float) and math.isinf(end)
