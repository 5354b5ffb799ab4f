"""getitem and putitem: a basic index expression as one operation, for concrete values.

`index` has an entry for each axis and new axis: an int, None, or ``(start, stop, step)`` with as many elements as
``range`` gives (`stop` may be -1 if `step` is negative). Staged programs use slice, rev and reshape instead, which fuse
better. Eagerly, each operation costs time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core import Aval, Block, BlockEmitter, Buffer, Indexed, Linear, Primitive
from ...core.values import Value
from ..structure.linear import linear_jvp, move_axis
from ..structure.shape import loops

Index = tuple[Any, ...]


@lru_cache(maxsize=4096)
def numpy_index(index: Index) -> Index:
    """Return the index in NumPy's form."""
    return tuple([slice(e[0], None if e[1] < 0 else e[1], e[2]) if type(e) is tuple else e for e in index])


def _at(index: Index, where: Sequence[Any]) -> list[Any]:
    """Return the position in the array of the result's element at `where`."""
    places = []
    axes = iter(where)
    for e in index:
        if e is None:
            next(axes)
        elif type(e) is tuple:
            i = next(axes)
            i = i if e[2] == 1 else i * e[2]
            places.append(i + e[0] if e[0] else i)
        else:
            places.append(e)
    return places


def _batched(index: Index, size: int) -> Index:
    return ((0, size, 1), *index)


def _getitem_batch(
    size: int, args: Sequence[Value], dims: Sequence[int], *, index: Index, shape: tuple[int, ...]
) -> tuple[Value, int]:
    x = move_axis(args[0], dims[0], 0)
    return getitem_p.bind(x, index=_batched(index, size), shape=(size, *shape)), 0


getitem_p: Primitive = Primitive(
    "getitem",
    lambda x, *, index, shape: Aval(shape, x.dtype),
    lambda x, *, index, shape: np.asarray(x)[numpy_index(index)],  # a Python number, too: x[None]
    jvp=linear_jvp(lambda: getitem_p),
    linear=True,
    transpose=lambda ct, x, *, index, shape: [putitem_p.bind(ct, index=index, shape=x.aval.shape)],
    batch=_getitem_batch,
    kernel=Indexed(lambda k, where, x, *, out, index, shape: x[_at(index, where)]),
)


def _putitem_impl(x: Value, *, index: Index, shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape, x.dtype)
    out[numpy_index(index)] = x
    return out


def _putitem_batch(
    size: int, args: Sequence[Value], dims: Sequence[int], *, index: Index, shape: tuple[int, ...]
) -> tuple[Value, int]:
    x = move_axis(args[0], dims[0], 0)
    return putitem_p.bind(x, index=_batched(index, size), shape=(size, *shape)), 0


def _putitem_kernel(
    k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, index: Index, shape: tuple[int, ...]
) -> None:
    x, out = operands[0], results[0]
    with loops(k, shape) as place:
        k.store(out, place, k.const(0, out.dtype))
    with loops(k, x.shape) as where:
        k.store(out, _at(index, where), k.load(x, where))


def _putitem_transpose(ct: Value, x: Linear, *, index: Index, shape: tuple[int, ...]) -> list[Value | None]:
    return [getitem_p.bind(ct, index=index, shape=x.aval.shape)]


putitem_p: Primitive = Primitive(
    "putitem",
    lambda x, *, index, shape: Aval(shape, x.dtype),
    _putitem_impl,
    jvp=linear_jvp(lambda: putitem_p),
    linear=True,
    transpose=_putitem_transpose,
    batch=_putitem_batch,
    kernel=Block(_putitem_kernel, streamed_from=0),
    moves_data=True,
)
