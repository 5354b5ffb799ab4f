"""How the ``forward`` of a `Function` is run, and what is kept of it.

At each level of differentiation the context is recorded again, with what that level knows: its inputs, the outputs of
the rule applied one level down, and which inputs it differentiates in. So inputs, outputs and values in between that
were saved all have derivatives, to any order.

Forwards that NumPy and SciPy run cannot be traced: they are called with the numbers where these are known, and by a
callback inside of `jit` and `vmap`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array, unwrap, wrap
from ..control.callbacks.callback import FlatCallback, pure_callback_p
from ..core import PYTHON_KEYS, Aval, aval_of, canonical, concrete, eval_trace, last_line, tracing
from ..core.values import ArrayLike, Value
from ..errors import CallbackError, FunctionContractError, FunctionDefinitionError
from ..frontend.arguments import given
from ..frontend.partition import SINGLE, Arguments, Outputs, own_value
from ..frontend.pytree import tree_map, tree_structure
from ..frontend.structs import struct_of
from ..transforms.batch import BatchTracer
from ..transforms.jvp import JVPTracer
from .closures import StandInTracer
from .context import Phase, Record, new_context
from .dirty import Marks, replacements, warn_of_old_values
from .function_class import Definition
from .rule import Again, CustomRule, Forward, Mask, Values
from .saving import Kept, Known, hooked, is_traced

_new_tuple = tuple.__new__  # twice as fast as calling the class
#: Types of values that are not traced.
_KNOWN = frozenset((np.ndarray, np.float64, StandInTracer))


class Run:
    """One run of ``forward``.

    Parameters
    ----------
    call : FunctionCall
    values : sequence of values
    perturbed : tuple of bool
        Which of them this level differentiates in.
    again : callable or None
        Applies the rule one level down; None at the lowest level.
    keeps : bool
        Whether what the context recorded is kept.
    traced : bool
        Whether an outer level may see the values.

    Attributes
    ----------
    outs : list of values
        Those of `again`, where there is such a level.
    differentiable : tuple of bool or None
        Which outputs have a derivative; None: all.
    """

    __slots__ = ("_call", "_ctx", "_known", "_record", "differentiable", "outs")

    def __init__(
        self,
        call: Any,
        values: Values,
        perturbed: Mask,
        again: Again | None = None,
        keeps: bool = False,
        traced: bool = True,
    ):
        d, arguments = call.definition, call.arguments
        layout, static, keywords = arguments
        arrays = [wrap(x) if type(x) is np.ndarray else given(x) for x in values]
        if layout.plain:
            inputs, needs = tuple(arrays), perturbed
        else:
            inputs, needs = layout.filled(arrays, static), layout.any_of(perturbed)
        record = Record(d.name, needs)
        ctx = new_context(d.context, record)
        #: By their ``id`` the objects of the user's that stand for inputs and outputs.
        self._known: Known = {}
        if d.setup is None:
            returned = arguments.call(d.forward, inputs, ctx) if keywords else d.forward(ctx, *inputs)
            below = again if traced and any_traced(values) else None
            if type(returned) is Array:
                call.outputs, objects = SINGLE, [returned]
                outs = [unwrap(returned)] if below is None else below()
            else:
                call.outputs, objects = Outputs.of(returned)
                outs = [own_value(x, call.output_name) for x in objects] if below is None else below()
            if keeps and traced and (below is not None or again is None):
                self._known = {id(x): (x, v) for x, v in zip([*objects, *arrays], [*outs, *values])}
        else:
            output, objects, outs = _output(call, values, inputs, again)
            d.setup(ctx, inputs, output)
        if record.dirty is not None:
            _mark_dirty(call, record, record.dirty, arrays, objects)
        if call.host is not None:
            call.host.check_changes(call.dirty)
        record.phase = Phase.FINISHED
        self._call, self._record, self._ctx, self.outs = call, record, ctx, outs
        self.differentiable = None if record.marked is None else self._unmarked(record.marked, objects)

    def _unmarked(self, marked: Sequence[Value], outputs: Sequence[Value]) -> Mask:
        """Which outputs are not marked as non-differentiable."""
        known = set(map(id, outputs))
        for i, x in enumerate(marked):
            if id(x) not in known:
                d = self._call.definition
                raise FunctionContractError(
                    f"{d.name}: mark_non_differentiable was given what is not an output of this call (its argument "
                    f"{i}). Mark the very objects that forward returns",
                    last_line(d.setup or d.forward),
                )
        ids = set(map(id, marked))
        return tuple([id(x) not in ids for x in outputs])

    def kept(self, phase: Phase, values: Values, perturbed: Mask) -> Forward:
        """The outputs, and what a rule gets of the context."""
        token = Kept(self._record, self._ctx, phase, self._known, self._call.definition.clear)
        token.outputs, token.perturbed = self._call.outputs, perturbed
        token.avals = list(map(aval_of, values))
        fields = self.outs, token.taken(), token, self.differentiable, token.materialize
        return _new_tuple(Forward, fields)


def _output(
    call: Any, values: Values, inputs: Sequence[Any], again: Again | None
) -> tuple[Any, list[Any], list[Any]]:
    """What `setup_context` gets as output; the arrays in it, and the values that they are."""
    d = call.definition
    if again is None and not d.host:
        output = call.arguments.call(d.forward, inputs)
        call.outputs, objects = Outputs.of(output)
        return output, objects, [own_value(x, call.output_name) for x in objects]
    if again is None:
        call.host = HostForward(call)
        call.outputs, outs = call.host(values)
    else:
        outs = again()
    objects = [given(x) for x in outs]
    return call.outputs.filled(objects), objects, outs


def _mark_dirty(
    call: Any, record: Record, marks: Marks, arrays: Sequence[Value], objects: Sequence[Value]
) -> None:
    """Find the outputs that replace dirty inputs."""
    d = call.definition
    same = call.dirty or ({} if call.host is None else call.host.same)
    call.dirty = replacements(d.name, marks, arrays, objects, same, last_line(d.setup or d.forward))
    if d.setup is not None:
        warn_of_old_values(d.name, record.saved or (), marks)


def run_and_keep(call: Any, values: Values, perturbed: Mask, again: Again, phase: Phase) -> Forward:
    """Outputs and what a rule gets of the context, by one run: below a level that differentiates, if there is one."""
    d = call.definition
    traced = not _KNOWN.issuperset(map(type, values)) and any_traced(values)
    if not traced or d.setup is not None or d.vmap is not None or not d.derive_vmap or d.clear or hooked():
        return Run(call, values, perturbed, again, True, traced).kept(phase, values, perturbed)
    below = _Below(call, values, perturbed, phase)
    outs = call.bind(values, below)
    result, places = below.result()
    count = len(result.outs)
    everything, between = [*values, *outs[:count]], iter(outs[count:])
    residuals = [next(between) if i is None else everything[i] for i in places]
    return result._replace(outs=outs[:count], residuals=residuals)


def any_traced(values: Values) -> bool:
    """Whether an outer level sees the values, so that it must see the rule."""
    return any(map(is_traced, values))


class _Below(CustomRule):
    """``forward`` run once below a level that differentiates: outputs, and values in between that it saved.

    If that level differentiates as well, the derivatives of outputs follow from the rule, and those of values in
    between from what ``forward`` does.
    """

    has_plain = True

    def __init__(self, call: Any, values: Values, perturbed: Mask, phase: Phase):
        self.name = call.name
        self.arity = len(values)
        self._call = call
        self._perturbed = perturbed
        self._phase = phase
        self._result: Any = None
        self._listening = True  # while the rule is applied: it lives on in jaxprs, and must not hold values

    def fwd(self, values: Values) -> list[Value]:
        """The outputs."""
        return self._flat(values, None)

    def plain(self, values: Values) -> list[Value]:
        """The outputs, those of `forward` by the rule."""
        return self._flat(values, lambda: self._call.bind(values))

    def _flat(self, values: Values, again: Again | None) -> list[Value]:
        result = Run(self._call, values, self._perturbed, again, True).kept(
            self._phase, values, self._perturbed
        )
        known = {id(x): i for i, x in enumerate([*values, *result.outs])}
        places = [known.get(id(x)) for x in result.residuals]
        if self._listening:
            self._result = result, places
        return [*result.outs, *[x for x, i in zip(result.residuals, places) if i is None]]

    def result(self) -> tuple[Forward, list[int | None]]:
        """What the last run kept, and which of its residuals are values or outputs."""
        result, self._result, self._listening = self._result, None, False
        return result


# --- on the host --------------------------------------------------------------------------------------------


class HostForward:
    """The forward of one call.

    Parameters
    ----------
    call : FunctionCall

    Attributes
    ----------
    same : dict of int to int
        Arrays that were returned themselves, with the numbers of the outputs that they are.
    """

    def __init__(self, call: Any):
        self._call = call
        self._definition: Definition = call.definition
        self._arguments: Arguments = call.arguments
        self._changed: set[int] = set()
        self._is_marked = False  # whether setup_context has run
        self.same: dict[int, int] = {}

    def __call__(self, values: Sequence[Any]) -> tuple[Outputs, list[Any]]:
        """The structure of the outputs, and the arrays in them."""
        # A callback says that it has no derivative, where a value is being differentiated.
        known = [None if isinstance(x, JVPTracer) else concrete(x) for x in values]
        if all(x is not None for x in known):
            outputs, arrays = Outputs.of(self._run(known))
            return outputs, [
                own_value(x, lambda: f"{self._definition.name}.forward: an output") for x in arrays
            ]
        return self._called_back(values)

    def _run(self, arrays: Sequence[Any]) -> Any:
        """What the user's function returns, numbers in it as arrays.

        It gets read-only arrays. If it writes to them, it runs again with copies, and from then on at once.
        """
        if not self._definition.writes:
            try:
                return self._returned([_read_only(x) for x in arrays])
            except (ValueError, TypeError, BufferError) as error:
                if not _READ_ONLY.search(str(error)):
                    raise
                self._definition.writes = True
        copies = [np.array(x) for x in arrays]
        returned = self._returned(copies)
        self._changed |= {i for i, (x, y) in enumerate(zip(arrays, copies)) if not _is_equal(x, y)}
        for x in copies:
            x.flags.writeable = False  # they are ours again: what is returned needs no copy
        outs = Outputs.of(returned)[1]
        self.same = {i: k for i, x in enumerate(copies) for k, y in enumerate(outs) if x is y}
        return returned

    def check_changes(self, dirty: Collection[int]) -> None:
        """Raise `FunctionContractError` if forward changed an input that is not marked as dirty."""
        self._is_marked = True
        for i in sorted(self._changed):
            if i not in dirty:
                raise FunctionContractError(
                    f"{self._definition.name}: forward modified {self._call.place_of_array(i)} without ctx.mark_dirty. "
                    "Write to a copy (np.array(x)); or call ctx.mark_dirty(x) in setup_context, and return the array",
                    last_line(self._definition.forward),
                )

    def _returned(self, arrays: Sequence[np.ndarray]) -> Any:
        args = self._arguments.filled(arrays)
        returned = tracing(eval_trace, self._arguments.call, self._definition.forward, args)
        return tree_map(lambda x: np.asarray(x) if type(x) in PYTHON_KEYS else unwrap(x), returned)

    def _called_back(self, values: Sequence[Value]) -> tuple[Outputs, list[Any]]:
        outputs, promised = Outputs.of(tree_map(self._stand_in, self._promised(values)))
        if not promised:
            raise FunctionDefinitionError(
                f"{self._definition.name}: shape returned no array. Return a functrans.ShapeDtypeStruct(shape, dtype) "
                "for each array that forward returns, in the same order and structure"
            )
        avals = tuple([aval_of(x) for x in promised])
        tree = tree_structure((0,) * len(avals))

        def forward(*arrays: Value) -> tuple[Value, ...]:
            returned, results = Outputs.of(self._run(arrays))
            if self._is_marked:
                self.check_changes(self._call.dirty)
            self._check_promise(outputs, avals, returned, results)
            return tuple(results)

        forward.__name__ = f"{self._definition.name}.forward"
        call = FlatCallback(forward, tree_structure(((0,) * len(values), {})), (), tree)
        method = self._definition.vmap_method
        return outputs, pure_callback_p.bind(*values, call=call, result_avals=avals, vmap_method=method)

    def _check_promise(
        self, promised: Outputs, avals: Sequence[Aval], returned: Outputs, results: Sequence[Value]
    ) -> None:
        """Raise if forward returned another structure or dtype than shape promised; shapes may be those of a batch."""
        name = self._definition.name
        if returned.layout is not promised.layout or returned.many != promised.many:
            raise CallbackError(
                f"{name}: forward returned {returned}, but shape promises {promised}. Return the same structure from "
                "both, with a functrans.ShapeDtypeStruct for each array and number",
                last_line(self._definition.forward),
            )
        for i, (x, aval) in enumerate(zip(results, avals)):
            if x.dtype != aval.dtype:
                raise CallbackError(
                    f"{name}: forward returned an array of dtype {x.dtype} (array {i} of its outputs), but shape "
                    f"promises {aval.dtype}. Convert it in forward (x.astype), or promise that dtype",
                    last_line(self._definition.forward),
                )

    def _stand_in(self, x: Any) -> Value:
        """An array without memory for something that has a shape and a dtype; anything else as it is."""
        if type(x) in PYTHON_KEYS:  # what it stands for in forward, too
            return np.asarray(x)
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            return x
        dtype = canonical(x.dtype, f"{self._definition.name}.shape: an output")
        return np.broadcast_to(np.empty((), dtype), tuple(x.shape))

    def _promised(self, values: Sequence[Value]) -> Any:
        """The types of the results, as a tree of `ShapeDtypeStruct`."""
        shape = self._definition.shape
        if shape is not None:
            args = self._arguments.filled([struct_of(aval_of(x).strong()) for x in values])
            return self._arguments.call(shape, args)
        example = [_first_example(x) for x in values]
        if any(x is None for x in example):
            raise FunctionDefinitionError(
                f"{self._definition.name}: host forward has no shape rule. Write the staticmethod shape(*args), which "
                "returns a functrans.ShapeDtypeStruct(shape, dtype) for each output of forward; it gets such "
                "structs instead of arrays"
            )
        return self._run(example)


#: What NumPy, Cython and Numba say of an array that cannot be written to.
_READ_ONLY = re.compile("read-?\\s?only", re.IGNORECASE)


def _is_equal(x: Any, y: np.ndarray) -> bool:
    """Whether two arrays of one type have the same bytes."""
    return np.ascontiguousarray(x).tobytes() == y.tobytes()


def _first_example(x: Any) -> Any:
    """The numbers of the first of the examples that `vmap` maps over; None where they are not known."""
    if type(x) is not BatchTracer:
        return concrete(x)
    whole = _first_example(x.value)
    return None if whole is None or not whole.shape[x.dim] else whole.take(0, axis=x.dim)


def _read_only(x: ArrayLike) -> np.ndarray:
    array = unwrap(x).view() if isinstance(x, np.ndarray) else np.asarray(x)
    array.flags.writeable = False
    return array
