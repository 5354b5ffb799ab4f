"""A linearization as a pytree: the residuals of the evaluation, and its program.

So a function that `vjp` or `linearize` returned is a tree of arrays: it can go through `jit` and `vmap`, and custom
rules may save it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import Tracer, Zero
from ..core.values import Value
from .linearize import Linearized


class LinearProgram:
    """A linearization without its residuals. Compared by identity: each linearization makes a new one."""

    __slots__ = ("_inputs", "_places", "_tangents", "_tape")

    def __init__(self, linear: Linearized):
        self._inputs = linear.inputs
        self._tangents = [Zero(t.aval) if type(t) is Zero else t for t in linear.tangents]
        self._places = [tuple([i for i, a in enumerate(e.args) if _is_value(a)]) for e in linear.tape]
        self._tape = [e._replace(args=_cleared(e.args, p)) for e, p in zip(linear.tape, self._places)]

    def values(self, linear: Linearized) -> list[Value]:
        """The residuals of a linearization with this program."""
        return [e.args[i] for e, places in zip(linear.tape, self._places) for i in places]

    def filled(self, values: Sequence[Value]) -> Linearized:
        """The linearization with these residuals."""
        rest = iter(values)
        tape = []
        for entry, places in zip(self._tape, self._places):
            args = list(entry.args)
            for i in places:
                args[i] = next(rest)
            tape.append(entry._replace(args=tuple(args)))
        return Linearized([], self._inputs, self._tangents, tape)


def _is_value(x: Value) -> bool:
    return isinstance(x, np.ndarray | np.generic | Tracer)


def _cleared(args: tuple[Any, ...], places: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple([None if i in places else a for i, a in enumerate(args)])
