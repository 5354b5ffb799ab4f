"""Bodies of loops and branches: jaxprs without captured arrays, rearranged and derived.

Shared parts of the higher-order primitives. A body's inputs and outputs come in groups (constants, carry, rows); its
derivatives and batched forms need other groups, and a carry must have the same type, tangent and batch axis at the
start and the end of an iteration: `fixpoint` finds these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.aval import Aval
from ...core.dtypes import is_low
from ...core.ir import Atom, Eqn, Jaxpr, Literal, Var, has_subjaxprs
from ...core.kernel import Reduction
from ...core.primitive import Primitive
from ...core.tape import TapeAval
from ...core.values import Param
from ...errors.source import user_source
from ...passes.check import verified
from ...passes.masks import Mask
from ...passes.toolkit import new_equation, variables_read
from ...primitives.elementwise.arithmetic import convert_element_type_p
from ...primitives.elementwise.rounding import nextafter_p
from ...primitives.products.dot import dot_general_p
from ...primitives.structure.linear import broadcast_in_dim_p, transpose_p, zeros
from ...runtime.config import config
from ...runtime.passes import HOISTING

#: From so many elements on, a matrix need not be transposed before a loop; and for products with other matrices, if one
#: extent is so many times the other.
LARGE, TALL = 1 << 17, 16


def fixpoint(start: Sequence[bool], step: Callable[[Mask], Sequence[bool]]) -> Mask:
    """The least mask above `start` that `step` (from a carry's mask to the next carry's mask) maps into itself."""
    mask = tuple(start)
    while True:
        after = tuple([a or b for a, b in zip(mask, step(mask), strict=True)])
        if after == mask:
            return mask
        mask = after


def handed_on(jaxpr: Jaxpr) -> list[int | None]:
    """The position of the input that each output is, apart from its weakness."""
    sources: dict[Any, Any] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is convert_element_type_p and eqn.outvars[0].aval.dtype == eqn.invars[0].aval.dtype:
            sources[eqn.outvars[0]] = sources.get(eqn.invars[0], eqn.invars[0])
    places = {v: i for i, v in enumerate(jaxpr.invars)}
    return [None if isinstance(v, Literal) else places.get(sources.get(v, v)) for v in jaxpr.outvars]


def invariant_part(jaxpr: Jaxpr, count: int, outputs: Sequence[Any]) -> tuple[Jaxpr | None, Jaxpr, list[int]]:
    """Split off the part of a body that depends only on the first `count` inputs.

    Parameters
    ----------
    jaxpr : Jaxpr
    count : int
        The number of loop-invariant inputs.
    outputs : sequence of Var
        Outputs to compute outside if they are invariant.

    Returns
    -------
    outside : Jaxpr or None
        From the first inputs to new constants; None if there are none.
    inside : Jaxpr
        The body, with the new constants after the first `count` inputs.
    positions : list of int
        For each of `outputs` the number of the new constant, or -1 if it varies.

    Notes
    -----
    Equations with effects stay inside, and so do those that make tapes: tapes are stacked, not summed. Results larger
    than their operands also stay: a broadcast is cheaper where it is read. So do transposes of large matrices that
    only products read, if these take the matrix as it is: one with its rows may share a pass with one with its columns.
    """
    if not config.runs(HOISTING):
        return None, jaxpr, [-1] * len(outputs)
    fixed: set[Any] = set(jaxpr.invars[:count])
    moved = []
    for eqn in jaxpr.eqns:
        variables = [a for a in eqn.invars if type(a) is Var]
        tapes = any(isinstance(v.aval, TapeAval) for v in eqn.outvars)
        if variables and not tapes and eqn.effects.movable and fixed.issuperset(variables):
            moved.append(eqn)
            fixed.update(eqn.outvars)
    needed = {v for v in outputs if v in fixed}
    stay = set()
    for eqn in reversed(moved):
        size = sum(a.aval.size for a in eqn.invars)
        grows = sum(v.aval.size for v in eqn.outvars) > size
        if (grows or _is_read_turned(jaxpr, eqn)) and needed.isdisjoint(eqn.outvars):
            stay.add(eqn)
        else:
            needed.update(eqn.invars)
    moved = [e for e in moved if e not in stay]
    mine = {v for e in moved for v in e.outvars}
    remaining = [e for e in jaxpr.eqns if not e.outvars or e.outvars[0] not in mine]
    read = variables_read(remaining, [*jaxpr.outvars, *outputs])
    consts = [v for e in moved for v in e.outvars if v in read]
    if not consts:
        return None, jaxpr, [-1] * len(outputs)
    first, rest = jaxpr.invars[:count], jaxpr.invars[count:]
    outside = jaxpr.replace(invars=first, eqns=moved, outvars=consts, name=f"invariants({jaxpr.name})")
    inside = jaxpr.replace(invars=[*first, *consts, *rest], eqns=remaining)
    places = {v: i for i, v in enumerate(consts)}
    return outside, inside, [places[v] if v in mine else -1 for v in outputs]


def _is_read_turned(jaxpr: Jaxpr, eqn: Eqn) -> bool:
    """Whether an equation transposes a large matrix, and the products that read it are as fast without."""
    out = eqn.outvars[0]
    if eqn.primitive is not transpose_p or out.aval.size < LARGE or out in jaxpr.outvars:
        return False
    long = max(out.aval.shape)
    is_tall = long * long >= TALL * out.aval.size
    return all(
        e.primitive is dot_general_p and (is_tall or min(a.aval.size for a in e.invars) <= long)
        for e in jaxpr.eqns
        if out in e.invars
    )


class JaxprBuilder:
    """Append equations to a jaxpr's, and build another jaxpr from them with new inputs and outputs."""

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr = jaxpr
        self.eqns = list(jaxpr.eqns)

    def bind(self, prim: Primitive, *args: Any, **params: Param) -> Var:
        """Append an equation with one result; an operand is a variable, a literal or a number."""
        atoms = [a if isinstance(a, Atom) else Literal(a) for a in args]
        self.eqns.append(new_equation(prim, atoms, params, user_source()))
        (out,) = self.eqns[-1].outvars
        return out

    def zeros(self, aval: Aval) -> Atom:
        """Zeros of a type."""
        zero = zeros(aval, self.bind)
        return zero if isinstance(zero, Var) else Literal(zero)

    def batched(
        self, outs: Sequence[Atom], dims: Sequence[int | None], mask: Sequence[bool], size: int
    ) -> list[Atom]:
        """Outputs with a leading batch axis where the mask is true; outputs without one are broadcast."""

        def spread(v: Atom) -> Var:
            axes = tuple(range(1, v.aval.ndim + 1))
            return self.bind(broadcast_in_dim_p, v, shape=(size, *v.aval.shape), broadcast_dimensions=axes)

        return [spread(v) if m and d is None else v for v, d, m in zip(outs, dims, mask)]

    def finish(self, stage: str, outvars: Sequence[Atom], invars: Sequence[Var] | None = None) -> Jaxpr:
        """The jaxpr with these outputs, and with these inputs, if any."""
        return verified(self.jaxpr.replace(invars=invars, eqns=self.eqns, outvars=outvars), stage)


def is_host(eqn: Eqn) -> bool:
    """Whether an equation is a host call: it has no kernel rule, or an effect other than raising.

    A loop or a branch is not one, even if its body contains host calls: the kernel makes these.
    """
    rule = eqn.primitive.kernel
    if rule is None:
        return not eqn.primitive.is_call
    if eqn.effects.on_host:
        return not has_subjaxprs(eqn.params)
    # NumPy orders complex numbers; processors do not.
    complex_operand = any(a.aval.dtype.kind == "c" for a in eqn.invars)
    # The rule would compute the neighbour of a float32.
    if eqn.primitive is nextafter_p and is_low(eqn.outvars[0].aval.dtype):
        return True
    return isinstance(rule, Reduction) and rule.fold not in ("sum", "prod") and complex_operand
