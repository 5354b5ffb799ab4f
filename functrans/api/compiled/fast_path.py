"""The calls of a jitted function with known types: find the program, run it, wrap the results.

A call first tests, with a few machine instructions, whether its arguments are like those of the previous call, or of
the last one that was different (`FastCall`). If they are not, it looks up their types in a dictionary, whose values
are `Runner` objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array, WeakArray, weak, wrap
from ...core import PYTHON_SCALARS, WEAK_KEYS, BackwardState, dtype_kind, is_too_wide
from ...core.values import PyTree, Value
from ...frontend.pytree import LEAF, PyTreeDef, tree_structure, tree_unflatten
from ...frontend.pytree.generated import leaf_reader
from ...runtime.records import dataclass

#: From so many leaves on, the fast call is generated only at a call so late that the program seems to be used often:
#: it takes as long as it saves in a hundred calls.
_MANY_LEAVES, _LATE = 64, 50
_MOST_LEAVES = 20_000


@dataclass(frozen=True, eq=False, slots=True)
class FastCall:
    """A program, and how to recognise arguments that it accepts directly.

    (CPython reads slots faster than it unpacks a named tuple.)

    Attributes
    ----------
    options : tuple
        The trace key under which it was traced (the same object).
    read : callable or None
        From ``(args, kwargs)`` to the tuple of leaves. None if all arguments are positional leaves.
    match : callable
        Whether a tuple of leaves has the types of the program.
    call : callable
        From the leaves to the result.
    """

    options: Any
    read: Callable[..., tuple[Any, ...]] | None
    match: Callable[[tuple[Any, ...]], bool]
    call: Callable[..., PyTree]

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The leaves of a call if it may match; else an empty tuple, which never does."""
        return self.read(args, kwargs) if self.read is not None else () if kwargs else args


def _never(leaves: tuple[Any, ...]) -> bool:
    return False


#: The initial value, before the first call.
NO_CALL = FastCall(None, None, _never, _never)


class Runner:
    """A compiled program, called with leaves of the types for which it was traced."""

    __slots__ = ("_calls", "_fast", "_out_tree", "_run", "_tried", "_weak", "call")

    def __init__(self, run: Any, out_tree: PyTreeDef, weak_outs: Sequence[bool], guard: Callable[..., Any]):
        self._run = run
        self._out_tree = out_tree
        self._weak = weak_outs
        self.call = guard(_general(run, out_tree, [weak if w else wrap for w in weak_outs]))
        self._fast: FastCall | None = None
        self._tried = False
        self._calls = 0

    def fast(
        self, options: Any, treedef: PyTreeDef | None, leaves: Sequence[PyTree], guard: Callable[..., Any]
    ) -> FastCall | None:
        """The fast call for such arguments; None if there is none.

        It is generated at the second call, since most programs that are called once are never called again; with many
        leaves, later.
        """
        self._calls += 1
        if not self._tried and (len(leaves) < _MANY_LEAVES or self._calls >= _LATE):
            self._fast = self._written(options, treedef, leaves, guard)
            self._tried = True
        return self._fast

    def _written(
        self, options: Any, treedef: PyTreeDef | None, leaves: Sequence[Value], guard: Callable[..., Any]
    ) -> FastCall | None:
        if not 0 < len(leaves) <= _MOST_LEAVES or not all(map(_is_recognised, leaves)):
            return None
        read = None if treedef is None else leaf_reader(treedef)
        if treedef is not None and read is None:
            return None
        fast = self._run.fast_call(leaves, self._out_tree, self._weak)
        return None if fast is None else FastCall(options, read, fast[0], guard(fast[1]))


def _is_recognised(x: Value) -> bool:
    """Whether tracing depends only on the class of a leaf, or on its class, dtype and shape."""
    return type(x) in (np.ndarray, Array) or type(x) in PYTHON_SCALARS or isinstance(x, np.number | np.bool_)


def add_types(key: list[Any], leaves: Sequence[Any]) -> bool:
    """Append to `key` what a kernel depends on in each leaf; False if a leaf is not an array or a number."""
    for x in leaves:
        kind = type(x)
        if kind is np.ndarray or kind is Array:
            key.append(x.dtype)
            key.append(x.shape)
        elif kind in PYTHON_SCALARS:
            key.append(kind)
        elif kind is WeakArray:
            key.append(WEAK_KEYS[dtype_kind(x.dtype)])
        elif kind is BackwardState:
            key.append(kind)
        elif isinstance(x, np.generic):
            key.append(x.dtype)
            key.append(())
        else:
            return False
    return True


def is_converted(key: Any) -> bool:
    """Whether an argument is not in native byte order, or has 64 bits that are off: the fast path does not convert."""
    return any(isinstance(part, np.dtype) and (not part.isnative or is_too_wide(part)) for part in key)


def _general(run: Any, out_tree: PyTreeDef, wraps: Sequence[Callable[[Any], Any]]) -> Callable[..., PyTree]:
    """The fast path from leaves to results; each result goes through its function in `wraps`."""
    call = run.compile().call
    if out_tree == LEAF:
        (only,) = wraps
        return lambda *args: only(call(*args)[0])
    flat = out_tree == tree_structure((0,) * out_tree.num_leaves)
    if weak in wraps:
        if flat:
            return lambda *args: tuple([f(x) for f, x in zip(wraps, call(*args))])
        return lambda *args: tree_unflatten(out_tree, [f(x) for f, x in zip(wraps, call(*args))])
    if flat:
        return lambda *args: tuple([wrap(x) for x in call(*args)])
    return lambda *args: tree_unflatten(out_tree, [wrap(x) for x in call(*args)])
