"""Numba's types of a call's arguments and results, and what functrans makes of them.

Numba's int64, float64, complex128 and bool count as Python's numbers, whose dtype is weak, so that a call from jitted
code has the dtypes of the same call from Python. So does uint64, which Numba makes of the index of a `prange`. Other
numbers and arrays keep their dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core import Aval, is_low
from ...frontend.arguments import argument_place, name_of
from ...frontend.pytree import PyTreeDef, tree_flatten, tree_flatten_with_path
from ...frontend.pytree.nodes import DictKey, KeyPath, SequenceKey, keystr
from ...frontend.structs import ShapeDtypeStruct
from ...runtime.libraries import numba
from ...runtime.private.numba_names import as_dtype, from_dtype, types
from ..numba_parts import NumbaType

#: Python's numbers, by Numba's types.
_NUMBERS = {
    types.int64: int,
    types.uint64: int,
    types.float64: float,
    types.complex128: complex,
    types.boolean: bool,
}


class TypesError(numba.errors.TypingError):
    """Numba's error about the types of a call, whose text is ours; `loc` is where Numba compiles the call."""


class ArgumentLeaf:
    """An array or a number among the arguments of a call.

    Attributes
    ----------
    type : Numba type
    path : tuple of int
        The number of the argument, then the places in the tuples that hold the leaf.
    dtype : dtype
    ndim : int
    """

    def __init__(self, typ: NumbaType, path: tuple[int, ...], where: Callable[[], str]):
        self.type = typ = types.unliteral(_present(typ))
        self.path = path
        self.ndim = typ.ndim if isinstance(typ, types.Array) else 0
        self.is_array = isinstance(typ, types.Array)
        scalar = typ.dtype if self.is_array else typ
        if not isinstance(scalar, types.Number | types.Boolean):
            raise TypesError(f"{where()} is {_in_words(typ)}. {_CURE}")
        if scalar == types.float16:
            raise TypesError(
                f"{where()} is {_in_words(typ)}, {_NO_FLOAT16}: pass float32, and convert it inside"
            )
        self.number = None if self.is_array else _NUMBERS.get(typ)
        self.dtype = as_dtype(scalar) if self.number is None else np.dtype(self.number)

    def struct(self, shape: tuple[int, ...]) -> Any:
        """What to trace with: a type with a shape, or a Python number."""
        return ShapeDtypeStruct(shape, self.dtype) if self.number is None else self.number(0)

    def value(self, address: int, shape: tuple[int, ...]) -> Any:
        """A copy of the value in C-contiguous memory."""
        x = copied(address, self.dtype, shape)
        if self.number is not None:
            return self.number(x[()])
        return x if self.is_array else x[()]


_NO_FLOAT16 = "which code compiled by Numba for the CPU cannot hold"
_CURE = "Arguments are arrays, numbers, None, and tuples or named tuples of them"


def _in_words(typ: NumbaType) -> str:
    if isinstance(typ, types.DictType | types.LiteralStrKeyDict):
        return "a dict"
    if isinstance(typ, types.List | types.ListType | types.LiteralList):
        return "a list"
    if isinstance(typ, types.Array):
        return f"an array of {typ.dtype}"
    return f"a {typ}"


def copied(address: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """A copy of memory as an array."""
    return memory(address, dtype, shape).copy()


def memory(address: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Memory as an array, which does not keep it alive."""
    interface = {"data": (address, False), "shape": shape, "typestr": dtype.str, "version": 3}
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(type("_Memory", (), {"__array_interface__": interface})())


class CallTypes:
    """The types of one call of a jitted function.

    Parameters
    ----------
    jitted : Jitted
    args : sequence of Numba types
        Of the positional arguments, then of the keyword arguments.
    names : tuple of str
        The names of these, sorted.

    Attributes
    ----------
    leaves : list of ArgumentLeaf
        In the order of the program's inputs.
    types : tuple of Numba types
        `args`, in which only static arguments are literals.

    Raises
    ------
    TypesError
        If an argument is not supported.
    """

    def __init__(self, jitted: Any, args: Sequence[Any], names: tuple[str, ...]):
        self.jitted = jitted
        self.names = names
        count = len(args) - len(names)
        places: list[int | str] = [*range(count), *names]
        static = {place for place, _ in jitted.split(tuple(range(count)), dict.fromkeys(names, 0)).static}
        given = []
        kept = []
        for i, (place, typ) in enumerate(zip(places, args, strict=True)):
            if place in static:
                given.append(self._static(typ, place))
                kept.append(typ)
            else:
                given.append(self._tree(typ, (i,), place, ()))
                kept.append(_unliteral(typ))
        self.types = tuple(kept)
        self._split = jitted.split(tuple(given[:count]), dict(zip(names, given[count:], strict=True)))
        self.leaves, self._treedef = tree_flatten(self._split.dynamic)

    def call(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and keyword arguments with these values of the leaves."""
        return self._split.call(lambda *args, **kwargs: (args, kwargs), self._treedef.unflatten(values))

    def structs(self, shapes: Iterator[tuple[int, ...]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same, to trace with."""
        return self.call([leaf.struct(next(shapes)) for leaf in self.leaves])

    @property
    def have_sizes(self) -> bool:
        """Whether a leaf has an axis."""
        return any(leaf.ndim for leaf in self.leaves)

    def in_words(self) -> str:
        """The types, for messages."""
        count = len(self.types) - len(self.names)
        texts = [f"{n}={t}" for n, t in zip(self.names, self.types[count:])]
        return f"({', '.join([*map(str, self.types[:count]), *texts])})"

    def _where(self, place: int | str, path: KeyPath) -> str:
        head = (
            (SequenceKey(0), SequenceKey(place))
            if isinstance(place, int)
            else (SequenceKey(1), DictKey(place))
        )
        fun = self.jitted.__wrapped__
        return (
            f"jit of {name_of(fun)}, called in code compiled by Numba: {argument_place(fun, (*head, *path))}"
        )

    def _tree(self, typ: NumbaType, path: tuple[int, ...], place: int | str, keys: KeyPath) -> Any:
        if isinstance(typ, types.NoneType):
            return None
        if isinstance(typ, types.BaseTuple):
            parts = [
                self._tree(t, (*path, i), place, (*keys, SequenceKey(i))) for i, t in enumerate(typ.types)
            ]
            return typ.instance_class(*parts) if isinstance(typ, types.BaseNamedTuple) else tuple(parts)
        return ArgumentLeaf(typ, path, lambda: self._where(place, keys))

    def _static(self, typ: NumbaType, place: int | str) -> Any:
        if isinstance(typ, types.NoneType):
            return None
        if isinstance(typ, types.Literal):
            return typ.literal_value
        if isinstance(typ, types.BaseTuple):
            parts = [self._static(t, place) for t in typ.types]
            return typ.instance_class(*parts) if isinstance(typ, types.BaseNamedTuple) else tuple(parts)
        raise TypesError(
            f"{self._where(place, ())} is static, so Numba must know its value when it compiles the call: write a "
            f"literal, or a global constant; got a {typ}"
        )


def _unliteral(typ: NumbaType) -> Any:
    if isinstance(typ, types.BaseTuple) and not isinstance(typ, types.BaseNamedTuple):
        return types.Tuple([_unliteral(t) for t in typ.types])
    return types.unliteral(_present(typ))


def _present(typ: NumbaType) -> Any:
    """The type of what an optional value holds: Numba raises where it is None."""
    return typ.type if isinstance(typ, types.Optional) else typ


def result_type(jitted: Any, out_tree: PyTreeDef, avals: Sequence[Aval]) -> Any:
    """Numba's type of a result.

    Raises
    ------
    TypesError
        If it contains what Numba has no type for.
    """
    numbered = out_tree.unflatten(range(len(avals)))
    paths = [path for path, _ in tree_flatten_with_path(numbered)[0]]

    def where(i: int | None) -> str:
        key = "" if i is None else keystr(paths[i])
        return f"jit of {name_of(jitted.__wrapped__)}, called in code compiled by Numba: result{key}"

    def typed(part: Any) -> Any:
        if part is None:
            return types.none
        if isinstance(part, tuple):
            return types.BaseTuple.from_types([typed(x) for x in part], type(part))
        if isinstance(part, int):
            return _leaf_type(avals[part], lambda: where(part))
        first = next(iter(tree_flatten(part)[0]), None)
        raise TypesError(
            f"{where(first)} is in a {type(part).__name__}. Results are arrays, numbers, None, and tuples or named "
            "tuples of them: return a tuple"
        )

    return typed(numbered)


def _leaf_type(aval: Aval, where: Callable[[], str]) -> Any:
    if is_low(aval.dtype):
        raise TypesError(f"{where()} has dtype {aval.dtype}, {_NO_FLOAT16}: return x.astype('float32')")
    try:
        scalar = from_dtype(aval.dtype)
    except numba.errors.NumbaError:
        raise TypesError(f"{where()} has dtype {aval.dtype}, which Numba does not have") from None
    return types.Array(scalar, aval.ndim, "C") if aval.ndim else scalar


def result_leaves(typ: NumbaType, path: tuple[int, ...] = ()) -> list[tuple[Any, tuple[int, ...]]]:
    """The types of a result's arrays and numbers, and their places in its tuples."""
    if isinstance(typ, types.NoneType):
        return []
    if isinstance(typ, types.BaseTuple):
        return [leaf for i, t in enumerate(typ.types) for leaf in result_leaves(t, (*path, i))]
    return [(typ, path)]
