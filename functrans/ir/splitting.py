"""Cut a program into parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import Atom, Eqn, Jaxpr, Literal, Unportable, Var, boundary
from ..core.evaluation import evaluate
from ..core.values import PyTree
from ..frontend.arguments import result
from ..frontend.checked import checked
from ..passes.toolkit import variables_read
from .programs import suitable_values


class Split(Unportable):
    """A program cut into parts; called like the whole.

    Attributes
    ----------
    jaxpr : Jaxpr
        The whole.
    parts : list of (label, Jaxpr)
        Each from the values that it reads to those that later parts or the outputs need.
    """

    def __init__(
        self,
        jaxpr: Jaxpr,
        parts: Sequence[tuple[Any, Jaxpr]],
        wires: Sequence[tuple[Sequence[Var], Sequence[Var]]],
    ):
        self.jaxpr = jaxpr
        self.parts = list(parts)
        self._wires = list(wires)

    @boundary
    def __call__(self, *args: PyTree) -> Any:
        """Run the parts one after the other: one result, or a tuple. It goes through every transformation."""
        values = suitable_values(self._called(), self.jaxpr, args)
        env: dict[Atom, Any] = {**dict(self.jaxpr.constants), **dict(zip(self.jaxpr.invars, values))}
        for (_, part), (ins, outs) in zip(self.parts, self._wires):
            env.update(zip(outs, evaluate(part, [env[v] for v in ins])))
        values_out = [a.value if isinstance(a, Literal) else env[a] for a in self.jaxpr.outvars]
        given = {*map(id, values), *map(id, self.jaxpr.consts)}
        found = [result(x, given) for x in values_out]
        return found[0] if len(found) == 1 else tuple(found)

    def _called(self) -> str:
        return f"the split of {self.jaxpr.name}"

    def __repr__(self) -> str:
        listed = ", ".join(f"{label!r}: {len(part.eqns)}" for label, part in self.parts)
        return f"<split of {self.jaxpr.name}: {listed}>"


@checked
def split(jaxpr: Jaxpr, label: Callable[[Eqn], Any]) -> Split:
    """Cut a program into runs of successive equations with equal labels.

    Parameters
    ----------
    jaxpr : Jaxpr
    label : callable
        ``label(eqn)`` returns anything that can be compared.

    Returns
    -------
    Split

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> program = ir.trace(lambda x, w: np.tanh(np.sin(x) @ w) * 2.0, np.ones(3), np.ones((3, 2)))
    >>> s = ir.split(program, lambda eqn: "blas" if eqn.primitive is ir.primitive("dot_general") else "loops")
    >>> s
    <split of <lambda>: 'loops': 1, 'blas': 1, 'loops': 2>
    >>> s(np.zeros(3), np.ones((3, 2)))
    Array([0., 0.])
    """
    runs: list[tuple[Any, list[Eqn]]] = []
    for eqn in jaxpr.eqns:
        own = label(eqn)
        if runs and runs[-1][0] == own:
            runs[-1][1].append(eqn)
        else:
            runs.append((own, [eqn]))
    parts, wires = [], []
    later = variables_read([], jaxpr.outvars)
    for own, eqns in reversed(runs):
        made = {v: None for e in eqns for v in e.outvars}
        outs = [v for v in made if v in later]
        read = variables_read(eqns)
        constants = [(v, c) for v, c in jaxpr.constants if v in read]
        captured = {v for v, _ in constants}
        ins = [v for v in read if v not in made and v not in captured]
        parts.append(
            (
                own,
                jaxpr.replace(
                    invars=ins, eqns=eqns, outvars=outs, constants=constants, name=f"{jaxpr.name}: {own}"
                ),
            )
        )
        wires.append((ins, outs))
        later.update(read)
    return Split(jaxpr, parts[::-1], wires[::-1])
