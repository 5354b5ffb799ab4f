"""One call of ``MyOp.apply``: the slots of its `CustomRule`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

from ..core.aval import Aval, Zero, aval_of
from ..core.errors import MissingRuleError
from ..core.nans import blamed, looking
from ..primitives.linear import instantiate
from ..transforms.values import given
from .capture import Apart
from .context import Phase
from .gradients import Gradients, exact, gradient_given
from .layout import SIMPLE
from .linear_function import linear_jvp, transposed
from .once import once
from .outputs import Outputs
from .record import Mask, Values
from .recording import Call, is_traced
from .rule import CustomRule, Forward, bind_rule
from .saving import Packing, Reader, hooked, reader
from .tangents import Tangents
from .vmap_rule import apply_vmap_rule


class _Token(NamedTuple):
    """What ``backward`` gets beside residuals: types and structures, and the context without its arrays."""

    outputs: Outputs
    avals: list[Aval]
    perturbed: Mask
    needs: tuple[bool, ...]
    materialize: bool
    saved: Reader
    attributes: dict[str, Any]


class FunctionCall(Call):
    """A call with its slots."""

    __slots__ = ()

    def rule(self) -> CustomRule:
        """The rule to be applied."""
        d = self.definition
        without = d.backward is None and d.jvp is None and d.transpose is None
        reverse = without or d.backward is not None
        jvp = None if reverse else self.itself
        if without:
            jvp = self.no_jvp
        return CustomRule(
            name=d.name,
            arity=self.arguments.layout.count,
            fwd=self.fwd,
            fwd_res=self.fwd_res if reverse else None,
            bwd=self.bwd if reverse else None,
            jvp=jvp if d.jvp is None else self.jvp,
            vmap=self.vmap if d.vmap is not None or not d.derive_vmap else None,
            transpose=None if d.transpose is None else partial(transposed, self),
            derive_jvp=d.derive_jvp,
            no_forward=_NO_FORWARD,
        )

    # --- forward --------------------------------------------------------------------------------------------------

    def fwd(self, values: Values) -> list[Any]:
        """Slot of the rule: the outputs."""
        return self._recorded(values, (False,) * len(values), None).outs

    # --- reverse mode ---------------------------------------------------------------------------------------------

    def fwd_res(self, values: Values, perturbed: Mask, again: Callable[[], list[Any]]) -> Forward:
        """Slot of the rule: the outputs, and what `bwd` needs."""
        found = self._kept(values, perturbed, again, Phase.BACKWARD)
        if self.definition.backward is None:
            self._refuse_moving(found.outs, found.differentiable, "reverse", _NO_REVERSE)
        return found

    def _kept(self, values: Values, perturbed: Mask, again: Callable[[], list[Any]], phase: Phase) -> Forward:
        """The outputs, and what a rule gets of the context."""
        d = self.definition
        below = d.setup is None and d.vmap is None and d.derive_vmap and not d.clear and not hooked()
        if below and any(map(is_traced, values)):
            return self._kept_below(values, perturbed, phase)
        return self._kept_here(values, perturbed, again, phase)

    def _kept_here(
        self, values: Values, perturbed: Mask, again: Callable[[], list[Any]] | None, phase: Phase
    ) -> Forward:
        ctx, outs, marked, known = self._recorded(values, perturbed, again, identify=again is None)
        record = ctx._record
        packing = Packing(known)
        if phase is Phase.BACKWARD:
            refuse = "" if record.saved_forward is None else _WRONG_SAVE[phase].format(record.name)
            saved = reader(record.saved, packing, hooked=True, clear=self.definition.clear, refuse=refuse)
        else:
            refuse = "" if record.saved is None else _WRONG_SAVE[phase].format(record.name)
            saved = reader(record.saved_forward, packing, hooked=False, clear=False, refuse=refuse)
        attributes = {name: packing.anything(x) for name, x in vars(ctx).items()}
        avals = [aval_of(x) for x in values]
        materialize = record.materialize is not False
        token = _Token(self.outputs, avals, perturbed, record.needs, materialize, saved, attributes)
        moving = None if marked is None else tuple([not m for m in marked])
        return Forward(outs, packing.residuals, token, moving, materialize)

    def _kept_below(self, values: Values, perturbed: Mask, phase: Phase) -> Forward:
        """The same by one run of ``forward`` one level down, which gives the values in between, too.

        Where that level differentiates as well, outputs have derivatives by the rule, and values in between those of
        what ``forward`` does.
        """
        found: Any = None
        listening = True  # while the rule is applied: it lives on in jaxprs, and must not hold values

        def flat(values: Values, kept: Forward) -> list[Any]:
            nonlocal found
            known = {id(x): i for i, x in enumerate([*values, *kept.outs])}
            places = [known.get(id(x)) for x in kept.residuals]
            if listening:
                found = kept, places
            return [*kept.outs, *[x for x, i in zip(kept.residuals, places) if i is None]]

        def run(values: Values) -> list[Any]:
            return flat(values, self._kept_here(values, perturbed, None, phase))

        def differentiated(values: Values) -> list[Any]:
            return flat(values, self._kept_here(values, perturbed, lambda: self.bind(values), phase))

        outs = self._bound(CustomRule(self.definition.name, len(values), run, plain=differentiated), values)
        kept, places = found
        found, listening = None, False
        count = len(kept.outs)
        everything, between = [*values, *outs[:count]], iter(outs[count:])
        residuals = [next(between) if i is None else everything[i] for i in places]
        return kept._replace(outs=outs[:count], residuals=residuals)

    def bind(self, values: Values) -> list[Any]:
        """Apply the rule in the current trace."""
        return self._bound(self.rule(), values)

    def _objects(self) -> Iterator[Apart]:
        """What may hold traced values out of sight, with the names of the arguments."""
        layout, static, _ = self.arguments
        for i, part in enumerate(layout.parts):
            for x in static.leaves[part.leaves]:
                if x is not None and type(x) not in SIMPLE:
                    place = self.name(i)
                    yield Apart(place.partition("'")[2].partition("'")[0] or place, x)

    def _bound(self, rule: CustomRule, values: Values) -> list[Any]:
        return bind_rule(rule, values, self.definition.capturing, self._objects())

    def bwd(self, token: _Token, residuals: Values, cts: Values) -> list[Any]:
        """Slot of the rule: gradients of the arguments."""
        d = self.definition
        if (not token.materialize or d.backward is None) and all(type(ct) is Zero for ct in cts):
            return [None] * self.arguments.layout.count
        if not d.once:
            return self._gradients(token, residuals, cts)
        # Values go in as operands: what `flat` holds itself counts as captured.
        count = len(residuals)
        zeros = [Zero(ct.aval) if type(ct) is Zero else None for ct in cts]
        mask: list[bool] = []

        def flat(values: Values) -> list[Any]:
            rest = iter(values[count:])
            found = self._gradients(token, values[:count], [z or next(rest) for z in zeros])
            mask[:] = [g is not None for g in found]
            return [g for g in found if g is not None]

        values = [*residuals, *[ct for ct in cts if type(ct) is not Zero]]
        gradients = iter(once(d.name, flat, values, d.capturing))
        return [next(gradients) if m else None for m in mask]

    def _gradients(self, token: _Token, residuals: Values, cts: Values) -> list[Any]:
        d = self.definition
        assert d.backward is not None
        gradients = [gradient_given(ct, token.materialize) for ct in cts]
        ctx = self._reading(Phase.BACKWARD, token.needs, token.saved, token.attributes, residuals)
        backward = ctx.apply  # type: ignore[attr-defined]
        if looking():
            backward = blamed(d.context.__name__)(backward)
        returned = backward(*token.outputs.layout.filled(gradients))
        layout, avals, wanted = self.arguments.layout, token.avals, token.perturbed
        found = exact(returned, layout, avals, wanted)
        if found is not None:
            return found
        return Gradients(d.context.__name__, d.backward, layout, avals, wanted, self.name).checked(returned)

    # --- forward mode ---------------------------------------------------------------------------------------------

    def jvp(
        self, values: Values, tangents: Values, again: Callable[[], list[Any]]
    ) -> tuple[list[Any], list[Any]]:
        """Slot of the rule: outputs and their tangents."""
        d = self.definition
        assert d.jvp is not None
        perturbed = tuple([type(t) is not Zero for t in tangents])
        outs, residuals, token, differentiable, _ = self._kept(values, perturbed, again, Phase.JVP)
        reading = self._reading(Phase.JVP, token.needs, token.saved, token.attributes, residuals)
        moved = [_tangent(x, t, token.materialize) for x, t in zip(values, tangents)]
        found = reading.apply_jvp(*self.arguments.layout.filled(moved))  # type: ignore[attr-defined]
        avals = [aval_of(x).strong() for x in outs]
        moving = [a.dtype.kind in "fc" and m for a, m in zip(avals, differentiable or (True,) * len(avals))]
        return outs, Tangents(d.name, d.jvp, self.outputs, avals, moving).checked(found)

    def itself(
        self, values: Values, tangents: Values, again: Callable[[], list[Any]]
    ) -> tuple[list[Any], list[Any]]:
        """The same of a linear function."""
        return linear_jvp(self, self.bind, values, tangents, again)

    def no_jvp(
        self, values: Values, tangents: Values, again: Callable[[], list[Any]]
    ) -> tuple[list[Any], list[Any]]:
        """The same without any rule: outputs that have no derivative need none."""
        _, outs, marked, _ = self._recorded(values, (True,) * len(values), again)
        differentiable = None if marked is None else tuple([not m for m in marked])
        self._refuse_moving(outs, differentiable, "forward", _NO_FORWARD)
        return outs, [Zero(x) for x in outs]

    def _refuse_moving(self, outs: Values, differentiable: Mask | None, mode: str, what: str) -> None:
        moving = [aval_of(x).dtype.kind in "fc" for x in outs]
        if any(a and m for a, m in zip(moving, differentiable or (True,) * len(moving))):
            raise MissingRuleError(f"{mode} mode through {self.definition.name}: {what}")

    # --- batching -------------------------------------------------------------------------------------------------

    def vmap(
        self, size: int, values: Values, dims: Sequence[int | None]
    ) -> tuple[list[Any], list[int | None]]:
        """Slot of the rule: outputs and their batch axes."""
        d = self.definition
        if d.vmap is None:
            self._refuse_vmap()
        self.outputs, outs, found = apply_vmap_rule(d.name, d.vmap, size, self.arguments, values, dims)
        return outs, found

    def _refuse_vmap(self) -> NoReturn:
        d = self.definition
        cure = "set generate_vmap_rule=True, or leave it at None"
        if d.host:
            cure = "say how to call a host forward by vmap_method = 'sequential' or 'broadcast'"
        raise MissingRuleError(
            f"You tried to vmap over {d.name}, but it does not have vmap support. Please override and implement the "
            f"vmap staticmethod or {cure}"
        )


_NO_REVERSE = (
    "You must implement either the backward or vjp method for it to be differentiated in reverse mode"
)
_NO_FORWARD = "You must implement the jvp method for it to be differentiated in forward mode"
_WRONG_SAVE = {
    Phase.BACKWARD: (
        "{}: backward reads saved_tensors, but only save_for_forward was called: what backward needs is saved by "
        "ctx.save_for_backward"
    ),
    Phase.JVP: (
        "{}: jvp reads saved_tensors, but only save_for_backward was called: what jvp needs is saved by "
        "ctx.save_for_forward"
    ),
}


def _tangent(x: Any, t: Any, materialize: bool) -> Any:
    """A tangent as users' rules get it; integers have none."""
    if aval_of(x).dtype.kind not in "fc":
        return None
    if type(t) is Zero:
        return given(instantiate(t)) if materialize else None
    return given(t)
