"""The state of a translation, and how it passes through loops and branches as flat values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from ...runtime.private.numba_names import as_dtype, types
from ...runtime.records import dataclass
from ..numba_parts import NumbaType
from .typed_ir import TypedFunction
from .values import ArrayView, Counted, Storage, is_known, is_number, read, strong, whole

#: Names of scalars that belong to the whole program: the number of the first `raise` that was met, and what it raises.
Flag = tuple[Any, ...]
STATUS: Flag = ("status",)
ZERO_STATUS = 0


@dataclass
class Frame:
    """A call that is being translated."""

    function: TypedFunction
    variables: dict[str, Any]
    #: Storages with a number below this one belong to the callers.
    first_own: int = 0


@dataclass
class State:
    """Storages, flags, and the variables of the innermost call."""

    frame: Frame
    heap: dict[int, Storage] = field(default_factory=dict)
    flags: dict[Flag, Any] = field(default_factory=dict)
    #: Slices of bounds that depend on the run, with what their keys refer to: equal ones have equal bounds.
    spans: dict[Any, tuple[Any, Any]] = field(default_factory=dict)

    def copy(self) -> State:
        """A state that changes independently."""
        frame = Frame(self.frame.function, dict(self.frame.variables), self.frame.first_own)
        return State(frame, dict(self.heap), dict(self.flags), dict(self.spans))


# Skeletons say how flat values make up a value.


@dataclass(frozen=True)
class ScalarForm:
    """One scalar of a dtype."""

    dtype: np.dtype


@dataclass(frozen=True)
class ArrayForm:
    """One array. Those of one `group` are the same memory; `shared` if other variables refer to it too."""

    shape: tuple[int, ...]
    dtype: np.dtype
    group: int
    shared: bool = False


@dataclass(frozen=True)
class TupleForm:
    """A tuple."""

    parts: tuple[Any, ...]
    kind: NumbaType = tuple


@dataclass(frozen=True)
class KnownForm:
    """A value that is not passed on, because it does not change."""

    value: Any


class Absent:
    """A variable that is not assigned yet."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()
#: The group of an array that a path does not assign.
NONE = -1
Skeleton = Any


class Incompatible(Exception):
    """Two values of one variable that flat values cannot represent; `memory` if only because of what shares memory."""

    def __init__(self, memory: bool = False) -> None:
        super().__init__()
        self.memory = memory


@dataclass
class Packed:
    """Flat values of a state, and what they mean."""

    leaves: list[Any]
    variables: dict[str, Skeleton]
    storages: tuple[int, ...]
    flags: tuple[Flag, ...]


@dataclass
class Passed:
    """What a loop or branch passes on: variables, storages, flags. What is missing is learned by a first attempt."""

    variables: tuple[str, ...]
    storages: tuple[int, ...]
    flags: tuple[Flag, ...] = ()
    #: What variables look like that are not assigned on some path.
    shapes: dict[str, Skeleton] = field(default_factory=dict)
    #: Whether memory is no longer shared as before.
    tied: bool = False
    #: Variables that share the memory of another on some paths; on the others they are not read later.
    mates: dict[str, str] = field(default_factory=dict)


def views_in(value: Any) -> Iterator[ArrayView]:
    """The arrays in a value."""
    if isinstance(value, ArrayView):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from views_in(part)
    elif isinstance(value, Counted):
        for part in vars(value).values():
            yield from views_in(part)


def pack(state: State, plan: Passed, live: Iterable[str]) -> Packed:
    """Flatten the part of a state that a plan names.

    Parameters
    ----------
    state : State
    plan : Passed
    live : iterable of str
        The variables that are read later; those that are not in the plan may share memory with those that are.
    """
    leaves: list[Any] = []
    groups: dict[int, int] = {}
    variables = state.frame.variables
    named = set(plan.variables)
    read_later = frozenset(live)
    others = {v.storage for n in live if n not in named for v in views_in(variables.get(n))}

    def flat(value: Any, kind: NumbaType, dead: bool = False) -> Skeleton:
        if isinstance(value, ArrayView):
            array = read(state.heap[value.storage].value, value)
            leaves.append(array)
            dtype = array.dtype
            source = state.heap[value.storage]
            if dead:
                return ArrayForm(value.shape, dtype, NONE)
            shared = plan.tied or value.storage in others or value.storage < state.frame.first_own
            shared = shared or source.tied or source.argument is not None or not value.is_whole
            if shared:
                state.heap[value.storage] = replace(source, tied=True)
            group = len(leaves) if plan.tied else groups.setdefault(value.storage, len(groups))
            return ArrayForm(value.shape, dtype, group, shared)
        if type(value) in (tuple,) or hasattr(value, "_fields"):
            kinds = kind.types if isinstance(kind, types.BaseTuple) else [None] * len(value)
            return TupleForm(
                tuple([flat(v, k, dead) for v, k in zip(value, kinds, strict=True)]), type(value)
            )
        if is_number(value):
            dtype = dtype_of(kind, value)
            leaves.append(strong(value, dtype))
            return ScalarForm(dtype)
        return KnownForm(value)

    typemap = state.frame.function.typemap
    skeletons: dict[str, Skeleton] = {}
    for name in plan.variables:
        kind = state.frame.function.return_type if name == "@result" else typemap.get(name)
        dead = name not in read_later
        if dead and plan.mates.get(name) in read_later & variables.keys():
            skeletons[name] = flat(variables[plan.mates[name]], kind)
        elif name in variables:
            skeletons[name] = flat(variables[name], kind, dead)
        else:
            known = _ungrouped(plan.shapes.get(name, _placeholder(kind)))
            skeletons[name] = known
            leaves += _zeros(known)
    for key in plan.storages:
        leaves.append(state.heap[key].value)
    for flag in plan.flags:
        leaves.append(flag_value(state, flag))
    return Packed(leaves, skeletons, plan.storages, plan.flags)


def flag_value(state: State, flag: Flag) -> Any:
    """A flag as a scalar; 0 if nothing has set it."""
    dtype = np.dtype(np.int64) if flag == STATUS else flag[-1]
    return strong(state.flags.get(flag, 0), dtype)


def dtype_of(kind: NumbaType, value: Any) -> np.dtype:
    """The dtype of a number of a Numba type."""
    if isinstance(kind, types.Literal):
        kind = kind.literal_type
    if isinstance(kind, types.Omitted):
        return np.asarray(value).dtype
    if isinstance(kind, (types.Number, types.Boolean)):
        return np.dtype(as_dtype(kind))
    return np.asarray(value).dtype if is_known(value) else np.dtype(value.dtype)


def _placeholder(kind: NumbaType) -> Skeleton:
    if isinstance(kind, types.Literal):
        kind = kind.literal_type
    if isinstance(kind, (types.Number, types.Boolean)):
        return ScalarForm(np.dtype(as_dtype(kind)))
    if isinstance(kind, types.BaseTuple):
        parts = tuple([_placeholder(k) for k in kind.types])
        named = getattr(kind, "instance_class", tuple)
        return ABSENT if ABSENT in parts else TupleForm(parts, named)
    return ABSENT


def _ungrouped(skeleton: Skeleton) -> Skeleton:
    if isinstance(skeleton, TupleForm):
        return TupleForm(tuple(map(_ungrouped, skeleton.parts)), skeleton.kind)
    return replace(skeleton, group=NONE) if isinstance(skeleton, ArrayForm) else skeleton


def _zeros(skeleton: Skeleton) -> list[Any]:
    if isinstance(skeleton, ScalarForm):
        return [np.zeros((), skeleton.dtype)]
    if isinstance(skeleton, ArrayForm):
        return [np.zeros(skeleton.shape, skeleton.dtype)]
    if isinstance(skeleton, TupleForm):
        return [z for part in skeleton.parts for z in _zeros(part)]
    return []


def joined(a: Skeleton, b: Skeleton) -> Skeleton:
    """The skeleton of a value that is one or the other.

    Raises
    ------
    Incompatible
        If the flat values differ in number, shape or dtype.
    """
    if isinstance(a, TupleForm) and isinstance(b, TupleForm) and len(a.parts) == len(b.parts):
        return TupleForm(tuple([joined(x, y) for x, y in zip(a.parts, b.parts, strict=True)]), a.kind)
    if isinstance(a, ArrayForm) and isinstance(b, ArrayForm) and (a.shape, a.dtype) == (b.shape, b.dtype):
        if NONE not in (a.group, b.group) and a.group != b.group:
            raise Incompatible(memory=True)
        return ArrayForm(a.shape, a.dtype, max(a.group, b.group), a.shared or b.shared)
    if a == b or (isinstance(a, KnownForm) and isinstance(b, KnownForm) and a.value is b.value):
        return a
    raise Incompatible


def unpack(machine: Any, state: State, packed: Packed, leaves: Sequence[Any]) -> None:
    """Set the part of a state that `packed` describes from other flat values."""
    rest = iter(leaves)
    groups: dict[int, int] = {}

    def value_of(skeleton: Skeleton) -> Any:
        if isinstance(skeleton, ScalarForm):
            return next(rest)
        if isinstance(skeleton, ArrayForm):
            array = next(rest)
            own = machine.new_number()
            key = own if skeleton.group == NONE else groups.setdefault(skeleton.group, own)
            state.heap[key] = Storage(array, tied=skeleton.shared)
            return whole(key, skeleton.shape)
        if isinstance(skeleton, TupleForm):
            parts = [value_of(p) for p in skeleton.parts]
            return tuple(parts) if skeleton.kind is tuple else skeleton.kind(*parts)
        return skeleton.value

    for name, skeleton in packed.variables.items():
        if skeleton is not ABSENT:
            state.frame.variables[name] = value_of(skeleton)
    for key in packed.storages:
        old = state.heap[key]
        state.heap[key] = Storage(next(rest), old.argument, old.tied)
    for flag in packed.flags:
        state.flags[flag] = next(rest)
