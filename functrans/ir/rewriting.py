"""Rules that replace what a pattern matches by what a function of traced values computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..api.bodies import as_expected
from ..arrays.arguments import FLAG
from ..control.bodies.enclosed import enclosed, with_bodies
from ..core import (
    ArgumentError,
    Atom,
    Eqn,
    FunctransError,
    Jaxpr,
    Literal,
    Primitive,
    RewriteError,
    Var,
    aval_of,
    boundary,
    current_trace,
    replayed,
    run_with,
    tracing,
    user_source,
)
from ..frontend.arguments import value_of
from ..passes.check import verified
from ..passes.rewriter import EquationPattern, Rewriter
from ..passes.toolkit import drop_unused_constants, live_equations
from ..primitives.elementwise.arithmetic import weakly
from ..primitives.operands import strong
from ..transforms.stage import StagedTracer, StageTrace
from .patterns import Match, check_pattern, matched
from .programs import check_jaxpr_type

#: How many rewrites an equation of a program allows before its rules are said to chase each other, and a few more.
_REWRITES_PER_EQUATION, _MORE_REWRITES = 20, 1000


class Rule:
    """What to write in place of what matches a pattern.

    Parameters
    ----------
    pattern : Op
    replacement : callable
        ``replacement(m)`` returns the new value of the root equation, computed by functions of functrans from traced
        values ``m["x"]``. It must have the root's shape and dtype; where the root has several results, it is a sequence
        of them.
    where : callable, optional
        ``where(m)`` says whether to replace. There ``m["x"]`` is a `Var` or a `Literal`, and ``m["x"].aval`` its type.

    Raises
    ------
    RewriteError
        If the arguments are of other types.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> x = ir.Any("x")
    >>> square = ir.Rule(ir.Op("mul", x, x), lambda m: m["x"] ** 2)
    >>> program, count = ir.rewrite(ir.trace(lambda a: np.sin(a) * np.sin(a), np.ones(3)), [square])
    >>> count
    0

    Two equations compute a sine there, so the operands are not the same value, until one of them is eliminated:

    >>> program = ir.eliminate_common_subexpressions(ir.trace(lambda a: np.sin(a) * np.sin(a), np.ones(3)))
    >>> print(ir.rewrite(program, [square])[0])
    lambda a:f64[3].
      b:f64[3] = sin a
      c:f64[3] = integer_pow[y=2] b
      return (c,)
    """

    __slots__ = ("pattern", "replacement", "source", "where")

    def __init__(
        self,
        pattern: EquationPattern,
        replacement: Callable[[Match], Any],
        where: Callable[[Match], Any] | None = None,
    ):
        check_pattern("Rule", pattern)
        if not callable(replacement):
            raise RewriteError(
                f"Rule: replacement must be a function of the match, got {str(replacement)[:60]!r} of type "
                f"{type(replacement).__name__}. To write one of the pattern's values, write lambda m: m['x']"
            )
        if where is not None and not callable(where):
            raise RewriteError(
                f"Rule: where must be a function of the match or None, got {str(where)[:60]!r}"
            )
        self.pattern = pattern
        self.replacement = replacement
        self.where = where
        self.source = user_source()

    def __repr__(self) -> str:
        line = "" if self.source is None else f", {self.source}"
        return f"<rule for {self.pattern}{line}>"

    def error(self, problem: str) -> RewriteError:
        """An error that names the rule's line."""
        return RewriteError(f"rule for {self.pattern}: {problem}", self.source)


@boundary
def rewrite(jaxpr: Jaxpr, rules: Sequence[Rule] | Rule, *, repeat: bool = False) -> tuple[Jaxpr, int]:
    """Replace what rules match, in the bodies of calls, loops and branches too.

    One sweep goes through the equations in order. The first rule whose pattern has the equation as its root, and whose
    `where` agrees, replaces it; what a replacement wrote is not matched again. Equations of the pattern whose results
    nothing else uses disappear; the others stay. An equation with effects is never part of a match, so that it is
    never removed, doubled or moved. New equations keep the line of the root. Functions with custom derivative
    rules stay as they are, because their derivatives would not follow.

    Parameters
    ----------
    jaxpr : Jaxpr
    rules : sequence of Rule
    repeat : bool
        Whether to sweep again until nothing matches.

    Returns
    -------
    jaxpr : Jaxpr
        The same object if nothing matched.
    count : int
        How often a rule was applied.

    Raises
    ------
    RewriteError
        If a replacement has another type than what it replaces, or, with `repeat`, if rules chase each other.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> x = ir.Any("x")
    >>> stable = ir.Rule(ir.Op("log", ir.Op("add", 1.0, x)), lambda m: np.log1p(m["x"]))
    >>> program, count = ir.rewrite(ir.trace(lambda a: np.log(1.0 + a), np.ones(3)), [stable])
    >>> print(program)
    lambda a:f64[3].
      b:f64[3] = log1p a
      return (b,)
    """
    check_jaxpr_type("rewrite", jaxpr)
    rules = [rules] if isinstance(rules, Rule) or not isinstance(rules, Sequence) else list(rules)
    for rule in rules:
        if not isinstance(rule, Rule):
            raise RewriteError(f"rewrite: rules must be of type Rule, got {str(rule)[:60]!r}")
    FLAG.check(repeat, "rewrite", "repeat")
    most = _MORE_REWRITES + _REWRITES_PER_EQUATION * _size(jaxpr)
    total = 0
    while True:
        sweep = _Sweep(rules)
        jaxpr = sweep.program(jaxpr)
        count = sweep.applied.total()
        total += count
        if not count or not repeat:
            return jaxpr, total
        if total > most:
            raise _chase(sweep.applied, total)


def _size(jaxpr: Jaxpr) -> int:
    """The number of equations, those of bodies included."""
    return sum(1 + sum(_size(b.jaxpr) for b in enclosed(e)) for e in jaxpr.eqns)


def _chase(applied: Counter[Rule], total: int) -> RewriteError:
    rules = sorted(applied, key=applied.__getitem__, reverse=True)
    listed = "; ".join(map(repr, rules))
    verb = "matches what it writes" if len(rules) == 1 else "match what they write"
    return RewriteError(
        f"rewrite: after {total} replacements rules still match, so they chase each other: {listed} {verb}. "
        "Restrict one with `where`, or sweep once, without repeat",
        rules[0].source,
    )


class _Sweep:
    """One sweep over a program and its bodies.

    Attributes
    ----------
    applied : Counter
        How often each rule was applied.
    """

    def __init__(self, rules: Sequence[Rule]):
        self.by_root: dict[Primitive, list[Rule]] = {}
        for rule in rules:
            self.by_root.setdefault(rule.pattern.primitive, []).append(rule)
        self.applied: Counter[Rule] = Counter()
        self.bodies: dict[Jaxpr, tuple[Jaxpr, Counter[Rule]]] = {}
        #: The arrays that replacements captured, by the ``id`` of their copies in bodies.
        self.originals: dict[int, Any] = {}

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        """The program after the sweep; the same object if no rule applied."""
        trace = StageTrace(current_trace.get(), jaxpr.name)
        trace.consts = {id(c): (v, c, c) for v, c in jaxpr.constants}
        before = self.applied.total()
        rw = Rewriter(trace.eqns).sweep(jaxpr.eqns, partial(self.equation, trace))
        if self.applied.total() == before:
            return jaxpr
        outvars = [rw.read(a) for a in jaxpr.outvars]
        acting = [v for e in rw.eqns if not e.effects.movable for v in e.outvars]
        self.originals |= {id(c): x for _, c, x in trace.consts.values()}
        new = jaxpr.replace(
            eqns=live_equations(rw.eqns, [*outvars, *acting]),
            outvars=outvars,
            constants=[(v, c) for v, c, _ in trace.consts.values()],
        )
        return verified(drop_unused_constants(new), "rewriting")

    def body(self, jaxpr: Jaxpr) -> Jaxpr:
        """The same for a body; one that occurs twice stays one object."""
        known = self.bodies.get(jaxpr)
        if known is None:
            before = self.applied.copy()
            new = self.program(jaxpr)
            self.bodies[jaxpr] = new, self.applied - before
            return new
        self.applied += known[1]
        return known[0]

    def equation(self, trace: StageTrace, rw: Rewriter, eqn: Eqn) -> Eqn | None:
        """The rule of the sweep."""
        inside = enclosed(eqn)
        if inside:
            bodies = [self.body(b.jaxpr) for b in inside]
            if any(new is not old.jaxpr for new, old in zip(bodies, inside)):
                invars, params = with_bodies(
                    eqn, eqn.invars, bodies, lambda c: trace.atom(self.originals.get(id(c), c))
                )
                eqn = eqn.replace(invars=invars, params=params)
        rules = self.by_root.get(eqn.primitive)
        if rules is None or not eqn.effects.movable:
            return eqn
        for rule in rules:
            m = matched(rw, rule.pattern, eqn)
            if m is None or not all(e.effects.movable for e in m.eqns):
                continue
            if rule.where is None or rule.where(m):
                rw.env.update(zip(eqn.outvars, written(rule, trace, m, eqn)))
                self.applied[rule] += 1
                return None
        return eqn


def written(rule: Rule, trace: StageTrace, m: Match, root: Eqn) -> list[Atom]:
    """Add the equations of a replacement to a trace; returns the atoms of its results."""
    values = {k: StagedTracer(trace, a) if isinstance(a, Var) else a.value for k, a in m.items()}

    def write() -> list[Any]:
        out = rule.replacement(Match(m.eqns, values))
        return [_fitting(rule, x, v, root) for x, v in zip(_results(rule, out, root), root.outvars)]

    try:
        outs = run_with(replayed, root.source, tracing, trace, write)
    except FunctransError as error:
        if rule.source is not None and rule.source is not error.source:
            error.add_note(f"in the replacement of the rule for {rule.pattern} at {rule.source.describe()}")
        raise
    if trace.attached:
        raise rule.error(
            f"the replacement registers a hook ({trace.attached[0].hook.label}). Register hooks in functions"
        )
    return [trace.atom(x) for x in outs]


def _results(rule: Rule, out: Any, root: Eqn) -> Sequence[Any]:
    count = len(root.outvars)
    if not root.primitive.multiple_results:
        return (out,)
    if not isinstance(out, tuple | list) or len(out) != count:
        got = f"{len(out)} values" if isinstance(out, tuple | list) else f"a {type(out).__name__}"
        raise rule.error(f"{root.primitive.name} has {count} results, but the replacement returned {got}")
    return out


def _fitting(rule: Rule, x: Any, v: Var, root: Eqn) -> Any:
    """A result as a value of the root's type."""
    if isinstance(x, Literal | Var):
        raise rule.error(f"the replacement returned {x!r}, not a value: it may have come from `where`")
    expected = v.aval
    try:
        x = value_of(x, lambda: "the result of the replacement")
    except ArgumentError:
        raise rule.error(
            f"the replacement returned {str(x)[:60]!r} of type {type(x).__name__}, but must return an array or a number"
        ) from None
    if type(x) is int and np.can_cast(int, expected.dtype, "same_kind"):
        x = float(x) if expected.weak and expected.dtype.kind == "f" else x
        x = x if expected.weak else strong(x, expected.dtype)
    x = as_expected(x, expected, casts=False)
    aval = aval_of(x)
    if aval.shape != expected.shape or aval.dtype != expected.dtype:
        raise rule.error(
            f"the replacement is {aval}, but {root.primitive.name} is {expected}. It must have the same shape and dtype"
        )
    if aval.weak == expected.weak:
        return x
    return weakly(x) if expected.weak else strong(x, expected.dtype)
