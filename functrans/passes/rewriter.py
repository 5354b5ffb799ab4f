"""What `simplify` rules of primitives are written with.

A rule takes the rewriter and an equation whose operands are already rewritten, and returns an atom that
equals its output, another equation for the same output, or None. Rules that would change a rounding, a signed
zero or a NaN are not allowed: ``x + 0.0`` stays (it turns -0 into 0), ``x - 0.0`` goes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.ir import Atom, Eqn, Var
from ..core.primitive import Primitive
from ..core.source import Source
from .toolkit import new_equation


class Rewriter:
    """The state of one pass: what replaces each variable, and the equations so far."""

    def __init__(self) -> None:
        self.env: dict[Var, Atom] = {}
        self.eqns: list[Eqn] = []
        self.producer: dict[Var, Eqn] = {}
        self.source: Source | None = None  # of the equation being rewritten

    def read(self, a: Atom) -> Atom:
        """What stands for `a` now."""
        return self.env.get(a, a) if isinstance(a, Var) else a

    def emit(self, eqn: Eqn) -> None:
        """Append an equation."""
        self.eqns.append(eqn)
        for v in eqn.outvars:
            self.producer[v] = eqn

    def new(self, prim: Primitive, *args: Atom, **params: Any) -> Var:
        """The result of a new equation."""
        eqn = new_equation(prim, args, params, self.source)
        self.emit(eqn)
        return eqn.outvars[0]

    def made_by(self, a: Atom, name: str) -> Eqn | None:
        """The equation that gives `a`, if its primitive has that name."""
        found = self.producer.get(a) if isinstance(a, Var) else None
        return found if found is not None and found.primitive.name == name else None

    def uniform(self, a: Atom) -> Any:
        """The Python number that every element of `a` equals, or None."""
        while isinstance(a, Var):
            source = self.made_by(a, "broadcast_in_dim")
            if source is None:
                return None
            a = source.invars[0]
        value = a.value
        return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def is_number(value: Any, number: float) -> bool:
    """Whether a uniform value is that number; zeros of either sign differ."""
    if value is None or isinstance(value, (bool, complex)) or value != number:
        return False
    return number != 0 or isinstance(value, int) or math.copysign(1, value) == math.copysign(1, number)


def inverse_pair(rw: Rewriter, eqn: Eqn) -> Atom | None:
    """``neg(neg(x))``, ``not(not(x))``."""
    inner = rw.made_by(eqn.invars[0], eqn.primitive.name)
    return None if inner is None else inner.invars[0]


def identity(rw: Rewriter, eqn: Eqn) -> Atom:
    """The output is the first operand."""
    return eqn.invars[0]
