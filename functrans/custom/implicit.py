"""Linear systems and roots whose solver is the user's, and whose derivatives come from the equation.

From ``A(c) x = b`` follows ``A(c) dx = db - dA x``: forward mode solves once more, with the same solver. Reverse mode
transposes that, ``A(c)^T y = ct``, and asks the solver of the transposed system. Neither looks into a solver.

From ``f(x, c) = 0`` follows ``df/dx dx = - df/dc dc``, a linear system, which `tangent_solve` solves. Reverse mode
transposes that: `tangent_solve` is linear in its right-hand side, and its operations are run backwards. Where it has a
loop they cannot be; it is then given the transposed Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..core.aval import Aval, Zero
from ..core.errors import (
    ConcretizationError,
    FunctransError,
    GradientError,
    MissingRuleError,
    NoRuleError,
)
from ..core.ir import Jaxpr
from ..core.primitive import Linear
from ..core.trace import current_trace, eval_trace, tracing
from ..frontend.arguments import check_function
from ..frontend.pytree import PyTree
from ..passes.toolkit import evaluate
from ..primitives.elementwise.arithmetic import neg_p, sub_p
from ..primitives.structure.linear import instantiate
from ..transforms import jvp as forward
from ..transforms.linearize import LinearizedJaxpr, LinearTracer, TangentTrace, linearize_jaxpr
from ..transforms.stage import stage
from ..transforms.transpose import backward, transpose_jaxpr
from .custom_call import bind_rule
from .rule import CustomRule, Values
from .solution import Checked, Solution, SolutionSpec, Solver, TracedTree, trace_map


@dataclass(frozen=True, eq=False)
class System(CustomRule):
    """A linear system of equations.

    Attributes
    ----------
    spec : TreeSpec
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
    alone : bool
        Whether it gives the solution without auxiliary data.
    """

    spec: SolutionSpec
    matvec: Jaxpr
    solve: Solver
    transpose_solve: Solver | None = None
    symmetric: bool = False
    has_aux: bool = False
    names: tuple[str, str] = ("solve", "transpose_solve")
    operator: str = "matvec"
    alone: bool = False
    has_forward = has_transpose = captured_constant = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """The public function."""
        return self.spec.what

    @property
    def arity(self) -> int:  # type: ignore[override]
        """What `matvec` captured, and the right-hand side."""
        return len(self.matvec.invars)

    @property
    def outs(self) -> tuple[Aval, ...] | None:  # type: ignore[override]
        """The types of the solution; those of auxiliary data are not known."""
        return self.spec.avals if self.alone or not self.has_aux else None

    @property
    def functions(self) -> tuple[Any, ...]:
        """The user's functions that run with the rule."""
        return self.solve, self.transpose_solve

    @cached_property
    def solution(self) -> Solution:
        """What takes apart the solver's results."""
        return Solution(self.spec, self.names[0], self.solve, self.has_aux)

    @cached_property
    def count(self) -> int:
        """The number of values that `matvec` captured."""
        return len(self.matvec.invars) - len(self.spec.avals)

    @cached_property
    def transposed(self) -> System:
        """The system with the transposed matrix."""
        if self.symmetric:
            return self
        if self.transpose_solve is None:
            raise MissingRuleError(
                f"reverse mode through {self.spec.what}: it needs {self.names[1]}, which solves the transposed "
                f"system. Pass {self.names[1]}=..., or symmetric=True where the matrix equals its transpose"
            )
        return System(
            self.spec,
            transposed_map(self.spec, self.operator, self.matvec),
            self.transpose_solve,
            self.solve,
            has_aux=self.has_aux,
            names=self.names[::-1],
            operator=f"the transposed {self.operator}",
        )

    def first(self, captured: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """Solve, by the rule: the solution, and auxiliary data."""
        return bind_rule(self, [*captured, *b], self.functions)

    def again(self, captured: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """Solve, by the rule, for the solution alone."""
        return bind_rule(self if self.alone else replace(self, alone=True), [*captured, *b], self.functions)

    def fwd(self, values: Values) -> list[Any]:
        """The outputs."""
        leaves = self.solution.leaves(self.solved(values[: self.count], values[self.count :]))
        return leaves[: self.solution.count] if self.alone else leaves

    def solved(self, captured: Values, b: Values) -> PyTree:
        """What the solver returns."""
        return self.solve(TracedTree(self.operator, self.matvec, captured, self.spec), self.spec.filled(b))

    def jvp(self, values: Values, tangents: Values, again: Callable[[], list[Any]]) -> tuple[Any, Any]:
        """Outputs and their tangents."""
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

    def transpose(self, cts: Values, values: Values) -> list[Any]:
        """Cotangents of the right-hand side: solutions of the transposed system."""
        captured, b = values[: self.count], values[self.count :]
        if any(type(c) is Linear for c in captured):
            raise NoRuleError(
                f"{self.spec.what} is linear in the right-hand side, not in what {self.operator} captured"
            )
        wanted = [instantiate(ct) for ct in cts[: len(b)]]
        found = self.transposed.again(captured, wanted)
        return [*[None] * self.count, *[y if type(v) is Linear else None for y, v in zip(found, b)]]


def _minus(x: Any, y: Any) -> Any:
    if type(y) is Zero:
        return x
    return neg_p.bind(y) if type(x) is Zero else sub_p.bind(x, y)


def transposed_map(spec: SolutionSpec, name: str, jaxpr: Jaxpr) -> Jaxpr:
    """The transpose of a map in all but what it captured; kept on its jaxpr.

    Raises
    ------
    GradientError
        If the map is not linear.
    """
    return jaxpr.derive("transposed map", lambda: _transposed(spec, name, jaxpr))


def _transposed(spec: SolutionSpec, name: str, jaxpr: Jaxpr) -> Jaxpr:
    count = len(jaxpr.invars) - len(spec.avals)
    linear = tuple([i >= count for i in range(len(jaxpr.invars))])
    try:
        body, has = transpose_jaxpr(jaxpr, linear, (True,) * len(spec.avals))
    except NoRuleError as error:
        raise GradientError(f"{spec.what}: {name} ({jaxpr.name}) is not linear: {error.message}") from error
    return body if all(has) else padded(body, has, spec)


def padded(jaxpr: Jaxpr, has: Sequence[bool], spec: SolutionSpec) -> Jaxpr:
    """A jaxpr with zeros for the outputs that it lacks."""

    def full(*values: Any) -> list[Any]:
        found = iter(evaluate(jaxpr, values))
        return [next(found) if h else instantiate(Zero(a)) for h, a in zip(has, spec.avals)]

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
    spec, values = SolutionSpec.of(what, "b", b)
    if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
        solution = Solution(spec, "solve", solve, has_aux)
        return solution.handed_out(
            solution.leaves(solve(Checked("matvec", matvec, spec), spec.filled(values)))
        )
    jaxpr, captured = trace_map(matvec, "matvec", spec)
    system = System(spec, jaxpr, solve, transpose_solve, bool(symmetric), bool(has_aux))
    return system.solution.handed_out(system.first(captured, values))


_WHAT = "custom_root"
_JACOBIAN = "the Jacobian of f"


@dataclass(frozen=True, eq=False)
class Equation(CustomRule):
    """An equation ``f(x) = 0``.

    Attributes
    ----------
    spec : TreeSpec
        Of the initial guess, and so of the root.
    f : Jaxpr
        From what it captured, and `x`, to what is to be zero.
    solve : callable
    tangent_solve : callable
    has_aux : bool
    """

    spec: SolutionSpec
    f: Jaxpr
    solve: Solver
    tangent_solve: Solver
    has_aux: bool
    name = _WHAT
    has_forward = captured_constant = True

    @cached_property
    def solution(self) -> Solution:
        """What takes apart the solver's results."""
        return Solution(self.spec, "solve", self.solve, self.has_aux)

    @cached_property
    def count(self) -> int:
        """The number of values that `f` captured."""
        return len(self.f.invars) - len(self.spec.avals)

    @property
    def arity(self) -> int:  # type: ignore[override]
        """What `f` captured, and the initial guess."""
        return len(self.f.invars)

    def fwd(self, values: Values) -> list[Any]:
        """The outputs."""
        captured, guess = values[: self.count], values[self.count :]
        f = TracedTree("f", self.f, captured, self.spec)
        return self.solution.leaves(self.solve(f, self.spec.filled(guess)))

    def jvp(self, values: Values, tangents: Values, again: Callable[[], list[Any]]) -> tuple[Any, Any]:
        """Outputs and their tangents."""
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
        return linearize_jaxpr(self.f, mask)

    @cached_property
    def tangent_system(self) -> System:
        """The system for the tangent of the root; what its matrix captured are the residuals."""
        parts = self.linearized
        jacobian = parts.linear if all(parts.nonzero) else padded(parts.linear, parts.nonzero, self.spec)
        return TangentSystem(
            self.spec,
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
        matvec = transposed_map(self.spec, self.operator, self.matvec)
        return TransposedSystem(
            self.spec,
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
            return self.spec.filled(self._run_backwards(self.of, captured, b))
        except (NoRuleError, ConcretizationError) as error:
            return self._with_transposed(captured, b, error)

    def _run_backwards(self, of: System, captured: Values, cts: Values) -> list[Any]:
        """Record what the solver does to a right-hand side, and transpose that."""
        trace = TangentTrace(current_trace.get())
        right = [trace.input(a) for a in self.spec.avals]
        outs = tracing(trace, lambda: of.solution.leaves(of.solved(captured, right)))
        pairs = [(t.linear, ct) for t, ct in zip(outs, cts) if type(t) is LinearTracer and t._trace is trace]
        return backward(trace.tape, [v for v, _ in pairs], [ct for _, ct in pairs], [t.linear for t in right])

    def _with_transposed(self, captured: Values, b: Values, error: FunctransError) -> PyTree:
        """Let the solver solve for another Jacobian, if it looks at the one that it is given."""
        matvec = TracedTree(self.operator, self.matvec, captured, self.spec)
        found = self.solve(matvec, self.spec.filled(b))
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
    spec, values = SolutionSpec.of(_WHAT, "initial_guess", initial_guess)
    if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
        solution = Solution(spec, "solve", solve, has_aux)
        return solution.handed_out(solution.leaves(solve(Checked("f", f, spec), spec.filled(values))))
    jaxpr, captured = trace_map(f, "f", spec)
    equation = Equation(spec, jaxpr, solve, tangent_solve, bool(has_aux))
    outs = bind_rule(equation, [*captured, *values], (solve, tangent_solve))
    return equation.solution.handed_out(outs)
