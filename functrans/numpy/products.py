"""Products: dot, matmul and its family, einsum, tensordot, kron, cross."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core import ArgumentError, ArgumentValueError, DtypeError, ShapeError, Tracer, aval_of, operators
from ..core.values import ArrayLike, AxisLike, DTypeLike, Param, Value
from ..primitives import ops
from ..primitives.ops import finish, many_axes, matmul, matvec, one_axis, operand, refuse_out, vecdot, vecmat
from ..primitives.structure.linear import shape_of
from ..runtime.module_getattr import lazy_import
from .dispatch import implements, in_one_dtype, owned

#: Loads at the first call.
jax_keywords = lazy_import("functrans.arrays.jax_keywords")

__all__ = [
    "cross", "dot", "einsum", "einsum_path", "inner", "kron", "matmul", "matvec", "outer",
    "tensordot", "vdot", "vecdot", "vecmat",
]  # fmt: skip

# --- sums of products ---------------------------------------------------------------------------------------


def _dot(x: Value, y: Value, x_axes: tuple[int, ...], y_axes: tuple[int, ...]) -> Value:
    return ops.dot_general_p.bind(x, y, dimension_numbers=((x_axes, y_axes), ((), ())))


def _check_summed(name: str, x: Value, y: Value, d: int, e: int) -> None:
    if shape_of(x)[d] != shape_of(y)[e]:
        raise ShapeError(
            f"{name}: shapes {shape_of(x)} and {shape_of(y)} do not match: extent {shape_of(x)[d]} (axis {d}) "
            f"meets {shape_of(y)[e]} (axis {e})"
        )


@implements(np.dot, method="dot")
def dot(a: ArrayLike, b: ArrayLike, out: None = None, *, preferred_element_type: DTypeLike = None) -> Array:
    """Sum the product over the last axis of `a` and the second-to-last of `b` (the only one, if `b` is a vector).

    Parameters
    ----------
    a, b : array_like
        If one is a number, this is multiplication.
    preferred_element_type : dtype-like, optional
        The dtype to compute in.

    Returns
    -------
    Array, shape ``a.shape[:-1] + b.shape[:-2] + b.shape[-1:]``

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.dot([1.0, 2.0], [3.0, 4.0])
    Array(11.)
    """
    refuse_out("dot", out)
    x, y = ops.pair(a, b, "dot", preferred_element_type)
    n, m = len(shape_of(x)), len(shape_of(y))
    if not n or not m:
        return finish(ops.mul_p.bind(x, y))
    e = max(0, m - 2)
    _check_summed("dot", x, y, n - 1, e)
    return finish(_dot(x, y, (n - 1,), (e,)))


@implements(np.inner)
def inner(a: ArrayLike, b: ArrayLike, *, preferred_element_type: DTypeLike = None) -> Any:
    """Sum the product over the last axes of both, in `preferred_element_type`, if any.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.inner([1, 2], [[1, 0], [0, 1]])
    Array([1, 2])
    """
    x, y = ops.pair(a, b, "inner", preferred_element_type)
    n, m = len(shape_of(x)), len(shape_of(y))
    if not n or not m:
        return finish(ops.mul_p.bind(x, y))
    _check_summed("inner", x, y, n - 1, m - 1)
    return finish(_dot(x, y, (n - 1,), (m - 1,)))


@implements(np.vdot)
def vdot(a: ArrayLike, b: ArrayLike, *, preferred_element_type: DTypeLike = None) -> Any:
    """The dot product of the flattened arrays, in `preferred_element_type`, if any; `a` is conjugated.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.vdot([1j, 2], [1j, 2])
    Array(5.+0.j)
    """
    x, y = ops.pair(a, b, "vdot", preferred_element_type)
    x, y = ops.flat(x), ops.flat(y)
    _check_summed("vdot", x, y, 0, 0)
    return finish(_dot(ops.conjugate(x), y, (0,), (0,)))


@implements(np.outer)
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Any:
    """The outer product of the flattened arrays.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.outer([1, 2], [3, 4])
    Array([[3, 4],
           [6, 8]])
    """
    refuse_out("outer", out)
    x, y = ops.pair(a, b, "outer")
    x, y = ops.flat(x), ops.flat(y)
    return finish(ops.mul_p.bind(ops.reshape_p.bind(x, shape=(*shape_of(x), 1)), y))


@implements(np.tensordot)
def tensordot(
    a: ArrayLike, b: ArrayLike, axes: AxisLike = 2, *, preferred_element_type: DTypeLike = None
) -> Value:
    """Sum the product over pairs of axes.

    Parameters
    ----------
    a, b : array_like
    axes : int or pair of sequences of int
        The number of last axes of `a` and first axes of `b` to pair; or the axes of `a` and those of `b`.
    preferred_element_type : dtype-like, optional
        The dtype to compute in.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.tensordot(fnp.ones((2, 3)), fnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    x, y = ops.pair(a, b, "tensordot", preferred_element_type)
    n, m = len(shape_of(x)), len(shape_of(y))
    if hasattr(axes, "__len__") or hasattr(axes, "__iter__"):
        left, right = axes
        x_axes, y_axes = many_axes(left, n, "tensordot"), many_axes(right, m, "tensordot")
    else:
        if not 0 <= axes <= min(n, m):
            raise ArgumentValueError(f"tensordot: {axes} axes of shapes {shape_of(x)} and {shape_of(y)}")
        x_axes, y_axes = tuple(range(n - axes, n)), tuple(range(axes))
    if len(x_axes) != len(y_axes):
        raise ArgumentValueError(f"tensordot: axes {axes} name different numbers of axes")
    for d, e in zip(x_axes, y_axes):
        _check_summed("tensordot", x, y, d, e)
    return finish(_dot(x, y, x_axes, y_axes))


# --- einsum -------------------------------------------------------------------------------------------------


@implements(np.einsum_path)
def einsum_path(*operands: ArrayLike, optimize: Any = "greedy", einsum_call: Any = False) -> Any:
    """The cheapest order of products for `einsum`: a list of pairs, and a text that explains it.

    Only the shapes of arrays matter. For the parameters see `numpy.einsum_path`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.einsum_path("ij,jk,k->i", fnp.ones((9, 9)), fnp.ones((9, 9)), fnp.ones(9))[0]
    ['einsum_path', (1, 2), (0, 1)]
    """
    shapes = [_without_numbers(x) if isinstance(x, Tracer) else x for x in operands]
    return np.einsum_path(*shapes, optimize=optimize, einsum_call=einsum_call)


def _without_numbers(x: Value) -> np.ndarray:
    """An array with the shape of `x` that uses no memory."""
    return np.broadcast_to(0.0, shape_of(x))


@implements(np.einsum)
def einsum(
    *operands: ArrayLike, out: None = None, dtype: DTypeLike = None, optimize: Any = True, **options: Param
) -> Any:
    """Sums of products in Einstein's convention.

    Parameters
    ----------
    *operands
        Subscripts (``"ij,jk->ik"``, also with ellipses) and arrays; or arrays and lists of labels in turn.
    dtype : dtype-like, optional
        The dtype to compute in; `preferred_element_type`, JAX's name for it, also allows any cast.
    casting : {'safe', 'same_kind', 'unsafe', ...}
        Which casts to `dtype` are allowed, as in `numpy.can_cast`.
    optimize : bool, str or path
        The order of the products of three operands and more, as in `numpy.einsum_path`. Operands are multiplied in
        pairs, by ``dot_general`` if axes are summed.

    Raises
    ------
    ArgumentValueError
        If subscripts and operands do not match.
    DtypeError
        If an operand may not be cast to `dtype`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.einsum("ij,j->i", fnp.array([[1, 2], [3, 4]]), fnp.array([1, 1]))
    Array([3, 7])
    """
    refuse_out("einsum", out)
    jax_keywords.take_keywords("numpy.einsum", options)
    preferred = options.pop("preferred_element_type", None)
    casting = options.pop("casting", "safe" if preferred is None else "unsafe")
    dtype = preferred if dtype is None else dtype
    options.pop("order", None)
    if options:
        raise ArgumentError(f"einsum: unknown keyword argument {next(iter(options))!r}")
    subscripts, given = (
        _interleaved(operands) if not isinstance(operands[0], str) else (operands[0], operands[1:])
    )
    if not given:
        raise ArgumentValueError("einsum: needs at least one operand")
    values = [operand(a, "einsum", i + 1) for i, a in enumerate(given)]
    if dtype is not None:
        _check_casting(values, dtype, casting)
    values = in_one_dtype(values, dtype, "einsum")
    terms, result = _subscripts(subscripts.replace(" ", ""), tuple([shape_of(v) for v in values]))
    if len(values) == 2 and all(len(set(t)) == len(t) for t in terms):
        return owned(ops.contract(values[0], terms[0], values[1], terms[1], result), *given)
    pairs = [_diagonals(v, t) for v, t in zip(values, terms)]
    for places in _path(tuple([(shape_of(v), labels) for v, labels in pairs]), result, optimize):
        chosen = [pairs[i] for i in places]
        pairs = [p for i, p in enumerate(pairs) if i not in places]
        pairs.append(_combine(chosen, pairs, result))
    (value, labels), *_ = pairs
    return owned(_final(value, labels, result), *given)


def _check_casting(values: Sequence[Any], dtype: DTypeLike, casting: Any) -> None:
    for i, v in enumerate(values):
        own = aval_of(v).dtype
        if not np.can_cast(own, dtype, casting):
            raise DtypeError(
                f"einsum: operand {i} of dtype {own} cannot be cast to {np.dtype(dtype)} by the rule {casting!r}; say "
                "casting='unsafe', or convert it first"
            )


def _interleaved(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Convert alternating arrays and label lists to subscripts and arrays."""
    arrays, lists = list(operands[: len(operands) // 2 * 2 : 2]), list(operands[1::2])
    last = operands[-1] if len(operands) % 2 else None
    labels = sorted({label for row in [*lists, last or []] for label in row if label is not Ellipsis})
    if len(labels) > len(string.ascii_letters):
        raise ArgumentValueError(f"einsum: at most {len(string.ascii_letters)} labels, got {len(labels)}")
    letters = dict(zip(labels, string.ascii_letters))
    letters[Ellipsis] = "..."
    text = ",".join("".join(letters[a] for a in row) for row in lists)
    return (text if last is None else f"{text}->{''.join(letters[a] for a in last)}"), arrays


@lru_cache(maxsize=1024)
def _subscripts(text: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[list[tuple], tuple]:
    """Labels of each operand and of the result; axes of an ellipsis are numbered from the last."""
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise ArgumentValueError(f"einsum: {text!r} has {len(parts)} operands, got {len(shapes)}")
    terms = [_term(part, len(shape), text, shape) for part, shape in zip(parts, shapes)]
    dots = sorted({a for t in terms for a in t if isinstance(a, int)})
    if arrow:
        if right.count("...") == 0 and dots and "..." in left:
            raise ArgumentValueError(f"einsum: {text!r}: the result must have an ellipsis too")
        head, dotted, tail = right.partition("...")
        result = (*head, *(dots if dotted else []), *tail)
    else:
        letters = [a for t in terms for a in t if isinstance(a, str)]
        result = (*dots, *sorted(a for a in set(letters) if letters.count(a) == 1))
    known = {a for t in terms for a in t}
    if len(set(result)) != len(result) or not set(result) <= known:
        raise ArgumentValueError(
            f"einsum: {text!r}: the result has an axis twice, or one that is not in an operand"
        )
    return terms, result


def _term(part: str, ndim: int, text: str, shape: tuple[int, ...]) -> tuple:
    head, dotted, tail = part.partition("...")
    named = len(head) + len(tail)
    if (
        not all(c in string.ascii_letters for c in head + tail)
        or named > ndim
        or (not dotted and named != ndim)
    ):
        raise ArgumentValueError(f"einsum: {part!r} in {text!r} does not match an operand of shape {shape}")
    return (*head, *range(named - ndim, 0), *tail)


def _diagonals(x: Value, labels: tuple) -> tuple[Any, tuple]:
    """Take the diagonals of one operand for its repeated labels."""
    while len(set(labels)) != len(labels):
        label = next(a for a in labels if labels.count(a) > 1)
        axes = tuple([d for d, a in enumerate(labels) if a == label])
        extents = {shape_of(x)[d] for d in axes}
        if len(extents) != 1:
            raise ShapeError(f"einsum: axes '{label}' of shape {shape_of(x)} have different extents")
        places = [ops.iota((extents.pop(),), 0)] * len(axes)
        x = ops.gather_p.bind(x, *places, axes=axes, mode="promise_in_bounds")
        labels = (label, *[a for a in labels if a != label])
    return x, labels


@lru_cache(maxsize=1024)
def _best_path(terms: tuple, result: tuple, optimize: Any) -> Sequence[tuple[int, ...]]:
    letters: dict[Any, str] = {}
    for _, labels in terms:
        for a in labels:
            letters.setdefault(a, string.ascii_letters[len(letters)])
    text = ",".join("".join(letters[a] for a in labels) for _, labels in terms)
    text += "->" + "".join(letters[a] for a in result)
    arrays = [np.broadcast_to(0.0, shape) for shape, _ in terms]
    path, _ = np.einsum_path(
        text, *arrays, optimize=list(optimize) if isinstance(optimize, tuple) else optimize
    )
    return [tuple(step) for step in path[1:]]


def _path(terms: tuple, result: tuple, optimize: Any) -> Sequence[tuple[int, ...]]:
    """The operands to multiply at each step; the result is appended."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    if isinstance(optimize, (list, tuple)):
        optimize = tuple([tuple(s) if isinstance(s, list) else s for s in optimize])
    if optimize is False:
        return [(0, 1)] + [(0, len(terms) - 1 - i) for i in range(1, len(terms) - 1)]
    return _best_path(terms, result, optimize)


def _combine(chosen: list, others: list, result: tuple) -> tuple[Any, tuple]:
    """Multiply some operands, and sum over labels that occur nowhere else."""
    while len(chosen) > 2:
        chosen = [_combine(chosen[:2], others + chosen[2:], result), *chosen[2:]]
    if len(chosen) == 1:
        return chosen[0]
    (x, x_labels), (y, y_labels) = chosen
    needed = {*result, *[a for _, labels in others for a in labels]}
    out = tuple([a for a in dict.fromkeys((*x_labels, *y_labels)) if a in needed])
    if not others and set(out) == set(result):
        out = result
    return ops.contract(x, x_labels, y, y_labels, out), out


def _final(x: Value, labels: tuple, result: tuple) -> Value:
    summed = tuple([d for d, a in enumerate(labels) if a not in result])
    if summed:
        x = ops.reduce_sum_p.bind(x, axes=summed)
        labels = tuple([a for a in labels if a in result])
    order = tuple([labels.index(a) for a in result])
    return x if order == tuple(range(len(order))) else ops.transpose_p.bind(x, permutation=order)


# --- others -------------------------------------------------------------------------------------------------


@implements(np.kron)
def kron(a: ArrayLike, b: ArrayLike) -> Any:
    """The Kronecker product: every element of `a` is replaced by its multiple of `b`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.kron([1, 10], [1, 2])
    Array([ 1,  2, 10, 20])
    """
    x, y = ops.pair(a, b, "kron")
    ndim = max(len(shape_of(x)), len(shape_of(y)))
    n = (1,) * (ndim - len(shape_of(x))) + shape_of(x)
    m = (1,) * (ndim - len(shape_of(y))) + shape_of(y)
    x = ops.reshape_p.bind(x, shape=tuple([k for extent in n for k in (extent, 1)]))
    y = ops.reshape_p.bind(y, shape=tuple([k for extent in m for k in (1, extent)]))
    return finish(ops.reshape_p.bind(ops.mul_p.bind(x, y), shape=tuple([i * j for i, j in zip(n, m)])))


@implements(np.cross)
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """The cross product of three-dimensional vectors.

    Parameters
    ----------
    a, b : array_like
        Must have 3 elements along the axes of the vectors; the other axes broadcast.
    axisa, axisb, axisc : int
        The axes of the vectors in `a`, in `b` and in the result.
    axis : int, optional
        Replaces all three of them.

    Raises
    ------
    ShapeError
        If vectors do not have three elements (two, which NumPy used to accept, are not supported).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.cross([1, 0, 0], [0, 1, 0])
    Array([0, 0, 1])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = ops.pair(a, b, "cross")
    x = ops.move_axis(x, one_axis(axisa, len(shape_of(x)), "cross"), len(shape_of(x)) - 1)
    y = ops.move_axis(y, one_axis(axisb, len(shape_of(y)), "cross"), len(shape_of(y)) - 1)
    if shape_of(x)[-1] != 3 or shape_of(y)[-1] != 3:
        raise ShapeError(f"cross: vectors must have 3 elements, got shapes {shape_of(x)} and {shape_of(y)}")
    ndim = len(ops.broadcast_shapes("cross", shape_of(x), shape_of(y)))
    u, v = _parts(x), _parts(y)
    rows = [
        ops.sub_p.bind(ops.mul_p.bind(u[i], v[j]), ops.mul_p.bind(u[j], v[i]))
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    out = ops.concatenate_p.bind(*rows, dimension=ndim - 1)
    return finish(ops.move_axis(out, ndim - 1, one_axis(axisc, ndim, "cross")))


def _parts(x: Value) -> list[Any]:
    shape = shape_of(x)
    return [ops.slice_along(x, len(shape) - 1, i, i + 1) for i in range(3)]


for _ufunc, _function in ((np.matmul, matmul), (np.vecdot, vecdot)):
    operators.function[_ufunc] = _function
