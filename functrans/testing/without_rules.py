"""A function without its custom rules, for automatic differentiation of its forward passes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..control.call import call_p
from ..core.ir import Eqn, Jaxpr
from ..core.primitive import Primitive
from ..core.trace import Trace, current_trace, tracing
from ..custom.custom_call import custom_call_p
from ..passes.toolkit import evaluate, map_subjaxprs


def without_rules(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with its custom rules removed: functions with rules become the plain functions that compute their values.

    Rules inside the plain functions stay, and so do rules that `f` itself differentiates or maps.

    Parameters
    ----------
    f : callable

    Returns
    -------
    callable
        Computes the values of `f`. Its derivatives are those of the operations in the forward passes.
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
            return self.parent.process(prim, args, map_subjaxprs(params, _without_rules))
        if params.get("jaxpr") is not None:
            return tracing(self.parent, evaluate, params["jaxpr"], args)
        return tracing(self.parent, params["rule"].fwd, *args)


def _without_rules(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr without the rules, including all jaxprs in it."""
    return jaxpr.derive("without rules", lambda: jaxpr.replace(eqns=list(map(_plain, jaxpr.eqns))))


def _plain(eqn: Eqn) -> Eqn:
    if eqn.primitive is custom_call_p:
        return eqn.replace(primitive=call_p, params={"jaxpr": eqn.params["jaxpr"]})
    return eqn.replace(params=map_subjaxprs(eqn.params, _without_rules))
