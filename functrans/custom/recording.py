"""One call of ``MyOp.apply``: its arguments, and the context that is recorded while ``forward`` runs.

At each level of differentiation the context is recorded anew, with what that level knows: its inputs, the outputs of
the rule applied one level down, and which inputs it differentiates in. So inputs, outputs and values in between that
were saved all have derivatives, to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..core.errors import FunctionContractError
from ..core.source import last_line
from ..core.trace import Tracer
from ..transforms.values import given
from .capture import StandInTracer
from .context import Context, Phase, Record
from .function_rules import Definition
from .host import HostForward
from .layout import Arguments, own_value
from .outputs import Outputs
from .record import Mask, Values
from .saving import Known, Reader, read_once, unpacked


class Recorded(NamedTuple):
    """A context after ``forward``, the outputs, and which of them are marked as non-differentiable (None: no one).

    `known` has by their ``id`` the objects of the user's that stand for others: for the outputs of the rule one level
    down.
    """

    ctx: Context
    outs: list[Any]
    marked: Mask | None
    known: Known


class Call:
    """A call with these arguments.

    Parameters
    ----------
    definition : Definition
    arguments : Arguments
    """

    __slots__ = ("arguments", "definition", "outputs")

    def __init__(self, definition: Definition, arguments: Arguments):
        self.definition = definition
        self.arguments = arguments
        self.outputs: Any = None

    def name(self, position: int) -> str:
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
