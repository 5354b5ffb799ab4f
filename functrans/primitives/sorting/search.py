"""Where numbers belong in a sorted array: binary search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.aval import Aval, Zero
from ...core.dtypes import INT64
from ...core.errors import ArgumentValueError, ShapeError
from ...core.kernel import Block, BlockEmitter, Buffer, Scalar
from ...core.primitive import Primitive
from ..structure.linear import batched_first, move_axis, same_dtype, shape_of
from ..structure.shape import loops
from .sort_kernel import before


def _search_abstract(a: Aval, v: Aval, *, side: str) -> Aval:
    same_dtype("searchsorted", (a, v))
    lead = a.shape[:-1]
    if not a.ndim or v.shape[: len(lead)] != lead:
        raise ShapeError(
            f"searchsorted: expected a sorted array of at least one axis, and numbers of shape {lead} + any, got "
            f"shapes {a.shape} and {v.shape}"
        )
    if side not in ("left", "right"):
        raise ArgumentValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    return Aval(v.shape, INT64)


def _search_impl(a: Any, v: Any, *, side: Any) -> np.ndarray:
    if a.ndim == 1:
        return np.asarray(np.searchsorted(a, v, side))
    out = np.empty(v.shape, INT64)
    for row in np.ndindex(a.shape[:-1]):
        out[row] = np.searchsorted(a[row], v[row], side)
    return out


def _search_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, side: str) -> tuple[Any, Zero]:
    ans = searchsorted_p.bind(*primals, side=side)
    return ans, Zero(ans)


def _search_batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None], *, side: str
) -> tuple[Any, int]:
    (a, v), (d, e) = args, dims
    if d is None:
        assert e is not None
        last = len(shape_of(v)) - 1  # behind the axes that go with those of the sorted array
        return searchsorted_p.bind(a, move_axis(v, e, last), side=side), last
    rows, numbers = batched_first(size, a, d), batched_first(size, v, e)
    return searchsorted_p.bind(rows, numbers, side=side), 0


def _search_kernel(
    k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer], *, side: str
) -> None:
    (a, v), (out,) = operands, results
    n = a.shape[-1]
    rank = len(a.shape) - 1
    with loops(k, out.shape) as index:
        x = k.load(v, index)
        # The answer is among the `left` places from `place` on, or just after them. How many are left does not depend
        # on the data, so the halving is unrolled and has no branch: the processor searches for several numbers at once.
        place, left = k.const(0, INT64), n

        def further(at: Scalar) -> Scalar:
            y = k.load(a, (*index[:rank], at))
            return before(k, [y], [x]) if side == "left" else ~before(k, [x], [y])

        while left > 1:
            half = left // 2
            place = k.where(further(place + (half - 1)), place + half, place)
            left -= half
        if left:
            place = k.where(further(place), place + 1, place)
        k.store(out, index, place)


# The rows of the sorted array go with the first axes of the numbers; each number is read once.
searchsorted_p: Primitive = Primitive(
    "searchsorted",
    _search_abstract,
    _search_impl,
    jvp=_search_jvp,
    batch=_search_batch,
    kernel=Block(_search_kernel, streamed_from=1),
)
