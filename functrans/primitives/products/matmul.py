"""Products of arrays by labelled axes, and NumPy's matmul family, with its ufuncs and operator.

`contract` is einsum of two operands: it chooses between dot_general and, where nothing is summed,
multiplication.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...arrays.autocast import autocasting, without
from ...core import ShapeError, Tracer, aval_of, canonical, operators, promote
from ...core.trace import key_of
from ...core.values import ArrayLike, AxisLike, DTypeLike, Param, Value
from ...runtime.module_getattr import lazy_import
from ...runtime.records import NamedTuple
from ..axes import broadcast_shapes, one_axis
from ..elementwise.arithmetic import mul_p
from ..elementwise.composed import conjugate
from ..operands import WEAK_DTYPES, convert, finish, operand, strong
from ..promotion import with_options
from ..structure.linear import move_axis, reduce_sum_p, reshape_p, shape_of, transpose_p
from ..ufunc_fronts import operator_operand
from .dot import DimensionNumbers, dot_general_p

#: Loads at the first call.
jax_keywords = lazy_import("functrans.arrays.jax_keywords")
#: Loads when autocast is first used.
autocast = lazy_import("functrans.primitives.autocast")

Labels = tuple[Any, ...]
Axes = tuple[int, ...]

# --- contraction by labels ----------------------------------------------------------------------------------


class _Prepared(NamedTuple):
    """What happens to an operand before the product: axes to sum, then a shape without the broadcast axes."""

    summed: Axes
    shape: Axes | None
    labels: Labels


class _Contraction(NamedTuple):
    x: _Prepared
    y: _Prepared
    dimension_numbers: DimensionNumbers | None
    order: Axes | None


def contract(x: Value, x_labels: Labels, y: Value, y_labels: Labels, out: Labels) -> Value:
    """Multiply two operands of one dtype, and sum over labels that are not in `out`.

    Labels are distinct within each operand. An axis of extent 1 broadcasts against the other operand's. All labels of
    `out` occur in an operand.
    """
    return _carried_out(_contraction(shape_of(x), x_labels, shape_of(y), y_labels, out), x, y, out)


def _carried_out(plan: _Contraction, x: Value, y: Value, out: Labels) -> Value:
    x, y = _prepare(x, plan.x), _prepare(y, plan.y)
    if plan.dimension_numbers is None:
        return mul_p.bind(_spread(x, plan.x.labels, out), _spread(y, plan.y.labels, out))
    product = dot_general_p.bind(x, y, dimension_numbers=plan.dimension_numbers)
    return product if plan.order is None else transpose_p.bind(product, permutation=plan.order)


@lru_cache(maxsize=4096)
def _contraction(
    x_shape: Axes, x_labels: Labels, y_shape: Axes, y_labels: Labels, out: Labels
) -> _Contraction:
    extents: dict[Any, int] = {}
    for shape, labels in ((x_shape, x_labels), (y_shape, y_labels)):
        for n, label in zip(shape, labels):
            if extents.get(label, 1) == 1:
                extents[label] = n
            elif n not in (1, extents[label]):
                raise ShapeError(
                    f"shapes {x_shape} and {y_shape} do not match: axis '{label}' has extents "
                    f"{extents[label]} and {n}"
                )
    x_full, y_full = _unbroadcast(x_shape, x_labels, extents), _unbroadcast(y_shape, y_labels, extents)
    x = _preparation(x_shape, x_labels, x_full, y_full, out)
    y = _preparation(y_shape, y_labels, y_full, x_full, out)
    batch = [a for a in x.labels if a in y.labels and a in out]
    summed = [a for a in x.labels if a in y.labels and a not in out]
    if not summed:
        return _Contraction(x, y, None, None)
    dims = (
        (_places(x.labels, summed), _places(y.labels, summed)),
        (_places(x.labels, batch), _places(y.labels, batch)),
    )
    shared = {*batch, *summed}
    labels = (*batch, *[a for a in x.labels if a not in shared], *[a for a in y.labels if a not in shared])
    order = _places(labels, out)
    return _Contraction(x, y, dims, None if order == tuple(range(len(out))) else order)


def _places(labels: Labels, some: Any) -> Axes:
    return tuple([labels.index(a) for a in some])


def _unbroadcast(shape: Axes, labels: Labels, extents: dict[Any, int]) -> Labels:
    """Drop axes of extent 1 that broadcast against a longer axis, which is then free, or summed alone."""
    return tuple([a for n, a in zip(shape, labels) if n != 1 or extents[a] == 1])


def _preparation(shape: Axes, labels: Labels, full: Labels, others: Labels, out: Labels) -> _Prepared:
    left = tuple([a for a in full if a in others or a in out])
    summed = tuple([d for d, a in enumerate(labels) if a in full and a not in left])
    rest = [n for d, n in enumerate(shape) if d not in summed]
    new_shape = tuple([n for n, a in zip(shape, labels) if a in left])
    return _Prepared(summed, None if len(rest) == len(new_shape) else new_shape, left)


def _prepare(x: Value, how: _Prepared) -> Value:
    if how.summed:
        x = reduce_sum_p.bind(x, axes=how.summed)
    return x if how.shape is None else reshape_p.bind(x, shape=how.shape)


def _spread(x: ArrayLike, labels: Labels, out: Labels) -> Value:
    """Put axes in the order of `out`, with extent 1 where the operand has none (leading ones are omitted)."""
    order = _places(labels, [a for a in out if a in labels])
    if order != tuple(range(len(order))):
        x = transpose_p.bind(x, permutation=order)
    extents = dict(zip(labels, (shape_of(x)[order.index(d)] for d in range(len(order)))))
    shape = tuple([extents.get(a, 1) for a in out])
    while shape and shape[0] == 1 and out[len(out) - len(shape)] not in labels:
        shape = shape[1:]
    return x if shape == shape_of(x) else reshape_p.bind(x, shape=shape)


# --- matmul and its family ----------------------------------------------------------------------------------


def pair(x: Value, y: Value, name: str, preferred_element_type: DTypeLike = None) -> tuple[Value, Value]:
    """Return two operands in their common dtype. Python numbers count as float64, int64, ..., as in NumPy, where only
    ufuncs have weak numbers.

    With a `preferred_element_type`, in this dtype.
    """
    if autocasting.used and preferred_element_type is None:
        known = np.ndarray | Tracer  # `Array`s as they are: their casts are cached
        x, y = autocast.adjusted(
            name, *[v if isinstance(v, known) else operand(v, name, i) for i, v in enumerate((x, y))]
        )
    x = x if isinstance(x, Tracer) else operand(x, name, 0)
    y = y if isinstance(y, Tracer) else operand(y, name, 1)
    if preferred_element_type is not None:
        dtype = canonical(preferred_element_type, f"{name}: preferred_element_type")
        return convert(x, dtype), convert(y, dtype)
    key = key_of(x)
    if key is key_of(y) and key not in WEAK_DTYPES:
        return x, y
    dtype, _ = promote([(aval_of(x).dtype, False), (aval_of(y).dtype, False)])
    return strong(x, dtype), strong(y, dtype)


class _Signature(NamedTuple):
    """The core axes of a function of the family, and whether it conjugates its first operand."""

    x: str
    y: str
    out: str
    conjugated: bool = False


def _family(name: str, signature: _Signature, doc: str, example: str) -> Callable[..., Any]:
    # matvec and vecmat are of NumPy 2.2. All of the family have the loops of matmul.
    ufunc: np.ufunc | None = getattr(np, name, None)
    loops = np.matmul if ufunc is None else ufunc

    def function(x1: ArrayLike, x2: ArrayLike, /, **options: Param) -> Any:
        if options:
            jax_keywords.take_keywords(f"numpy.{name}", options)
            preferred = options.pop("preferred_element_type", None)
            if signature is _VECDOT:
                x1, x2 = (_axis_last(x, options.get("axis", -1), name, i) for i, x in enumerate((x1, x2)))
                options.pop("axis", None)
            if not options and preferred is None:
                return function(x1, x2)
            if preferred is None:
                return with_options(function, loops, (x1, x2), options)
            return without(with_options, function, loops, pair(x1, x2, name, preferred), options)
        return finish(_apply(name, signature, *pair(x1, x2, name)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}{_DOC}>>> {example}\n"
    if ufunc is not None:
        operators.ufunc[ufunc] = function
    return function


def _axis_last(x: Value, axis: AxisLike, name: str, position: int) -> Value:
    x = operand(x, name, position)
    ndim = len(shape_of(x))
    return move_axis(x, one_axis(axis, ndim, name), ndim - 1) if ndim else x


_DOC = """
**options
    ``dtype=`` and ``casting=``, or JAX's ``preferred_element_type=``, set the dtype to compute in. `out` and `where`
    are not supported.

Returns
-------
Array
    Leading axes broadcast against each other.

Raises
------
DtypeError
    If an operand is not numeric.
ShapeError
    If an operand has too few axes, summed axes differ, or leading axes do not broadcast.

Examples
--------
>>> import functrans.numpy as fnp
"""
_MATMUL_DOC = """Matrix product, ``x1 @ x2``.

Parameters
----------
x1 : array_like, shape ``(..., n, k)`` or ``(k,)``
x2 : array_like, shape ``(..., k, m)`` or ``(k,)``
    A vector counts as a row on the left and as a column on the right; its axis is not in the result."""
_VECDOT_DOC = """Inner product along an axis, ``sum(conj(x1) * x2)``.

Parameters
----------
x1 : array_like, shape ``(..., k)``
x2 : array_like, shape ``(..., k)``
axis : int
    The axis of `k` in both operands, by default the last. A keyword argument."""
_MATVEC_DOC = """Product of a matrix and a vector.

Parameters
----------
x1 : array_like, shape ``(..., n, k)``
x2 : array_like, shape ``(..., k)``"""
_VECMAT_DOC = """Product of a vector, conjugated, and a matrix.

Parameters
----------
x1 : array_like, shape ``(..., k)``
x2 : array_like, shape ``(..., k, m)``"""


def _apply(name: str, signature: _Signature, x: Value, y: Value) -> Value:
    key = (name, shape_of(x), shape_of(y))
    cached = _plans.get(key)
    if cached is None:
        x_labels, y_labels, out = _labels(name, signature, shape_of(x), shape_of(y))
        plan = _contraction(shape_of(x), x_labels, shape_of(y), y_labels, out)
        if len(_plans) > _MOST_PLANS:
            _plans.clear()
        cached = _plans[key] = (plan, out)
    return _carried_out(cached[0], conjugate(x) if signature.conjugated else x, y, cached[1])


_MOST_PLANS = 4096
_plans: dict[tuple[str, Axes, Axes], tuple[_Contraction, Labels]] = {}
"""Cached by function and shapes."""


def _cure(operands: Sequence[tuple[Axes, str, int]]) -> str:
    """What to do about an extent: for each operand its shape, its core axes, and the extent that the other one has."""
    for number, (shape, core, extent) in enumerate(operands, 1):
        if len(core) == 2 and shape[-2 + (core.index("k") == 0)] == extent:
            return f"Transpose x{number}"
    return "They must be equal"


def _labels(name: str, signature: _Signature, x_shape: Axes, y_shape: Axes) -> tuple[Labels, Labels, Labels]:
    x_core, y_core, out_core = signature.x, signature.y, signature.out
    if name == "matmul":  # vectors are rows on the left and columns on the right; that axis is then dropped
        if len(x_shape) == 1:
            x_core, out_core = "k", out_core.replace("i", "")
        if len(y_shape) == 1:
            y_core, out_core = "k", out_core.replace("j", "")
    for position, (shape, core) in enumerate(((x_shape, x_core), (y_shape, y_core))):
        if len(shape) < len(core):
            raise ShapeError(
                f"{name}: x{position + 1} of shape {shape} has too few axes (expected at least "
                f"{1 if name == 'matmul' else len(core)}); for numbers use multiplication"
            )
    x_batch, y_batch = x_shape[: len(x_shape) - len(x_core)], y_shape[: len(y_shape) - len(y_core)]
    k, m = x_shape[len(x_batch) + x_core.index("k")], y_shape[len(y_batch) + y_core.index("k")]
    if k != m:
        raise ShapeError(
            f"{name}: x1 of shape {x_shape} and x2 of shape {y_shape} do not match: the summed axes have extents {k} "
            f"and {m}. {_cure(((x_shape, x_core, m), (y_shape, y_core, k)))}"
        )
    ndim = len(broadcast_shapes(f"{name}: batch axes", x_batch, y_batch))
    batch = tuple(range(ndim))
    return (
        (*batch[ndim - len(x_batch) :], *x_core),
        (*batch[ndim - len(y_batch) :], *y_core),
        (*batch, *out_core),
    )


_MATMUL = _Signature("ik", "kj", "ij")
_VECDOT = _Signature("k", "k", "", conjugated=True)
_MATVEC = _Signature("ik", "k", "i")
_VECMAT = _Signature("k", "kj", "j", conjugated=True)
matmul = _family(
    "matmul", _MATMUL, _MATMUL_DOC, "fnp.matmul([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])\nArray([21., 43.])"
)
vecdot = _family(
    "vecdot", _VECDOT, _VECDOT_DOC, "fnp.vecdot([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])\nArray([21., 43.])"
)
matvec = _family("matvec", _MATVEC, _MATVEC_DOC, "fnp.matvec([[1, 2], [3, 4]], [1, 10])\nArray([21, 43])")
vecmat = _family("vecmat", _VECMAT, _VECMAT_DOC, "fnp.vecmat([1, 10], [[1, 2], [3, 4]])\nArray([31, 42])")


def _matmul_operator(x: Value, y: Value) -> Value | None:
    if autocasting.used:
        x, y = autocast.adjusted("matmul", x, y)
    if not isinstance(x, Tracer):
        x = operator_operand(x, "matmul", 0)
    if not isinstance(y, Tracer):
        y = operator_operand(y, "matmul", 1)
    if x is NotImplemented or y is NotImplemented:
        return NotImplemented
    x, y = pair(x, y, "matmul")
    return finish(_apply("matmul", _MATMUL, x, y))


operators.operator["matmul"] = _matmul_operator
