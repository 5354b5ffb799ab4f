"""Values that live in another one's memory from the start: reshapes, and what a block overwrites."""

from __future__ import annotations

from ..core.ir import Var
from ..core.kernel import Block
from .fuse import Fusion, Loop
from .roots import Root, Roots


def shared_storage(roots: Roots, fusion: Fusion) -> dict[Var, Var]:
    """For values without memory of their own the value in whose memory they live.

    A reshape lives in its operand; but an operand that is no output itself lives in the output that reshapes
    it. The first result of a block takes the operand that its rule may overwrite, if nothing else reads that
    any more.
    """
    outputs = set(roots.jaxpr.outvars)
    owner: dict[Var, Var] = {}

    def home(v: Var) -> Var:
        while v in owner:
            v = owner[v]
        return v

    for v in roots.views:
        base = roots.base(v)
        if v not in outputs:
            owner[v] = base
        elif base not in roots.inputs and base not in outputs and base not in owner:
            owner[base] = v
    last = _last_readers(fusion)
    for item in reversed(fusion.body):
        if not isinstance(item, Root) or item.kind != "block" or item.eqn is None:
            continue
        rule = item.eqn.primitive.kernel
        if not isinstance(rule, Block) or rule.reuse is None:
            continue
        operand = item.eqn.invars[rule.reuse]
        base = roots.base(operand) if isinstance(operand, Var) else roots.literals[operand]
        result = home(item.var)
        only_here = last[base] == [item] and [v for v, _ in item.reads].count(base) == 1
        owned = home(base) is base and base is not result and base not in roots.inputs | outputs
        if only_here and owned:
            owner[base] = result
    return owner


def _last_readers(fusion: Fusion) -> dict[Var, list[Root]]:
    """Who reads each value in the last item of the body that reads it."""
    last: dict[Var, list[Root]] = {}
    for item in fusion.body:
        for v, readers in _readers(item).items():
            last[v] = readers
    return last


def _readers(item: Loop | Root) -> dict[Var, list[Root]]:
    found: dict[Var, list[Root]] = {}
    for root in [item] if isinstance(item, Root) else item.members:
        for v in dict.fromkeys(v for v, _ in root.reads):
            found.setdefault(v, []).append(root)
    return found
