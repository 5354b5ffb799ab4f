"""Evaluate a jaxpr: bind each equation, in order, in the current trace.

With NumPy values this computes; with tracers it is how every other interpreter walks a jaxpr.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.ir import Atom, Jaxpr, Literal
from ..core.source import replayed


def evaluate(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """The outputs of `jaxpr` at `args` (one value for each of its inputs)."""
    env: dict[Atom, Any] = dict(zip(jaxpr.constvars, jaxpr.consts))
    env.update(zip(jaxpr.invars, args))
    before = replayed.get()
    try:
        for eqn in jaxpr.eqns:
            replayed.set(eqn.source or before)  # what is staged from this equation keeps the user's line
            values = [a.value if type(a) is Literal else env[a] for a in eqn.invars]
            out = eqn.primitive.bind(*values, **eqn.params)
            if eqn.primitive.multiple:
                env.update(zip(eqn.outvars, out))
            else:
                env[eqn.outvars[0]] = out
    finally:
        replayed.set(before)
    return [a.value if type(a) is Literal else env[a] for a in jaxpr.outvars]
