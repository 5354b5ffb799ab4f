"""One call of ``MyOp.apply``: the slots of its rule, and the context that is recorded while ``forward`` runs.

At each level of differentiation the context is recorded anew, with what that level knows: its inputs, the outputs of
the rule applied one level down, and which inputs it differentiates in. So inputs, outputs and values in between that
were saved all have derivatives, to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..core.aval import Aval, Zero, aval_of
from ..core.errors import (
    FunctionContractError,
    GradientError,
    MissingRuleError,
    OnceDifferentiableError,
    PytreeError,
    VmapRuleError,
)
from ..core.nans import blamed, looking
from ..core.primitive import Linear
from ..core.pytree import flatten_axes, tree_structure
from ..core.source import last_line
from ..core.trace import Tracer
from ..primitives.structure.linear import instantiate
from ..transforms.stage import stage
from ..transforms.values import given
from .closures import Apart, StandInTracer
from .context import Context, Known, Packing, Phase, Reader, Record, hooked, read_once, reader, unpacked
from .custom_call import bind_rule
from .function_class import Definition
from .host import HostForward
from .partition import SIMPLE, Arguments, Outputs, own_value
from .returned import Gradients, Tangents, exact, gradient_given
from .rule import CustomRule, Forward, Mask, Values


class Recorded(NamedTuple):
    """A context after ``forward``, the outputs, and which of them are marked as non-differentiable (None: no one).

    `known` has by their ``id`` the objects of the user's that stand for others: for the outputs of the rule one level
    down.
    """

    ctx: Context
    outs: list[Any]
    marked: Mask | None
    known: Known


class Call(CustomRule):
    """A call with these arguments, and how its ``forward`` is run.

    Parameters
    ----------
    definition : Definition
    arguments : Arguments
    """

    def __init__(self, definition: Definition, arguments: Arguments):
        self.definition = definition
        self.name = definition.name
        self.arity = arguments.layout.count
        self.arguments = arguments
        self.outputs: Any = None

    def place(self, position: int) -> str:
        """How messages call an argument."""
        layout, _, keywords = self.arguments
        return self.definition.signature.place(position, keywords, len(layout.parts))

    def _recorded(
        self,
        values: Values,
        perturbed: Mask,
        again: Callable[[], list[Any]] | None,
        identify: bool = False,
    ) -> Recorded:
        """Record a context. The outputs are those of `again`, the rule one level down, where there is such a level.

        With `identify` inputs and outputs are known again among saved values also where there is none.
        """
        d = self.definition
        arrays = [given(x) for x in values]
        inputs = self.arguments.filled(arrays)
        ctx = _context(d.context, Record(d.name, self.arguments.layout.any_of(perturbed)))
        known: Known = {}
        if d.setup is None:
            self.outputs, objects = Outputs.of(self.arguments.call(d.forward, inputs, ctx))
            below = again if any(map(is_traced, values)) else None
            outs = [own_value(x, self._output_name) for x in objects] if below is None else below()
            if below is not None or identify:
                known.update((id(x), (x, v)) for x, v in zip([*objects, *arrays], [*outs, *values]))
        else:
            output, objects, outs = self._output(values, inputs, again)
            d.setup(ctx, inputs, output)
        record = ctx._record
        record.phase = Phase.FINISHED
        return Recorded(ctx, outs, self._marked(record, objects) if record.marked else None, known)

    def _output(
        self, values: Values, inputs: Sequence[Any], again: Callable[[], list[Any]] | None
    ) -> tuple[Any, list[Any], list[Any]]:
        """What `setup_context` gets as output; the arrays in it, and the values that they are."""
        d = self.definition
        if again is None and not d.host:
            output = self.arguments.call(d.forward, inputs)
            self.outputs, objects = Outputs.of(output)
            return output, objects, [own_value(x, self._output_name) for x in objects]
        if again is None:
            self.outputs, outs = HostForward(d, self.arguments)(values)
        else:
            outs = again()
        objects = [given(x) for x in outs]
        return self.outputs.filled(objects), objects, outs

    def _output_name(self) -> str:
        return f"an output of {self.definition.name}.forward"

    def _marked(self, record: Record, outputs: Sequence[Any]) -> Mask:
        """Which outputs are marked as non-differentiable."""
        assert record.marked is not None
        marked = {id(x) for x in record.marked}
        strange = marked.difference(map(id, outputs))
        if strange:
            i = next(i for i, x in enumerate(record.marked) if id(x) in strange)
            d = self.definition
            raise FunctionContractError(
                f"{d.name}: mark_non_differentiable was given what is not an output of this call (its argument {i}). "
                "Mark the very objects that forward returns",
                last_line(d.setup or d.forward),
            )
        return tuple([id(x) in marked for x in outputs])

    def _reading(
        self,
        phase: Phase,
        needs: tuple[bool, ...],
        saved: Reader,
        attributes: dict[str, Any],
        residuals: Values,
    ) -> Context:
        """The context as ``backward`` and ``jvp`` get it."""
        record = Record(self.definition.name, needs, phase)
        read = partial(saved, residuals)
        record.read = read_once(read) if self.definition.clear and phase is Phase.BACKWARD else read
        ctx = _context(self.definition.context, record)
        if attributes:
            vars(ctx).update({name: unpacked(x, residuals) for name, x in attributes.items()})
        return ctx


def _context(kind: type[Context], record: Record) -> Context:
    ctx = object.__new__(kind)
    object.__setattr__(ctx, "_record", record)
    return ctx


def is_traced(x: Any) -> bool:
    """Whether an outer level looks on, and must see the rule."""
    return isinstance(x, Tracer) and type(x) is not StandInTracer


def linear_jvp(
    call: Call,
    bind: Callable[[Values], list[Any]],
    values: Values,
    tangents: Values,
    again: Callable[[], list[Any]],
) -> tuple[list[Any], list[Any]]:
    """Outputs and tangents of what is linear, in all operands that move together: the rule applied to tangents.

    `bind` applies it, where the outputs are known to be of the types of those.
    """
    outs = again()
    avals = [aval_of(x).strong() for x in outs]
    moving = [type(t) is not Zero for t in tangents]
    if sum(moving) > 1:
        _check_together(call, values, moving, avals)
    pushed = bind([t if m else x for x, t, m in zip(values, tangents, moving)])
    return outs, [t if a.dtype.kind in "fc" else Zero(a) for t, a in zip(pushed, avals)]


def _check_together(call: Call, values: Values, moving: Sequence[bool], avals: Sequence[Aval]) -> None:
    """Refuse what is linear in each of the operands alone: a product of two that both move."""
    mixed = [Linear(aval_of(x).strong()) if m else x for x, m in zip(values, moving)]
    try:
        found = stage(lambda *cts: [g for g in transposed(call, cts, mixed) if g is not None], avals)
        if not found.outvars:
            raise GradientError(f"{call.definition.name}: transpose returned None for all of them")
    except Exception as error:
        parts = enumerate(call.arguments.layout.parts)
        names = [call.place(i) for i, p in parts if any(moving[p.first : p.last])]
        raise MissingRuleError(
            f"{call.definition.name}: transpose fails for {' and '.join(names)} together, so the derivative in both "
            "needs another rule. Define backward (or jvp), or let transpose take None for both, if forward is linear "
            f"in them together, as a sum is. It raised {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        ) from error


def transposed(call: Call, cts: Values, values: Values) -> list[Any]:
    """Cotangents of the operands that are `Linear`, by the user's ``transpose``; None for all others."""
    d = call.definition
    assert d.transpose is not None
    layout, static, _ = call.arguments
    inputs = layout.filled([None if type(x) is Linear else given(x) for x in values], static)
    gradients = list(map(gradient_given, cts))
    returned = d.transpose(inputs, *call.outputs.layout.filled(gradients))
    linear = [type(x) is Linear for x in values]
    avals = [(x.aval if type(x) is Linear else aval_of(x)).strong() for x in values]
    check = Gradients(f"{d.name}.transpose", d.transpose, layout, avals, linear, call.place)
    found = check.checked(returned)
    return [g if m else None for g, m in zip(found, linear)]


def once(
    name: str, fun: Callable[[Values], list[Any]], values: Values, functions: Iterable[Any] = ()
) -> list[Any]:
    """Apply a function of flat values; a derivative that goes through its result raises.

    `fun` runs below all transformations that differentiate: eagerly, with plain arrays.
    """
    return bind_rule(_Once(name, fun, len(values)), values, [fun, *functions])


class _Once(CustomRule):
    """A function whose result must not be differentiated."""

    has_reverse = has_forward = True

    def __init__(self, name: str, fun: Callable[[Values], list[Any]], arity: int):
        self.name = f"{name}Backward"
        self.arity = arity
        self._what = name
        self._fun = fun

    def fwd(self, values: Values) -> list[Any]:
        return self._fun([np.asarray(x.value) if type(x) is StandInTracer else x for x in values])

    def fwd_res(self, values: Values, perturbed: Mask, again: Callable[[], list[Any]]) -> Forward:
        return Forward(again(), [])

    def bwd(self, token: Any, residuals: Values, cts: Values) -> NoReturn:
        raise OnceDifferentiableError(
            f"trying to differentiate twice a function that was marked with @once_differentiable ({self._what}). The "
            "mark says that its backward has no derivative: remove it if there is one, or call a function with a rule "
            "there. Forward mode differentiates backward, too, unless the class has a jvp"
        )

    def jvp(self, values: Values, tangents: Values, again: Callable[[], list[Any]]) -> NoReturn:
        self.bwd(None, values, tangents)


class VmapInfo(NamedTuple):
    """What a ``vmap`` staticmethod is told of the transformation.

    Attributes
    ----------
    batch_size : int
        The size of the mapped axis.
    randomness : str
        Always ``'error'``: there is no hidden random state that examples could share.
    axis_name : None
        Mapped axes have no names.
    """

    batch_size: int
    randomness: str = "error"
    axis_name: str | None = None


def apply_vmap_rule(
    name: str,
    fun: Callable[..., Any],
    size: int,
    arguments: Arguments,
    values: Sequence[Any],
    dims: Sequence[int | None],
) -> tuple[Outputs, list[Any], list[int | None]]:
    """The structure of the outputs, the arrays in them, and their batch axes."""
    args = arguments.filled([given(x) for x in values])
    returned = arguments.call(fun, args, VmapInfo(size), arguments.layout.filled(dims))

    def refuse(problem: str) -> NoReturn:
        raise VmapRuleError(f"{name}: {problem}", last_line(fun))

    base = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
        "with the output."
    )
    if not isinstance(returned, tuple):
        refuse(f"{base} Got a {type(returned).__name__} instead")
    if len(returned) != 2:
        refuse(f"{base} Got {len(returned)} returns instead")
    output, out_dims = returned
    outputs, arrays = Outputs.of(output)
    found = [own_value(x, lambda: f"{name}: an output of vmap") for x in arrays]
    return outputs, found, _out_dims(outputs, output, out_dims, size, found, refuse)


def _out_dims(
    outputs: Outputs,
    output: Any,
    out_dims: Any,
    size: int,
    arrays: Sequence[Any],
    refuse: Callable[[str], NoReturn],
) -> list[int | None]:
    tree = tree_structure(output)
    try:
        axes = flatten_axes("out_dims", tree, out_dims)
    except PytreeError:
        refuse(
            "The vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims!r} to be compatible with the structure of `output`. `out_dims` has structure "
            f"{tree_structure(out_dims)} but `output` has structure {tree}"
        )
    found = []
    places = [n for part in outputs.layout.parts for n in part.arrays]
    for dim, place in zip(axes, places):
        if place is None:
            continue
        shape = arrays[place].shape
        if dim is not None and (type(dim) is not int or not -len(shape) <= dim < len(shape)):
            refuse(
                f"The vmap staticmethod returned out_dims={out_dims!r}, of which {dim!r} is no axis of an output of "
                f"shape {shape}; each must be an axis or None"
            )
        if dim is not None and shape[dim] != size:
            refuse(
                f"The vmap staticmethod returned an output of shape {shape} with the batch axis at {dim}, where it has "
                f"size {shape[dim]} instead of {size}"
            )
        found.append(None if dim is None else dim % len(shape))
    return found


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

    no_forward = "You must implement the jvp method for it to be differentiated in forward mode"

    def __init__(self, definition: Definition, arguments: Arguments):
        super().__init__(definition, arguments)
        d = definition
        without = d.backward is None and d.jvp is None and d.transpose is None
        self.has_reverse = without or d.backward is not None
        self.has_forward = without or d.jvp is not None or not self.has_reverse
        self.has_vmap = d.vmap is not None or not d.derive_vmap
        self.has_transpose = d.transpose is not None
        self.derive_jvp = d.derive_jvp

    # --- forward --------------------------------------------------------------------------------------------------

    def fwd(self, values: Values) -> list[Any]:
        """Slot of the rule: the outputs."""
        return self._recorded(values, (False,) * len(values), None).outs

    def transpose(self, cts: Values, values: Values) -> list[Any]:
        """Cotangents of the operands that are `Linear`, by the user's ``transpose``."""
        return transposed(self, cts, values)

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
        below = _Below(self, values, perturbed, phase)
        outs = self._bound(below, values)
        kept, places = below.result()
        count = len(kept.outs)
        everything, between = [*values, *outs[:count]], iter(outs[count:])
        residuals = [next(between) if i is None else everything[i] for i in places]
        return kept._replace(outs=outs[:count], residuals=residuals)

    def bind(self, values: Values) -> list[Any]:
        """Apply the rule in the current trace."""
        return self._bound(self, values)

    def _objects(self) -> Iterator[Apart]:
        """What may hold traced values out of sight, with the names of the arguments."""
        layout, static, _ = self.arguments
        for i, part in enumerate(layout.parts):
            for x in static.leaves[part.leaves]:
                if x is not None and type(x) not in SIMPLE:
                    place = self.place(i)
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
        layout, avals = self.arguments.layout, token.avals
        found = None
        if layout.plain:
            found = exact(returned if type(returned) is tuple else (returned,), avals, "f")
        if found is not None:
            return found
        check = Gradients(d.context.__name__, d.backward, layout, avals, token.perturbed, self.place)
        return check.checked(returned)

    # --- forward mode ---------------------------------------------------------------------------------------------

    def jvp(
        self, values: Values, tangents: Values, again: Callable[[], list[Any]]
    ) -> tuple[list[Any], list[Any]]:
        """Slot of the rule: outputs and their tangents."""
        d = self.definition
        if d.jvp is None:
            return self._linear_jvp(values, tangents, again) if d.transpose else self._no_jvp(values, again)
        perturbed = tuple([type(t) is not Zero for t in tangents])
        outs, residuals, token, differentiable, _ = self._kept(values, perturbed, again, Phase.JVP)
        reading = self._reading(Phase.JVP, token.needs, token.saved, token.attributes, residuals)
        moved = [_tangent(x, t, token.materialize) for x, t in zip(values, tangents)]
        found = reading.apply_jvp(*self.arguments.layout.filled(moved))  # type: ignore[attr-defined]
        avals = [aval_of(x).strong() for x in outs]
        moving = [a.dtype.kind in "fc" and m for a, m in zip(avals, differentiable or (True,) * len(avals))]
        return outs, Tangents(d.name, d.jvp, self.outputs, avals, moving).checked(found)

    def _linear_jvp(
        self, values: Values, tangents: Values, again: Callable[[], list[Any]]
    ) -> tuple[list[Any], list[Any]]:
        """The same of what is linear, in all operands that move together: the rule applied to tangents."""
        return linear_jvp(self, self.bind, values, tangents, again)

    def _no_jvp(self, values: Values, again: Callable[[], list[Any]]) -> tuple[list[Any], list[Any]]:
        """The same without any rule: outputs that have no derivative need none."""
        _, outs, marked, _ = self._recorded(values, (True,) * len(values), again)
        differentiable = None if marked is None else tuple([not m for m in marked])
        self._refuse_moving(outs, differentiable, "forward", self.no_forward)
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


class _Below(CustomRule):
    """``forward`` run once below a level that differentiates: outputs, and values in between that it saved.

    Where that level differentiates as well, outputs have derivatives by the rule, and values in between those of what
    ``forward`` does.
    """

    has_plain = True

    def __init__(self, call: FunctionCall, values: Values, perturbed: Mask, phase: Phase):
        self.name = call.name
        self.arity = len(values)
        self._call = call
        self._perturbed = perturbed
        self._phase = phase
        self._found: Any = None
        self._listening = True  # while the rule is applied: it lives on in jaxprs, and must not hold values

    def fwd(self, values: Values) -> list[Any]:
        return self._flat(values, None)

    def plain(self, values: Values) -> list[Any]:
        return self._flat(values, lambda: self._call.bind(values))

    def _flat(self, values: Values, again: Callable[[], list[Any]] | None) -> list[Any]:
        kept = self._call._kept_here(values, self._perturbed, again, self._phase)
        known = {id(x): i for i, x in enumerate([*values, *kept.outs])}
        places = [known.get(id(x)) for x in kept.residuals]
        if self._listening:
            self._found = kept, places
        return [*kept.outs, *[x for x, i in zip(kept.residuals, places) if i is None]]

    def result(self) -> tuple[Forward, list[int | None]]:
        """What the last run kept, and which of its residuals are values or outputs."""
        found, self._found, self._listening = self._found, None, False
        return found
