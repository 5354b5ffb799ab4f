"""Discrete distributions: what a record says, and how its functions are computed."""

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
_FORMULAS = ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf")
#: Values below and above the support.
_BEYOND = {
    "logpmf": (-math.inf, -math.inf),
    "pmf": (0.0, 0.0),
    "cdf": (0.0, 1.0),
    "sf": (1.0, 0.0),
    "logcdf": (-math.inf, 0.0),
    "logsf": (0.0, -math.inf),
}


def whole(n: ArrayLike) -> Any:
    """Whether numbers are integers."""
    return np.floor(n) == n


@dataclass(frozen=True, kw_only=True)
class Discrete:
    """A distribution of integers; see `Continuous` for the fields that both have.

    Parameters
    ----------
    support : callable
        The smallest and the largest value, from the shape parameters.
    logpmf, pmf, cdf, sf, logcdf, logsf : callable
        ``f(k, *shapes)`` for integers `k` within the support; the last value is left out of the domain of `cdf`, `sf`.
    inside : callable
        An integer whose probability is not 0, from the shape parameters; by default the smallest.
    ppf : callable
        ``f(q, *shapes)``: a number near the quantile. The quantile is looked for beside it.
    entropy : callable
        ``f(*shapes)``.
    """

    name: str
    summary: str
    density: str
    shapes: tuple[str, ...]
    example: tuple[float, ...]
    support: Formula
    valid: Formula
    conditions: str
    inside: Formula | None = None
    logpmf: Formula
    pmf: Formula | None = None
    cdf: Formula | None = None
    sf: Formula | None = None
    logcdf: Formula | None = None
    logsf: Formula | None = None
    ppf: Formula | None = None
    entropy: Formula | None = None

    parameters: ClassVar[tuple[tuple[str, int], ...]] = (("loc", 0),)

    @cached_property
    def formulas(self) -> dict[str, Formula]:
        """All formulas by name."""
        given = {name: f for name in _FORMULAS if (f := getattr(self, name)) is not None}
        return complete(given, self._inside)

    def _inside(self, *shapes: ArrayLike) -> Value:
        return self.support(*shapes)[0] if self.inside is None else self.inside(*shapes)

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the public functions."""
        others = [name for name in ("ppf", "entropy") if getattr(self, name) is not None]
        return (*self.formulas, *others)

    @property
    def notes(self) -> str:
        """For the docstrings."""
        return (
            f"Probability ``{self.density}``; `loc` shifts it. Valid if {self.conditions}. "
            "Numbers with a fraction have probability 0. The derivative in `k` is 0."
        )

    def evaluate(self, function: str, x: Value, shapes: Sequence[Value], loc: Value) -> Value:
        """The value of a function, for operands of one floating point dtype; `loc` may be None."""
        valid = self.valid(*shapes)
        shapes = [where(valid, a, typical) for a, typical in zip(shapes, self.example[1:])]
        if function == "entropy":
            assert self.entropy is not None
            value = self.entropy(*shapes)
        elif function == "ppf":
            value = self._quantile(x, shapes, loc)
        else:
            value = self._at(function, x if loc is None else x - loc, shapes)
            valid = every(valid, x == x)
        return where(valid, value, math.nan)

    def _at(self, function: str, x: Value, shapes: Sequence[Value]) -> Value:
        k = np.floor(x)
        low, high = self.support(*shapes)
        if function in ("logpmf", "pmf"):
            below, above = (x < low) | (k < x), (k > high) | (k == math.inf)
        else:
            below, above = k < low, k >= high
        value = self.formulas[function](np.where(below | above, self._inside(*shapes), k), *shapes)
        first, last = _BEYOND[function]
        return np.where(below, first, np.where(above, last, value))

    def _quantile(self, q: ArrayLike, shapes: Sequence[ArrayLike], loc: Value) -> Value:
        assert self.ppf is not None
        low, high = self.support(*shapes)
        between = (q > 0) & (q < 1)
        inner = np.where(between, q, 0.5)
        k = np.fmin(np.fmax(np.ceil(self.ppf(inner, *shapes)), low), high)
        before = np.maximum(k - 1, low)
        cdf = self.formulas["cdf"]
        after = np.where((k < high) & (cdf(k, *shapes) < inner), k + 1, k)
        k = np.where(cdf(before, *shapes) >= inner, before, after)
        k = np.where(q == 0, low - 1, np.where(q == 1, high, np.where(between, k, math.nan)))
        return k if loc is None else k + loc
