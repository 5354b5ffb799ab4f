"""The derivative of a rule at a point: a linear map, to be run backwards by its reverse rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..control.bodies import Mask, chosen
from ..core.aval import Aval, Zero, aval_of
from ..core.ir import Jaxpr, Var
from ..transforms.stage import stage
from . import running
from .capture import Unread
from .record import CustomRule, Forward, Values
from .running import Lanes


@dataclass(frozen=True, eq=False)
class Pull:
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
    kept : list of Aval or None
        For each residual None, or its type where it is not kept since `bwd` does not read it.
    """

    rule: CustomRule
    lanes: Lanes
    token: Any
    mask: Mask
    moving: Mask
    outs: tuple[Aval, ...]
    kept: tuple[Aval | None, ...]

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
            kept=(None,) * len(found.residuals),
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
        return self.captured + sum(a is None for a in self.kept) + primals

    def given(self, tangents: Values) -> list[Any]:
        """Of tangents of all operands those of perturbed ones."""
        return chosen(tangents[self.captured :], self.mask)

    def pulled(self, captured: Values, residuals: Values, cts: Values) -> list[Any]:
        """Cotangents (values or `Zero`) of the perturbed operands, for those of moving outputs."""
        given, kept = iter(cts), iter(residuals)
        everything = [next(given) if m else Zero(a) for a, m in zip(self.outs, self.moving)]
        saved = [next(kept) if a is None else Unread(a) for a in self.kept]
        found = running.bwd(self.rule, self.lanes, self.token, captured, saved, everything)
        return chosen(found, self.mask)

    def pruned(self, operands: Values, residuals: Values) -> tuple[Pull, list[Any]]:
        """Without the residuals that `bwd` does not read."""
        captured = operands[: self.captured]
        values = [*captured, *residuals]
        cts = [a for a, m in zip(self.outs, self.moving) if m]

        def pull(*xs: Any) -> list[Any]:
            n, m = len(captured), len(values)
            found = self.pulled(xs[:n], xs[n:m], xs[m:])
            return [ct for ct in found if ct is not None and type(ct) is not Zero]

        jaxpr = stage(pull, [*[aval_of(x) for x in values], *cts], self.rule.name)
        read = variables_read(jaxpr)
        mask = [v in read for v in jaxpr.invars[len(captured) : len(values)]]
        kept = tuple([None if m else aval_of(x) for x, m in zip(residuals, mask)])
        return replace(self, kept=kept), chosen(residuals, mask)


def variables_read(jaxpr: Jaxpr) -> set[Any]:
    """The variables that an equation or an output reads."""
    return {a for e in jaxpr.eqns for a in e.invars if type(a) is Var} | set(jaxpr.outvars)
