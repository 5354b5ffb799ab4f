"""From a context to residuals and back: what was saved, and the attributes that the user assigned.

Arrays become residuals, which interpreters differentiate, batch and stage; everything else is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..core.array import secure
from ..core.checked import checked
from ..core.errors import ArgumentError, FunctionContractError, PytreeError, SavedValuesFreedError
from ..core.pytree import PyTreeDef, tree_flatten, tree_unflatten
from ..core.trace import Tracer
from ..transforms.values import given
from .capture import StandInTracer
from .layout import is_array, own_value

_SIMPLE = frozenset((bool, int, float, complex, str, type(None)))

#: ``(pack, unpack)`` of the innermost `saved_values_hooks`.
_hooks: ContextVar[tuple[Callable[[Any], Any], Callable[[Any], Any]] | None] = ContextVar(
    "functrans_saved_values_hooks", default=None
)


@checked
@contextmanager
def saved_values_hooks(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> Iterator[None]:
    """Say how a `Function` keeps what it saves for its backward.

    Parameters
    ----------
    pack : callable
        ``pack(array) -> anything``: called in the forward pass, once for each array given to ``save_for_backward``.
        What it returns is kept in the array's place: another array (rounded, compressed), a tree with arrays in it, or
        any object (the name of a file).
    unpack : callable
        ``unpack(packed) -> array``: called in the backward pass, each time that ``saved_tensors`` is read.

    Yields
    ------
    None
        The hooks hold for forward passes inside the ``with`` block; where blocks are nested, the innermost ones.

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
    token = _hooks.set((pack, unpack))
    try:
        yield
    finally:
        _hooks.reset(token)


def hooked() -> bool:
    """Whether hooks are in force."""
    return _hooks.get() is not None


class _Place(NamedTuple):
    """In the place of an array: which residual it is."""

    number: int


class _Tree(NamedTuple):
    """In the place of a tree that holds arrays: its leaves, arrays replaced by `_Place`."""

    tree: PyTreeDef
    leaves: tuple[Any, ...]


Known = dict[int, tuple[Any, Any]]


class Packing:
    """Collects residuals.

    Parameters
    ----------
    known : dict
        By the ``id`` of an object of the user's, the object and the value that it stands for.
    """

    __slots__ = ("_known", "residuals")

    def __init__(self, known: Known):
        self.residuals: list[Any] = []
        self._known = known

    def value(self, x: Any) -> Any:
        """The value of an array of the user's."""
        found = self._known.get(id(x))
        return own_value(x, lambda: "a value saved in ctx") if found is None else found[1]

    def place(self, value: Any) -> _Place:
        """A value as residual."""
        self.residuals.append(value)
        return _Place(len(self.residuals) - 1)

    def anything(self, x: Any) -> Any:
        """What the user kept, with its arrays as residuals."""
        if type(x) in _SIMPLE:
            return x
        if is_array(x):
            return self.place(self.value(x))
        try:
            leaves, tree = tree_flatten(x)
        except PytreeError:  # a dictionary whose keys have no order
            return x
        if not any(map(is_array, leaves)):
            return x
        return _Tree(tree, tuple([self.anything(leaf) if is_array(leaf) else leaf for leaf in leaves]))


def unpacked(x: Any, residuals: Sequence[Any]) -> Any:
    """What the user kept, with the values that residuals have now."""
    if type(x) is _Place:
        return given(residuals[x.number])
    if type(x) is _Tree:
        return tree_unflatten(x.tree, [unpacked(leaf, residuals) for leaf in x.leaves])
    return x


#: From the residuals to what ``ctx.saved_tensors`` gives.
Reader = Callable[[Sequence[Any]], tuple[Any, ...]]


def reader(
    saved: tuple[Any, ...] | None, packing: Packing, *, hooked: bool, clear: bool, refuse: str
) -> Reader:
    """Make residuals of saved values.

    Parameters
    ----------
    saved : tuple or None
        What was saved; None: nothing.
    packing : Packing
    hooked : bool
        Whether they go through `saved_values_hooks`.
    clear : bool
        Whether they may be read once only.
    refuse : str
        What the error says when they are read although nothing was saved; empty: there are none then.
    """
    if saved is None:
        return _refusing(refuse) if refuse else lambda residuals: ()
    values = [None if x is None else packing.value(x) for x in saved]
    hooks = _hooks.get() if hooked else None
    if hooks is not None:
        pack, unpack = hooks
        packs = [None if x is None else (packing.anything(pack(given(x))),) for x in values]
        return lambda residuals: tuple(
            [None if p is None else unpack(unpacked(p[0], residuals)) for p in packs]
        )
    if clear and not any(isinstance(x, Tracer) and type(x) is not StandInTracer for x in values):
        return _Once([np.asarray(x.value) if type(x) is StandInTracer else secure(x) for x in values])
    places = [None if x is None else packing.place(x) for x in values]
    return lambda residuals: tuple([None if p is None else given(residuals[p.number]) for p in places])


class _Once:
    """Concrete values that can be read once, and are freed then."""

    __slots__ = ("_values",)

    def __init__(self, values: list[Any]):
        self._values: list[Any] | None = values

    def __call__(self, residuals: Sequence[Any]) -> tuple[Any, ...]:
        values, self._values = self._values, None
        if values is None:
            _freed()
        return tuple([given(x) for x in values])


def read_once(read: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
    """The same, to be called once: what one run of ``backward`` may do with traced values."""
    left = [read]
    return lambda: left.pop()() if left else _freed()


def _freed() -> NoReturn:
    raise SavedValuesFreedError(
        "saved_tensors can only be accessed once, since clear_saved_tensors_on_access is set: keep the tuple in a "
        "variable. It is freed when backward reads it, so trying to backward through the graph a second time fails as "
        "well"
    )


def _refusing(message: str) -> Reader:
    def refuse(residuals: Sequence[Any]) -> NoReturn:
        raise FunctionContractError(message)

    return refuse
