"""The one mechanism that rewrites programs: a sweep over equations, in which rules replace some of them.

The compiler's algebra (the slot ``simplify`` of primitives), common subexpressions, and the rules of users
(`functrans.ir.rewrite`) are rules of a sweep.

A rule of the slot ``simplify`` takes the rewriter and an equation whose operands are already rewritten. It returns an
atom equal to the output, another equation for the same output, or None. It must not change a rounding, a signed zero or
a NaN: ``x + 0.0`` stays (it turns -0 into 0), ``x - 0.0`` goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import Atom, Eqn, Literal, Primitive, Source, Var
from ..core.values import Param
from .toolkit import new_equation


class Rewriter:
    """The state of one sweep: the replacement of each variable, the equations so far, and which of them define what.

    Attributes
    ----------
    env : dict
        What replaces a variable.
    eqns : list of Eqn
    producer : dict
        The equation of each variable that a rule may look at.
    source : Source or None
        The line of the current equation.
    """

    def __init__(self, eqns: list[Eqn] | None = None) -> None:
        self.env: dict[Atom, Atom] = {}
        self.eqns: list[Eqn] = [] if eqns is None else eqns
        self.producer: dict[Var, Eqn] = {}
        self.source: Source | None = None

    def sweep(
        self,
        eqns: Iterable[Eqn],
        rule: Callable[[Rewriter, Eqn], Eqn | None] | None = None,
        key: Callable[[Eqn], Hashable | None] | None = None,
    ) -> Rewriter:
        """Go through equations in order.

        Parameters
        ----------
        eqns : iterable of Eqn
        rule : callable, optional
            ``rule(rewriter, eqn)`` returns the equation to append, which is `eqn` if nothing applies. It returns None
            if `env` says what the results are now.
        key : callable, optional
            ``key(eqn)`` is equal for equations of which the first serves for all; None for others.

        Returns
        -------
        Rewriter
            Itself.
        """
        env = self.env
        seen: dict[Hashable, tuple[Var, ...]] = {}
        for eqn in eqns:
            self.source = eqn.source
            for a in eqn.invars:
                if a in env:
                    eqn = eqn.replace(invars=[env.get(b, b) for b in eqn.invars])
                    break
            new = eqn if rule is None else rule(self, eqn)
            if new is None:
                continue
            which = None if key is None else key(new)
            shared = new.outvars if which is None else seen.setdefault(which, new.outvars)
            if shared is new.outvars:
                self.emit(new)
            else:
                env.update(zip(new.outvars, shared))
        return self

    def read(self, a: Atom) -> Atom:
        """The current replacement of `a`."""
        return self.env.get(a, a) if isinstance(a, Var) else a

    def emit(self, eqn: Eqn) -> None:
        """Append an equation."""
        self.eqns.append(eqn)
        for v in eqn.outvars:
            self.producer[v] = eqn

    def new(self, prim: Primitive, *args: Atom, **params: Param) -> Var:
        """Append an equation, and return its result."""
        eqn = new_equation(prim, args, params, self.source)
        self.emit(eqn)
        return eqn.outvars[0]

    def made_by(self, a: Atom, prim: Primitive) -> Eqn | None:
        """The equation that defines `a`, if it is one of this primitive."""
        eqn = self.producer.get(a) if isinstance(a, Var) else None
        return eqn if eqn is not None and eqn.primitive is prim else None

    def uniform(self, a: Atom) -> Any:
        """The Python number that every element of `a` equals, or None."""
        while isinstance(a, Var):
            source = self.producer.get(a)
            if source is None or not source.primitive.repeats:
                return None
            a = source.invars[0]
        value = a.value
        return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def is_number(value: Any, number: complex) -> bool:
    """Whether a uniform value is that number; zeros of opposite sign differ, and so do kinds, but for 1 and 1.0."""
    if value is None or isinstance(value, (bool, complex)) != isinstance(number, (bool, complex)):
        return False
    if value != number:
        return value != value and number != number
    if number != 0 or isinstance(value, (int, complex)):
        return isinstance(value, bool) == isinstance(number, bool)
    return math.copysign(1, value) == math.copysign(1, number)  # type: ignore[arg-type]


def inverse_pair(rw: Rewriter, eqn: Eqn) -> Atom | None:
    """``neg(neg(x))``, ``not(not(x))``."""
    inner = rw.made_by(eqn.invars[0], eqn.primitive)
    return None if inner is None else inner.invars[0]


def identity(rw: Rewriter, eqn: Eqn) -> Atom:
    """The output is the first operand."""
    return eqn.invars[0]


# --- patterns -----------------------------------------------------------------------------------------------


class Hole:
    """In a pattern: any value. Where the name occurs again, the same value."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


class EquationPattern:
    """In a pattern: an equation of a primitive with these parameters, and with these operands or with any.

    An operand is a `Hole`, an `EquationPattern`, a `ResultOf`, or a number, which stands for a value that is that
    number in every element.
    """

    __slots__ = ("operands", "params", "primitive")

    def __init__(self, primitive: Primitive, operands: Sequence[Any] = (), params: Mapping[str, Any] = {}):
        self.primitive = primitive
        self.operands = tuple(operands)
        self.params = dict(params)

    def __getitem__(self, index: int) -> ResultOf:
        """The pattern of one of several results."""
        return ResultOf(self, index)

    def __repr__(self) -> str:
        inside = [*map(repr, self.operands), *[f"{k}={v}" for k, v in self.params.items()]]
        return f"{self.primitive.name}({', '.join(inside)})"


class ResultOf:
    """In a pattern: one result of an equation with several."""

    __slots__ = ("index", "op")

    def __init__(self, op: EquationPattern, index: int):
        self.op = op
        self.index = index

    def __repr__(self) -> str:
        return f"{self.op}[{self.index}]"


def _done() -> bool:
    return True


class Matching:
    """What is matched so far. A method tries a pattern, then what comes after it, and undoes its part if that fails."""

    __slots__ = ("eqns", "rw", "values")

    def __init__(self, rw: Rewriter):
        self.rw = rw
        self.values: dict[str, Atom] = {}
        self.eqns: list[Eqn] = []

    def operation(self, pattern: EquationPattern, eqn: Eqn, then: Callable[[], bool] = _done) -> bool:
        """The primitive fits already."""
        if pattern.params and not all(_has(eqn.params, k, v) for k, v in pattern.params.items()):
            return False

        def last() -> bool:
            if any(e is eqn for e in self.eqns):
                return then()
            self.eqns.append(eqn)
            if then():
                return True
            self.eqns.pop()
            return False

        return self.in_some_order(pattern.operands, eqn, last) if pattern.operands else last()

    def in_some_order(self, patterns: Sequence[Any], eqn: Eqn, then: Callable[[], bool]) -> bool:
        """The operands of an equation in their order, or, if they commute, in the other one; then the rest."""
        atoms = eqn.invars
        if len(patterns) != len(atoms):
            return False
        if self.operands(patterns, atoms, then):
            return True
        if eqn.primitive.commutes and atoms[0] is not atoms[1]:
            return self.operands(patterns, (atoms[1], atoms[0], *atoms[2:]), then)
        return False

    def operands(self, patterns: Sequence[Any], atoms: Sequence[Atom], then: Callable[[], bool]) -> bool:
        """All operands, then the rest."""
        if not patterns:
            return then()
        return self.operand(patterns[0], atoms[0], lambda: self.operands(patterns[1:], atoms[1:], then))

    def operand(self, pattern: Any, atom: Atom, then: Callable[[], bool]) -> bool:
        """One operand, then the rest."""
        if isinstance(pattern, Hole):
            known = self.values.get(pattern.name)
            if known is not None:
                return _same(known, atom) and then()
            self.values[pattern.name] = atom
            if then():
                return True
            del self.values[pattern.name]
            return False
        if isinstance(pattern, EquationPattern | ResultOf):
            op, index = (pattern.op, pattern.index) if isinstance(pattern, ResultOf) else (pattern, None)
            eqn = self.rw.made_by(atom, op.primitive)
            if eqn is None or (
                index is not None and (index >= len(eqn.outvars) or eqn.outvars[index] is not atom)
            ):
                return False
            return self.operation(op, eqn, then)
        return is_number(self.rw.uniform(atom), pattern) and then()


def _same(a: Atom, b: Atom) -> bool:
    if isinstance(a, Literal) and isinstance(b, Literal):
        return a.aval == b.aval and repr(a.value) == repr(b.value)
    return a is b


def _has(params: Mapping[str, Any], name: str, value: Any) -> bool:
    if name not in params:
        return value is None
    own = params[name]
    if own is value:
        return True
    try:
        return bool(own == value)
    except (TypeError, ValueError):  # a name of no dtype; arrays
        return False


class Yields:
    """A rule of the slot ``simplify``: an equation whose operands match the patterns is its operand ``Hole("x")``."""

    __slots__ = ("operands",)

    def __init__(self, *operands: Any):
        self.operands = operands

    def __call__(self, rw: Rewriter, eqn: Eqn) -> Atom | None:
        """Return the operand, or None if the equation does not match."""
        state = Matching(rw)
        return state.values["x"] if state.in_some_order(self.operands, eqn, _done) else None
