"""Simplify a jaxpr: inline calls, remove dead and common equations, apply algebra that is exact in IEEE arithmetic.

Effects decide which equations may be removed and shared (`Effect.removable`, `Effect.shareable`). The order of
equations never changes, so host calls keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from ...core import Atom, Eqn, Jaxpr, Literal, Pointwise, Reduction, run_quietly
from ...passes import toolkit
from ...passes.check import check_jaxpr, verified
from ...passes.rewriter import Rewriter, identity
from ...primitives.elementwise.identities import barrier_p
from ...runtime.config import config
from ...runtime.passes import (
    ALGEBRA,
    COMMON,
    COUNTERS,
    FUSED_SCANS,
    IN_PLACE_SUMS,
    MIRRORED_SUMS,
    REPEATED_SUMS,
    RESHAPES,
    SUMS_OF_WINDOWS,
    WINDOWS,
)
from .counters import with_counters
from .fused_scans import fuse_scans
from .low_precision import widened
from .mirrored_sums import share_mirrored_sums
from .repeated_sums import multiply_repeated
from .reshapes import raise_reshapes
from .sparse_sums import add_in_place, gather_sums
from .windows import write_in_windows


def simplify(jaxpr: Jaxpr, *, strict: bool = False, within: bool = False) -> Jaxpr:
    """An equivalent jaxpr with fewer equations.

    Parameters
    ----------
    jaxpr : Jaxpr
    strict : bool
        Whether to keep the order of additions as well.
    within : bool
        Whether it is the body of a loop or a branch, which has no captured arrays.

    Returns
    -------
    Jaxpr
        With the same inputs and the same number of outputs, without calls; captured arrays of rank 0 become literals.
    """
    jaxpr = inlined(jaxpr, within=within)
    eqns, outvars = list(jaxpr.eqns), list(jaxpr.outvars)
    if config.runs(FUSED_SCANS):
        eqns = fuse_scans(eqns, outvars)
    eqns = widened(eqns)
    eqns = [_with_simple_bodies(e, strict) for e in eqns]
    narrow = partial(toolkit.narrowed, strict=strict)

    def checked(stage: str, eqns: list[Eqn], outvars: list[Atom]) -> tuple[list[Eqn], list[Atom]]:
        if config.verify:
            check_jaxpr(jaxpr.replace(eqns=eqns, outvars=outvars), stage)
        return eqns, outvars

    eqns, outvars = checked("rewriting", *rewrite(eqns, outvars))
    if config.runs(IN_PLACE_SUMS) and not strict:
        eqns, outvars = checked("adding in place", add_in_place(eqns, outvars, within), outvars)
    if config.runs(WINDOWS):
        eqns = write_in_windows(eqns, outvars)
    eqns, outvars = checked("windows", toolkit.live_equations(eqns, outvars, narrow), outvars)
    if config.runs(SUMS_OF_WINDOWS) and not strict:
        eqns = toolkit.live_equations(
            gather_sums(eqns, outvars), outvars, partial(toolkit.narrowed, strict=True)
        )
        checked("gathering sums", eqns, outvars)
    if config.runs(REPEATED_SUMS) and not strict:
        products = multiply_repeated(eqns, outvars)
        if products is not eqns:
            eqns, outvars = rewrite(products, outvars)
            eqns, outvars = checked("products", toolkit.live_equations(eqns, outvars, narrow), outvars)
    if config.runs(MIRRORED_SUMS) and not strict:
        eqns, outvars = checked("mirrored sums", *share_mirrored_sums(eqns, outvars))
    if config.runs(RESHAPES):
        eqns, outvars = checked("raising reshapes", raise_reshapes(eqns, outvars), outvars)
    if config.runs(COUNTERS):
        eqns, outvars = checked("counters", *with_counters(eqns, outvars))
    eqns, outvars = rewrite(eqns, outvars)
    eqns, outvars = checked("simplification", toolkit.live_equations(eqns, outvars, narrow), outvars)
    return toolkit.drop_unused_constants(jaxpr.replace(eqns=eqns, outvars=outvars))


# --- calls --------------------------------------------------------------------------------------------------


def inlined(jaxpr: Jaxpr, *, within: bool = False) -> Jaxpr:
    """The jaxpr with calls inlined, including those in its loops and branches; itself if it has none.

    With `within`, it is the body of a loop or a branch. Captured arrays of rank 0 become literals.
    """
    if not jaxpr.consts and all(map(_without_calls, jaxpr.eqns)):
        return jaxpr

    def body_of(eqn: Eqn) -> Jaxpr | None:
        prim = eqn.primitive
        if prim.call is None:
            return None
        if prim.call.expand is None:
            return eqn.params["jaxpr"]
        expanded = inlined(prim.call.expand(*[a.aval for a in eqn.invars], **eqn.params))
        # Captured values of a loop's body are operands of the loop; those of its expansion alone have nowhere to go.
        return None if within and expanded.consts else expanded

    flat = toolkit.constants_to_literals(toolkit.inline(jaxpr, body_of))
    flat = flat.replace(eqns=[_with_bodies(e, _inlined_body) for e in flat.eqns])
    return verified(toolkit.drop_unused_constants(flat), "inlining calls")


def _without_calls(eqn: Eqn) -> bool:
    return eqn.primitive.call is None and _with_bodies(eqn, _inlined_body) is eqn


def _inlined_body(body: Jaxpr) -> Jaxpr:
    return inlined(body, within=True)


def _with_simple_bodies(eqn: Eqn, strict: bool) -> Eqn:
    """The equation of a loop or a branch with simplified bodies."""

    def simple(body: Jaxpr) -> Jaxpr:
        return body.derive(("simplified", strict), lambda: simplify(body, strict=strict, within=True))

    return _with_bodies(eqn, simple)


def _with_bodies(eqn: Eqn, of: Callable[[Jaxpr], Jaxpr]) -> Eqn:
    """The equation of a loop or a branch with other bodies; itself if they are unchanged."""
    if eqn.primitive.is_call:
        return eqn
    params = toolkit.map_subjaxprs(eqn.params, of)
    return eqn if params is eqn.params else eqn.replace(params=params)


# --- common and foldable equations --------------------------------------------------------------------------


def rewrite(eqns: Iterable[Eqn], outvars: Iterable[Atom]) -> tuple[list[Eqn], list[Atom]]:
    """One pass of algebra, constant folding and common-subexpression elimination."""
    rw = Rewriter().sweep(eqns, algebra, shared_key)
    return rw.eqns, [rw.read(a) for a in outvars]


def algebra(rw: Rewriter, eqn: Eqn, *, marks: bool = False) -> Eqn | None:
    """The equation after all rules; None if its output is now another variable.

    With `marks`, the program may still be differentiated: equations stay that mark a value for transformations, such as
    `stop_gradient`, and none becomes one without a derivative, for kernels only.
    """
    rule = eqn.primitive.simplify
    if marks and rule is identity:
        return eqn
    kernel = eqn.primitive.kernel
    needed = isinstance(kernel, Reduction) and not kernel.is_folded
    if not eqn.effects.removable or not (config.runs(ALGEBRA) or needed):
        return eqn
    if len(eqn.outvars) != 1:
        return (rule(rw, eqn) if rule is not None else None) or eqn
    for _ in range(8):
        out = eqn.outvars[0]
        rule = eqn.primitive.simplify
        replacement = _fold(eqn) or (rule(rw, eqn) if rule is not None else None)
        if replacement is None:
            return eqn
        if not isinstance(replacement, Eqn):
            if replacement.aval.shape != out.aval.shape or replacement.aval.dtype != out.aval.dtype:
                return eqn
            rw.env[out] = replacement
            return None
        if marks and replacement.primitive.jvp is None:
            return eqn
        eqn = replacement
    return eqn


def _fold(eqn: Eqn) -> Literal | None:
    """The value of an equation between literals."""
    literals = [a for a in eqn.invars if isinstance(a, Literal)]
    if not literals or len(literals) != len(eqn.invars):
        return None
    aval = eqn.outvars[0].aval
    if aval.shape or type(eqn.primitive.kernel) is not Pointwise:
        return None
    values = [np.asarray(a.value, a.aval.dtype)[()] for a in literals]
    value = np.asarray(run_quietly(partial(eqn.primitive.impl_for(values), *values, **eqn.params)))
    return Literal(value[()]) if value.dtype == aval.dtype and value.shape == () else None


def shared_key(eqn: Eqn) -> Any:
    """A key that is equal for equations that compute the same; None for an equation that must not be shared."""
    if not eqn.effects.shareable or eqn.primitive is barrier_p or not config.runs(COMMON):
        return None
    return toolkit.equation_key(eqn, eqn.invars)
