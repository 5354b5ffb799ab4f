"""Writes into a part of an array, in place.

``x.at[i, 1:].add(v)`` takes a slice of `x`, writes into that, and writes the slice back: three equations that each make
an array. Here they become one, which writes into the window of `x` that the slice is. So does a chain of writes into
one slice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...core import Along, Atom, Aval, Block, BlockEmitter, Buffer, Effect, Eqn, Literal, Primitive, Var
from ...core.values import Param
from ...primitives.structure.dynamic import dynamic_update_slice_p
from ...primitives.structure.linear import reshape_p
from ...primitives.structure.shape import slice_p

#: For each axis of a window the axis of the view along it; None for one of extent 1 that the view lacks.
Mapping = tuple[int | None, ...]


def _abstract(x: Aval, *operands: Aval, **params: Param) -> Aval:
    return x.strong()


def _impl(
    x: Any, *operands: Any, write: Primitive, params: Any, starts: Any, sizes: Any, view: Any, **rest: Param
) -> np.ndarray:
    out = np.array(x, order="C")
    place = tuple([slice(i, i + n) for i, n in zip(starts, sizes)])
    old = out[place].reshape(view)
    new = write.impl_for([old])(old, *operands, **dict(params))
    out[place] = np.reshape(new, sizes)
    return out


def _kernel(
    k: BlockEmitter,
    operands: Sequence[Any],
    results: Sequence[Buffer],
    *,
    write: Primitive,
    params: Any,
    starts: tuple[int, ...],
    view: tuple[int, ...],
    mapping: Mapping,
    **rest: Param,
) -> None:
    k.copy(results[0], operands[0])
    part = k.window(results[0], starts, view, mapping)
    rule = write.kernel
    assert isinstance(rule, Block)
    rule.emit(k, [part, *operands[1:]], [part], **dict(params))


def _written(
    x: Any,
    *operands: Any,
    write: Primitive,
    params: Any,
    sizes: Any,
    view: Any,
    mapping: Mapping,
    **rest: Param,
) -> tuple[Along, ...]:
    rule = write.kernel
    assert isinstance(rule, Block)
    assert rule.written is not None
    inner = rule.written(Var(Aval(view, x.aval.dtype)), *operands, **dict(params))
    whole = zip(mapping, sizes, x.aval.shape)
    return tuple([None if d is None or n != m else inner[d] for d, n, m in whole])


def _effects(*, write: Primitive, params: Any, **rest: Param) -> Effect:
    return write.effects(**dict(params))


#: ``write`` applied to the part of an array of `sizes` at `starts`, seen in the shape `view`.
write_window_p = Primitive(
    "write_window",
    _abstract,
    _impl,
    kernel=Block(_kernel, reuse=0, streamed_from=1, written=_written),
    effects=_effects,
    moves_data=True,
)


def write_in_windows(eqns: list[Eqn], outvars: Iterable[Atom]) -> list[Eqn]:
    """The equations with writes into slices that are written back replaced; the slices become dead code."""
    if not any(e.primitive is dynamic_update_slice_p for e in eqns):
        return eqns
    producer = {v: e for e in eqns for v in e.outvars}
    readers = Counter(a for e in eqns for a in e.invars)
    readers.update(outvars)
    replaced: dict[Eqn, list[Eqn]] = {}
    for e in eqns:
        if e.primitive is dynamic_update_slice_p:
            writes = _writes(e, producer, readers)
            if writes:
                replaced.update({write: [] for write in writes})
                replaced[e] = _windowed(e, writes)
    return [new for e in eqns for new in replaced.get(e, [e])]


def _writes(e: Eqn, producer: dict[Var, Eqn], readers: Counter[Atom]) -> list[Eqn]:
    """The writes, first to last, into a slice of an array that `e` writes back; empty if it does something else."""
    x, value = e.invars[:2]
    starts = _starts(e)
    if value.aval.size == 0 or starts is None:
        return []
    writes: list[Eqn] = []
    while isinstance(value, Var) and value in producer:
        source = producer[value]
        if source.primitive is slice_p:
            same = source.params["start_indices"] == starts and set(source.params["strides"]) == {1}
            whole = source.outvars[0].aval.shape == e.invars[1].aval.shape
            return writes[::-1] if same and whole and source.invars[0] is x else []
        if source.primitive is reshape_p:
            if _mapping(e.invars[1].aval.shape, source.invars[0].aval.shape) is None:
                return []
        elif _is_write(source) and readers[value] == 1:
            if _mapping(e.invars[1].aval.shape, source.outvars[0].aval.shape) is None:
                return []
            writes.append(source)
        else:
            return []
        value = source.invars[0]
    return []


def _starts(e: Eqn) -> tuple[int, ...] | None:
    """Where an update of a slice writes, if it is known."""
    x, value, *starts = e.invars
    numbers = [int(s.value) for s in starts if isinstance(s, Literal)]
    if len(numbers) < len(starts):
        return None
    return tuple([min(max(i, 0), n - m) for i, n, m in zip(numbers, x.aval.shape, value.aval.shape)])


def _is_write(e: Eqn) -> bool:
    rule = e.primitive.kernel
    return isinstance(rule, Block) and rule.reuse == 0 and rule.written is not None


def _mapping(window: tuple[int, ...], view: tuple[int, ...]) -> Mapping | None:
    """Which axis of a view each axis of a window is; None if they differ by more than axes of extent 1."""
    mapping: list[int | None] = []
    d = 0
    for n in window:
        while n != 1 and d < len(view) and view[d] == 1:
            d += 1
        fits = d < len(view) and view[d] == n
        if not fits and n != 1:
            return None
        mapping.append(d if fits else None)
        d += fits
    return tuple(mapping) if all(n == 1 for n in view[d:]) else None


def _windowed(e: Eqn, writes: Sequence[Eqn]) -> list[Eqn]:
    """The writes as writes into a window of the array that `e` writes them back to."""
    x, value = e.invars[:2]
    sizes = value.aval.shape
    eqns = []
    for write in writes:
        view = write.invars[0].aval.shape
        params = {
            "write": write.primitive,
            "params": tuple(sorted(write.params.items())),
            "starts": _starts(e),
            "sizes": sizes,
            "view": view,
            "mapping": _mapping(sizes, view),
        }
        out = Var(x.aval.strong()) if write is not writes[-1] else e.outvars[0]
        eqns.append(
            write.replace(
                primitive=write_window_p, invars=[x, *write.invars[1:]], outvars=[out], params=params
            )
        )
        x = out
    return eqns
