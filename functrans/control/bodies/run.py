"""Evaluate higher-order equations outside kernels, and their bodies when everything runs in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import Jaxpr, Primitive, aval_of, eval_trace, subjaxprs, tracing
from ...core.evaluation import evaluate
from ...core.values import Params
from ...passes.check import verified
from ...passes.toolkit import single_equation
from ...runtime.config import config
from ..call import executable
from .cache import derive_from_all


def run_compiled(prim: Primitive, args: Sequence[Any], params: Params, body: Jaxpr) -> list[Any]:
    """Evaluate a higher-order equation with a separate kernel, cached on its body."""
    avals = [aval_of(a).strong() for a in args]
    bodies = list(subjaxprs(params))
    key = ("alone", prim.name, *sorted((k, v) for k, v in params.items() if v not in bodies), *avals)

    def build() -> Jaxpr:
        return verified(single_equation(prim, avals, params, name=body.name, stats=body.stats), prim.name)

    alone = body.derive(key, build) if bodies == [body] else derive_from_all(bodies, key, build)
    return executable(alone)(*args)


def computed(body: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """The outputs of a body, computed by NumPy or, unless everything runs in Python, by its kernel."""
    if config.disable_jit:
        return tracing(eval_trace, evaluate, body, args)
    return executable(body)(*args)
