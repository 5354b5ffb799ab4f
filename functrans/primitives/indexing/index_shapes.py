"""What index arrays mean for shapes: of gathers and scatters, under batching, in NumPy's order of axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.aval import Aval
from ...core.errors import DtypeError, IndexOutOfBoundsError, ShapeError
from ..structure.create import iota
from ..structure.linear import batched_first, shape_of


def rest_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of the axes that are taken whole."""
    return tuple([n for d, n in enumerate(shape) if d not in axes])


def indexed_shape(
    name: str, x: Aval, indices: Sequence[Aval], axes: tuple[int, ...], mode: str
) -> tuple[int, ...]:
    """``S + rest``, if operand and indices fit together."""
    for i in indices:
        if i.dtype.kind not in "iu":
            raise DtypeError(f"{name}: index arrays must be integers, got {i.dtype}")
    return _indexed_shape(name, x.shape, tuple([i.shape for i in indices]), axes, mode)


@lru_cache(maxsize=4096)
def _indexed_shape(
    name: str, shape: tuple[int, ...], indices: tuple[tuple[int, ...], ...], axes: tuple[int, ...], mode: str
) -> tuple[int, ...]:
    if not indices or len(indices) != len(axes) or len(set(axes)) != len(axes) or not _fit(axes, len(shape)):
        raise ShapeError(f"{name}: {len(indices)} index arrays for axes {axes} of an array of shape {shape}")
    common = indices[0]
    for i in indices:
        if i != common:
            raise ShapeError(f"{name}: index arrays of different shapes {common} and {i}")
    if mode not in ("fill", "drop") and 0 not in common:
        for d in axes:
            if shape[d] == 0:
                raise IndexOutOfBoundsError(f"{name}: nothing can be taken from axis {d} of size 0")
    return common + rest_of(shape, axes)


def _fit(axes: tuple[int, ...], ndim: int) -> bool:
    return all(0 <= d < ndim for d in axes)


@lru_cache(maxsize=1024)
def _leading(axes: tuple[int, ...], ndim: int) -> tuple[int, ...] | None:
    """The permutation that brings the indexed axes to the front; None where they stand there."""
    order = axes + tuple([d for d in range(ndim) if d not in axes])
    return None if order == tuple(range(ndim)) else order


def with_leading(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """A view of an array with the indexed axes at the front."""
    order = _leading(axes, x.ndim)
    return x if order is None else x.transpose(order)


def batched_indices(
    size: int, indices: Sequence[Any], dims: Sequence[int | None], shared_lane: bool
) -> list[Any]:
    """Index arrays with the batch axis first; with a number of the lane before them where lanes index their
    own operand.
    """
    moved = [batched_first(size, i, d) for i, d in zip(indices, dims)]
    if shared_lane:
        return moved
    return [iota(shape_of(moved[0]), 0), *moved]
