"""Bodies of loops and branches: jaxprs without captured arrays, rearranged and derived.

What the higher-order primitives have in common. A body's inputs and outputs come in groups (constants, carry, rows);
its derivatives and batched forms want other groups, and a carry must have the same type, tangent and batch axis going
in and coming out: `fixpoint` finds which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from ..core.aval import Aval, Zero, aval_of
from ..core.check import verified
from ..core.ir import Atom, Eqn, Jaxpr, Literal, Var, subjaxprs
from ..core.kernel import Reduction
from ..core.primitive import Effect, Primitive
from ..core.tape import TapeAval
from ..primitives.structure.linear import broadcast_in_dim_p, broadcast_to
from ..primitives.tape import empty_tape_p

Mask = tuple[bool, ...]


def split(values: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """`values` in groups of the given sizes, and the rest."""
    rest = iter(values)
    return [*[list(islice(rest, n)) for n in sizes], list(rest)]


def chosen(values: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """The values where the mask is true."""
    return [x for x, m in zip(values, mask, strict=True) if m]


def perturbed(tangents: Sequence[Any]) -> Mask:
    """Which tangents are no symbolic zeros."""
    return tuple([type(t) is not Zero for t in tangents])


def spread(values: Sequence[Any], mask: Sequence[bool], outs: Sequence[Any]) -> list[Any]:
    """`values` where the mask is true, symbolic zeros like `outs` elsewhere."""
    given = iter(values)
    return [next(given) if m else Zero(x) for m, x in zip(mask, outs)]


def zeros(aval: Aval) -> Any:
    """A zero of a type, for where a symbolic one cannot stand."""
    if isinstance(aval, TapeAval):
        return empty_tape_p.bind(aval=aval)
    return broadcast_to(aval.dtype.type(0), aval.shape)


def given(ct: Any, aval: Aval) -> Any:
    """A tangent or cotangent as a value."""
    return zeros(aval) if ct is None or type(ct) is Zero else ct


def fixpoint(start: Sequence[bool], step: Callable[[Mask], Sequence[bool]]) -> Mask:
    """The least mask above `start` that `step` (from a carry's mask to that of the next carry) stays within."""
    mask = tuple(start)
    while True:
        after = tuple([a or b for a, b in zip(mask, step(mask), strict=True)])
        if after == mask:
            return mask
        mask = after


def without_consts(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    """The jaxpr with what it captured as leading inputs, and these values; also what calls inside captured."""
    return jaxpr.derive("without consts", lambda: _without_consts(jaxpr))


def _without_consts(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    found = {id(c): (v, c) for v, c in zip(jaxpr.constvars, jaxpr.consts)}
    same: dict[Atom, Var] = {v: found[id(c)][0] for v, c in zip(jaxpr.constvars, jaxpr.consts)}
    eqns = []
    for eqn in jaxpr.eqns:
        invars = [same.get(a, a) for a in eqn.invars]
        if eqn.primitive.inlined:
            inner, values = without_consts(eqn.params["jaxpr"])
            extra = [found.setdefault(id(c), (Var(aval_of(c)), c))[0] for c in values]
            params = {**eqn.params, "jaxpr": inner}
            eqn = Eqn(eqn.primitive, [*extra, *invars], eqn.outvars, params, eqn.source)
        elif same:
            eqn = eqn.replace(invars)
        eqns.append(eqn)
    if not found:
        return jaxpr, ()
    captured = [v for v, _ in found.values()]
    outvars = [same.get(a, a) for a in jaxpr.outvars]
    opened = Jaxpr([*captured, *jaxpr.invars], eqns, outvars, name=jaxpr.name, stats=jaxpr.stats)
    return opened, tuple([c for _, c in found.values()])


def invariant_part(jaxpr: Jaxpr, count: int, kept: Sequence[Any]) -> tuple[Jaxpr | None, Jaxpr, list[int]]:
    """Take what depends on the first `count` inputs alone out of a body.

    Parameters
    ----------
    jaxpr : Jaxpr
    count : int
        The inputs that are the same in each iteration.
    kept : sequence of Var
        Outputs that are wanted outside, if they do not vary.

    Returns
    -------
    outside : Jaxpr or None
        From the first inputs to new constants; None if there are none.
    inside : Jaxpr
        The body, with the new constants behind the first `count` inputs.
    found : list of int
        For each of `kept` the number of the new constant, -1 where it varies.

    Notes
    -----
    What has an effect stays inside, and what makes tapes: they are stacked, not summed up. So does what is larger than
    its operands: broadcasts cost less where they are read.
    """
    fixed: set[Any] = set(jaxpr.invars[:count])
    moved = []
    for eqn in jaxpr.eqns:
        variables = [a for a in eqn.invars if type(a) is Var]
        tapes = any(isinstance(v.aval, TapeAval) for v in eqn.outvars)
        if variables and not tapes and eqn.effects is Effect.NONE and fixed.issuperset(variables):
            moved.append(eqn)
            fixed.update(eqn.outvars)
    wanted = {v for v in kept if v in fixed}
    for eqn in reversed(list(moved)):
        size = sum(a.aval.size for a in eqn.invars)
        grows = sum(v.aval.size for v in eqn.outvars) > size
        if grows and wanted.isdisjoint(eqn.outvars):
            moved.remove(eqn)
        else:
            wanted.update(eqn.invars)
    mine = {v for e in moved for v in e.outvars}
    left = [e for e in jaxpr.eqns if e not in moved]
    read = {a for e in left for a in e.invars} | set(jaxpr.outvars) | set(kept)
    consts = [v for e in moved for v in e.outvars if v in read]
    if not consts:
        return None, jaxpr, [-1] * len(kept)
    outside = Jaxpr(jaxpr.invars[:count], moved, consts, name=f"invariants({jaxpr.name})", stats=jaxpr.stats)
    invars = (*jaxpr.invars[:count], *consts, *jaxpr.invars[count:])
    inside = Jaxpr(invars, left, jaxpr.outvars, name=jaxpr.name, stats=jaxpr.stats)
    return outside, inside, [consts.index(v) if v in mine else -1 for v in kept]


class Regrouping:
    """Makes a jaxpr with the equations of another one, and other inputs and outputs."""

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr = jaxpr
        self.eqns = list(jaxpr.eqns)

    def apply(self, prim: Primitive, *args: Atom, **params: Any) -> Var:
        """Add an equation."""
        out = Var(prim.abstract(*[a.aval for a in args], **params))
        self.eqns.append(Eqn(prim, args, [out], params))
        return out

    def zeros(self, aval: Aval) -> Atom:
        """A zero of a type."""
        if isinstance(aval, TapeAval):
            return self.apply(empty_tape_p, aval=aval)
        zero = Literal(aval.dtype.type(0))
        if not aval.shape:
            return zero
        return self.apply(broadcast_in_dim_p, zero, shape=aval.shape, broadcast_dimensions=())

    def made(self, invars: Sequence[Var], outvars: Sequence[Atom], stage: str) -> Jaxpr:
        """The jaxpr."""
        old = self.jaxpr
        return verified(Jaxpr(invars, self.eqns, outvars, name=old.name, stats=old.stats), stage)


def is_host(eqn: Eqn) -> bool:
    """Whether an equation is a host call: it has no kernel rule, or an effect other than raising.

    A loop or a branch is none, also where its body has host calls: the kernel makes them.
    """
    rule = eqn.primitive.kernel
    if rule is None:
        return not eqn.primitive.inlined
    if eqn.effects & ~Effect.RAISE:
        return not any(True for _ in subjaxprs(eqn.params))
    # NumPy orders complex numbers; processors do not.
    complex_operand = any(a.aval.dtype.kind == "c" for a in eqn.invars)
    return isinstance(rule, Reduction) and rule.fold not in ("sum", "prod") and complex_operand
