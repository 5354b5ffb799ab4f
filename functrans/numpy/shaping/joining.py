"""Join and split arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ...arrays.arguments import Casting
from ...arrays.protocols import is_sequence
from ...core import ArgumentError, ArgumentValueError, DtypeError, ShapeError, Tracer, canonical
from ...core.values import ArrayLike, AxisLike, DTypeLike, Value
from ...frontend.checked import checked
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, one_axis, operand, refuse_out, shape_of
from ..dispatch import array_operand, implements, in_one_dtype, owned
from .reshaping import atleast_1d, atleast_2d, atleast_3d

__all__ = [
    "append", "array_split", "column_stack", "concat", "concatenate", "dsplit", "dstack", "hsplit",
    "hstack", "split", "stack", "unstack", "vsplit", "vstack",
]  # fmt: skip

# --- joining ------------------------------------------------------------------------------------------------


def _values(arrays: ArrayLike, name: str) -> list[Value]:
    """Convert the arrays to join; an array instead of a sequence means the sequence of its rows."""
    if isinstance(arrays, Tracer) or (isinstance(arrays, np.ndarray) and arrays.ndim):
        arrays = [arrays[i] for i in range(len(arrays))]
    if isinstance(arrays, np.ndarray) or not is_sequence(arrays):
        raise ArgumentError(f"{name}: the argument must be a sequence of arrays, got {type(arrays).__name__}")
    arrays = list(arrays)
    if not arrays:
        raise ArgumentValueError(f"{name}: need at least one array")
    return [operand(a, name, i) for i, a in enumerate(arrays)]


def _converted(values: list[Value], dtype: DTypeLike, casting: Any, name: str) -> list[Value]:
    """Convert values to `dtype`, or to their common one, if `casting` allows it."""
    if dtype is not None:
        dtype = canonical(dtype, f"{name}: dtype")
        for i, v in enumerate(values):
            own = dtype_of(v)
            if not np.can_cast(own, dtype, casting):
                raise DtypeError(
                    f"{name}: array {i} of dtype {own} cannot be cast to {dtype} by the rule {casting!r}; pass "
                    "casting='unsafe', or convert it first"
                )
    return in_one_dtype(values, dtype, name)


def joined(
    values: list[Value], axis: AxisLike, name: str, dtype: DTypeLike = None, casting: Any = "same_kind"
) -> Value:
    """Join values along an existing axis, in one dtype; flatten them if `axis` is None."""
    values = _converted(values, dtype, casting, name)
    if axis is None:
        values = [ops.flat(v) for v in values]
        axis = 0
    shape = shape_of(values[0])
    if not shape:
        raise ShapeError(f"{name}: arrays without axes cannot be joined; use stack")
    d = one_axis(axis, len(shape), name)
    for v in values:
        other = shape_of(v)
        if other == shape:
            continue
        if len(other) != len(shape) or other[:d] + other[d + 1 :] != shape[:d] + shape[d + 1 :]:
            listed = ", ".join(str(shape_of(w)) for w in values)
            raise ShapeError(f"{name}: shapes {listed} do not match: all axes except axis {d} must be equal")
    return ops.concatenate_p.bind(*values, dimension=d)


@implements(np.concatenate)
def concatenate(
    arrays: ArrayLike,
    axis: int | None = 0,
    out: None = None,
    *,
    dtype: DTypeLike = None,
    casting: Casting = "same_kind",
) -> Any:
    """Join arrays along an existing axis.

    Parameters
    ----------
    arrays : sequence of array_like
        Their shapes must be equal except along `axis`.
    axis : int or None
        None flattens the arrays.
    dtype : dtype-like, optional
        The dtype of the result; by default the common dtype.
    casting : {'same_kind', 'safe', 'unsafe', ...}
        The casts to it that are allowed, as in `numpy.can_cast`.

    Raises
    ------
    ShapeError
        If the shapes do not match.
    DtypeError
        If an array may not be cast to `dtype`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.concatenate([[1, 2], [3.0]])
    Array([1., 2., 3.])
    """
    refuse_out("concatenate", out)
    return finish(joined(_values(arrays, "concatenate"), axis, "concatenate", dtype, casting))


concat = concatenate


@implements(np.stack)
def stack(
    arrays: ArrayLike,
    axis: int = 0,
    out: None = None,
    *,
    dtype: DTypeLike = None,
    casting: Casting = "same_kind",
) -> Any:
    """Join arrays of one shape along a new axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.stack([[1, 2], [3, 4]], axis=1)
    Array([[1, 3],
           [2, 4]])
    """
    refuse_out("stack", out)
    values = _values(arrays, "stack")
    shape = shape_of(values[0])
    if any(shape_of(v) != shape for v in values):
        listed = ", ".join(str(shape_of(v)) for v in values)
        raise ShapeError(f"stack: all arrays must have one shape, got {listed}")
    d = one_axis(axis, len(shape) + 1, "stack")
    values = _converted(values, dtype, casting, "stack")
    rows = [ops.reshape_p.bind(v, shape=(*shape[:d], 1, *shape[d:])) for v in values]
    return finish(ops.concatenate_p.bind(*rows, dimension=d))


def _piled(name: str, widen: Callable[..., Any], axis: int, doc: str, shape: tuple[int, ...]) -> Any:
    def function(tup: ArrayLike, *, dtype: DTypeLike = None, casting: Casting = "same_kind") -> Value:
        values = [operand(widen(v), name) for v in _values(tup, name)]
        along = 0 if name == "hstack" and len(shape_of(values[0])) == 1 else axis
        return finish(joined(values, along, name, dtype, casting))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc}

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.{name}([fnp.ones((2, 3)), fnp.zeros((2, 3))]).shape
    {shape}
    """
    return implements(getattr(np, name))(function)


vstack = _piled(
    "vstack", atleast_2d, 0, "Stack arrays vertically: join them along axis 0, vectors as rows.", (4, 3)
)
hstack = _piled(
    "hstack",
    atleast_1d,
    1,
    "Stack arrays horizontally: join them along axis 1, vectors along axis 0.",
    (2, 6),
)
dstack = _piled("dstack", atleast_3d, 2, "Stack arrays in depth: join them along axis 2.", (2, 3, 2))


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    """Join vectors as the columns of a matrix; matrices are joined unchanged.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.column_stack(([1, 2], [3, 4]))
    Array([[1, 3],
           [2, 4]])
    """
    values = []
    for v in _values(tup, "column_stack"):
        shape = shape_of(v)
        values.append(array_operand(v, "column_stack") if len(shape) > 1 else _column(v))
    return finish(joined(values, 1, "column_stack"))


def _column(v: Value) -> Value:
    v = array_operand(v, "column_stack")
    return ops.reshape_p.bind(v, shape=(shape_of(v)[0] if shape_of(v) else 1, 1))


@implements(np.append)
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Any:
    """Append `values` to `arr`; without `axis` both are flattened.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.append([1, 2], [[3, 4]])
    Array([1, 2, 3, 4])
    """
    return finish(joined([operand(arr, "append", 0), operand(values, "append", 1)], axis, "append"))


# --- splitting ----------------------------------------------------------------------------------------------


_MOST_PIECES = 1 << 24


def _cuts(name: str, n: int, indices_or_sections: ArrayLike, equal: bool) -> list[int]:
    """The bounds of the pieces."""
    if hasattr(indices_or_sections, "__len__"):
        inner = [min(max(i + n if i < 0 else i, 0), n) for i in map(operator.index, indices_or_sections)]
        return [0, *inner, n]
    sections = operator.index(indices_or_sections)
    if sections > _MOST_PIECES:
        raise ArgumentValueError(f"{name}: indices_or_sections={sections}: more pieces than {_MOST_PIECES}")
    if sections <= 0:
        raise ArgumentValueError(f"{name}: number of sections must be larger than 0, got {sections}")
    if equal and n % sections:
        raise ArgumentValueError(
            f"{name}: an axis of extent {n} cannot be divided into {sections} equal parts"
        )
    size, extra = divmod(n, sections)
    return [i * size + min(i, extra) for i in range(sections + 1)]


def _pieces(name: str, ary: Value, indices_or_sections: ArrayLike, axis: int, equal: bool) -> list[Value]:
    x = array_operand(ary, name)
    shape = shape_of(x)
    d = one_axis(axis, len(shape), name)
    cuts = _cuts(name, shape[d], indices_or_sections, equal)
    return [owned(ops.slice_along(x, d, start, max(start, stop)), ary) for start, stop in pairwise(cuts)]


@implements(np.split)
def split(ary: ArrayLike, indices_or_sections: ArrayLike, axis: int = 0) -> list[Value]:
    """Split an array along an axis, into equal parts or at indices.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.split(fnp.arange(4), [1, 3])
    [Array([0]), Array([1, 2]), Array([3])]
    """
    return _pieces("split", ary, indices_or_sections, axis, True)


@implements(np.array_split)
def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Like `split`, but the first parts may be longer by one.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.array_split(fnp.arange(5), 2)
    [Array([0, 1, 2]), Array([3, 4])]
    """
    return _pieces("array_split", ary, indices_or_sections, axis, False)


def _split_along(name: str, axis: int) -> Any:
    def function(ary: ArrayLike, indices_or_sections: Any) -> list[Any]:
        ndim = len(shape_of(operand(ary, name)))
        if ndim < {"hsplit": 1, "vsplit": 2, "dsplit": 3}[name]:
            raise ShapeError(f"{name}: an array of {ndim} axes cannot be split along axis {axis}")
        along = 0 if name == "hsplit" and ndim == 1 else axis
        return _pieces(name, ary, indices_or_sections, along, True)

    function.__name__ = function.__qualname__ = name
    vector = "; for a vector, along axis 0" if name == "hsplit" else ""
    shape = tuple([2 if d == axis else 4 for d in range(3)])
    function.__doc__ = f"""`split` along axis {axis}{vector}.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> [piece.shape for piece in fnp.{name}(fnp.ones((4, 4, 4)), 2)]
    {[shape, shape]}
    """
    return implements(getattr(np, name))(function)


hsplit = _split_along("hsplit", 1)
vsplit = _split_along("vsplit", 0)
dsplit = _split_along("dsplit", 2)


@checked
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Split an array along an axis, which the parts lack.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.unstack(fnp.array([[1, 2], [3, 4]]), axis=1)
    (Array([1, 3]), Array([2, 4]))
    """
    value = array_operand(x, "unstack")
    d = one_axis(axis, len(shape_of(value)), "unstack")
    return tuple([owned(ops.element_along(value, d, i), x) for i in range(shape_of(value)[d])])


if hasattr(np, "unstack"):
    implements(np.unstack)(unstack)
