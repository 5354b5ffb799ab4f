"""The derivative of a rule at a point: a linear map, to be run backwards by its reverse rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..control.bodies import Mask, chosen, given, split
from ..control.interned import UserCode
from ..core.aval import Aval, Zero, aval_of
from ..core.ir import Jaxpr, Var
from ..transforms.evaluate import evaluate
from ..transforms.stage import stage
from . import running
from .constants import is_zero
from .record import CustomRule, Forward, Values
from .running import Lanes


@dataclass(frozen=True, eq=False)
class Pull(UserCode):
    """The linear map from tangents of a rule's operands to tangents of its outputs, at one point.

    The operands of its equation are the captured values, the residuals, the operands of the rule (if it has a jvp), and
    the tangents of those operands that are perturbed.

    Attributes
    ----------
    rule : CustomRule
    lanes : tuple
    token : object
        As `Forward.token`.
    mask : tuple of bool
        Which operands of the rule are perturbed, captured ones left out.
    moving : tuple of bool
        Which outputs have a tangent.
    outs : list of Aval
        All outputs.
    residuals : int
        Their number.
    traced : Jaxpr, optional
        `bwd`, where it was traced to see what it reads: from captured values, the residuals kept, and cotangents.
    nonzero : tuple of bool
        Which perturbed operands it has a cotangent for.
    """

    rule: CustomRule
    lanes: Lanes
    token: Any
    mask: Mask
    moving: Mask
    outs: tuple[Aval, ...]
    residuals: int
    traced: Jaxpr | None = None
    nonzero: Mask = ()

    @staticmethod
    def of(rule: CustomRule, lanes: Lanes | None, mask: Mask, found: Forward) -> Pull:
        """The pull of a rule's forward pass."""
        assert found.differentiable is not None
        outs = tuple([aval_of(x).strong() for x in found.outs])
        return Pull(
            rule=rule,
            lanes=lanes or (),
            token=found.token,
            mask=mask[len(rule.captures) :],
            moving=found.differentiable,
            outs=outs,
            residuals=len(found.residuals),
        )

    def __repr__(self) -> str:
        return self.rule.name

    @property
    def captured(self) -> int:
        """The number of captured values."""
        return len(self.rule.captures)

    @property
    def known(self) -> int:
        """The number of operands that are no tangents."""
        primals = self.rule.arity if self.rule.jvp is not None else 0
        return self.captured + self.residuals + primals

    def perturbed(self, tangents: Values) -> list[Any]:
        """Of tangents of all operands those of perturbed ones."""
        return chosen(tangents[self.captured :], self.mask)

    def pulled(self, captured: Values, residuals: Values, cts: Values) -> list[Any]:
        """Cotangents (None or `Zero` where they are zero) of perturbed operands, for those of moving outputs."""
        if self.traced is not None:
            known = [given(ct, a) for ct, a in zip(cts, chosen(self.outs, self.moving))]
            found = iter(evaluate(self.traced, [*captured, *residuals, *known]))
            return [next(found) if m else None for m in self.nonzero]
        moving = iter(cts)
        everything = [next(moving) if m else Zero(a) for a, m in zip(self.outs, self.moving)]
        return chosen(
            running.bwd(self.rule, self.lanes, self.token, captured, residuals, everything), self.mask
        )

    def traced_now(self, captured: Values, residuals: Values) -> tuple[Pull, list[Any]]:
        """With `bwd` traced, and without residuals that it does not read; captured arrays are residuals, too."""
        values = [*captured, *residuals]
        nonzero: list[bool] = []

        def pull(*xs: Any) -> list[Any]:
            found = without_zeros(self).pulled(*split(xs, len(captured), len(residuals)))
            nonzero[:] = [ct is not None and type(ct) is not Zero for ct in found]
            return chosen(found, nonzero)

        avals = [*map(aval_of, values), *chosen(self.outs, self.moving)]
        jaxpr = stage(pull, avals, f"{self.rule.name}Backward")
        read = variables_read(jaxpr)
        front, saved, back = split(jaxpr.invars, len(captured), len(residuals))
        mask = [v in read for v in saved]
        invars = [*front, *chosen(saved, mask), *jaxpr.constvars, *back]
        traced = Jaxpr(invars, jaxpr.eqns, jaxpr.outvars, name=jaxpr.name)
        kept = [*chosen(residuals, mask), *jaxpr.consts]
        return replace(self, residuals=len(kept), traced=traced, nonzero=tuple(nonzero)), kept


def variables_read(jaxpr: Jaxpr) -> set[Any]:
    """The variables that an equation or an output reads."""
    return {a for e in jaxpr.eqns for a in e.invars if type(a) is Var} | set(jaxpr.outvars)


def independent(jaxpr: Jaxpr, inputs: Sequence[Var]) -> Jaxpr | None:
    """The jaxpr without all that depends on some of its inputs; None where an output does.

    What depends on them is gone also where it has an effect: a gradient that nobody wants gathers from them.
    """
    reached, eqns = set(inputs), []
    for e in jaxpr.eqns:
        if reached.isdisjoint([a for a in e.invars if type(a) is Var]):
            eqns.append(e)
        else:
            reached.update(e.outvars)
    if not reached.isdisjoint([a for a in jaxpr.outvars if type(a) is Var]):
        return None
    return Jaxpr(jaxpr.invars, eqns, jaxpr.outvars, jaxpr.constvars, jaxpr.consts, jaxpr.name)


def without_zeros(pull: Pull) -> Pull:
    """The same; arrays of zeros that the reverse rule returns, which is linear too, are symbolic zeros."""
    bwd = pull.rule.bwd
    assert bwd is not None

    def found(token: Any, residuals: Values, cts: Values) -> list[Any]:
        return [Zero(ct) if is_zero(ct) else ct for ct in bwd(token, residuals, cts)]

    return replace(pull, rule=replace(pull.rule, bwd=found))
