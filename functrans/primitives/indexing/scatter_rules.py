"""What scatters have in common, whatever they do with an update: type, evaluation, batching, kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ...core.aval import Aval
from ...core.errors import ShapeError
from ...core.kernel import Block, BlockEmitter, Buffer, Pointwise
from ...core.primitive import Primitive
from ..structure.linear import Rule, batched_first, move_axis, shape_of
from ..structure.shape import loops
from .bounds import kernel_index, resolve
from .index_shapes import batched_indices, indexed_shape, rest_of, with_leading


def scatter_abstract(name: str) -> Rule:
    """The type: the operand's, if the updates fit."""

    def abstract(
        x: Aval, updates: Aval, *indices: Aval, axes: tuple[int, ...], mode: str, unique_indices: bool = False
    ) -> Aval:
        expected = indexed_shape(name, x, indices, axes, mode)
        if updates.shape != expected or updates.dtype != x.dtype:
            raise ShapeError(
                f"{name}: updates have type {updates.strong()}, expected {Aval(expected, x.dtype)} for an "
                f"operand of type {x}"
            )
        return x.strong()

    return abstract


_FEW = 256
"""Updates up to which ``ufunc.at`` on several axes is quick enough."""


def scatter_impl(ufunc: np.ufunc | None) -> Rule:
    """NumPy's evaluation; None: updates replace what is there."""

    def impl(
        x: Any,
        updates: Any,
        *indices: Any,
        axes: tuple[int, ...],
        mode: str,
        unique_indices: bool = False,
    ) -> np.ndarray:
        out = np.array(x, order="C")
        updates = np.asarray(updates)
        view = with_leading(out, axes)
        if mode == "raise" and updates.size <= _FEW:
            try:
                return _write(ufunc, out, view, updates, indices, unique_indices)
            except IndexError:
                resolve(indices, out.shape, axes, mode)  # names the culprit
                raise
        found, valid = resolve(indices, out.shape, axes, mode)
        if valid is not None and not valid.all():
            found, updates = [i[valid] for i in found], updates[valid]
        if ufunc is None or unique_indices or updates.size <= _FEW:
            return _write(ufunc, out, view, updates, found, unique_indices)
        _accumulate(ufunc, out, updates, found, axes)
        return out

    return impl


def _write(
    ufunc: np.ufunc | None,
    out: np.ndarray,
    view: np.ndarray,
    updates: np.ndarray,
    indices: Sequence[Any],
    unique: bool,
) -> np.ndarray:
    place = tuple(indices)
    if ufunc is None:
        view[place] = updates
    elif unique or np.size(indices[0]) == 1:
        view[place] = ufunc(view[place], updates)
    else:
        ufunc.at(view, place, updates)
    return out


def _accumulate(
    ufunc: np.ufunc, out: np.ndarray, updates: np.ndarray, indices: list[np.ndarray], axes: tuple[int, ...]
) -> None:
    """``ufunc.at`` on a flat view: NumPy is quick there, and an order of magnitude slower with several
    axes.
    """
    steps = [s // out.itemsize for s in out.strides]
    flat = np.zeros(indices[0].shape, np.int64)
    for d, i in zip(axes, indices):
        flat = flat + i * steps[d]
    rest = [d for d in range(out.ndim) if d not in axes]
    for d in rest:
        flat = np.add.outer(flat, np.arange(0, out.shape[d] * steps[d], steps[d]))
    ufunc.at(out.reshape(-1), flat.reshape(-1), updates.reshape(-1))


def scatter_batch(prim: Callable[[], Primitive]) -> Rule:
    """The batch axis is one more axis that is taken whole, or indexed by the number of the lane."""

    def batch(
        size: int, args: Sequence[Any], dims: Sequence[int | None], *, axes: tuple[int, ...], **params: Any
    ) -> tuple[Any, int]:
        x = batched_first(size, args[0], dims[0])
        updates = batched_first(size, args[1], dims[1])
        axes = tuple([a + 1 for a in axes])
        indices = args[2:]
        if all(d is None for d in dims[2:]):
            updates = move_axis(updates, 0, len(shape_of(indices[0])))
        else:
            indices = batched_indices(size, indices, dims[2:], False)
            axes = (0, *axes)
        return prim().bind(x, updates, *indices, axes=axes, **params), 0

    return batch


def scatter_kernel(combination: Primitive | None) -> Block:
    """`combination` of the element there is and the update; None: the update."""
    rule = None if combination is None else combination.kernel
    combine = rule.emit if isinstance(rule, Pointwise) else None

    def emit(
        k: BlockEmitter,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        *,
        axes: tuple[int, ...],
        mode: str,
        unique_indices: bool = False,
    ) -> None:
        x, updates, *indices = operands
        out = results[0]
        k.copy(out, x)
        common = indices[0].shape
        with loops(k, common) as at:
            place: list[Any] = [None] * len(x.shape)
            valid = None
            for d, array in zip(axes, indices):
                place[d], inside = kernel_index(k, k.load(array, at), x.shape[d], mode)
                if inside is not None:
                    valid = inside if valid is None else valid & inside
            if valid is not None and mode == "raise":
                k.fail_if(~valid)
            with nullcontext() if valid is None else k.if_(valid), loops(k, rest_of(x.shape, axes)) as others:
                left = iter(others)
                target = [next(left) if i is None else i for i in place]
                value = k.load(updates, [*at, *others])
                k.store(out, target, value if combine is None else combine(k, k.load(out, target), value))

    return Block(emit, reuse=0, streamed_from=1)
