"""Other shapes of one array: reshape, transpose, broadcast, flip, roll, tile."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentValueError, AxisError, ShapeError
from ..core.trace import Tracer, operators
from ..primitives.axes import as_shape, filled_shape, many_axes, one_axis, positive_shape
from ..primitives.create import iota
from ..primitives.elementwise import convert, sub_p
from ..primitives.index import gather_p
from ..primitives.linear import (
    broadcast_in_dim_p,
    move_batch_axis,
    reshape_p,
    shape_of,
    transpose_p,
)
from ..primitives.linear import (
    broadcast_shapes as common_shape,
)
from ..primitives.linear import (
    broadcast_to as spread,
)
from ..primitives.operands import operand
from ..primitives.shape import concatenate_p, rev_p, slice_along
from .dispatch import array_operand, implements, owned

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "expand_dims", "flip", "fliplr", "flipud", "matrix_transpose", "moveaxis",
    "permute_dims", "ravel", "repeat", "reshape", "roll", "rollaxis", "rot90", "squeeze",
    "swapaxes", "tile", "transpose",
]  # fmt: skip

# --- reshape ------------------------------------------------------------------------------------------------


def _reshaped(x: Any, shape: tuple[int, ...], order: str, name: str) -> Any:
    own = shape_of(x)
    shape = filled_shape(shape, prod(own), name, own)
    if order == "F":
        x = transpose_p.bind(x, permutation=tuple(range(len(own)))[::-1])
        x = reshape_p.bind(x, shape=shape[::-1])
        return transpose_p.bind(x, permutation=tuple(range(len(shape)))[::-1])
    if order not in ("C", "A", "K"):
        raise ArgumentValueError(f"{name}: order must be 'C', 'F' or 'A', got {order!r}")
    return reshape_p.bind(x, shape=shape)


@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """The same elements in another shape, read and written in row-major order.

    Parameters
    ----------
    a : array_like
    shape : int or tuple of int
        One axis may be -1: it takes what is left.
    order : {'C', 'F', 'A'}
        'F' reads and writes in column-major order. Values have no memory layout here: 'A' means 'C'.
    copy : bool, optional
        Accepted for NumPy's sake; the result never changes, and neither does `a` through it.

    Returns
    -------
    Array
        Of the dtype of `a`.

    Raises
    ------
    ShapeError
        If the numbers of elements differ.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.reshape([1, 2, 3, 4], (2, -1))
    Array([[1, 2],
           [3, 4]])
    """
    x = array_operand(a, "reshape")
    return owned(_reshaped(x, as_shape(shape, "reshape"), order, "reshape"), a)


def _reshape_method(x: Any, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
    if len(shape) == 1:
        shape = shape[0]
    return owned(_reshaped(x, as_shape(shape, "reshape"), order, "reshape"), x)


operators.method["reshape"] = _reshape_method


@implements(np.ravel, method="ravel")
def ravel(a: Any, order: str = "C") -> Any:
    """All elements along one axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.ravel([[1, 2], [3, 4]], order="F")
    Array([1, 3, 2, 4])
    """
    x = array_operand(a, "ravel")
    return owned(_reshaped(x, (-1,) if 0 not in shape_of(x) else (0,), order, "ravel"), a)


operators.method["flatten"] = ravel


@implements(np.squeeze, method="squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    """Without axes of extent 1: all of them, or those given.

    Raises
    ------
    ShapeError
        If an axis given has another extent than 1.

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
        else many_axes(axis, len(shape), "squeeze")
    )
    if any(shape[d] != 1 for d in axes):
        raise ShapeError(
            f"squeeze: cannot leave out axis {axis} of an array of shape {shape}: its extent is not 1"
        )
    return owned(reshape_p.bind(x, shape=tuple([n for d, n in enumerate(shape) if d not in axes])), a)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    """With new axes of extent 1, which stand at `axis` of the result.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.expand_dims(fnp.zeros((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    x = array_operand(a, "expand_dims")
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = many_axes(axis, len(shape_of(x)) + count, "expand_dims")
    rest = iter(shape_of(x))
    shape = tuple([1 if d in axes else next(rest) for d in range(len(shape_of(x)) + count)])
    return owned(reshape_p.bind(x, shape=shape), a)


def _at_least(name: str, ndim: int) -> Any:
    def widened(a: Any, position: int) -> Any:
        x = array_operand(a, name, position)
        shape = shape_of(x)
        if len(shape) < ndim:
            # NumPy puts a matrix's third axis behind, all others in front.
            full = (1,) * (ndim - len(shape)) + shape
            if ndim == 3:
                full = {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]
            x = reshape_p.bind(x, shape=full)
        return owned(x, a)

    def function(*arys: Any) -> Any:
        found = tuple([widened(a, i) for i, a in enumerate(arys)])
        return found[0] if len(found) == 1 else found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Arrays with at least {ndim} axes: new ones of extent 1 stand where NumPy puts them.

    One array gives an array, several a tuple.
    """
    return implements(getattr(np, name))(function)


atleast_1d = _at_least("atleast_1d", 1)
atleast_2d = _at_least("atleast_2d", 2)
atleast_3d = _at_least("atleast_3d", 3)

# --- transpose ----------------------------------------------------------------------------------------------


def _permuted(x: Any, axes: tuple[int, ...]) -> Any:
    return x if axes == tuple(range(len(axes))) else transpose_p.bind(x, permutation=axes)


@implements(np.transpose)
def transpose(a: Any, axes: Any = None) -> Any:
    """Axes in another order, by default reversed.

    Raises
    ------
    ArgumentValueError
        If `axes` is no permutation.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.transpose(fnp.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = array_operand(a, "transpose")
    ndim = len(shape_of(x))
    if axes is None:
        return owned(_permuted(x, tuple(range(ndim))[::-1]), a)
    order = many_axes(axes, ndim, "transpose")
    if len(order) != ndim:
        raise ArgumentValueError(f"transpose: axes {axes} do not match an array of shape {shape_of(x)}")
    return owned(_permuted(x, order), a)


permute_dims = transpose


_REVERSED = [tuple(range(n))[::-1] for n in range(65)]


def _transpose_method(x: Any, *axes: Any) -> Any:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = tuple(axes[0] or ())
    return transpose(x, axes or None)


operators.method["transpose"] = _transpose_method
operators.property["T"] = lambda x: transpose_p.bind(x, permutation=_REVERSED[x.ndim])


@implements(*([np.matrix_transpose] if hasattr(np, "matrix_transpose") else []))
def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged."""
    value = array_operand(x, "matrix_transpose")
    ndim = len(shape_of(value))
    if ndim < 2:
        raise ShapeError(f"matrix_transpose: want at least 2 axes, got shape {shape_of(value)}")
    return owned(_permuted(value, (*range(ndim - 2), ndim - 1, ndim - 2)), x)


operators.property["mT"] = matrix_transpose


@implements(np.swapaxes, method="swapaxes")
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged.

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
    return owned(_permuted(x, tuple(order)), a)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Axes moved to other places; the others keep their order.

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
    return owned(_permuted(x, tuple(order)), a)


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """One axis moved back until it stands before `start`."""
    x = array_operand(a, "rollaxis")
    ndim = len(shape_of(x))
    d = one_axis(axis, ndim, "rollaxis")
    begin = start + ndim if start < 0 else start
    if not 0 <= begin <= ndim:
        raise AxisError(f"rollaxis: start {start} is out of bounds for array of dimension {ndim}")
    return owned(move_batch_axis(x, d, begin - (d < begin)), a)


# --- broadcast ----------------------------------------------------------------------------------------------


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Repeated along new axes and axes of extent 1, as NumPy broadcasts.

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
    return owned(spread(x, target), array)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """All arrays broadcast to their common shape.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> [x.shape for x in fnp.broadcast_arrays(fnp.zeros((2, 1)), fnp.zeros(3))]
    [(2, 3), (2, 3)]
    """
    values = [array_operand(a, "broadcast_arrays", i) for i, a in enumerate(args)]
    shape = common_shape("broadcast_arrays", *map(shape_of, values)) if values else ()
    return tuple([owned(spread(x, shape), a) for x, a in zip(values, args)])


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.broadcast_shapes((2, 1), 3)
    (2, 3)
    """
    listed = [positive_shape(s, "broadcast_shapes") for s in shapes]
    return tuple(common_shape("broadcast_shapes", *listed)) if listed else ()


# --- flip, roll, repeat -------------------------------------------------------------------------------------


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    """Elements in reverse order along all axes, or along those given.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.flip([[1, 2], [3, 4]], axis=1)
    Array([[2, 1],
           [4, 3]])
    """
    x = array_operand(m, "flip")
    ndim = len(shape_of(x))
    axes = tuple(range(ndim)) if axis is None else many_axes(axis, ndim, "flip")
    return owned(rev_p.bind(x, dimensions=axes) if axes else x, m)


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    """Columns in reverse order (axis 1)."""
    return flip(m, _axis_of("fliplr", m, 1))


@implements(np.flipud)
def flipud(m: Any) -> Any:
    """Rows in reverse order (axis 0)."""
    return flip(m, _axis_of("flipud", m, 0))


def _axis_of(name: str, m: Any, axis: int) -> int:
    shape = shape_of(operand(m, name))
    if len(shape) <= axis:
        raise ShapeError(f"{name}: want at least {axis + 1} axes, got shape {shape}")
    return axis


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """Turned by 90 degrees `k` times in the plane of two axes, from the first towards the second.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.rot90([[1, 2], [3, 4]])
    Array([[2, 4],
           [1, 3]])
    """
    x = array_operand(m, "rot90")
    d, e = many_axes(axes, len(shape_of(x)), "rot90")
    order = list(range(len(shape_of(x))))
    order[d], order[e] = order[e], order[d]
    turns = operator.index(k) % 4
    if turns == 1:
        x = _permuted(rev_p.bind(x, dimensions=(e,)), tuple(order))
    elif turns == 2:
        x = rev_p.bind(x, dimensions=(d, e))
    elif turns == 3:
        x = rev_p.bind(_permuted(x, tuple(order)), dimensions=(e,))
    return owned(x, m)


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements moved on by `shift` places; what leaves at the end comes in again at the beginning.

    Parameters
    ----------
    a : array_like
    shift : int or tuple of int
        May be a traced integer (not a tuple of them).
    axis : int or tuple of int, optional
        By default the array is rolled as if it were flat.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.roll([1, 2, 3, 4], 1)
    Array([4, 1, 2, 3])
    """
    x = array_operand(a, "roll")
    shape = shape_of(x)
    if axis is None:
        flat = reshape_p.bind(x, shape=(prod(shape),))
        total = shift if isinstance(shift, Tracer) else int(np.sum(shift))
        return owned(reshape_p.bind(_rolled(flat, total, 0), shape=shape), a)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
    if len(axes) != len(shifts) and 1 not in (len(axes), len(shifts)):
        raise ArgumentValueError(f"roll: shift {shift} and axis {axis} have different lengths")
    count = max(len(axes), len(shifts))
    for s, d in zip(shifts * (count // len(shifts)), axes * (count // len(axes))):
        x = _rolled(x, s, one_axis(d, len(shape), "roll"))
    return owned(x, a)


def _rolled(x: Any, shift: Any, axis: int) -> Any:
    shape = shape_of(x)
    n = shape[axis]
    if isinstance(shift, Tracer):
        if not n:
            return x
        places = sub_p.bind(iota((n,), 0), convert(shift, np.dtype(np.int64)))
        return move_batch_axis(gather_p.bind(x, places, axes=(axis,), mode="wrap"), 0, axis)
    cut = -operator.index(shift) % n if n else 0
    if not cut:
        return x
    head, tail = slice_along(x, shape, axis, 0, cut), slice_along(x, shape, axis, cut, n)
    return concatenate_p.bind(tail, head, dimension=axis)


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    """Copies of an array side by side.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.tile([1, 2], (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    x = array_operand(A, "tile")
    counts = positive_shape(reps, "tile")
    ndim = max(len(counts), len(shape_of(x)))
    shape = (1,) * (ndim - len(shape_of(x))) + shape_of(x)
    counts = (1,) * (ndim - len(counts)) + counts
    x = reshape_p.bind(x, shape=shape)
    spaced = broadcast_in_dim_p.bind(
        x,
        shape=tuple([m for pair in zip(counts, shape) for m in pair]),
        broadcast_dimensions=tuple(range(1, 2 * ndim, 2)),
    )
    return owned(reshape_p.bind(spaced, shape=tuple([r * n for r, n in zip(counts, shape)])), A)


@implements(np.repeat, method="repeat")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Each element repeated, along one axis or of the flat array.

    Parameters
    ----------
    a : array_like
    repeats : int or sequence of int
        One number, or one for each element along the axis. Known while tracing, since the shape depends on
        it.
    axis : int, optional

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.repeat([1, 2], [1, 3])
    Array([1, 2, 2, 2])
    """
    x = array_operand(a, "repeat")
    if axis is None:
        x, d = reshape_p.bind(x, shape=(prod(shape_of(x)),)), 0
    else:
        x = x if shape_of(x) else reshape_p.bind(x, shape=(1,))
        d = one_axis(axis, len(shape_of(x)), "repeat")
    shape = shape_of(x)
    if isinstance(repeats, Tracer) and repeats.ndim == 0:
        repeats = operator.index(repeats)
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "iu":
        raise ArgumentError(f"repeat: repeats must be integers, got {repeats!r}")
    if counts.size and counts.min() < 0:
        raise ArgumentValueError(f"repeat: repeats must not be negative, got {repeats!r}")
    if counts.size == 1:
        count = int(counts.reshape(()))
        wide = (*shape[: d + 1], count, *shape[d + 1 :])
        kept = tuple([i for i in range(len(wide)) if i != d + 1])
        spaced = broadcast_in_dim_p.bind(x, shape=wide, broadcast_dimensions=kept)
        return owned(reshape_p.bind(spaced, shape=(*shape[:d], shape[d] * count, *shape[d + 1 :])), a)
    if counts.shape != (shape[d],):
        raise ShapeError(f"repeat: {counts.size} repeats do not fit axis {d} of extent {shape[d]}")
    places = np.repeat(np.arange(shape[d]), counts)
    out = gather_p.bind(x, places, axes=(d,), mode="promise_in_bounds")
    return owned(move_batch_axis(out, 0, d), a)
