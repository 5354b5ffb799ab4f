"""How what ``ctx`` recorded is kept until ``backward`` and ``jvp`` run.

Arrays become residuals, which interpreters differentiate, batch and stage; everything else is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..arrays.array import Array, read_only_copy, unwrap
from ..core.aval import Aval
from ..core.context import Override
from ..core.errors import (
    ArgumentError,
    FunctionContractError,
    PytreeError,
    SavedValuesFreedError,
)
from ..core.trace import Tracer
from ..frontend.arguments import given
from ..frontend.checked import checked
from ..frontend.pytree import PyTreeDef, tree_flatten, tree_unflatten
from .closures import StandInTracer
from .context import SAVED_AS_IS, Context, Phase, Record, new_context
from .partition import Outputs, is_array, own_value

#: Types of attributes that hold no array.
_SIMPLE = SAVED_AS_IS | {str}


class _Hooks(NamedTuple):
    """What `saved_values_hooks` was given, and the hooks of the block around it."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]
    outer: _Hooks | None


#: The innermost `saved_values_hooks`.
_hooks: ContextVar[_Hooks | None] = ContextVar("functrans_saved_values_hooks", default=None)


@checked
def saved_values_hooks(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> Override:
    """Say how a `Function` keeps what it saves for its backward.

    Parameters
    ----------
    pack : callable
        ``pack(array) -> anything``: called in the forward pass, once for each array given to ``save_for_backward``.
        What it returns is kept in the array's place: another array (rounded, compressed), a tree with arrays in it, or
        any object (the name of a file).
    unpack : callable
        ``unpack(packed) -> array``: called in the backward pass, each time that ``saved_tensors`` is read.

    Returns
    -------
    context manager and decorator
        The hooks hold for forward passes inside the ``with`` block, or in the calls of the function; where blocks are
        nested, the innermost ones.

    Raises
    ------
    ArgumentError
        If `pack` or `unpack` cannot be called.

    Notes
    -----
    Hooks are called only where a derivative is taken. Under ``jit`` they are traced with the function, once. They see
    what a `Function` saves by ``save_for_backward``; what functrans keeps for its own operations is governed by
    `checkpoint`.

    Examples
    --------
    Keep what is saved in half the memory:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Square(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2.0 * x * g
    >>> with ft.saved_values_hooks(lambda x: x.astype("float32"), lambda x: x.astype("float64")):
    ...     y, pull = ft.vjp(Square.apply, 0.1)
    >>> float(pull(1.0)[0])
    0.20000000298023224
    """
    for name, hook in (("pack", pack), ("unpack", unpack)):
        if not callable(hook):
            raise ArgumentError(f"saved_values_hooks: {name} must be a function, got {hook!r:.60}")
    return Override(_hooks, partial(_Hooks, pack, unpack))


def hooked() -> bool:
    """Whether hooks are in force."""
    return _hooks.get() is not None


class _Place(NamedTuple):
    """Stands for an array: which residual it is."""

    number: int


class _Tree(NamedTuple):
    """Stands for a pytree with arrays: its leaves, with each array replaced by a `_Place`."""

    tree: PyTreeDef
    leaves: tuple[Any, ...]


_WRONG_SAVE = {
    Phase.BACKWARD: (
        "backward reads saved_tensors, but only save_for_forward was called: what backward needs is saved by "
        "ctx.save_for_backward"
    ),
    Phase.JVP: (
        "jvp reads saved_tensors, but only save_for_backward was called: what jvp needs is saved by "
        "ctx.save_for_forward"
    ),
}
#: By the ``id`` of an object of the user's, the object and the value that it stands for.
Known = dict[int, tuple[Any, Any]]


class Kept:
    """What ``backward`` and ``jvp`` get beside residuals: the context without its arrays, types and structures.

    Parameters
    ----------
    record : Record
    ctx : Context
    phase : Phase
        Whether it is for ``backward`` or for ``jvp``.
    known : dict
        See `Known`.
    clear : bool
        Whether saved values can be read once only.

    Attributes
    ----------
    materialize : bool
    outputs : Outputs
    avals : list of Aval
        The types of the operands.
    perturbed : tuple of bool
        Which operands are being differentiated.
    """

    __slots__ = (
        "_attributes", "_clear", "_count", "_freed", "_known", "_missing", "_needs", "_phase", "_residuals", "_saved",
        "_unpack", "avals", "materialize", "outputs", "perturbed",
    )  # fmt: skip

    outputs: Outputs
    avals: list[Aval]
    perturbed: tuple[bool, ...]

    def __init__(self, record: Record, ctx: Context, phase: Phase, known: Known, clear: bool):
        self.materialize = record.materialize is not False
        self._needs = record.needs
        backward = phase is Phase.BACKWARD
        saved, other = record.saved, record.saved_forward
        if not backward:
            saved, other = other, saved
        self._phase = phase
        self._residuals: list[Any] = []
        self._known = known
        self._missing = saved is None and other is not None
        self._clear = clear and backward
        self._count: int | None = None
        self._freed: list[Any] | None = None  # concrete values that are freed when they are read
        self._unpack: Callable[[Any], Any] | None = None
        as_is = [type(x) in SAVED_AS_IS for x in saved or ()]
        values = [x if m else self._value(x) for x, m in zip(saved or (), as_is)]
        hooks = _hooks.get() if backward else None
        self._saved: list[Any] | None = (
            None  # what was saved, with its arrays as residuals; None: arrays alone
        )
        if hooks is not None:
            pack, self._unpack = hooks.pack, hooks.unpack
            self._saved = [x if m else (self._packed(pack(given(x))),) for x, m in zip(values, as_is)]
        elif self._clear and not any(isinstance(x, Tracer) and type(x) is not StandInTracer for x in values):
            self._freed = [
                np.asarray(x.value) if type(x) is StandInTracer else read_only_copy(x) for x in values
            ]
        else:
            if any(as_is):
                self._saved = [x if m else self._place(x) for x, m in zip(values, as_is)]
            else:
                self._residuals = values
            self._count = len(self._residuals)
        attributes = vars(ctx)
        self._attributes = {name: self._packed(x) for name, x in attributes.items()} if attributes else None

    def taken(self) -> list[Any]:
        """The residuals, which are then forgotten."""
        residuals, self._residuals, self._known = self._residuals, [], {}
        return residuals

    def context(self, definition: Any, residuals: Sequence[Any]) -> Any:
        """The context as ``backward`` and ``jvp`` get it, with the values that residuals have now."""
        record = Record(definition.name, self._needs, self._phase)
        read = partial(self._read, definition.name, residuals)
        record.read = _read_once(read) if self._clear else read
        ctx = new_context(definition.context, record)
        if self._attributes is not None:
            vars(ctx).update({name: _unpacked(x, residuals) for name, x in self._attributes.items()})
        return ctx

    def _read(self, name: str, residuals: Sequence[Any]) -> tuple[Any, ...]:
        """What ``ctx.saved_tensors`` gives."""
        if self._missing:
            raise FunctionContractError(f"{name}: {_WRONG_SAVE[self._phase]}")
        saved, unpack = self._saved, self._unpack
        if self._count is None and unpack is None:
            values, self._freed = self._freed, None
            return tuple(map(given, _freed() if values is None else values))
        if unpack is None:
            if saved is None:
                return tuple(map(given, residuals[: self._count]))
            return tuple([_unpacked(x, residuals) for x in saved])
        assert saved is not None
        return tuple([unpack(_unpacked(x[0], residuals)) if type(x) is tuple else x for x in saved])

    # --- packing ----------------------------------------------------------------------------------------------

    def _value(self, x: Any) -> Any:
        """The value of an array of the user's."""
        if type(x) is Array and not self._known:
            return unwrap(x)
        found = self._known.get(id(x))
        return own_value(x, lambda: "a value saved in ctx") if found is None else found[1]

    def _place(self, value: Any) -> _Place:
        """A value as residual."""
        self._residuals.append(value)
        return _Place(len(self._residuals) - 1)

    def _packed(self, x: Any) -> Any:
        """What the user kept, with its arrays as residuals."""
        if type(x) in _SIMPLE:
            return x
        if is_array(x):
            return self._place(self._value(x))
        try:
            leaves, tree = tree_flatten(x)
        except PytreeError:  # a dictionary whose keys have no order
            return x
        if not any(map(is_array, leaves)):
            return x
        return _Tree(tree, tuple([self._packed(leaf) if is_array(leaf) else leaf for leaf in leaves]))


def _unpacked(x: Any, residuals: Sequence[Any]) -> Any:
    """What the user kept, with the values that residuals have now."""
    if type(x) is _Place:
        return given(residuals[x.number])
    if type(x) is _Tree:
        return tree_unflatten(x.tree, [_unpacked(leaf, residuals) for leaf in x.leaves])
    return x


def _read_once(read: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
    """The same, to be called once: what one run of ``backward`` may do with traced values."""
    left = [read]
    return lambda: left.pop()() if left else _freed()


def _freed() -> NoReturn:
    raise SavedValuesFreedError(
        "saved_tensors can only be accessed once, since clear_saved_tensors_on_access is set: keep the tuple in a "
        "variable. It is freed when backward reads it, so trying to backward through the graph a second time fails as "
        "well"
    )
