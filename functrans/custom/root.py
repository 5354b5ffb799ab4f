"""Roots found by the user's solver, whose derivatives come from the equation.

From ``f(x, c) = 0`` follows ``df/dx dx = - df/dc dc``, a linear system, which `tangent_solve` solves; see
`linear_solve`. Reverse mode transposes that: `tangent_solve` is linear in its right-hand side, and its operations are
run backwards. Where it has a loop they cannot be; it is then given the transposed Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..core.aval import Zero
from ..core.config import trace_key
from ..core.errors import ConcretizationError, FunctransError, MissingRuleError, NoRuleError
from ..core.ir import Jaxpr
from ..core.pytree import PyTree
from ..core.trace import current_trace, eval_trace, tracing
from ..primitives.elementwise import neg_p
from ..primitives.linear import instantiate
from ..transforms import jvp as forward
from ..transforms.evaluate import evaluate
from ..transforms.linearize import LinearizedJaxpr, LinearTracer, TangentTrace, linearize_jaxpr
from ..transforms.transpose import backward
from ..transforms.values import check_function
from .linear_solve import Solution, Solver, System, padded, transposed_map
from .matching import Checked, Model, Traced, trace_map
from .record import CustomRule, Values
from .rule import bind_rule

_WHAT = "custom_root"
_JACOBIAN = "the Jacobian of f"


@dataclass(frozen=True, eq=False)
class Equation:
    """An equation ``f(x) = 0``.

    Attributes
    ----------
    model : Model
        Of the initial guess, and so of the root.
    f : Jaxpr
        From what it captured, and `x`, to what is to be zero.
    solve : callable
    tangent_solve : callable
    has_aux : bool
    """

    model: Model
    f: Jaxpr
    solve: Solver
    tangent_solve: Solver
    has_aux: bool

    @cached_property
    def solution(self) -> Solution:
        """What takes apart the solver's results."""
        return Solution(self.model, "solve", self.solve, self.has_aux)

    @cached_property
    def count(self) -> int:
        """The number of values that `f` captured."""
        return len(self.f.invars) - len(self.model.avals)

    @cached_property
    def rule(self) -> CustomRule:
        """The root as a function of what `f` captured, and the initial guess."""
        return CustomRule(
            name=_WHAT,
            arity=len(self.f.invars),
            fwd=self._fwd,
            jvp=self._jvp,
            captured_constant=True,
        )

    def _fwd(self, values: Values) -> list[Any]:
        captured, guess = values[: self.count], values[self.count :]
        f = Traced("f", self.f, captured, self.model)
        return self.solution.leaves(self.solve(f, self.model.filled(guess)))

    def _jvp(self, values: Values, tangents: Values, again: Callable[[], list[Any]]) -> tuple[Any, Any]:
        captured, moving = values[: self.count], tangents[: self.count]
        outs = again()
        still = [Zero(y) for y in outs]
        if all(type(t) is Zero for t in moving):
            return outs, still
        x = outs[: self.solution.count]
        moved = forward.jvp(lambda *cs: evaluate(self.f, [*cs, *x]), captured, moving)[1]
        if all(type(t) is Zero for t in moved):
            return outs, still
        parts = self.linearized
        found = evaluate(parts.primal, [*captured, *x])
        operands = [*captured, *x]
        residuals = [operands[i] if where == "in" else found[i] for where, i in parts.residuals]
        right = [neg_p.bind(instantiate(t)) for t in moved]
        pushed = self.tangent_system.again(residuals, right)
        return outs, [*pushed, *still[len(x) :]]

    @cached_property
    def linearized(self) -> LinearizedJaxpr:
        """`f` taken apart at the root: residuals, and what is linear in `x`."""
        mask = tuple([i >= self.count for i in range(len(self.f.invars))])
        return linearize_jaxpr(self.f, mask, trace_key())

    @cached_property
    def tangent_system(self) -> System:
        """The system for the tangent of the root; what its matrix captured are the residuals."""
        parts = self.linearized
        jacobian = parts.linear if all(parts.nonzero) else padded(parts.linear, parts.nonzero, self.model)
        return TangentSystem(
            self.model,
            jacobian,
            self.tangent_solve,
            names=("tangent_solve", "tangent_solve"),
            operator=_JACOBIAN,
        )


@dataclass(frozen=True, eq=False)
class TangentSystem(System):
    """A system whose transpose is solved by what solves the system itself."""

    @cached_property
    def transposed(self) -> System:
        """The system with the transposed Jacobian."""
        matvec = transposed_map(self.model, self.operator, self.matvec)
        return TransposedSystem(
            self.model,
            matvec,
            self.solve,
            names=self.names,
            operator=f"the transpose of {_JACOBIAN[4:]}",
            of=self,
        )


@dataclass(frozen=True, eq=False)
class TransposedSystem(System):
    """The transpose of a `TangentSystem`.

    Attributes
    ----------
    of : TangentSystem
    """

    of: TangentSystem | None = None

    @cached_property
    def transposed(self) -> System:
        """The system itself."""
        assert self.of is not None
        return self.of

    def solved(self, captured: Values, b: Values) -> PyTree:
        """What the solver returns, or the solution itself."""
        assert self.of is not None
        try:
            return self.model.filled(self._run_backwards(self.of, captured, b))
        except (NoRuleError, ConcretizationError) as error:
            return self._with_transposed(captured, b, error)

    def _run_backwards(self, of: System, captured: Values, cts: Values) -> list[Any]:
        """Record what the solver does to a right-hand side, and transpose that."""
        trace = TangentTrace(current_trace.get())
        right = [trace.input(a) for a in self.model.avals]
        outs = tracing(trace, lambda: of.solution.leaves(of.solved(captured, right)))
        pairs = [(t.linear, ct) for t, ct in zip(outs, cts) if type(t) is LinearTracer and t._trace is trace]
        return backward(trace.tape, [v for v, _ in pairs], [ct for _, ct in pairs], [t.linear for t in right])

    def _with_transposed(self, captured: Values, b: Values, error: FunctransError) -> PyTree:
        """Let the solver solve for another Jacobian, if it looks at the one that it is given."""
        matvec = Traced(self.operator, self.matvec, captured, self.model)
        found = self.solve(matvec, self.model.filled(b))
        if not matvec.called:
            raise MissingRuleError(
                f"reverse mode through {_WHAT}: tangent_solve cannot be transposed ({error.message}), nor does it "
                "call the function that it is given, of which it could be given the transpose. Write it as "
                "lax.custom_linear_solve(g, y, solve, transpose_solve)"
            )
        return found


def root(
    f: Callable[[PyTree], PyTree], initial_guess: PyTree, solve: Solver, tangent_solve: Solver, has_aux: bool
) -> Any:
    """``lax.custom_root``."""
    for fun in (f, solve, tangent_solve):
        check_function(_WHAT, fun)
    model, values = Model.of(_WHAT, "initial_guess", initial_guess)
    if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
        solution = Solution(model, "solve", solve, has_aux)
        return solution.handed_out(solution.leaves(solve(Checked("f", f, model), model.filled(values))))
    jaxpr, captured = trace_map(f, "f", model)
    equation = Equation(model, jaxpr, solve, tangent_solve, bool(has_aux))
    outs = bind_rule(equation.rule, [*captured, *values], functions=(solve, tangent_solve))
    return equation.solution.handed_out(outs)
