"""Print a jaxpr: one equation per line, like mathematics."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .ir import Atom, Eqn, Jaxpr, Var


def variable_name(i: int) -> str:
    """``a``, ``b``, ..., ``z``, ``ba``, ``bb``, ..."""
    letters = chr(ord("a") + i % 26)
    while i >= 26:
        i //= 26
        letters = chr(ord("a") + i % 26) + letters
    return letters


class _JaxprPrinter:
    def __init__(self, source: bool):
        self.source = source
        self.names: dict[Var, str] = {}
        self.counter = count()

    def atom(self, a: Atom) -> str:
        if hasattr(a, "value"):
            text = repr(a.value.item()) if isinstance(a.value, (np.generic, np.ndarray)) else repr(a.value)
            return text if a.aval.weak else f"{text}:{a.aval}"
        name = self.names.get(a)
        if name is None:
            name = self.names[a] = variable_name(next(self.counter))
        return name

    def binder(self, v: Var) -> str:
        return f"{self.atom(v)}:{v.aval}"

    def param(self, value: Any, indent: str) -> str:
        if hasattr(value, "eqns"):
            return (
                "{\n"
                + "\n".join(_JaxprPrinter(self.source).lines(value, indent + "  "))
                + f"\n{indent}"
                + "}"
            )
        if isinstance(value, np.dtype):
            return value.name
        if isinstance(value, tuple) and any(hasattr(v, "eqns") for v in value):
            return "(" + ", ".join(self.param(v, indent) for v in value) + ")"
        return str(value)

    def eqn(self, eqn: Eqn, indent: str) -> str:
        outs = " ".join(map(self.binder, eqn.outvars))
        if eqn.primitive.show is not None:
            params = eqn.primitive.show(**eqn.params)
        else:
            params_given = {k: v for k, v in eqn.params.items() if v is not None}
            params = ", ".join(f"{k}={self.param(v, indent)}" for k, v in params_given.items())
        args = " ".join(map(self.atom, eqn.invars))
        head = f"{outs} = " if outs else ""
        line = f"{indent}{head}{eqn.primitive.name}{f'[{params}]' if params else ''} {args}".rstrip()
        return f"{line}  # {eqn.source}" if self.source and eqn.source is not None else line

    def lines(self, jaxpr: Jaxpr, indent: str) -> list[str]:
        consts = " ".join(map(self.binder, jaxpr.constvars))
        invars = " ".join(map(self.binder, jaxpr.invars))
        head = f"{indent}lambda {consts}{' ; ' if consts else ''}{invars}."
        body = [self.eqn(e, indent + "  ") for e in jaxpr.eqns]
        outs = ", ".join(map(self.atom, jaxpr.outvars))
        return [head, *body, f"{indent}  return ({outs}{',' if len(jaxpr.outvars) == 1 else ''})"]


def show(jaxpr: Jaxpr, *, source: bool = False) -> str:
    """The text of a jaxpr.

    Parameters
    ----------
    jaxpr : Jaxpr
    source : bool
        Append the user's file, line and function to each equation.
    """
    return "\n".join(_JaxprPrinter(source).lines(jaxpr, ""))
