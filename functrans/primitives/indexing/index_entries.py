"""The parts of an index expression: integers, slices, None, ``...``, masks and arrays of integers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ... import errors
from ...arrays.array import unwrap
from ...arrays.protocols import is_jax_array
from ...arrays.traced_parts import has_tracer, holds_tracers
from ...core import INT64, Tracer, dtype_kind
from ...core.values import ArrayLike, Index, Value
from ...runtime.records import NamedTuple
from ..elementwise.arithmetic import convert
from ..structure.linear import reshape_p, shape_of
from ..structure.shape import concatenate_p


class Mask(NamedTuple):
    """A boolean index: the positions of its true elements (one array per axis), and its shape."""

    positions: tuple[np.ndarray, ...]
    shape: tuple[int, ...]


def entries_of(index: Index) -> list[Any]:
    """The parts of an expression, each as an int, slice, None, Ellipsis, `Mask`, or integer array."""
    return [_entry(e) for e in (index if type(index) is tuple else (index,))]


def _entry(e: Any) -> Any:
    kind = type(e)
    if kind is int or kind is slice or e is None or e is Ellipsis:
        return e
    if isinstance(e, np.integer):
        return int(e)
    if isinstance(e, Tracer):
        if e.dtype.kind in "iu":
            return e
        if e.dtype.kind == "b":
            return _mask(_concrete_mask(e))
        raise not_an_index(f"an array of dtype {e.dtype}")
    if is_jax_array(e):
        return _entry(unwrap(e.__jax_array__()))
    if isinstance(e, (list, tuple)) or has_tracer(e) or holds_tracers(e):
        e = _from_sequence(e)
        if isinstance(e, Tracer):
            return _entry(e)
    if isinstance(e, (np.ndarray, bool, np.bool_)):
        a = np.asarray(e).view(np.ndarray)
        if a.dtype.kind == "b":
            return _mask(a)
        if a.dtype.kind in "iu":
            return int(a) if a.ndim == 0 else a
        raise not_an_index(f"an array of dtype {a.dtype}")
    return _entry(index_array(e))


def index_array(e: Any) -> np.ndarray:
    """Convert an object that is not an array, number or list to an index array, as NumPy does: anything with
    ``__index__`` or ``__array__``, a range, a pandas Series, a memoryview, any sequence.

    Raises
    ------
    InvalidIndexError
        If the result is not an array of integers or booleans.
    """
    try:
        return np.asarray(operator.index(e))
    except TypeError:
        pass
    try:
        a = np.asarray(e)
    except (TypeError, ValueError):
        raise not_an_index(type(e).__name__) from None
    if a.size == 0 and dtype_kind(a.dtype) in "fO":  # an empty list
        a = a.astype(INT64)
    if a.dtype.kind not in "biu":
        raise not_an_index(repr(e) if isinstance(e, (float, complex, str)) else type(e).__name__)
    return a


def not_an_index(what: str) -> errors.InvalidIndexError:
    """The error for something else between the brackets."""
    return errors.InvalidIndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are indices, got "
        f"{what}; convert with int(...) or .astype(int)"
    )


def _concrete_mask(e: Tracer) -> np.ndarray:
    mask = e.concrete()
    if mask is None:
        raise errors.NonConcreteBooleanIndexError(
            f"a boolean mask of type {e.aval} as an index, traced by {e.describe()}: the shape of the "
            "result would depend on data. Use where(mask, x, fill), x.at[mask].set(v) with a scalar v, or "
            "x[nonzero(mask, size=n)] to take at most n elements"
        )
    return np.asarray(mask)


def _mask(a: np.ndarray) -> Mask:
    return Mask(np.nonzero(a) if a.ndim else (np.zeros(int(a), INT64),), a.shape)


def _from_sequence(e: ArrayLike) -> Any:
    """Convert a nested list to an index array; traced elements are stacked."""
    if is_jax_array(e):
        e = unwrap(e.__jax_array__())
    if isinstance(e, Tracer):
        return e
    if not (has_tracer(e) or holds_tracers(e)):
        return _plain_indices(e)
    rows = [_from_sequence(row) for row in e]
    shapes = {shape_of(row) for row in rows}
    if len(shapes) != 1:
        raise errors.InvalidIndexError(f"an index list holds elements of different shapes {sorted(shapes)}")
    dtypes = [row.dtype if hasattr(row, "dtype") else np.asarray(row).dtype for row in rows]
    if any(d.kind not in "iu" for d in dtypes):
        raise not_an_index("a list with elements that are not integers")
    return concatenate_p.bind(
        *[reshape_p.bind(as_int64(row), shape=(1, *shape_of(row))) for row in rows], dimension=0
    )


def _plain_indices(e: Value) -> np.ndarray:
    a = np.asarray(e)
    if a.dtype.kind == "O":  # elements with __index__
        return index_array(e)
    return a.astype(INT64) if a.size == 0 else a


def as_int64(x: Value) -> Any:
    """Convert integers to int64."""
    return convert(x, INT64) if hasattr(x, "dtype") else np.int64(x)


def _consumed(entry: Any) -> int:
    """Return how many axes of the array a part of the expression consumes."""
    if entry is None or entry is Ellipsis:
        return 0
    return len(entry.shape) if type(entry) is Mask else 1


def with_ellipsis(entries: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Add slices for the remaining axes. The ellipsis stays before them: it separates index arrays."""
    used = sum(map(_consumed, entries))
    if used > len(shape):
        raise errors.InvalidIndexError(
            f"too many indices for array: array is {len(shape)}-dimensional (shape {shape}), but {used} "
            "were indexed"
        )
    places = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(places) > 1:
        raise errors.InvalidIndexError("an index can only have a single ellipsis ('...')")
    at = places[0] + 1 if places else len(entries)
    return entries[:at] + [slice(None)] * (len(shape) - used) + entries[at:]
