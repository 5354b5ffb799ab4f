"""The verifier of jaxprs: checks the invariants that every interpreter and pass relies on.

It runs between passes if ``config.verify`` is set (as in the tests), and is off by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..core import (
    Atom,
    Aval,
    BackwardState,
    Eqn,
    Jaxpr,
    Literal,
    Source,
    Tape,
    Tracer,
    Var,
    aval_of,
    subjaxprs,
)
from ..core.values import ArrayLike
from ..errors import FunctransError, JaxprTypeError
from ..runtime.config import config
from ..runtime.context import Living
from ..runtime.records import NamedTuple

#: Those that passed: passes hand on most bodies of loops and branches as they are.
_valid: Living[None] = Living()
_NUMBERS = (bool, int, float, complex, np.generic)


def verified(jaxpr: Jaxpr, stage: str) -> Jaxpr:
    """`jaxpr` itself, checked first if ``config.verify`` is set; `stage` names the pass that made it."""
    if config.verify:
        check_jaxpr(jaxpr, stage)
    return jaxpr


def check_jaxpr(jaxpr: Jaxpr, stage: str = "") -> None:
    """Check that a jaxpr, and every jaxpr inside it, is well formed.

    Each variable is defined once, and before its use; the avals of an equation's outputs agree with its primitive's
    abstract rule; a literal is a number of its aval; constants are arrays with the avals of their variables; effects
    are those of the primitive.

    Parameters
    ----------
    jaxpr : Jaxpr
    stage : str
        The name of the pass that made the jaxpr, for the message.

    Raises
    ------
    JaxprTypeError
        The message names the equation and the user's line.

    Examples
    --------
    >>> from functrans.core.aval import aval_of
    >>> check_jaxpr(Jaxpr([], [], [Var(aval_of(1.0))]))
    Traceback (most recent call last):
    ...
    functrans.errors.JaxprTypeError: jaxpr 'f': output 0: variable Var:f64[]* is used but not defined...
    """
    _Checker(jaxpr, stage).run()


class _At(NamedTuple):
    """Which equation, in words once it is printed: that takes longer than all the checks."""

    number: int
    eqn: Eqn

    def __str__(self) -> str:
        return f"equation {self.number} ({self.eqn!r})"


class _Inside(NamedTuple):
    """The stage of a jaxpr inside an equation."""

    stage: str | _Inside
    at: _At

    def __str__(self) -> str:
        return f"{self.stage}, in {self.at}" if self.stage else f"in {self.at}"


class _Checker:
    """Checks one jaxpr; holds the variables defined so far."""

    def __init__(self, jaxpr: Jaxpr, stage: str | _Inside):
        self.jaxpr = jaxpr
        self.stage = stage
        self.defined: set[Var] = set()

    def run(self) -> None:
        jaxpr = self.jaxpr
        if len(jaxpr.constvars) != len(jaxpr.consts):
            self.fail("constants", f"{len(jaxpr.constvars)} variables for {len(jaxpr.consts)} arrays")
        for i, (v, value) in enumerate(zip(jaxpr.constvars, jaxpr.consts)):
            self.define(v, f"constant {i}")
            self.constant(v, value, f"constant {i}")
        for i, v in enumerate(jaxpr.invars):
            self.define(v, f"input {i}")
        for i, eqn in enumerate(jaxpr.eqns):
            self.equation(i, eqn)
        for i, a in enumerate(jaxpr.outvars):
            self.use(a, f"output {i}")
        _valid.add(jaxpr)

    def fail(self, where: str | _At, problem: str, source: Source | None = None) -> NoReturn:
        after = f" after {self.stage}" if self.stage else ""
        raise JaxprTypeError(f"jaxpr '{self.jaxpr.name}'{after}: {where}: {problem}", source)

    def define(self, v: Any, where: str | _At, source: Source | None = None) -> None:
        if type(v) is not Var:
            self.fail(where, f"must be a variable, but is {v!r}", source)
        if v in self.defined:
            self.fail(where, f"variable {v!r} is defined twice", source)
        self.defined.add(v)

    def use(self, a: Atom, where: str | _At, source: Source | None = None) -> None:
        if type(a) is Literal:
            if not isinstance(a.value, _NUMBERS):
                self.fail(where, f"a literal must be a number, but is a {type(a.value).__name__}", source)
            if aval_of(a.value) != a.aval:
                self.fail(
                    where, f"literal {a.value!r} is {aval_of(a.value)}, but has the aval {a.aval}", source
                )
        elif type(a) is not Var:
            self.fail(where, f"must be a variable or a literal, but is {a!r}", source)
        elif a not in self.defined:
            self.fail(where, f"variable {a!r} is used but not defined before", source)

    def constant(self, v: Var, value: ArrayLike, where: str | _At) -> None:
        if not isinstance(value, np.ndarray | np.generic | Tracer | BackwardState | Tape):
            self.fail(where, f"must be an array, but is a {type(value).__name__}")
        aval = aval_of(value)
        if not _alike(aval, v.aval):
            self.fail(where, f"the array is {aval}, but its variable {v.aval}")

    def equation(self, i: int, eqn: Eqn) -> None:
        where = _At(i, eqn)
        for a in eqn.invars:
            self.use(a, where, eqn.source)
        for inner in subjaxprs(eqn.params):
            if inner not in _valid:
                _Checker(inner, _Inside(self.stage, where)).run()
        avals = self.abstract(eqn, where)
        if len(avals) != len(eqn.outvars):
            self.fail(where, f"{len(eqn.outvars)} outputs, but the primitive has {len(avals)}", eqn.source)
        for v, aval in zip(eqn.outvars, avals):
            self.define(v, where, eqn.source)
            if not _alike(v.aval, aval):
                self.fail(where, f"an output is {v.aval}, but the abstract rule gives {aval}", eqn.source)
        expected = eqn.primitive.effects(**eqn.params)
        if eqn.effects != expected:
            self.fail(where, f"effects are {eqn.effects}, but the primitive has {expected}", eqn.source)

    def abstract(self, eqn: Eqn, where: str | _At) -> Sequence[Aval]:
        """The outputs according to the primitive's abstract rule."""
        try:
            avals = eqn.primitive.abstract(*[a.aval for a in eqn.invars], **eqn.params)
        except (FunctransError, TypeError, ValueError) as error:
            self.fail(where, f"the abstract rule rejects the operands: {error}", eqn.source)
        return avals if eqn.primitive.multiple_results else (avals,)


def _alike(a: Aval, b: Aval) -> bool:
    """Equal except for weakness, which decides promotion while tracing, and has no effect later."""
    return a.shape == b.shape and a.dtype == b.dtype
