"""Convert a user's arguments to flat values and back."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from ..arrays.arguments import Parameters
from ..arrays.array import Array, WeakArray, read_only_copy, unwrap, wrap
from ..arrays.protocols import has_protocol, is_jax_array
from ..arrays.ref import Ref, refused
from ..core.aval import Aval, aval_of
from ..core.backward_state import BackwardState, StateAval, state_value
from ..core.dtypes import HELD, is_held, native
from ..core.jax_dtypes import narrow_array
from ..core.trace import Tracer, leaked
from ..core.values import ArrayLike, Value
from ..errors import ArgumentError, BackwardStateError, DtypeError, RefError
from ..primitives.operands import PYTHON_KEYS, narrow, plain
from ..runtime.unusual import unusual
from .pytree import LEAF, PyTree, PyTreeDef, leaf_path, tree_flatten, tree_flatten_with_path, tree_unflatten
from .pytree.nodes import KeyPath, SequenceKey, keystr
from .structs import described

_ARRAYS = (np.ndarray, np.generic)
_RESULT = "the result of "
#: A place that ends in the field of an object: ``argument 0 ('d').name``.
_FIELD = re.compile(r"\.[A-Za-z_]\w*$")
_KINDS = (*_ARRAYS, Tracer, BackwardState, Ref)


def name_of(fun: Callable[..., PyTree]) -> str:
    """The name of a function for messages and printing; for a method of a class itself, ``MyOp.apply``."""
    name = getattr(fun, "__name__", None)
    if not isinstance(name, str):
        return type(fun).__name__
    owner = getattr(fun, "__self__", None)
    return f"{owner.__name__}.{name}" if isinstance(owner, type) else name


def check_function(what: str, fun: Any) -> None:
    """Raise `ArgumentError` if a transformation receives something that is not callable."""
    if not callable(fun):
        raise ArgumentError(
            f"{what}: the argument must be a function, got {str(fun)[:60]!r} of type {type(fun).__name__}"
        )


def path_of(what: str, path: object) -> str:
    """The name of a file or folder, or `ArgumentError` for what is neither a str nor a path."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str):
        raise ArgumentError(f"{what} must be a str or a path, got {type(path).__name__} {str(path)[:60]!r}")
    return name


def check_positional(what: str, keywords: Collection[str]) -> None:
    """Raise `ArgumentError` if a transformed function that takes positional arguments alone receives others."""
    if keywords:
        raise ArgumentError(
            f"{what}: it takes positional arguments only, got {', '.join(f'{k}=' for k in keywords)}. Pass them by "
            "position, or bind them with functools.partial"
        )


def argument_name(fun: Callable[..., PyTree], position: int) -> str:
    """``argument 1 ('w')``, with the name if the signature gives it."""
    return Parameters(fun).place(position)


def argument_at(what: str, fun: Callable[..., PyTree], path: KeyPath) -> str:
    """The name of a leaf of ``(args, kwargs)`` in messages: ``jit of f: argument 1 ('w')['bias']``."""
    return f"{what} of {name_of(fun)}: {argument_place(fun, path)}"


def argument_place(fun: Callable[..., PyTree], path: KeyPath) -> str:
    """The same without the transformation and the function."""
    head, *rest = path
    if head == SequenceKey(0):
        place = argument_name(fun, rest[0].idx)
    else:
        place = f"argument {rest[0].key!r}"
    return f"{place}{keystr(tuple(rest[1:]))}"


def value_of(x: Any, where: Callable[[], str]) -> Any:
    """A leaf as a value that flows through interpreters; a list is not a leaf but a pytree.

    Raises
    ------
    ArgumentError, UnsupportedDtypeError
        The message names ``where()``.
    """
    kind = type(x)
    if kind is Array:
        return unwrap(x)
    if kind in PYTHON_KEYS:
        return x
    if isinstance(x, Tracer):
        if x.consumer is not None:
            raise leaked(x)
        return x
    if kind is WeakArray:
        return x.item()
    if isinstance(x, _ARRAYS):
        if x.dtype not in HELD:
            x = native(plain(x, where()), where())
            kind = np.ndarray
        if unusual.narrow:
            x = narrow_array(x)
        return x if kind is np.ndarray or isinstance(x, np.generic) else plain(x, where())
    if kind is BackwardState:
        return state_value(x)
    if kind is Ref:
        raise refused(x, where())
    if has_protocol(x):
        return value_of(x.__jax_array__() if is_jax_array(x) else plain(x, where()), where)
    cure = "Bind other values with functools.partial, or make the argument static under jit"
    place = where()
    if place.startswith(_RESULT):
        cure = "A transformed function returns arrays; keep what is no array outside of it"
    elif _FIELD.search(place):
        cure = "If it belongs to the structure, as names and options do: register_dataclass(..., meta_fields=[...])"
    if dataclasses.is_dataclass(x):
        cure = "Register the class: @functrans.tree_util.register_dataclass above @dataclass"
    raise ArgumentError(
        f"{place} is {str(x)[:60]!r} of type {kind.__name__}; expected an array, a number, or a tree "
        f"(tuple, list, dict, registered class) of them. {cure}"
    )


def flatten_values(
    tree: PyTree, where: Callable[[KeyPath], str], free: Sequence[bool] = ()
) -> tuple[list[Any], PyTreeDef]:
    """The leaves of an argument as values; `where` names a leaf by its key path. Those in the mask `free` may be any
    objects, which stay as they are.
    """
    leaves, treedef = tree_flatten(tree)
    known = [f and not _may_be_value(x) for x, f in zip(leaves, free)] if True in free else ()
    try:
        if True in known:
            return [x if k else value_of(x, _unnamed) for x, k in zip(leaves, known)], treedef
        return [value_of(x, _unnamed) for x in leaves], treedef
    except (ArgumentError, DtypeError, RefError):
        for path, leaf in tree_flatten_with_path(tree)[0]:
            value_of(leaf, lambda path=path: where(path))  # type: ignore[misc]
        raise


def _may_be_value(x: Any) -> bool:
    """Whether `value_of` knows the kind of an object, so that its refusal is no accident."""
    kind = type(x)
    return (
        kind in PYTHON_KEYS or isinstance(x, _KINDS) or (has_protocol(x) and not isinstance(x, type | bytes))
    )


def _unnamed() -> str:
    return "a value"


def check_states(what: str, fun: Callable[..., PyTree], avals: Sequence[Aval], treedef: PyTreeDef) -> None:
    """Raise `BackwardStateError` if more than one of the leaves of ``(args, kwargs)`` is a `BackwardState`."""
    places = [leaf_path(treedef, i) for i, a in enumerate(avals) if type(a) is StateAval]
    if len(places) > 1:
        listed = " and ".join([argument_place(fun, path) for path in places])
        raise BackwardStateError(
            f"{what} of {name_of(fun)}: at most one BackwardState per function, got {len(places)} ({listed}). One "
            "state holds any number of hooks: give them different names"
        )


def returned_values(fun: Callable[..., PyTree], tree: PyTree) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a traced function's result, as values; arrays that the function still holds are copied."""
    if type(tree) is Array:
        return [unwrap(tree)], LEAF
    leaves, treedef = flatten_values(tree, lambda path: f"{_RESULT}{name_of(fun)}{keystr(path)}")
    if any(type(aval_of(x)) is StateAval for x in leaves):
        raise BackwardStateError(f"{name_of(fun)} returns its BackwardState; only arguments are one")
    if unusual.narrow:
        leaves = list(map(narrow, leaves))
    return [read_only_copy(x) for x in leaves], treedef


class _Received(Exception):
    """Ends a call that only shows what the function receives."""


class Flat:
    """A user's function as a function of flat values; records the structure of its results.

    Parameters
    ----------
    fun : callable
    treedef : PyTreeDef
        The structure of the arguments that `call` receives.
    call : callable
        ``call(fun, tree) -> result``.
    has_aux : bool
        Whether the result is a pair whose second part is not differentiated. Traced values in it follow the outputs, so
        that the interpreter can convert its tracers; see `separate`.
    """

    __slots__ = ("_aux", "call", "fun", "has_aux", "out_tree", "treedef")

    def __init__(
        self,
        fun: Callable[..., PyTree],
        treedef: PyTreeDef,
        call: Callable[..., PyTree],
        has_aux: bool = False,
    ):
        self.fun = fun
        self.treedef = treedef
        self.call = call
        self.has_aux = has_aux
        self.out_tree: Any = None
        self._aux: tuple[list[Any], Any] = ([], None)

    def __call__(self, *values: ArrayLike) -> list[Any]:
        """Call the function; return the leaves of its result, and store their structure and the auxiliary data."""
        out = self.call(self.fun, tree_unflatten(self.treedef, [given(x) for x in values]))
        if not self.has_aux:
            leaves, self.out_tree = returned_values(self.fun, out)
            return leaves
        if not (isinstance(out, tuple) and len(out) == 2):
            raise ArgumentError(
                f"has_aux=True: {name_of(self.fun)} must return a pair (output, auxiliary data), but returned "
                f"{type(out).__name__}"
            )
        leaves, self.out_tree = returned_values(self.fun, out[0])
        self._aux = tree_flatten(out[1])
        return leaves + [x for x in self._aux[0] if isinstance(x, Tracer)]

    def argument(self, place: int) -> str:
        """The name of the argument that a value comes from, for messages."""
        marks = [object() for _ in range(self.treedef.num_leaves)]
        received: list[Any] = []

        def receive(*args: PyTree, **kwargs: PyTree) -> NoReturn:
            received.append((args, kwargs))
            raise _Received

        with suppress(Exception):  # such as one of a class that checks what it is made of
            self.call(receive, tree_unflatten(self.treedef, marks))
        for path, leaf in tree_flatten_with_path(received[0])[0] if received else ():
            if leaf is marks[place]:
                return argument_place(self.fun, path)
        return f"argument {place}"

    def separate(self, outs: list[Value], inputs: Collection[int] = ()) -> tuple[list[Any], Any]:
        """The outputs proper, and the auxiliary data with tracers replaced by their values.

        `inputs` holds the ``id`` of the values that came from the user; none of these is returned as it is.
        """
        n = self.out_tree.num_leaves
        if not self.has_aux:
            return outs, None
        lowered = iter(outs[n:])
        leaves, tree = self._aux
        aux = [result(next(lowered), inputs) if isinstance(x, Tracer) else _own(x) for x in leaves]
        return outs[:n], tree_unflatten(tree, aux)


def _own(x: Any) -> Any:
    """A leaf of auxiliary data: a copy of an array, anything else unchanged."""
    return wrap(np.array(x)) if isinstance(x, np.ndarray | np.generic) and is_held(x.dtype) else x


def given(x: Value) -> Any:
    """A value as a user's function receives it: tracers and Python numbers unchanged, arrays as `Array`."""
    if isinstance(x, _ARRAYS):
        return wrap(x)
    return x.handed() if isinstance(x, Tracer) else x


def result(x: Value, inputs: Collection[int] = ()) -> Value:
    """A value as a transformation returns it: outside all traces a separate `Array`; tracers unchanged.

    Parameters
    ----------
    x : value
    inputs : collection of int
        The ``id`` of values that came from the user, which are copied.
    """
    if type(x) is np.ndarray and (x.base is not None or id(x) in inputs):
        x = x.copy()
    if type(x) in PYTHON_KEYS:
        return wrap(x)
    return given(x)


def results(treedef: PyTreeDef, values: Sequence[Any], inputs: Collection[int] = ()) -> PyTree:
    """A pytree of results."""
    if treedef is LEAF:
        return result(values[0], inputs)
    return tree_unflatten(treedef, [result(x, inputs) for x in values])


def struct_aval(x: Any, what: Callable[[], str]) -> Aval:
    """The aval of an argument of `eval_shape` and similar: an array, a number, or a description of one."""
    aval = described(x)
    return aval_of(value_of(x, what)) if aval is None else aval
