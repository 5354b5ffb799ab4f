"""Jaxprs for the tests of lowering, staged with core and primitives alone."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from functrans.core.aval import aval_of
from functrans.core.ir import Eqn, Jaxpr, Literal, Var
from functrans.core.trace import Trace, Tracer, eval_trace, tracing
from functrans.lowering.backend import Options
from functrans.lowering.llvm import store
from functrans.lowering.loops import ir, queries
from functrans.lowering.lower import lower
from functrans.runtime.config import config

# Programs of several tests.
sys.path.append(str(Path(__file__).parent))


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


def _kernels(f, args):
    """The kernels of a function, each with the most elements that a body of statements reads, writes and copies."""
    for step in lower(ft.jit(f).lower(*args).jaxpr, Options(specialize_below=0)).steps:
        yield step.kernel, partial(_cost, step)


def _cost(step, body):
    number = {ir.Extent: lambda x: x.value, ir.Param: lambda x: step.ints[x.slot]}

    def value(x, otherwise=1):
        return x if type(x) is int else number.get(type(x), lambda x: otherwise)(x)

    total = 0
    for s in body.statements:
        total += type(s) in (ir.Load, ir.Store)
        if type(s) is ir.Copy and s.target.place != s.source.place:
            total += np.prod([value(n) for n in s.target.shape], dtype=int)
        rounds = value(s.stop) - value(s.start, 0) if type(s) is ir.For else 1
        total += rounds * sum(_cost(step, inner) for inner in queries.bodies_of(s))
    return total


@pytest.fixture
def step_cost():
    """``step_cost(f, *args)``: the most elements that one iteration of a kernel's outermost loops touches."""

    def step_cost(f, *args):
        ((kernel, cost),) = _kernels(f, args)
        loops = [s for s in kernel.body.statements if type(s) in (ir.For, ir.While)]
        return max(sum(map(cost, queries.bodies_of(s))) for s in loops)

    return step_cost


@pytest.fixture
def whole_cost():
    """``whole_cost(f, *args)``: the most elements that the kernels of a function touch."""
    return lambda f, *args: sum(cost(kernel.body) for kernel, cost in _kernels(f, args))


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
