"""Equations of several outputs of which only some are read, as cheaper equations.

The routines without vectors compute by other ways than those with: results may differ in their last bits, so
that strict programs keep what they have. R without Q is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from ...control.scan import scan_p
from ...core.ir import Atom, Eqn, Jaxpr
from ...core.passes import live_equations
from ...primitives.linalg.eig import eig_p
from ...primitives.linalg.eigh import eigh_p
from ...primitives.linalg.qr import qr_p, qr_triangle_p
from ...primitives.linalg.svd import svd_p

Narrow = Callable[[Eqn, Collection[Atom]], Eqn | None]


def _qr(eqn: Eqn, needed: Collection[Atom]) -> Eqn | None:
    (x,), (q, r) = eqn.invars, eqn.outvars
    rows, columns = x.aval.shape[-2:]
    if q in needed or r not in needed or (eqn.params["full"] and rows > columns):
        return None
    return eqn.replace(primitive=qr_triangle_p, outvars=[r], params={})


def _values_at(place: int) -> Narrow:
    """For a decomposition whose output at that place is the values, and the others are vectors."""

    def narrow(eqn: Eqn, needed: Collection[Atom]) -> Eqn | None:
        if not eqn.params["vectors"] or any(v in needed for i, v in enumerate(eqn.outvars) if i != place):
            return None
        return eqn.replace(outvars=[eqn.outvars[place]], params=eqn.params | {"vectors": False})

    return narrow


def _scan(eqn: Eqn, needed: Collection[Atom]) -> Eqn | None:
    """Without the stacked rows that nobody reads."""
    num_carry, body = eqn.params["num_carry"], eqn.params["jaxpr"]
    kept = tuple([i for i, v in enumerate(eqn.outvars) if i < num_carry or v in needed])
    if len(kept) == len(eqn.outvars):
        return None

    def build() -> Jaxpr:
        outvars = [body.outvars[i] for i in kept]
        eqns = live_equations(body.eqns, outvars, partial(narrowed, strict=True))
        return body.replace(eqns=eqns, outvars=outvars)

    narrow = body.derive(("outputs", kept), build)
    return eqn.replace(outvars=[eqn.outvars[i] for i in kept], params=eqn.params | {"jaxpr": narrow})


#: By name of primitive, for `simplify`. A rule takes an equation and the variables that are read after it.
EXACT: dict[str, Narrow] = {qr_p.name: _qr, scan_p.name: _scan}
ALL: dict[str, Narrow] = {
    **EXACT,
    eig_p.name: _values_at(0),
    eigh_p.name: _values_at(0),
    svd_p.name: _values_at(1),
}


def narrowed(eqn: Eqn, needed: Collection[Atom], *, strict: bool) -> Eqn:
    """The equation, or a cheaper one for those of its outputs that are `needed`."""
    rule = (EXACT if strict else ALL).get(eqn.primitive.name)
    return (rule(eqn, needed) if rule is not None else None) or eqn
