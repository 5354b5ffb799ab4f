"""Whether what a rule returned is zero, though it is given as an array."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core.ir import Atom, Literal
from ..core.trace import Tracer, concrete, eval_trace, tracing
from ..transforms.stage import StagedTracer, live_equations


def is_zero(x: Any) -> bool:
    """Whether a derivative is an array of zeros, wherever the rule is applied."""
    value = _constant(x) if type(x) is StagedTracer else x
    return isinstance(value, np.ndarray | np.generic | float | complex) and not np.any(value)


def may_be_zero(x: Any) -> bool:
    """Whether a derivative is zero here or not known: a rule may have made it of zeros that stood for no derivative."""
    value = concrete(x)
    return value is None or not np.any(value)


def _constant(x: StagedTracer) -> Any:
    """The number that traced code makes of literals and constants alone; None where it reads anything else."""
    trace = x._trace
    env: dict[Atom, Any] = {v: c for v, c, _ in trace.consts.values() if not isinstance(c, Tracer)}
    for eqn in live_equations(trace.eqns, [x._var]):
        if eqn.effects:
            continue
        if any(type(a) is not Literal and a not in env for a in eqn.invars):
            return None
        args = [a.value if type(a) is Literal else env[a] for a in eqn.invars]
        out = tracing(eval_trace, partial(eqn.primitive.bind, *args, **eqn.params))
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple else [out]))
    return env.get(x._var)
