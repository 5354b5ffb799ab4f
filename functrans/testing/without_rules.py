"""A function with its custom rules taken off: what automatic differentiation makes of its forward passes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..control.call import call_p
from ..core.ir import Eqn, Jaxpr, subjaxprs
from ..core.primitive import Primitive
from ..core.trace import Trace, current_trace, tracing
from ..custom.custom_call import custom_call_p
from ..transforms.evaluate import evaluate


def without_rules(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, whose functions with custom rules are the plain functions that give their values.

    Rules inside the plain functions stay, and so do those that `f` differentiates or maps itself.

    Parameters
    ----------
    f : callable

    Returns
    -------
    callable
        With the values of `f`. Its derivatives are those of the operations in the forward passes.
    """

    @wraps(f, updated=())
    def plain(*args: Any, **kwargs: Any) -> Any:
        return tracing(_StripTrace(current_trace.get()), lambda: f(*args, **kwargs))

    return plain


class _StripTrace(Trace):
    """Runs the forward pass where a rule is applied; passes on everything else."""

    __slots__ = ()

    def __init__(self, parent: Trace):
        self.parent = parent

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if prim is not custom_call_p:
            return self.parent.process(prim, args, _stripped_params(params))
        if params.get("jaxpr") is not None:
            return tracing(self.parent, evaluate, params["jaxpr"], args)
        return tracing(self.parent, params["rule"].fwd, *args)


def _stripped_params(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with the rules taken off in all jaxprs among them."""
    if not any(True for _ in subjaxprs(params)):
        return params

    def stripped(value: Any) -> Any:
        if isinstance(value, Jaxpr):
            return value.derive("without rules", lambda: _stripped(value))
        return tuple(map(stripped, value)) if isinstance(value, tuple) else value

    return {k: stripped(v) for k, v in params.items()}


def _stripped(jaxpr: Jaxpr) -> Jaxpr:
    eqns = []
    for e in jaxpr.eqns:
        if e.primitive is custom_call_p:
            e = Eqn(call_p, e.invars, e.outvars, {"jaxpr": e.params["jaxpr"]}, e.source)
        elif any(True for _ in subjaxprs(e.params)):
            e = Eqn(e.primitive, e.invars, e.outvars, _stripped_params(e.params), e.source)
        eqns.append(e)
    return Jaxpr(jaxpr.invars, eqns, jaxpr.outvars, jaxpr.constvars, jaxpr.consts, jaxpr.name, jaxpr.stats)
