"""Change the shape of an array: reshape, transpose, broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...arrays.arguments import Order
from ...arrays.array import Array
from ...core import ArgumentValueError, AxisError, ShapeError, operators
from ...core.values import ArrayLike, AxisLike, ShapeLike, Value
from ...frontend.checked import checked
from ...primitives import ops
from ...primitives.axes import as_shape, filled_shape, many_axes, one_axis, positive_shape, reduced_axes
from ...primitives.structure.linear import shape_of
from ..dispatch import array_operand, implements, owned

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "expand_dims", "matrix_transpose", "moveaxis",
    "permute_dims", "ravel", "reshape", "rollaxis", "squeeze",
    "swapaxes", "transpose",
]  # fmt: skip

# --- reshape ------------------------------------------------------------------------------------------------


def _reshaped(x: Value, shape: tuple[int, ...], order: str, name: str) -> Value:
    own = shape_of(x)
    shape = filled_shape(shape, prod(own), name, own)
    if order == "F":
        x = ops.transpose_p.bind(x, permutation=tuple(range(len(own)))[::-1])
        x = ops.reshape_p.bind(x, shape=shape[::-1])
        return ops.transpose_p.bind(x, permutation=tuple(range(len(shape)))[::-1])
    if order not in ("C", "A", "K"):
        raise ArgumentValueError(f"{name}: order must be 'C', 'F' or 'A', got {order!r}")
    return ops.reshape_p.bind(x, shape=shape)


@implements(np.reshape)
def reshape(a: ArrayLike, shape: ShapeLike, order: Order = "C", *, copy: bool | None = None) -> Array:
    """Reshape an array, in row-major order.

    Parameters
    ----------
    a : array_like
    shape : int or tuple of int
        One axis may be -1: its extent is inferred.
    order : {'C', 'F', 'A'}
        'F' reads and writes in column-major order. functrans has no memory layouts: 'A' means 'C'.
    copy : bool, optional
        Accepted for compatibility with NumPy; arrays are immutable.

    Returns
    -------
    Array
        With the dtype of `a`.

    Raises
    ------
    ShapeError
        If the number of elements differs.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.reshape([1, 2, 3, 4], (2, -1))
    Array([[1, 2],
           [3, 4]])
    """
    x = array_operand(a, "reshape")
    return owned(_reshaped(x, as_shape(shape, "reshape"), order, "reshape"), a)


def _reshape_method(x: Value, *shape: ShapeLike, order: Order = "C", copy: bool | None = None) -> Value:
    if len(shape) == 1:
        shape = shape[0]
    return owned(_reshaped(x, as_shape(shape, "reshape"), order, "reshape"), x)


operators.attribute["reshape"] = _reshape_method


@implements(np.ravel, method="ravel")
def ravel(a: ArrayLike, order: Order = "C") -> Any:
    """Flatten an array to one axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.ravel([[1, 2], [3, 4]], order="F")
    Array([1, 3, 2, 4])
    """
    x = array_operand(a, "ravel")
    return owned(_reshaped(x, (-1,) if 0 not in shape_of(x) else (0,), order, "ravel"), a)


operators.attribute["flatten"] = ravel


@implements(np.squeeze, method="squeeze")
def squeeze(a: ArrayLike, axis: AxisLike = None) -> Any:
    """Remove all axes of extent 1, or some of them.

    Raises
    ------
    ShapeError
        If one of `axis` has another extent than 1.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.squeeze(fnp.zeros((1, 2, 1)), axis=0).shape
    (2, 1)
    """
    x = array_operand(a, "squeeze")
    shape = shape_of(x)
    axes = (
        tuple([d for d, n in enumerate(shape) if n == 1])
        if axis is None
        else reduced_axes(axis, len(shape), "squeeze")
    )
    if any(shape[d] != 1 for d in axes):
        raise ShapeError(
            f"squeeze: cannot squeeze axis {axis} of an array of shape {shape}: its extent is not 1"
        )
    return owned(ops.reshape_p.bind(x, shape=tuple([n for d, n in enumerate(shape) if d not in axes])), a)


@implements(np.expand_dims)
def expand_dims(a: ArrayLike, axis: AxisLike) -> Any:
    """Insert axes of extent 1, at positions `axis` of the result.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.expand_dims(fnp.zeros((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    x = array_operand(a, "expand_dims")
    count = len(axis) if isinstance(axis, Sequence) else 1
    axes = many_axes(axis, len(shape_of(x)) + count, "expand_dims")
    rest = iter(shape_of(x))
    shape = tuple([1 if d in axes else next(rest) for d in range(len(shape_of(x)) + count)])
    return owned(ops.reshape_p.bind(x, shape=shape), a)


def _at_least(name: str, ndim: int) -> Any:
    def widened(a: Value, position: int) -> Any:
        x = array_operand(a, name, position)
        shape = shape_of(x)
        if len(shape) < ndim:
            # NumPy appends a matrix's third axis, and prepends all others.
            full = (1,) * (ndim - len(shape)) + shape
            if ndim == 3:
                full = {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]
            x = ops.reshape_p.bind(x, shape=full)
        return owned(x, a)

    def function(*arys: ArrayLike) -> Any:
        results = tuple([widened(a, i) for i, a in enumerate(arys)])
        return results[0] if len(results) == 1 else results

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Make arrays have at least {ndim} axes, by inserting axes of extent 1 where NumPy does.

    Returns an array for one argument, a tuple for several.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.{name}([1.0, 2.0]).shape
    {(2,) if ndim == 1 else (1, 2) if ndim == 2 else (1, 2, 1)}
    """
    return implements(getattr(np, name))(function)


atleast_1d = _at_least("atleast_1d", 1)
atleast_2d = _at_least("atleast_2d", 2)
atleast_3d = _at_least("atleast_3d", 3)

# --- transpose ----------------------------------------------------------------------------------------------


def permuted(x: Value, axes: tuple[int, ...]) -> Any:
    """Permute axes; return the value itself if the order is unchanged."""
    return x if axes == tuple(range(len(axes))) else ops.transpose_p.bind(x, permutation=axes)


@implements(np.transpose)
def transpose(a: ArrayLike, axes: AxisLike = None) -> Any:
    """Permute axes, by default in reverse order.

    Raises
    ------
    ArgumentValueError
        If `axes` is not a permutation.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.transpose(fnp.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = array_operand(a, "transpose")
    ndim = len(shape_of(x))
    if axes is None:
        return owned(permuted(x, tuple(range(ndim))[::-1]), a)
    order = many_axes(axes, ndim, "transpose")
    if len(order) != ndim:
        raise ArgumentValueError(f"transpose: axes {axes} do not match an array of shape {shape_of(x)}")
    return owned(permuted(x, order), a)


permute_dims = transpose


_REVERSED = [tuple(range(n))[::-1] for n in range(65)]


def _transpose_method(x: Value, *axes: AxisLike) -> Value:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = tuple(axes[0] or ())
    return transpose(x, axes or None)


operators.attribute["transpose"] = _transpose_method
operators.attribute["T"] = property(
    lambda x: x if x.ndim < 2 else ops.transpose_p.bind(x, permutation=_REVERSED[x.ndim])
)


@implements(*([np.matrix_transpose] if hasattr(np, "matrix_transpose") else []))
def matrix_transpose(x: ArrayLike, /) -> Any:
    """Exchange the last two axes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.matrix_transpose(fnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    value = array_operand(x, "matrix_transpose")
    ndim = len(shape_of(value))
    if ndim < 2:
        raise ShapeError(f"matrix_transpose: expected at least 2 axes, got shape {shape_of(value)}")
    return owned(permuted(value, (*range(ndim - 2), ndim - 1, ndim - 2)), x)


operators.attribute["mT"] = property(matrix_transpose)


@implements(np.swapaxes, method="swapaxes")
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Any:
    """Exchange two axes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.swapaxes(fnp.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    x = array_operand(a, "swapaxes")
    order = list(range(len(shape_of(x))))
    d, e = one_axis(axis1, len(order), "swapaxes"), one_axis(axis2, len(order), "swapaxes")
    order[d], order[e] = order[e], order[d]
    return owned(permuted(x, tuple(order)), a)


@implements(np.moveaxis)
def moveaxis(a: ArrayLike, source: ArrayLike, destination: ArrayLike) -> Any:
    """Move axes to other positions; the others keep their order.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.moveaxis(fnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = array_operand(a, "moveaxis")
    ndim = len(shape_of(x))
    sources, targets = many_axes(source, ndim, "moveaxis"), many_axes(destination, ndim, "moveaxis")
    if len(sources) != len(targets):
        raise ArgumentValueError(f"moveaxis: {source} and {destination} name different numbers of axes")
    order = [d for d in range(ndim) if d not in sources]
    for target, d in sorted(zip(targets, sources)):
        order.insert(target, d)
    return owned(permuted(x, tuple(order)), a)


@implements(np.rollaxis)
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Any:
    """Move one axis to before position `start`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.rollaxis(fnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = array_operand(a, "rollaxis")
    ndim = len(shape_of(x))
    d = one_axis(axis, ndim, "rollaxis")
    begin = start + ndim if start < 0 else start
    if not 0 <= begin <= ndim:
        raise AxisError(f"rollaxis: start {start} is out of bounds for array of dimension {ndim}")
    return owned(ops.move_axis(x, d, begin - (d < begin)), a)


# --- broadcast ----------------------------------------------------------------------------------------------


@implements(np.broadcast_to)
def broadcast_to(array: ArrayLike, shape: ShapeLike, subok: bool = False) -> Any:
    """Broadcast an array along new axes and axes of extent 1, as in NumPy.

    Raises
    ------
    ShapeError
        If the array does not broadcast to `shape`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.broadcast_to([1, 2], (2, 2))
    Array([[1, 2],
           [1, 2]])
    """
    x = array_operand(array, "broadcast_to")
    target = positive_shape(shape, "broadcast_to")
    own = shape_of(x)
    if len(own) > len(target) or any(n not in (1, m) for n, m in zip(own[::-1], target[::-1])):
        raise ShapeError(f"broadcast_to: an array of shape {own} does not broadcast to shape {target}")
    return owned(ops.broadcast_to(x, target), array)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: ArrayLike, subok: bool = False) -> tuple[Value, ...]:
    """Broadcast arrays to their common shape.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> [x.shape for x in fnp.broadcast_arrays(fnp.zeros((2, 1)), fnp.zeros(3))]
    [(2, 3), (2, 3)]
    """
    values = [array_operand(a, "broadcast_arrays", i) for i, a in enumerate(args)]
    shape = ops.broadcast_shapes("broadcast_arrays", *map(shape_of, values)) if values else ()
    return tuple([owned(ops.broadcast_to(x, shape), a) for x, a in zip(values, args)])


@checked
def broadcast_shapes(*shapes: ArrayLike) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.broadcast_shapes((2, 1), 3)
    (2, 3)
    """
    listed = [positive_shape(s, "broadcast_shapes") for s in shapes]
    return tuple(ops.broadcast_shapes("broadcast_shapes", *listed)) if listed else ()
