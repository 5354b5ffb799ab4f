"""``functrans.ops``: sums, products and extremes of segments, the rows of an array with one number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import numpy as fnp
from .core import INT64, ArgumentError, ArgumentValueError, DtypeError, ShapeError, concrete, is_float
from .core.values import ArrayLike, Params, Value
from .frontend.checked import checked
from .numpy.dispatch import array_operand
from .numpy.indexing.nonzero import need_size
from .primitives import ops as _ops
from .primitives.ops import dtype_of, finish, shape_of
from .runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

_DOC = """{summary}

    Parameters
    ----------
    data : array_like, shape (n, ...)
    segment_ids : array_like of int, shape (n,)
        The segment of each row, in any order.
    num_segments : int, optional
        By default ``max(segment_ids) + 1``; needed in compiled functions.
    indices_are_sorted : bool
        A promise that has no effect.
    unique_indices : bool
        A promise that no two rows are in one segment, which makes derivatives cheaper.
    bucket_size : int, optional
        To {verb} buckets of so many rows first, then their results: rounding errors grow more slowly.
    mode : {{'fill', 'drop', 'clip', 'promise_in_bounds', 'wrap', 'raise'}} or GatherScatterMode, optional
        What to do with a segment that is not in ``range(num_segments)``: by default its rows are left out; 'clip' (and
        'promise_in_bounds') takes the nearest segment, 'wrap' counts modulo `num_segments`, 'raise' raises an error.
    out_sharding : None
        Accepted for JAX.

    Returns
    -------
    Array, shape (num_segments, ...)
        With the dtype of `data`. {empty} for a segment without rows.

    Raises
    ------
    ShapeError, DtypeError
        If `segment_ids` is not an array of n integers.
    ConcretizationTypeError
        In a compiled function without `num_segments`.

    Examples
    --------
    >>> from functrans import ops
    >>> ops.{name}([5.0, 2.0, 3.0], [0, 2, 2])
    {example}
    """


def _segments(segment_ids: ArrayLike, data: Value, num_segments: int | None, name: str) -> tuple[Any, int]:
    """The segment of each row, and the number of segments."""
    ids = array_operand(segment_ids, name, 1)
    if dtype_of(ids).kind not in "iu" and np.size(segment_ids):
        raise DtypeError(f"{name}: segment_ids must be integers, got dtype {dtype_of(ids)}")
    if len(shape_of(ids)) != 1 or shape_of(data)[:1] != shape_of(ids):
        raise ShapeError(
            f"{name}: expected data of shape (n, ...) and segment_ids of shape (n,), got {shape_of(data)} and "
            f"{shape_of(ids)}"
        )
    ids = _ops.convert(ids, INT64)
    if num_segments is None:
        numbers = concrete(ids)
        if numbers is None:
            need_size(name, ids, "num_segments=")
        num_segments = int(numbers.max()) + 1 if numbers.size else 0
    if num_segments < 0:
        raise ArgumentValueError(f"{name}: num_segments must not be negative, got {num_segments}")
    return ids, num_segments


def _in_bounds(ids: Value, n: int, mode: str) -> Value:
    """Segments from 0 to n; n is out of bounds, while a negative index would count from the end."""
    if mode in ("clip", "promise_in_bounds"):
        return fnp.clip(ids, 0, max(n - 1, 0))
    if mode == "wrap" and n:
        return fnp.remainder(ids, n)
    return fnp.where(ids < 0, n, ids)


def _identity(method: str, dtype: np.dtype) -> Value:
    """The result for a segment without rows."""
    if method in ("add", "multiply"):
        return dtype.type(method == "multiply")
    if is_float(dtype):
        return dtype.type(-math.inf if method == "max" else math.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if method == "max" else limits.max)


def _combined(
    x: ArrayLike, ids: ArrayLike, n: int, method: str, bucket_size: int | None, options: Params
) -> Any:
    """The rows of each segment combined by a method of ``x.at[...]``; with buckets, those first."""
    identity, rows = _identity(method, dtype_of(x)), shape_of(ids)[0]
    shape: tuple[int, ...] = (n, *shape_of(x)[1:])
    if bucket_size is None:
        return getattr(fnp.full(shape, identity).at[ids], method)(x, **options)
    buckets = fnp.full((-(-rows // bucket_size), *shape), identity)
    out = getattr(buckets.at[fnp.arange(rows) // bucket_size, ids], method)(x, **options)
    return _REDUCTIONS[method](out, axis=0, initial=identity).astype(dtype_of(x))


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": fnp.sum,
    "multiply": fnp.prod,
    "max": fnp.max,
    "min": fnp.min,
}
#: Of booleans: "or" and "and".
_LOGICAL = {"add": "max", "multiply": "min"}


def _segmented(
    name: str, method: str, summary: str, verb: str, empty: str, example: str
) -> Callable[..., Any]:
    """The function that combines rows by a method of ``x.at[...]``."""

    def function(
        data: Value,
        segment_ids: Value,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        out_sharding: Any = None,
    ) -> Value:
        x = array_operand(data, name)
        dtype = dtype_of(x)
        if dtype.kind == "c" and method in ("max", "min"):
            raise DtypeError(
                f"{name}: data is complex, and complex numbers have no order; take its real part, or absolute value"
            )
        if out_sharding is not None:
            raise ArgumentError(
                f"{name}: out_sharding must be None, got {out_sharding!r}; there is one device"
            )
        if bucket_size is not None and bucket_size < 1:
            raise ArgumentValueError(f"{name}: bucket_size must be positive, got {bucket_size}")
        ids, n = _segments(segment_ids, x, num_segments, name)
        way = _ops.checked_mode("fill" if mode is None else mode)
        options = {"mode": "raise" if way == "raise" else "drop", "unique_indices": unique_indices}
        ids = _in_bounds(ids, n, way)
        if dtype.kind != "b":
            return finish(_combined(x, ids, n, method, bucket_size, options))
        x = _ops.convert(x, np.dtype(np.uint8))
        return finish(_combined(x, ids, n, _LOGICAL.get(method, method), bucket_size, options) > 0)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(summary=summary, verb=verb, empty=empty, name=name, example=example)
    return checked(function)


segment_sum = _segmented(
    "segment_sum", "add", "The sum of each segment's rows.", "add", "0", "Array([5., 0., 5.])"
)
segment_prod = _segmented(
    "segment_prod", "multiply", "The product of each segment's rows.", "multiply", "1", "Array([5., 1., 6.])"
)
segment_max = _segmented(
    "segment_max",
    "max",
    "The largest element of each segment's rows; ties share the derivative evenly.",
    "compare",
    "``-inf``, or the lowest integer,",
    "Array([  5., -inf,   3.])",
)
segment_min = _segmented(
    "segment_min",
    "min",
    "The smallest element of each segment's rows; ties share the derivative evenly.",
    "compare",
    "``inf``, or the highest integer,",
    "Array([ 5., inf,  2.])",
)

__getattr__, __dir__ = _module_attributes("functrans.ops", globals())
