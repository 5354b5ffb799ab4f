"""Reductions by any operation, over axes (`reduce`) and sliding windows (`reduce_window`); padding."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import tree_util
from ..api.bodies import as_expected
from ..arrays.array import Array
from ..arrays.autocast import made
from ..core import ArgumentError, ArgumentValueError, Aval, ShapeError, Tracer, aval_of
from ..core.values import ArrayLike, PyTree, ShapeLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives import ops, ufuncs
from ..primitives.ops import as_shape, dtype_of, finish, many_axes, operand, shape_of, strong
from . import elementwise

__all__ = [
    "padtype_to_pads", "reduce", "reduce_window",
]  # fmt: skip


Ints = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]


def of_rank(numbers: Sequence[int] | None, rank: int, name: str) -> Ints:
    """Positive integers, one for each axis; None means all ones."""
    if numbers is None:
        return (1,) * rank
    extents = as_shape(numbers, name)
    if len(extents) != rank or any(n < 1 for n in extents):
        raise ArgumentValueError(f"{name} must be {rank} positive integers, one for each axis, got {extents}")
    return extents


def given_padding(padding: ArrayLike, rank: int, name: str) -> Pads:
    """Pairs of integers, one for each axis."""
    try:
        pairs = tuple([as_shape(pair, f"{name}: padding") for pair in padding])
    except TypeError:
        pairs = ()
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            f"{name}: padding must be 'SAME', 'SAME_LOWER', 'VALID' or {rank} pairs of integers, one for each axis, "
            f"got {padding!r}"
        )
    return tuple([(low, high) for low, high in pairs])


def padding_in_words(shape: Ints, window: Ints, strides: Ints, padding: str, name: str) -> Pads:
    """The padding that a string stands for."""
    word = padding.upper()
    if word == "VALID":
        return ((0, 0),) * len(shape)
    if word not in ("SAME", "SAME_LOWER"):
        raise ArgumentValueError(
            f"{name}: padding must be 'SAME', 'SAME_LOWER', 'VALID' or pairs of integers, got {padding!r}"
        )
    totals = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(shape, window, strides)]
    halves = [(t // 2, t - t // 2) for t in totals]
    return tuple([(high, low) for low, high in halves] if word == "SAME_LOWER" else halves)


@checked
def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: Any
) -> list[tuple[int, int]]:
    """Convert a padding string to numbers, before and after along each axis.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.padtype_to_pads((10,), (3,), (2,), "SAME")
    [(0, 1)]
    """
    shape = as_shape(in_shape, "lax.padtype_to_pads")
    window = as_shape(window_shape, "lax.padtype_to_pads")
    strides = of_rank(window_strides, len(shape), "lax.padtype_to_pads: window_strides")
    if isinstance(padding, str):
        return list(padding_in_words(shape, window, strides, padding, "lax.padtype_to_pads"))
    return list(given_padding(padding, len(shape), "lax.padtype_to_pads"))


Computation = Callable[[Any, Any], Any]

# --- operations that have primitives ------------------------------------------------------------------------

#: The names of an operation, in all its spellings.
_FOLDS: dict[Any, str] = {}
for _fold, _functions in {
    "sum": (elementwise.add, ufuncs.add, np.add, operator.add),
    "prod": (elementwise.mul, ufuncs.multiply, np.multiply, operator.mul),
    "max": (elementwise.max, ufuncs.maximum, np.maximum, builtins.max),
    "min": (elementwise.min, ufuncs.minimum, np.minimum, builtins.min),
    "any": (elementwise.bitwise_or, ufuncs.bitwise_or, ufuncs.logical_or, np.bitwise_or, np.logical_or, operator.or_),
    "all": (elementwise.bitwise_and, ufuncs.bitwise_and, ufuncs.logical_and, np.bitwise_and, np.logical_and,
            operator.and_),
}.items():  # fmt: skip
    _FOLDS.update(dict.fromkeys(_functions, _fold))

_WINDOWS = {
    "sum": ops.reduce_window_sum_p,
    "prod": ops.reduce_window_prod_p,
    "max": ops.reduce_window_max_p,
    "min": ops.reduce_window_min_p,
}
_AXES = {"sum": ops.reduce_sum_p, "prod": ops.reduce_prod_p, "max": ops.reduce_max_p, "min": ops.reduce_min_p}
_COMBINE = {"sum": ops.add_p, "prod": ops.mul_p, "max": ops.max_p, "min": ops.min_p}


def _fold_of(computation: Computation, dtype: np.dtype) -> str | None:
    """The name of an operation if it has primitives for a dtype, else None."""
    fold = _FOLDS.get(computation)
    if dtype.kind == "b":
        return {"any": "max", "all": "min", "max": "max", "min": "min"}.get(fold or "")
    return fold if fold in _COMBINE and (fold in ("sum", "prod") or dtype.kind != "c") else None


def _is_neutral(value: Value, fold: str, dtype: np.dtype) -> bool:
    return not isinstance(value, Tracer) and bool(value == ops.neutral(fold, dtype))


# --- trees of operands --------------------------------------------------------------------------------------


def _leaves(operands: Value, init_values: ArrayLike, name: str) -> tuple[list[Any], list[Any], Any]:
    """Check and flatten operands of one shape, and an initial number for each, in its dtype."""
    xs, tree = tree_util.tree_flatten(operands)
    inits, other = tree_util.tree_flatten(init_values)
    if tree != other or not xs:
        raise ArgumentError(
            f"lax.{name}: expected an initial value for each operand, in the same pytree; got {tree} and {other}"
        )
    values = [array_operand(x, f"lax.{name}", i) for i, x in enumerate(xs)]
    shapes = {shape_of(v) for v in values}
    if len(shapes) > 1:
        raise ShapeError(f"lax.{name}: operands have different shapes: {', '.join(map(str, sorted(shapes)))}")
    begin = []
    for x, init in zip(values, inits):
        value = operand(init, f"lax.{name}: init_value")
        if shape_of(value):
            raise ShapeError(f"lax.{name}: initial values must be numbers, got shape {shape_of(value)}")
        begin.append(strong(value, dtype_of(x)))
    return values, begin, tree


def _applied(
    computation: Computation, tree: PyTree, name: str, left: list[Any], right: list[Any]
) -> list[Any]:
    """Apply a user's operation to pytrees of arrays; it must preserve their types."""
    given = [tree_util.tree_unflatten(tree, list(map(finish, side))) for side in (left, right)]
    before = made.count
    out, out_tree = tree_util.tree_flatten(computation(*given))
    values = [operand(y, f"lax.{name}: result of the computation") for y in out]
    expected = [aval_of(x).strong() for x in right]
    casts = made.count != before
    values = [as_expected(v, a, casts) for v, a in zip(values, expected)]
    if out_tree != tree or [aval_of(v) for v in values] != expected:
        raise ArgumentValueError(
            f"lax.{name}: the computation must work element by element and preserve types: for {_listed(expected)} it "
            f"returned {_listed([aval_of(v) for v in values])}"
        )
    return values


def _listed(avals: Sequence[Aval]) -> str:
    return ", ".join(map(str, avals))


# --- reduce -------------------------------------------------------------------------------------------------


@checked
def reduce(
    operands: Any,
    init_values: Any,
    computation: Computation,
    dimensions: Sequence[int],
    out_sharding: None = None,
) -> Array:
    """Fold arrays along axes with a binary operation.

    Parameters
    ----------
    operands : array_like, or pytree of them
        All of one shape.
    init_values : number, or pytree of numbers
        One for each operand, converted to its dtype. It must be neutral for the operation, as it may be used more than
        once or not at all.
    computation : callable
        ``computation(x, y)`` of arrays (or pytrees of them), element by element; associative.
    dimensions : sequence of int
        The axes to fold.
    out_sharding : None
        Accepted, without effect.

    Returns
    -------
    Array or pytree of Array
        With the dtypes of the operands.

    Raises
    ------
    ArgumentError, ArgumentValueError, ShapeError
        If pytrees, shapes or the types of the computation's results do not match.

    Notes
    -----
    ``add``, ``mul``, ``max``, ``min``, ``and``, ``or`` of `functrans.lax`, `functrans.numpy`, NumPy or `operator`
    become the corresponding reductions. Other operations are applied to pairs of neighbours, about ``log2(n)`` times,
    so their derivative follows from the operations in them.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.reduce(np.arange(4.0), 0.0, lax.add, (0,))
    Array(6.)
    """
    values, begin, tree = _leaves(operands, init_values, "reduce")
    ndim = len(shape_of(values[0]))
    axes = many_axes(dimensions, ndim, "lax.reduce")
    fold = _fold_of(computation, dtype_of(values[0])) if len(values) == 1 else None
    if fold is not None:
        return tree_util.tree_unflatten(tree, [finish(_folded(values[0], begin[0], fold, axes))])
    apply = partial(_applied, computation, tree, "reduce")
    remaining = tuple([d for d in range(ndim) if d not in axes])
    shape = shape_of(values[0])
    if 0 in [shape[d] for d in axes]:
        rest = tuple([shape[d] for d in remaining])
        return tree_util.tree_unflatten(tree, [finish(ops.broadcast_to(init, rest)) for init in begin])
    values = [ops.transpose_p.bind(x, permutation=(*axes, *remaining)) for x in values]
    for _ in axes:
        values = _halved(values, apply)
    return tree_util.tree_unflatten(tree, [finish(v) for v in apply(_spread(begin, values), values)])


def _folded(x: Value, init: ArrayLike, fold: str, axes: tuple[int, ...]) -> Value:
    shape = tuple([n for d, n in enumerate(shape_of(x)) if d not in axes])
    if 0 in [shape_of(x)[d] for d in axes]:
        return ops.broadcast_to(init, shape)
    out = _AXES[fold].bind(x, axes=axes)
    return (
        out
        if _is_neutral(init, fold, dtype_of(x))
        else _COMBINE[fold].bind(out, ops.broadcast_to(init, shape))
    )


def _spread(begin: list[Any], values: list[Any]) -> list[Any]:
    return [ops.broadcast_to(init, shape_of(x)) for init, x in zip(begin, values)]


def _halved(values: list[Any], apply: Callable[..., list[Any]]) -> list[Any]:
    """Fold the first axis by pairs of neighbours."""
    shape = shape_of(values[0])
    while shape[0] > 1:
        even = shape[0] // 2 * 2
        paired = apply([_every(x, 0, even, 2) for x in values], [_every(x, 1, even, 2) for x in values])
        if shape[0] > even:
            rest = [_every(x, even, even + 1, 1) for x in values]
            paired = [ops.concatenate_p.bind(x, y, dimension=0) for x, y in zip(paired, rest)]
        values = paired
        shape = shape_of(values[0])
    return [ops.reshape_p.bind(x, shape=shape[1:]) for x in values]


def _every(x: Value, start: int, stop: int, step: int) -> Value:
    shape = shape_of(x)
    zeros, ones = (0,) * (len(shape) - 1), (1,) * (len(shape) - 1)
    return ops.slice_p.bind(
        x, start_indices=(start, *zeros), limit_indices=(stop, *shape[1:]), strides=(step, *ones)
    )


# --- reduce_window ------------------------------------------------------------------------------------------


@checked
def reduce_window(
    operand: ArrayLike,
    init_value: ArrayLike,
    computation: Computation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Fold the elements under a sliding window with a binary operation.

    Parameters
    ----------
    operand : array_like, or pytree of them
        All of one shape.
    init_value : number, or pytree of numbers
        The first value of the fold, and of elements in the padding and between dilated elements.
    computation : callable
        ``computation(x, y)`` of arrays (or pytrees of them), element by element.
    window_dimensions : sequence of int
        The extent of the window along each axis.
    window_strides : sequence of int, optional
        The step of the window along each axis; by default 1.
    padding : {'VALID', 'SAME', 'SAME_LOWER'} or sequence of (int, int)
        As for `conv_general_dilated`, for each axis.
    base_dilation, window_dilation : sequence of int, optional
        The distance of neighbouring elements of the operand, and of the window.

    Returns
    -------
    Array or pytree of Array
        With the dtypes of the operands.

    Raises
    ------
    ArgumentError, ArgumentValueError, ShapeError
        If pytrees, shapes, windows or the types of the computation's results do not match.

    Notes
    -----
    ``add``, ``mul``, ``max`` and ``min`` (and for booleans ``and``, ``or``) of `functrans.lax`, `functrans.numpy`,
    NumPy or `operator`, with their neutral element as initial value, are primitives with kernels. The derivative of
    ``max`` and ``min`` goes to the first of equal elements of a window; that of ``mul`` never divides. Other operations
    are applied once for each element of the window, in row-major order, to all windows at once.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.reduce_window(np.array([1.0, 3.0, 2.0, 0.0]), -np.inf, lax.max, (2,), (2,), "VALID")
    Array([3., 2.])
    >>> lax.reduce_window(np.arange(4.0), 1.0, lambda x, y: x + 2 * y, (2,))
    Array([ 3.,  7., 11.])
    """
    values, begin, tree = _leaves(operand, init_value, "reduce_window")
    windows = _windows(
        shape_of(values[0]), window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    dtype = dtype_of(values[0])
    fold = _fold_of(computation, dtype) if len(values) == 1 else None
    if fold is not None and _is_neutral(begin[0], fold, dtype):
        out = [_WINDOWS[fold].bind(values[0], **windows._asdict())]
    else:
        taps = [ops.under_windows(x, init, windows) for x, init in zip(values, begin)]
        out = [ops.broadcast_to(init, shape_of(tap[0])) for init, tap in zip(begin, taps)]
        for elements in zip(*taps):
            out = _applied(computation, tree, "reduce_window", out, list(elements))
    return tree_util.tree_unflatten(tree, [finish(v) for v in out])


def _windows(
    shape: tuple[int, ...], size: ShapeLike, strides: Any, padding: Any, base: Any, dilation: Any
) -> ops.Windows:
    rank = len(shape)
    name = "lax.reduce_window"
    extents = of_rank(as_shape(size, f"{name}: window_dimensions"), rank, f"{name}: window_dimensions")
    steps = of_rank(strides, rank, f"{name}: window_strides")
    inner = of_rank(base, rank, f"{name}: base_dilation")
    spread = of_rank(dilation, rank, f"{name}: window_dilation")
    if isinstance(padding, str):
        under = tuple(map(ops.dilated, extents, spread))
        pads = padding_in_words(tuple(map(ops.dilated, shape, inner)), under, steps, padding, name)
    else:
        pads = given_padding(padding, rank, name)
    return ops.Windows(extents, steps, pads, inner, spread)
