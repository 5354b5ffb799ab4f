"""The interface for the `simplify` rules of primitives.

A rule takes the rewriter and an equation whose operands are already rewritten. It returns an atom equal to the output,
another equation for the same output, or None. A rule must not change a rounding, a signed zero or a NaN: ``x + 0.0``
stays (it turns -0 into 0), ``x - 0.0`` goes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core import Atom, Eqn, Primitive, Source, Var
from .toolkit import new_equation


class Rewriter:
    """The state of one pass: the replacement of each variable, and the equations so far."""

    def __init__(self) -> None:
        self.env: dict[Var, Atom] = {}
        self.eqns: list[Eqn] = []
        self.producer: dict[Var, Eqn] = {}
        self.source: Source | None = None  # that of the current equation

    def read(self, a: Atom) -> Atom:
        """The current replacement of `a`."""
        return self.env.get(a, a) if isinstance(a, Var) else a

    def emit(self, eqn: Eqn) -> None:
        """Append an equation."""
        self.eqns.append(eqn)
        for v in eqn.outvars:
            self.producer[v] = eqn

    def new(self, prim: Primitive, *args: Atom, **params: Any) -> Var:
        """Append an equation, and return its result."""
        eqn = new_equation(prim, args, params, self.source)
        self.emit(eqn)
        return eqn.outvars[0]

    def made_by(self, a: Atom, prim: Primitive) -> Eqn | None:
        """The equation that defines `a`, if it is one of this primitive."""
        eqn = self.producer.get(a) if isinstance(a, Var) else None
        return eqn if eqn is not None and eqn.primitive is prim else None

    def uniform(self, a: Atom) -> Any:
        """The Python number that every element of `a` equals, or None."""
        while isinstance(a, Var):
            source = self.producer.get(a)
            if source is None or not source.primitive.repeats:
                return None
            a = source.invars[0]
        value = a.value
        return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def is_number(value: Any, number: float) -> bool:
    """Whether a uniform value is that number; zeros of opposite sign differ."""
    if value is None or isinstance(value, (bool, complex)) or value != number:
        return False
    return number != 0 or isinstance(value, int) or math.copysign(1, value) == math.copysign(1, number)


def inverse_pair(rw: Rewriter, eqn: Eqn) -> Atom | None:
    """``neg(neg(x))``, ``not(not(x))``."""
    inner = rw.made_by(eqn.invars[0], eqn.primitive)
    return None if inner is None else inner.invars[0]


def identity(rw: Rewriter, eqn: Eqn) -> Atom:
    """The output is the first operand."""
    return eqn.invars[0]
