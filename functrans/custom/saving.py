"""How what ``ctx`` recorded is kept until ``backward`` and ``jvp`` run.

Arrays become residuals, which interpreters differentiate, batch and stage; everything else is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn

import numpy as np

from .. import errors
from ..arrays.array import Array, read_only_copy, unwrap
from ..core import Aval, Override, Tracer
from ..core.values import ArrayLike, PyTree, Value
from ..frontend.arguments import given, name_of
from ..frontend.checked import checked
from ..frontend.partition import Outputs, is_array, own_value
from ..frontend.pytree import PyTreeDef, tree_flatten, tree_unflatten
from ..runtime.records import NamedTuple
from .closures import StandInTracer
from .context import SAVED_AS_IS, Context, Phase, Record, new_context

#: Types of attributes that hold no array.
_SIMPLE = SAVED_AS_IS | {str}


class _Hooks(NamedTuple):
    """What `saved_values_hooks` received, and the hooks of the block around it."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]
    outer: _Hooks | None


#: The innermost `saved_values_hooks`.
_hooks: ContextVar[_Hooks | None] = ContextVar("functrans_saved_values_hooks", default=None)


@checked
def saved_values_hooks(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> Override:
    """Choose how the values that a `Function` saves for its backward are stored.

    Parameters
    ----------
    pack : callable
        ``pack(array) -> anything``: called in the forward pass, once for each array passed to ``save_for_backward``.
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
    HookError
        In the backward pass, if `unpack` returns no array.

    Notes
    -----
    This is narrower than ``torch.autograd.graph.saved_tensors_hooks``, which sees what every operation saves: a block
    without a `Function` in it is left as it is.
    Hooks are called only where a derivative is taken. Under ``jit`` they are traced with the function, once. They see
    what a `Function` saves by ``save_for_backward``; what functrans keeps for other operations is governed by
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
            raise errors.ArgumentError(f"saved_values_hooks: {name} must be a function, got {hook!r:.60}")
    return Override(_hooks, partial(_Hooks, pack, unpack))


def hooked() -> bool:
    """Whether hooks are in force."""
    return _hooks.get() is not None


class _Place(int):
    """Stands for an array: which residual it is."""

    __slots__ = ()


class _Tree(NamedTuple):
    """Stands for a pytree with arrays: its leaves, with each array replaced by a `_Place`."""

    tree: PyTreeDef
    leaves: tuple[Any, ...]


class _Packed(NamedTuple):
    """Stands for an array that `saved_values_hooks` packed."""

    packed: Any
    unpack: Callable[[Any], Any]


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
    """What ``backward`` and ``jvp`` get besides residuals: the context without its arrays, types and structures.

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
        "_attributes", "_frees", "_known", "_missing", "_needs", "_once", "_phase", "_residuals", "_saved", "avals",
        "materialize", "outputs", "perturbed",
    )  # fmt: skip

    outputs: Outputs
    avals: list[Aval]
    perturbed: tuple[bool, ...]

    def __init__(self, record: Record, ctx: Context, phase: Phase, known: Known, clear: bool):
        self.materialize = record.materialize is not False
        self._needs = record.needs
        self._phase = phase
        self._residuals: list[Any] = []
        self._known = known
        backward = phase is Phase.BACKWARD
        saved, other = record.saved, record.saved_forward
        if not backward:
            saved, other = other, saved
        self._missing = saved is None and other is not None
        self._once = clear and backward
        hooks = _hooks.get() if backward else None
        pack = self._packed if hooks is None else partial(self._by_hook, hooks)
        #: Whether reading frees what was saved, which are known numbers then.
        self._frees = False
        if self._once and hooks is None and not any(map(is_traced, map(self._value, saved or ()))):
            self._frees, pack = True, self._alive
        #: What was saved, with its arrays as residuals; None: freed.
        self._saved: list[Any] | None = list(map(pack, saved)) if saved else []
        attributes = vars(ctx)
        self._attributes = {name: self._packed(x) for name, x in attributes.items()} if attributes else None

    def taken(self) -> list[Value]:
        """The residuals, which are then forgotten."""
        residuals = self._residuals
        del self._residuals, self._known
        return residuals

    def context(self, definition: Any, residuals: Sequence[PyTree]) -> Any:
        """The context as ``backward`` and ``jvp`` get it, with the values that residuals have now."""
        read: Callable[[], tuple[Any, ...]] = partial(self._read, definition.name, residuals)
        if self._once:
            read = _read_once(read)
        ctx = new_context(definition.context, Record(definition.name, self._needs, self._phase, read))
        if self._attributes is not None:
            vars(ctx).update({name: _unpacked(x, residuals) for name, x in self._attributes.items()})
        return ctx

    def _read(self, name: str, residuals: Sequence[Value]) -> tuple[Value, ...]:
        """What ``ctx.saved_tensors`` gives."""
        if self._missing:
            raise errors.FunctionContractError(f"{name}: {_WRONG_SAVE[self._phase]}")
        saved = self._saved
        if saved is None:
            _freed()
        if self._frees:
            self._saved = None
        return tuple([given(residuals[x]) if type(x) is _Place else _unpacked(x, residuals) for x in saved])

    # --- packing ----------------------------------------------------------------------------------------------

    def _value(self, x: ArrayLike) -> PyTree:
        """The value of an array of the user's; numbers and None as they are."""
        if type(x) in SAVED_AS_IS:
            return x
        known = self._known.get(id(x))
        return own_value(x, lambda: "a value saved in ctx") if known is None else known[1]

    def _by_hook(self, hooks: _Hooks, x: Value) -> Any:
        if type(x) in SAVED_AS_IS:
            return x
        return _Packed(self._packed(hooks.pack(given(self._value(x)))), hooks.unpack)

    def _alive(self, x: Any) -> Any:
        """Numbers that live until they are read."""
        value = self._value(x)
        return given(np.asarray(value.value) if type(value) is StandInTracer else read_only_copy(value))

    def _packed(self, x: Any) -> Any:
        """What the user kept, with its arrays as residuals."""
        if type(x) is Array and not self._known:  # the short way
            self._residuals.append(unwrap(x))
            return _Place(len(self._residuals) - 1)
        if type(x) in _SIMPLE:
            return x
        if is_array(x):
            self._residuals.append(self._value(x))
            return _Place(len(self._residuals) - 1)
        try:
            leaves, tree = tree_flatten(x)
        except errors.PytreeError:  # a dictionary whose keys have no order
            return x
        if not any(map(is_array, leaves)):
            return x
        return _Tree(tree, tuple([self._packed(leaf) if is_array(leaf) else leaf for leaf in leaves]))


def _unpacked(x: Any, residuals: Sequence[Value]) -> Any:
    """What the user kept, with the values that residuals have now."""
    if type(x) is _Place:
        return given(residuals[x])
    if type(x) is _Packed:
        return _checked(x.unpack(_unpacked(x.packed, residuals)), x.unpack)
    if type(x) is _Tree:
        return tree_unflatten(x.tree, [_unpacked(leaf, residuals) for leaf in x.leaves])
    return x


def _checked(x: Value, unpack: Callable[[Any], Any]) -> Any:
    """What a user's `unpack` returned, if it is an array or a number."""
    if type(x) is Array:
        return x
    try:
        own_value(x, lambda: "the result")
    except (errors.ArgumentError, errors.DtypeError):
        raise errors.HookError(
            f"saved_values_hooks: unpack, '{name_of(unpack)}', must return the array that pack got, but returned "
            f"{str(x)[:40]!r} of type {type(x).__name__}"
        ) from None
    return x


def is_traced(x: PyTree) -> bool:
    """Whether a value is a tracer other than the stand-in of a number."""
    return isinstance(x, Tracer) and type(x) is not StandInTracer


def _read_once(read: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
    """The same, to be called once: what one run of ``backward`` may do with traced values."""
    left = [read]
    return lambda: left.pop()() if left else _freed()


def _freed() -> NoReturn:
    raise errors.SavedValuesFreedError(
        "saved_tensors can only be accessed once, since clear_saved_tensors_on_access is set: keep the tuple in a "
        "variable. It is freed when backward reads it, so trying to backward through the graph a second time fails as "
        "well"
    )
