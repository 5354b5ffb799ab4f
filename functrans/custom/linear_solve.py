"""Linear systems whose solver is the user's, and whose derivatives are solutions of the same system.

From ``A(c) x = b`` follows ``A(c) dx = db - dA x``: forward mode solves once more, with the same solver. Reverse mode
transposes that, ``A(c)^T y = ct``, and asks the solver of the transposed system. Neither looks into a solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core.array import secure
from ..core.aval import Zero, aval_of
from ..core.config import trace_key
from ..core.errors import ArgumentError, GradientError, MissingRuleError, NoRuleError
from ..core.ir import Jaxpr
from ..core.primitive import Linear
from ..core.pytree import PyTree, PyTreeDef, tree_flatten, tree_unflatten
from ..core.source import last_line
from ..core.trace import Tracer, current_trace, eval_trace
from ..primitives.elementwise import neg_p, sub_p
from ..primitives.linear import instantiate
from ..primitives.operands import strong
from ..transforms import jvp as forward
from ..transforms.evaluate import evaluate
from ..transforms.stage import stage
from ..transforms.transpose import transpose_jaxpr
from ..transforms.values import check_function, name_of, result, value_of
from .matching import Checked, Model, Traced, trace_map
from .record import CustomRule, Values
from .rule import bind_rule

Solver = Callable[[Callable[[PyTree], PyTree], PyTree], PyTree]


class Solution:
    """Takes apart what a solver returned: leaves of the solution, and with `has_aux` of what else it tells.

    Attributes
    ----------
    count : int
        The number of leaves of the solution; those of auxiliary data that are arrays or numbers stand behind them.
    """

    def __init__(self, model: Model, who: str, solver: Callable[..., Any], has_aux: bool):
        self.model = model
        self.who = f"{who} ({name_of(solver)})"
        self.solver = solver
        self.has_aux = has_aux
        self.count = len(model.avals)
        self._aux: tuple[PyTreeDef, list[Any]] | None = None  # structure, and leaves that are no arrays

    def leaves(self, out: PyTree) -> list[Any]:
        """All leaves, as values."""
        source = last_line(self.solver)
        if not self.has_aux:
            return self.model.leaves(out, self.who, source)
        if not (isinstance(out, tuple | list) and len(out) == 2):
            raise ArgumentError(
                f"{self.model.what}: has_aux=True, so {self.who} must return a pair (solution, auxiliary data), but it "
                f"returned {type(out).__name__}",
                source,
            )
        leaves = self.model.leaves(out[0], self.who, source)
        found, tree = tree_flatten(out[1])
        self._aux = tree, [None if _is_array(x) else x for x in found]
        arrays = [value_of(x, lambda: f"{self.model.what}: auxiliary data") for x in found if _is_array(x)]
        return leaves + [secure(strong(x, aval_of(x).dtype)) for x in arrays]

    def handed_out(self, outs: Sequence[Any]) -> PyTree:
        """What the caller gets."""
        x = self.model.handed_out(outs[: self.count])
        if self._aux is None:
            return x
        tree, others = self._aux
        arrays = iter(outs[self.count :])
        return x, tree_unflatten(tree, [result(next(arrays)) if y is None else y for y in others])


def _is_array(x: Any) -> bool:
    return isinstance(x, Tracer | np.ndarray | np.generic | int | float | complex)


@dataclass(frozen=True, eq=False)
class System:
    """A linear system of equations.

    Attributes
    ----------
    model : Model
        Of the right-hand side, and so of the solution.
    matvec : Jaxpr
        From what it captured, and a vector, to a vector.
    solution : Solution
        Names the solver, and takes apart what it returns.
    solve, transpose_solve : callable or None
        The second one of the transposed system.
    symmetric : bool
        Whether the transposed system is the system itself.
    names : (str, str)
        What messages call `solve` and `transpose_solve`.
    """

    model: Model
    matvec: Jaxpr
    solve: Solver
    transpose_solve: Solver | None = None
    symmetric: bool = False
    has_aux: bool = False
    names: tuple[str, str] = ("solve", "transpose_solve")
    operator: str = "matvec"

    @property
    def functions(self) -> tuple[Any, ...]:
        """The user's functions that run with the rule."""
        return self.solve, self.transpose_solve

    @cached_property
    def solution(self) -> Solution:
        """What takes apart the solver's results."""
        return Solution(self.model, self.names[0], self.solve, self.has_aux)

    @cached_property
    def count(self) -> int:
        """The number of values that `matvec` captured."""
        return len(self.matvec.invars) - len(self.model.avals)

    @cached_property
    def transposed(self) -> System:
        """The system with the transposed matrix."""
        if self.symmetric:
            return self
        if self.transpose_solve is None:
            raise MissingRuleError(
                f"reverse mode through {self.model.what}: it needs {self.names[1]}, which solves the transposed "
                f"system. Pass {self.names[1]}=..., or symmetric=True where the matrix equals its transpose"
            )
        return System(
            self.model,
            transposed_map(self.model, self.operator, self.matvec),
            self.transpose_solve,
            self.solve,
            has_aux=self.has_aux,
            names=self.names[::-1],
            operator=f"the transposed {self.operator}",
        )

    def first(self, captured: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """Solve, by the rule: the solution, and auxiliary data."""
        rule = replace(self.rule, fwd=self._fwd, outs=None) if self.has_aux else self.rule
        return bind_rule(rule, [*captured, *b], functions=self.functions)

    def again(self, captured: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """Solve, by the rule, for the solution alone."""
        return bind_rule(self.rule, [*captured, *b], functions=self.functions)

    @cached_property
    def rule(self) -> CustomRule:
        """The solution as a function of what `matvec` captured, and the right-hand side."""
        return CustomRule(
            name=self.model.what,
            arity=len(self.matvec.invars),
            fwd=lambda values: self._fwd(values)[: self.solution.count],
            jvp=self._jvp,
            transpose=self._transpose,
            outs=self.model.avals,
            captured_constant=True,
        )

    def _fwd(self, values: Values) -> list[Any]:
        return self.solution.leaves(self.solved(values[: self.count], values[self.count :]))

    def solved(self, captured: Values, b: Values) -> PyTree:
        """What the solver returns."""
        return self.solve(Traced(self.operator, self.matvec, captured, self.model), self.model.filled(b))

    def _jvp(self, values: Values, tangents: Values, again: Callable[[], list[Any]]) -> tuple[Any, Any]:
        captured = values[: self.count]
        t_captured, right = tangents[: self.count], list(tangents[self.count :])
        outs = again()
        x, still = outs[: self.solution.count], [Zero(y) for y in outs]
        if any(type(t) is not Zero for t in t_captured):
            moved = forward.jvp(lambda *cs: evaluate(self.matvec, [*cs, *x]), captured, t_captured)[1]
            right = [_minus(t, m) for t, m in zip(right, moved)]
        if all(type(t) is Zero for t in right):
            return outs, still
        found = self.again(captured, [instantiate(t) for t in right])
        return outs, [*found[: len(x)], *still[len(x) :]]

    def _transpose(self, cts: Values, values: Values) -> list[Any]:
        captured, b = values[: self.count], values[self.count :]
        if any(type(c) is Linear for c in captured):
            raise NoRuleError(
                f"{self.model.what} is linear in the right-hand side, not in what {self.operator} captured"
            )
        wanted = [instantiate(ct) for ct in cts[: len(b)]]
        found = self.transposed.again(captured, wanted)
        return [*[None] * self.count, *[y if type(v) is Linear else None for y, v in zip(found, b)]]


def _minus(x: Any, y: Any) -> Any:
    if type(y) is Zero:
        return x
    return neg_p.bind(y) if type(x) is Zero else sub_p.bind(x, y)


def transposed_map(model: Model, name: str, jaxpr: Jaxpr) -> Jaxpr:
    """The transpose of a map in all but what it captured; kept on its jaxpr.

    Raises
    ------
    GradientError
        If the map is not linear.
    """
    return jaxpr.derive(("transposed map", trace_key()), lambda: _transposed(model, name, jaxpr))


def _transposed(model: Model, name: str, jaxpr: Jaxpr) -> Jaxpr:
    count = len(jaxpr.invars) - len(model.avals)
    linear = tuple([i >= count for i in range(len(jaxpr.invars))])
    try:
        body, has = transpose_jaxpr(jaxpr, linear, (True,) * len(model.avals), trace_key())
    except NoRuleError as error:
        raise GradientError(f"{model.what}: {name} ({jaxpr.name}) is not linear: {error.message}") from error
    return body if all(has) else padded(body, has, model)


def padded(jaxpr: Jaxpr, has: Sequence[bool], model: Model) -> Jaxpr:
    """A jaxpr with zeros for the outputs that it lacks."""

    def full(*values: Any) -> list[Any]:
        found = iter(evaluate(jaxpr, values))
        return [next(found) if h else instantiate(Zero(a)) for h, a in zip(has, model.avals)]

    return stage(full, jaxpr.in_avals, jaxpr.name, jaxpr.stats)


def linear_solve(
    matvec: Callable[[PyTree], PyTree],
    b: PyTree,
    solve: Solver,
    transpose_solve: Solver | None,
    symmetric: bool,
    has_aux: bool,
) -> Any:
    """``lax.custom_linear_solve``."""
    what = "custom_linear_solve"
    for fun in (matvec, solve):
        check_function(what, fun)
    if transpose_solve is not None:
        check_function(what, transpose_solve)
    model, values = Model.of(what, "b", b)
    if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
        solution = Solution(model, "solve", solve, has_aux)
        return solution.handed_out(
            solution.leaves(solve(Checked("matvec", matvec, model), model.filled(values)))
        )
    jaxpr, captured = trace_map(matvec, "matvec", model)
    system = System(model, jaxpr, solve, transpose_solve, bool(symmetric), bool(has_aux))
    return system.solution.handed_out(system.first(captured, values))
