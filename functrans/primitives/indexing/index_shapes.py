"""Shapes of gathers and scatters, also under batching and in NumPy's order of axes; indices out of bounds."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core import (
    INT64,
    KEY,
    ArgumentValueError,
    Aval,
    DtypeError,
    Effect,
    IndexOutOfBoundsError,
    ShapeError,
    is_abstract,
    is_inexact,
)
from ...core.kernel import IndexEmitter
from ...core.values import Param, Params, Value
from ...runtime.config import Config, config
from ..elementwise.arithmetic import convert, ge_p, lt_p, select_p
from ..elementwise.bits import and_p
from ..structure.linear import batched_first, shape_of
from ..structure.shape import iota

_index_errors = Config.index_errors


def default_mode(otherwise: str) -> str:
    """The mode of an expression that names none: ``"raise"``, or `otherwise` if ``config.index_errors`` says so."""
    return otherwise if _index_errors.ever_changed and config.index_errors == "clamp" else "raise"


def rest_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of the axes that are not indexed."""
    return tuple([n for d, n in enumerate(shape) if d not in axes])


def indexed_shape(
    name: str, x: Aval, indices: Sequence[Aval], axes: tuple[int, ...], mode: str
) -> tuple[int, ...]:
    """Return ``S + rest`` after checking operand and indices."""
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
                raise IndexOutOfBoundsError(f"index is out of bounds for axis {d} with size 0")
    return common + rest_of(shape, axes)


def _fit(axes: tuple[int, ...], ndim: int) -> bool:
    return all(0 <= d < ndim for d in axes)


@lru_cache(maxsize=1024)
def _leading(axes: tuple[int, ...], ndim: int) -> tuple[int, ...] | None:
    """Return the permutation that moves the indexed axes to the front; None if they are there."""
    order = axes + tuple([d for d in range(ndim) if d not in axes])
    return None if order == tuple(range(ndim)) else order


def with_leading(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return a view of an array with the indexed axes in front."""
    order = _leading(axes, x.ndim)
    return x if order is None else x.transpose(order)


def batched_indices(
    size: int, indices: Sequence[Value], dims: Sequence[int | None], shared_lane: bool
) -> list[Value]:
    """Return index arrays with the batch axis first, preceded by an array of lane numbers if each lane indexes its own
    operand.
    """
    moved = [batched_first(size, i, d) for i, d in zip(indices, dims)]
    if shared_lane:
        return moved
    return [iota(shape_of(moved[0]), 0), *moved]


MODES = ("raise", "clip", "wrap", "fill", "drop", "promise_in_bounds")


class GatherScatterMode(enum.StrEnum):
    """How gathers and scatters treat indices out of bounds, under JAX's names. Functions also accept the name as a str.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.GatherScatterMode.from_any("clip"), str(lax.GatherScatterMode.CLIP)
    (<GatherScatterMode.CLIP: 'clip'>, 'clip')
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    RAISE = "raise"
    WRAP = "wrap"

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """Return the mode for a name or a mode; None means `FILL_OR_DROP`.

        Raises
        ------
        ArgumentValueError
            If the mode is unknown.
        """
        return GatherScatterMode(checked_mode("fill" if mode is None else mode).replace("drop", "fill"))


def checked_mode(mode: str) -> str:
    """Return the mode as a str.

    Raises
    ------
    ArgumentValueError
        If the mode is unknown.
    """
    if not isinstance(mode, str) or mode not in MODES:
        raise ArgumentValueError(f"mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
    return str(mode)


def negative_outside(i: Value, mode: str) -> Value:
    """Signed integers, as indices of which negative ones do not count from the end.

    They become the largest integer, which is outside of any array, and 0 where a mode clips. A mode that wraps leaves
    them as they are.

    Raises
    ------
    IndexOutOfBoundsError
        If one is known to be negative, and the mode raises.
    """
    if mode == "wrap":
        return i
    if mode == "raise" and not is_abstract(i) and (np.asarray(i) < 0).any():
        raise IndexOutOfBoundsError(
            f"index {np.min(i)} is out of bounds: negative indices do not count from the end with "
            "wrap_negative_indices=False"
        )
    wide = convert(i, INT64)
    outside = 0 if mode in ("clip", "promise_in_bounds") else np.iinfo(INT64).max
    return select_p.bind(lt_p.bind(wide, np.int64(0)), np.int64(outside), wide)


def raises(*, mode: str, **params: Param) -> Effect:
    """Return the effects of a gather or scatter."""
    return Effect.RAISE if mode == "raise" else Effect.NONE


def guard(categories: Sequence[str], args: Sequence[Value], params: Params) -> tuple[Any, Any]:
    """The slot ``guard`` of gathers and scatters: an index may be out of bounds, where it would otherwise raise."""
    axes = params["axes"]
    if params["mode"] != "raise" or "index" not in categories:
        return [], params
    failures = []
    for i, d in zip(args[len(args) - len(axes) :], axes):
        n = shape_of(args[0])[d]
        i = convert(i, INT64)
        ok = and_p.bind(ge_p.bind(i, np.int64(-n)), lt_p.bind(i, np.int64(n)))
        failures.append(("index", ok, f"index {{}} is out of bounds for axis {d} with size {n}", [i]))
    return failures, {**params, "mode": "fill"}


def resolve(
    indices: Sequence[Value], shape: tuple[int, ...], axes: tuple[int, ...], mode: str
) -> tuple[list[Any], np.ndarray | None]:
    """Return indices moved into bounds, and a mask of those that were in bounds (None: all).

    Raises
    ------
    IndexOutOfBoundsError
        In mode "raise"; it names the index, the axis and its size.
    """
    resolved: list[Any] = []
    valid = None
    for i, d in zip(indices, axes):
        n = shape[d]
        i = np.asarray(i)
        if mode == "promise_in_bounds":
            resolved.append(i)
            continue
        if i.dtype != np.int64:
            i = i.astype(np.int64)
        if not n and i.size and mode in ("clip", "wrap"):
            raise IndexOutOfBoundsError(f"index is out of bounds for axis {d} with size 0")
        if mode == "wrap":
            resolved.append(i % n if n else i)
            continue
        if mode == "raise":
            check_bounds(i, n, d)
        i = np.where(i < 0, i + n, i)
        if mode != "raise":
            inside = (i >= 0) & (i < n)
            if mode != "clip":
                valid = inside if valid is None else valid & inside
            i = np.clip(i, 0, max(n - 1, 0))
        resolved.append(i)
    return resolved, valid


def check_bounds(i: np.ndarray, n: int, axis: int) -> None:
    """Raise `IndexOutOfBoundsError` unless every index is within ``[-n, n)``."""
    if not i.size or (i.min() >= -n and i.max() < n):
        return
    bad = (i < -n) | (i >= n)
    place = tuple(np.argwhere(bad)[0].tolist())
    where = f" (at position {place[0] if len(place) == 1 else place} of the index array)" if place else ""
    raise IndexOutOfBoundsError(
        f"index {int(i[place])} is out of bounds for axis {axis} with size {n}{where}. If indices may be out "
        'of bounds on purpose, use x.at[i].get(mode="clip") or mode="fill", x.at[i].set(v, mode="drop")'
    )


def fill_for(dtype: np.dtype, fill_value: Any = None) -> Any:
    """Return the value for elements out of bounds: NaN, the lowest signed or the highest unsigned integer, True.

    For keys it is the key 0.
    """
    if fill_value is not None:
        return np.asarray(fill_value).astype(dtype)[()]
    if is_inexact(dtype):
        return dtype.type(np.nan)
    if dtype.kind == "b":
        return np.True_
    if dtype == KEY:
        return np.zeros((), KEY)[()]
    return dtype.type(np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max)


def kernel_index(k: IndexEmitter, i: Any, n: int, mode: str) -> tuple[Any, Any]:
    """Return a kernel's index moved into ``[0, n)``, as int64, and whether it was in bounds (None: always)."""
    i = k.cast(i, np.dtype(np.int64))
    if mode == "promise_in_bounds":
        return i, None
    if mode == "wrap":
        i = k.call("irem", i, k.cast(i * 0 + n, i.dtype))
        return k.where(i < 0, i + n, i), None
    i = k.where(i < 0, i + n, i)
    if mode == "clip":
        i = k.where(i < 0, k.const(0, i.dtype), i)
        return k.where(i < n, i, i * 0 + (n - 1)), None
    return i, (i >= 0) & (i < n)
