"""``ctx``: what ``forward`` (or ``setup_context``) records for ``backward`` and ``jvp``."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core.values import PyTree, Value
from ..errors import ContextAttributeError, FunctionContractError, FunctionDefinitionError
from ..frontend.partition import NUMBERS, is_array
from ..frontend.pytree import tree_leaves
from ..frontend.pytree.nodes import kind_of
from ..runtime.config import config
from .dirty import Marks

#: Types of what is saved as it is.
SAVED_AS_IS = NUMBERS | {type(None)}


class Phase(enum.Enum):
    """When a context is used."""

    FORWARD = "forward"
    FINISHED = "finished"
    BACKWARD = "backward"
    JVP = "jvp"


class Record:
    """What a context knows besides the attributes that the user assigned.

    Attributes
    ----------
    name : str
        Of the function.
    needs : tuple of bool
    phase : Phase
    saved, saved_forward : tuple or None
        What ``save_for_backward`` and ``save_for_forward`` received; None: not called.
    marked : tuple or None
        The outputs that have no derivative.
    dirty : Marks or None
        The inputs that outputs replace.
    materialize : bool or None
    read : callable or None
        Gives the saved values, in `Phase.BACKWARD` and `Phase.JVP`.
    """

    saved: tuple[Any, ...] | None = None
    saved_forward: tuple[Any, ...] | None = None
    marked: tuple[Any, ...] | None = None
    dirty: Marks | None = None
    materialize: bool | None = None

    def __init__(
        self,
        name: str,
        needs: tuple[bool, ...],
        phase: Phase = Phase.FORWARD,
        read: Callable[[], tuple[Any, ...]] | None = None,
    ):
        self.name = name
        self.needs = needs
        self.phase = phase
        self.read = read


class Context:
    """What ``forward`` or ``setup_context`` records, and ``backward`` and ``jvp`` read: the argument `ctx`.

    Beside the attributes and methods below it takes any attribute of the user's (``ctx.n = 3``); trees of arrays, too.
    In ``backward`` and ``jvp`` it is read-only, since they may run any number of times.

    Attributes
    ----------
    saved_tensors, saved : tuple
        In ``backward`` what `save_for_backward` received, in ``jvp`` what `save_for_forward` received.
    needs_input_grad : tuple of bool
        For each argument whether it is being differentiated.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Power(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, n):
    ...         ctx.n = n
    ...         ctx.save_for_backward(x)
    ...         return x**n
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * ctx.n * x ** (ctx.n - 1), None
    >>> ft.grad(lambda x: Power.apply(x, 3))(2.0)
    Array(12.)
    """

    __slots__ = ("__dict__", "__weakref__", "_record")
    _record: Record

    # --- recording ------------------------------------------------------------------------------------------

    def save_for_backward(self, *values: PyTree) -> None:
        """Keep arrays for ``backward``: inputs, outputs, or anything computed in between.

        Parameters
        ----------
        *values : arrays, numbers or None
            Python numbers and None come back as they went in. Other values, and trees, are assigned: ``ctx.n = n``.

        Raises
        ------
        FunctionDefinitionError
            If a value is not an array or a number. A `TypeError`.
        FunctionContractError
            If called twice, or not in ``forward`` or ``setup_context``.
        """
        self._save("save_for_backward", "saved", values)

    def save_for_forward(self, *values: PyTree) -> None:
        """Keep arrays for ``jvp``; as `save_for_backward`."""
        self._save("save_for_forward", "saved_forward", values)

    def mark_non_differentiable(self, *outputs: PyTree) -> None:
        """Say which outputs have no derivative. Python numbers, integer and bool arrays never have one.

        Raises
        ------
        FunctionDefinitionError
            If one is not an array or a number.
        FunctionContractError
            If called twice; if one is not an output of this call.
        """
        record = self._recording("mark_non_differentiable", "marked", "mark all outputs by one call")
        for i, x in enumerate(outputs):
            if not is_array(x) and type(x) not in NUMBERS:
                cure = "outputs of other types never have a derivative"
                if kind_of(x) is not None:
                    cure = "mark the arrays in it one by one"
                raise FunctionDefinitionError(
                    f"{record.name}: mark_non_differentiable takes outputs that are arrays, but argument {i} is of "
                    f"type {type(x).__name__}; {cure}"
                )
        record.marked = tuple([x for x in outputs if type(x) not in NUMBERS])

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether missing gradients arrive as arrays of zeros (True, the default) or as None.

        With False ``backward`` is not called at all where all gradients are missing. The same holds for tangents in
        ``jvp``.
        """
        record = self._recording("set_materialize_grads", "materialize", "call it once")
        if type(value) is not bool:
            raise FunctionDefinitionError(
                f"{record.name}: set_materialize_grads takes True or False, got {value!r} of type "
                f"{type(value).__name__}"
            )
        record.materialize = value

    def mark_dirty(self, *inputs: PyTree, output: Any = None) -> None:
        """Say which inputs the call consumes: an output takes the place, and the memory, of each.

        Values that the user holds never change. So nothing is written by this: it lets `apply` make the argument
        unusable, and lets a host ``forward`` change its private copy of it.

        Parameters
        ----------
        *inputs : arrays
            Arguments of ``forward``.
        output : array or tuple of arrays, optional
            The output that replaces the input, one for each of several. By default the output that is the input
            itself, else the only one of its shape and dtype.

        Raises
        ------
        FunctionContractError
            If called twice; if a value is not an input or is marked twice; if no output can replace it, or several can.
        StaleValueError
            When the argument is used after the call.
        InplaceModificationError
            From a derivative that needs the old value, under ``config.dirty_residuals = 'error'``.
        """
        record = self._recording("mark_dirty", "dirty", "mark all inputs by one call: ctx.mark_dirty(x, y)")
        outputs = None if output is None else output if isinstance(output, tuple | list) else (output,)
        if outputs is not None and len(outputs) != len(inputs):
            raise FunctionContractError(
                f"{record.name}: mark_dirty got {len(inputs)} inputs, but output names {len(outputs)}"
            )
        record.dirty = Marks(inputs, None if outputs is None else tuple(outputs))

    # --- reading --------------------------------------------------------------------------------------------

    @property
    def saved_tensors(self) -> tuple[Value, ...]:
        """The arrays that were saved: for ``backward``, or in ``jvp`` for that."""
        record = self._record
        if record.phase is Phase.BACKWARD or record.phase is Phase.JVP:
            assert record.read is not None
            return record.read()
        raise FunctionContractError(
            f"{record.name}: saved_tensors can be read in backward and jvp only; in forward use the values themselves"
        )

    @property
    def saved(self) -> tuple[Value, ...]:
        """The same as `saved_tensors`."""
        return self.saved_tensors

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument whether it is being differentiated."""
        return self._record.needs

    # --- attributes -----------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        self._check_assignment(name)
        if config.strict_ctx and any(map(is_array, tree_leaves(value))):
            raise FunctionContractError(
                f"{self._record.name}: ctx.{name} = ... keeps an array, which config.strict_ctx forbids: use "
                "ctx.save_for_backward or ctx.save_for_forward"
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._check_assignment(name)
        object.__delattr__(self, name)

    def _check_assignment(self, name: str) -> None:
        record = self._record
        if record.phase is not Phase.FORWARD:
            where = record.phase.value
            why = f"read-only in {where}, which may run any number of times"
            if record.phase is Phase.FINISHED:
                why = "read-only after forward has returned"
            raise ContextAttributeError(
                f"{record.name}: ctx.{name} cannot be set: ctx is {why}; set attributes in forward or setup_context"
            )
        if name in RESERVED:
            raise ContextAttributeError(
                f"{record.name}: ctx.{name} cannot be set: the name is ctx's own. Choose another"
            )

    def _recording(self, method: str, slot: str, cure: str) -> Record:
        """The record, where this method may be called: in forward, and once."""
        record = self._record
        if record.phase is not Phase.FORWARD:
            raise FunctionContractError(
                f"{record.name}: {method} can be called in forward and setup_context only, not in or after "
                f"{'forward' if record.phase is Phase.FINISHED else record.phase.value}"
            )
        if getattr(record, slot) is not None:
            raise FunctionContractError(f"{record.name}: {method} called twice in one forward; {cure}")
        return record

    def _save(self, method: str, slot: str, values: tuple[Value, ...]) -> None:
        record = self._record
        if record.phase is not Phase.FORWARD or getattr(record, slot) is not None:
            self._recording(method, slot, f"save everything by one call: ctx.{method}(x, y)")  # raises
        for i, x in enumerate(values):
            if type(x) is Array or type(x) in SAVED_AS_IS or is_array(x):
                continue
            cure = f"assign other values: ctx.name = {x!r:.40}"
            if kind_of(x) is not None:
                cure = "save the arrays in it one by one, or assign the whole: ctx.name = ..."
            dtype = f" and dtype {x.dtype}" if isinstance(x, np.ndarray) else ""
            raise FunctionDefinitionError(
                f"{record.name}: {method} can only save variables, but argument {i} is of type {type(x).__name__}"
                f"{dtype}; {cure}"
            )
        setattr(record, slot, values)


_set_record = Context._record.__set__  # type: ignore[attr-defined]


def new_context(kind: type[Context], record: Record) -> Any:
    """A context of a `Function`."""
    ctx = object.__new__(kind)
    _set_record(ctx, record)
    return ctx


#: Attributes that users cannot assign.
RESERVED = frozenset(
    [name for name in vars(Context) if not name.startswith("__")] + ["apply", "apply_jvp", "_forward_cls"]
)
