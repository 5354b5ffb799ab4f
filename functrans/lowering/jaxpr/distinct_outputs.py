"""Copies of outputs that are inputs, literals or other outputs: a kernel writes each output in memory of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.ir import Eqn, Jaxpr, Var
from ...core.kernel import Block, BlockEmitter, Pointwise
from ...core.primitive import Primitive
from ...core.tape import TapeAval

#: A value as it is, in memory of its own.
same_p = Primitive("same", lambda x: x, lambda x: x, kernel=Pointwise(lambda k, x: x), moves_data=True)


def _same_tape_kernel(k: BlockEmitter, operands: Sequence[Any], results: Sequence[Any]) -> None:
    k.copy(results[0], operands[0])


#: Tapes as they are, in pools of their own.
same_tape_p = Primitive("same_tape", lambda x: x, lambda x: x, kernel=Block(_same_tape_kernel))


def with_distinct_outputs(jaxpr: Jaxpr) -> Jaxpr:
    """An equivalent jaxpr whose outputs are distinct variables that its equations define."""
    defined = {v for e in jaxpr.eqns for v in e.outvars}
    eqns, outvars = list(jaxpr.eqns), []
    for a in jaxpr.outvars:
        if a not in defined:
            copy = same_tape_p if isinstance(a.aval, TapeAval) else same_p
            eqns.append(Eqn(copy, [a], [Var(a.aval)], {}))
            a = eqns[-1].outvars[0]
        defined.discard(a)
        outvars.append(a)
    return jaxpr.replace(eqns=eqns, outvars=outvars)
