"""Linear systems and roots whose solver is the user's, and whose derivatives come from the equation.

From ``A(c) x = b`` follows ``A(c) dx = db - dA x``: forward mode solves once more, with the same solver. Reverse mode
transposes that, ``A(c)^T y = ct``, and asks the solver of the transposed system. Neither looks into a solver.

From ``f(x, c) = 0`` follows ``df/dx dx = - df/dc dc``, a linear system, which `tangent_solve` solves. Reverse mode
transposes that: `tangent_solve` is linear in its right-hand side, and its operations are run backwards. Where it has a
loop they cannot be; it then receives the transposed Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ... import errors
from ...core import Aval, Jaxpr, Linear, Zero, aval_of, current_trace, eval_trace, tracing
from ...core.evaluation import evaluate
from ...core.named_axes import mesh_in_scope
from ...core.values import ArrayLike, Tangent, Value
from ...custom.custom_call import bind_rule
from ...custom.rule import Again, CustomRule, Pushed, Values
from ...frontend.arguments import check_function
from ...frontend.pytree import PyTree
from ...passes.masks import perturbed, with_zeros
from ...primitives.elementwise.arithmetic import neg_p, sub_p
from ...primitives.structure.linear import instantiate
from ...runtime.context import cached_property
from ...runtime.module_getattr import lazy_import
from ...runtime.records import dataclass
from ...transforms import jvp as forward
from ...transforms.linearize import LinearTracer, TangentTrace
from ...transforms.linearize_jaxpr import LinearizedJaxpr, linearize_jaxpr
from ...transforms.stage import stage
from ...transforms.transpose import backward, transpose_jaxpr
from .solution import Solution, SolutionSpec, Solver, TracedTree, trace_map

#: Loads with the first mesh.
varying = lazy_import("functrans.control.ranks.varying")


@dataclass(frozen=True, eq=False)
class _Solved(CustomRule):
    """An equation that the user's `solve` solves.

    Attributes
    ----------
    spec : SolutionSpec
        Of the right-hand side or the initial guess, and so of the solution.
    function : Jaxpr
        From what it captured, and a solution, to a tree of the same types.
    solve : callable
    has_aux : bool
    operator, solver : str
        What messages call `function` and `solve`.
    """

    spec: SolutionSpec
    function: Jaxpr
    solve: Solver
    has_aux: bool = False
    operator: str = "matvec"
    solver: str = "solve"
    has_forward = captured_constant = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """The public function."""
        return self.spec.what

    @property
    def arity(self) -> int:  # type: ignore[override]
        """What `function` captured, and the right-hand side or the initial guess."""
        return len(self.function.invars)

    @cached_property
    def solution(self) -> Solution:
        """What takes apart the solver's results."""
        return Solution(self.spec, self.solver, self.solve, self.has_aux)

    @cached_property
    def count(self) -> int:
        """The number of values that `function` captured."""
        return self.arity - len(self.spec.avals)

    def fwd(self, values: Values) -> list[Value]:
        """The outputs."""
        return self.solution.leaves(self.solved(values[: self.count], values[self.count :]))

    def solved(self, captured: Values, known: Values) -> PyTree:
        """What the solver returns."""
        function = TracedTree(self.operator, self.function, captured, self.spec)
        return self.solve(function, self.spec.filled(known))

    def moved(self, captured: Values, tangents: Values, x: Values) -> Values:
        """The tangents of `function` at `x`, for those of what it captured."""
        return forward.jvp(lambda *cs: evaluate(self.function, [*cs, *x]), captured, tangents)[1]


@dataclass(frozen=True, eq=False)
class System(_Solved):
    """A linear system of equations.

    Attributes
    ----------
    transpose_solve : callable or None
        The solver of the transposed system.
    transpose_solver : str
        What messages call it.
    symmetric : bool
        Whether the transposed system is the system itself.
    backwards : bool
        Whether the transposed system is solved by running the solver backwards.
    of : System or None
        The system whose transpose this one is, solved by running its solver backwards.
    alone : bool
        Whether it gives the solution without auxiliary data.
    """

    transpose_solve: Solver | None = None
    transpose_solver: str = "transpose_solve"
    symmetric: bool = False
    backwards: bool = False
    of: System | None = None
    alone: bool = False
    has_transpose = True

    @property
    def outs(self) -> tuple[Aval, ...] | None:  # type: ignore[override]
        """The types of the solution; those of auxiliary data are not known."""
        return self.spec.avals if self.alone or not self.has_aux else None

    @cached_property
    def transposed(self) -> System:
        """The system with the transposed matrix."""
        if self.symmetric:
            return self
        if self.of is not None:
            return self.of
        if self.transpose_solve is None and not self.backwards:
            raise errors.MissingRuleError(
                f"reverse mode through {self.spec.what}: it needs {self.transpose_solver}, which solves the transposed "
                f"system. Pass {self.transpose_solver}=..., or symmetric=True where the matrix equals its transpose"
            )
        function = transposed_map(self.spec, self.operator, self.function)
        operator = f"the transpose of {self.operator.removeprefix('the ')}"
        if self.backwards:
            return replace(self, function=function, operator=operator, of=self)
        assert self.transpose_solve is not None
        return replace(
            self,
            function=function,
            operator=operator,
            solve=self.transpose_solve,
            solver=self.transpose_solver,
            transpose_solve=self.solve,
            transpose_solver=self.solver,
            alone=False,
        )

    def apply(self, captured: Values, b: Values) -> list[Value]:
        """Solve, by the rule: the solution, and auxiliary data."""
        return bind_rule(self, [*captured, *b], (self.solve, self.transpose_solve))

    def again(self, captured: Values, b: Values) -> list[Value]:
        """Solve, by the rule, for the solution alone."""
        return (self if self.alone else replace(self, alone=True)).apply(captured, b)

    def fwd(self, values: Values) -> list[Value]:
        """The outputs."""
        leaves = super().fwd(values)
        return leaves[: self.solution.count] if self.alone else leaves

    def solved(self, captured: Values, known: Values) -> PyTree:
        """What the solver returns."""
        if self.of is None:
            return super().solved(captured, known)
        try:
            return self.spec.filled(self._run_backwards(self.of, captured, known))
        except (errors.NoRuleError, errors.ConcretizationTypeError) as error:
            return self._with_transposed(captured, known, error)

    def _run_backwards(self, of: System, captured: Values, cts: Values) -> list[Value]:
        """Record what the solver does to a right-hand side, and transpose that."""
        trace = TangentTrace(current_trace.get())
        right = [trace.input(a) for a in self.spec.avals]
        outs = tracing(trace, lambda: of.solution.leaves(of.solved(captured, right)))
        pairs = [(t.linear, ct) for t, ct in zip(outs, cts) if type(t) is LinearTracer and t._trace is trace]
        return backward(trace.tape, [v for v, _ in pairs], [ct for _, ct in pairs], [t.linear for t in right])

    def _with_transposed(self, captured: Values, b: Values, error: errors.FunctransError) -> PyTree:
        """Let the solver solve for another Jacobian, if it calls the one that it receives."""
        matvec = TracedTree(self.operator, self.function, captured, self.spec)
        x = self.solve(matvec, self.spec.filled(b))
        if not matvec.called:
            raise errors.MissingRuleError(
                f"reverse mode through {_ROOT}: tangent_solve cannot be transposed ({error.message}), nor does it "
                "call the function that it is given, of which it could be given the transpose. Write it as "
                "lax.custom_linear_solve(g, y, solve, transpose_solve)"
            )
        return x

    def jvp(self, values: Values, tangents: Values, again: Again) -> Pushed:
        """Outputs and their tangents."""
        captured = values[: self.count]
        t_captured, right = tangents[: self.count], list(tangents[self.count :])
        outs = again()
        x, zeros = outs[: self.solution.count], [Zero(y) for y in outs]
        if any(perturbed(t_captured)):
            right = [_minus(t, m) for t, m in zip(right, self.moved(captured, t_captured, x))]
        if not any(perturbed(right)):
            return outs, zeros
        pushed = self.again(captured, [instantiate(t) for t in right])
        return outs, [*pushed[: len(x)], *zeros[len(x) :]]

    def transpose(self, cts: Values, values: Values) -> list[Any]:
        """Cotangents of the right-hand side: solutions of the transposed system."""
        captured, b = values[: self.count], values[self.count :]
        if any(type(c) is Linear for c in captured):
            raise errors.NoRuleError(
                f"{self.spec.what} is linear in the right-hand side, not in what {self.operator} captured"
            )
        solution = self.transposed.again(captured, [instantiate(ct) for ct in cts[: len(b)]])
        return [*[None] * self.count, *[y if type(v) is Linear else None for y, v in zip(solution, b)]]


def _minus(x: Tangent, y: Tangent) -> Tangent:
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
    except errors.NoRuleError as error:
        raise errors.GradientError(
            f"{spec.what}: {name} ({jaxpr.name}) is not linear: {error.message}"
        ) from error
    return body if all(has) else padded(body, has, spec)


def padded(jaxpr: Jaxpr, has: Sequence[bool], spec: SolutionSpec) -> Jaxpr:
    """A jaxpr with zeros for the outputs that it lacks."""

    def full(*values: ArrayLike) -> list[Any]:
        return list(map(instantiate, with_zeros(has, evaluate(jaxpr, values), spec.avals)))

    return stage(full, jaxpr.in_avals, jaxpr.name, jaxpr.stats)


def _traced(
    fun: Callable[[PyTree], PyTree], name: str, spec: SolutionSpec, values: list[Value]
) -> tuple[Jaxpr, Sequence[Any], SolutionSpec, list[Any]]:
    """A function of solutions, what it captured, and an argument of the type of solutions.

    A solution differs between the ranks of a mesh where the argument does, or what the function captured.
    """
    jaxpr, captured = trace_map(fun, name, spec)
    if mesh_in_scope.get() is not None:
        axes = frozenset().union(*[aval_of(x).vma for x in (*captured, *values)])
        values = [varying.differ(x, axes) for x in values]
        avals = tuple(map(aval_of, values))
        if avals != spec.avals:
            return _traced(fun, name, replace(spec, avals=avals), values)
    return jaxpr, captured, spec, values


def linear_solve(
    matvec: Callable[[PyTree], PyTree],
    b: PyTree,
    solve: Solver,
    transpose_solve: Solver | None,
    symmetric: bool,
    has_aux: bool,
) -> Value:
    """``lax.custom_linear_solve``."""
    what = "custom_linear_solve"
    for fun in (matvec, solve):
        check_function(what, fun)
    if transpose_solve is not None:
        check_function(what, transpose_solve)
    spec, values = SolutionSpec.of(what, "b", b)
    if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
        solution = Solution(spec, "solve", solve, has_aux)
        return solution.handed_out(solution.solved("matvec", matvec, values))
    jaxpr, captured, spec, values = _traced(matvec, "matvec", spec, values)
    system = System(
        spec, jaxpr, solve, bool(has_aux), transpose_solve=transpose_solve, symmetric=bool(symmetric)
    )
    return system.solution.handed_out(system.apply(captured, values))


_ROOT = "custom_root"


@dataclass(frozen=True, eq=False)
class Equation(_Solved):
    """An equation ``f(x) = 0``; `tangent_solve` solves the linear system for the tangent of its root."""

    tangent_solve: Any = None

    def jvp(self, values: Values, tangents: Values, again: Again) -> Pushed:
        """Outputs and their tangents."""
        captured, t_captured = values[: self.count], tangents[: self.count]
        outs = again()
        x, zeros = outs[: self.solution.count], [Zero(y) for y in outs]
        if not any(perturbed(t_captured)):
            return outs, zeros
        moved = self.moved(captured, t_captured, x)
        if not any(perturbed(moved)):
            return outs, zeros
        operands = [*captured, *x]
        computed = evaluate(self.linearized.primal, operands)
        residuals = [operands[i] if where == "in" else computed[i] for where, i in self.linearized.residuals]
        pushed = self.tangent_system.again(residuals, [neg_p.bind(instantiate(t)) for t in moved])
        return outs, [*pushed, *zeros[len(x) :]]

    @cached_property
    def linearized(self) -> LinearizedJaxpr:
        """`f` taken apart at the root: residuals, and what is linear in `x`."""
        return linearize_jaxpr(self.function, tuple([i >= self.count for i in range(self.arity)]))

    @cached_property
    def tangent_system(self) -> System:
        """The system for the tangent of the root; what its matrix captured are the residuals."""
        parts = self.linearized
        jacobian = parts.linear if all(parts.nonzero) else padded(parts.linear, parts.nonzero, self.spec)
        solver = "tangent_solve"
        return System(
            self.spec, jacobian, self.tangent_solve, False, "the Jacobian of f", solver, backwards=True
        )


def root(
    f: Callable[[PyTree], PyTree], initial_guess: PyTree, solve: Solver, tangent_solve: Solver, has_aux: bool
) -> PyTree:
    """``lax.custom_root``."""
    for fun in (f, solve, tangent_solve):
        check_function(_ROOT, fun)
    spec, values = SolutionSpec.of(_ROOT, "initial_guess", initial_guess)
    if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
        solution = Solution(spec, "solve", solve, has_aux)
        return solution.handed_out(solution.solved("f", f, values))
    jaxpr, captured, spec, values = _traced(f, "f", spec, values)
    equation = Equation(spec, jaxpr, solve, bool(has_aux), "f", tangent_solve=tangent_solve)
    outs = bind_rule(equation, [*captured, *values], (solve, tangent_solve))
    return equation.solution.handed_out(outs)
