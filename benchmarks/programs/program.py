"""What a program is to the benchmark."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy


@dataclass(frozen=True)
class Program:
    """A function to compile as a whole, and its data.

    Attributes
    ----------
    name : str
    f : callable
        A function of arrays, and of the namespaces that it names as keyword-only parameters (`np`, `lax`, `api`, ...).
        It takes its derivatives itself.
    data : callable
        Makes the arguments from a seeded generator.
    tolerance : float
        How far the contestants' results may differ, relative to the largest element.
    rows : tuple of int
        The arguments whose rows are the steps of a loop: `growth` repeats them.
    """

    name: str
    f: Callable[..., Any]
    data: Callable[[numpy.random.Generator], tuple[Any, ...]]
    tolerance: float = 1e-8
    rows: tuple[int, ...] = ()

    def arguments(self) -> tuple[Any, ...]:
        """Fresh data, the same at each call."""
        return self.data(numpy.random.default_rng(0))


def value_and_grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The program that computes the value and gradient of the program `f`.

    Its attribute `primal` has both arguments.
    """
    signature = inspect.signature(f)
    passes_api = "api" in signature.parameters

    def both(*arguments: Any, api: Any, **spaces: Any) -> Any:
        if passes_api:
            spaces["api"] = api
        return api.value_and_grad(lambda *x: f(*x, **spaces), argnums)(*arguments)

    parameters = list(signature.parameters.values())
    if not passes_api:
        parameters.append(inspect.Parameter("api", inspect.Parameter.KEYWORD_ONLY))
    both.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    both.primal = f, argnums  # type: ignore[attr-defined]
    both.__name__ = both.__qualname__ = f.__name__
    return both
