"""Jaxprs for the tests of lowering, staged with core and primitives alone."""

import numpy as np
import pytest

from functrans.core.aval import aval_of
from functrans.core.config import config
from functrans.core.ir import Eqn, Jaxpr, Literal, Var
from functrans.core.trace import Trace, Tracer, eval_trace, tracing
from functrans.lowering.llvm import store


class _Staged(Tracer):
    __slots__ = ("var",)

    def __init__(self, trace, var):
        self._trace = trace
        self.var = var

    @property
    def aval(self):
        return self.var.aval


class _Stage(Trace):
    __slots__ = ("consts", "eqns")

    def __init__(self):
        self.parent = eval_trace
        self.eqns = []
        self.consts = {}

    def atom(self, x):
        if isinstance(x, _Staged):
            return x.var
        if np.ndim(x) == 0:
            return Literal(x[()] if isinstance(x, np.ndarray) else x)
        var = Var(aval_of(x))
        self.consts[var] = x
        return var

    def process(self, prim, args, params):
        atoms = [self.atom(a) for a in args]
        avals = prim.abstract(*[a.aval for a in atoms], **params)
        outs = [Var(a) for a in (avals if prim.multiple_results else (avals,))]
        self.eqns.append(Eqn(prim, atoms, outs, params))
        tracers = tuple(_Staged(self, v) for v in outs)
        return tracers if prim.multiple_results else tracers[0]


def _stage(f, *args, stats=None):
    trace = _Stage()
    invars = [Var(aval_of(a)) for a in args]
    out = tracing(trace, f, *[_Staged(trace, v) for v in invars])
    outs = [trace.atom(x) for x in (out if isinstance(out, (tuple, list)) else [out])]
    constvars, consts = list(trace.consts), list(trace.consts.values())
    return Jaxpr(invars, trace.eqns, outs, constvars=constvars, consts=consts, stats=stats)


@pytest.fixture(autouse=True)
def _compiles_for_itself():
    """Tests patch what kernels are made by: none may get the code of another one's kernel, from disk neither."""
    store.forget()
    with config.patch(cache=False):
        yield
    store.forget()


@pytest.fixture
def stage():
    """``stage(f, *args) -> Jaxpr`` of a function that binds primitives."""
    return _stage
