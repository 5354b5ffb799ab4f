"""NumPy's dtypes and type queries, also for tracers. ``fnp.float32(t)`` casts; NumPy's type needs the number."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core import (
    FLOAT16,
    ArgumentError,
    Tracer,
    bfloat16,
    canonical,
    default_float,
    dtype_kind,
    names_bfloat16,
    operators,
    promote,
    promotes_as_jax,
)
from ..core.low_precision import finfo as core_finfo
from ..core.trace import WEAK_KEYS, key_of
from ..core.values import ArrayLike, DTypeLike, Index
from ..frontend.checked import checked
from ..frontend.structs import described
from ..primitives.ops import common_dtype, operand
from .dispatch import implements

__all__ = [
    "can_cast", "finfo", "iscomplexobj", "isdtype", "isrealobj", "isscalar", "issubdtype", "ndim", "promote_types",
    "result_type", "shape", "size",
]  # fmt: skip


# --- queries ------------------------------------------------------------------------------------------------


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The common dtype of operands; Python numbers do not affect the dtype of arrays.

    Parameters
    ----------
    *arrays_and_dtypes : array_like, ShapeDtypeStruct or dtype-like
        None is NumPy's default, float64.

    Returns
    -------
    numpy.dtype

    Examples
    --------
    >>> import numpy as np
    >>> import functrans.numpy as fnp
    >>> fnp.result_type(np.float32(1), 2.0), fnp.result_type("int8", np.int32)
    (dtype('float32'), dtype('int32'))
    """
    keys = []
    for i, x in enumerate(arrays_and_dtypes):
        if isinstance(x, np.dtype | str | type):
            keys.append(canonical(x, f"result_type: argument {i}"))
        elif x is None:  # as a dtype: NumPy's default
            keys.append(default_float())
        else:
            keys.append(_key(x, "result_type", i))
    return common_dtype(tuple(keys))[0]


@implements(np.shape)
def shape(a: ArrayLike) -> tuple[int, ...]:
    """The shape of an array or `ShapeDtypeStruct`, as a tuple of ints; that of None is ``()``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.shape([[1, 2, 3]])
    (1, 3)
    """
    if a is None:
        return ()
    aval = described(a)
    return tuple(getattr(operand(a, "shape"), "shape", ())) if aval is None else aval.shape


@implements(np.ndim)
def ndim(a: ArrayLike) -> int:
    """The number of axes of an array.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.ndim(3.0)
    0
    """
    return len(shape(a))


@implements(np.size)
def size(a: ArrayLike, axis: int | None = None) -> int:
    """The number of elements of an array, in total or along an axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.size([[1, 2, 3]]), fnp.size([[1, 2, 3]], 1)
    (3, 3)
    """
    extents = shape(a)
    if axis is not None:
        return extents[axis]
    n = 1
    for extent in extents:
        n *= extent
    return n


@implements(np.iscomplexobj)
def iscomplexobj(x: ArrayLike) -> bool:
    """Whether the dtype is complex, whatever the values.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.iscomplexobj(1.0)
    False
    """
    if x is None:
        return False
    key = _key(x, "iscomplexobj")
    return key is complex or getattr(key, "kind", "") == "c"


def _key(x: ArrayLike, name: str, position: int = 0) -> Any:
    """What promotion depends on, of an array or of a description of one."""
    aval = described(x)
    if aval is None:
        return key_of(operand(x, name, position))
    return WEAK_KEYS.get(dtype_kind(aval.dtype), aval.dtype) if aval.weak else aval.dtype


@implements(np.isrealobj)
def isrealobj(x: ArrayLike) -> bool:
    """Whether the dtype is not complex.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.isrealobj(1.0)
    True
    """
    return not iscomplexobj(x)


@checked
def isscalar(element: ArrayLike) -> bool:
    """Whether `element` is a number, or a traced value or array without axes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.isscalar(3.0), fnp.isscalar([3.0])
    (True, False)
    """
    if isinstance(element, Tracer | Array):
        return element.ndim == 0
    return bool(np.isscalar(element))


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether a dtype (or an array's) can be cast to another by NumPy's rules.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.can_cast("int32", "float64")
    True
    """
    own = from_.dtype if isinstance(from_, Tracer | Array) else from_
    return bool(np.can_cast(_known(own), _known(to), casting))


def _known(dtype: DTypeLike) -> Any:
    """What NumPy knows: it learns the name of bfloat16 from ml_dtypes."""
    return bfloat16() if names_bfloat16(dtype) else dtype


@checked
def finfo(dtype: DTypeLike) -> np.finfo:
    """The limits of a floating-point dtype, or of an array's, as `numpy.finfo`; also of bfloat16.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.finfo("float16").eps
    np.float16(0.000977)
    """
    return core_finfo(dtype.dtype if isinstance(dtype, Tracer) else dtype)


@checked
def promote_types(type1: Any, type2: Any) -> np.dtype:
    """The smallest dtype to which both can be cast safely, as `numpy.promote_types`; also for ``"bfloat16"``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.promote_types("float16", "int16")
    dtype('float32')
    """
    if promotes_as_jax():
        return promote([(canonical(x, "promote_types"), False) for x in (type1, type2)])[0]
    return np.promote_types(_known(type1), _known(type2))


@checked
def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is of a kind, as `numpy.issubdtype`; bfloat16 is a `floating`, as in JAX.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.issubdtype("float16", fnp.floating), fnp.issubdtype(int, fnp.inexact)
    (True, False)
    """
    if names_bfloat16(arg2):
        return names_bfloat16(arg1)
    if not names_bfloat16(arg1):
        return bool(np.issubdtype(arg1, arg2))
    return arg2 in _OF_EVERY_FLOAT


_OF_EVERY_FLOAT = (np.floating, np.inexact, np.number, np.generic)


@checked
def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind named as in the array API, as `numpy.isdtype`; bfloat16 is "real floating".

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.isdtype(fnp.float16, "real floating"), fnp.isdtype(fnp.int8, ("numeric", fnp.bool_))
    (True, True)
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if names_bfloat16(dtype):
        return any(isdtype(FLOAT16, k) if isinstance(k, str) else names_bfloat16(k) for k in kinds)
    return bool(np.isdtype(dtype, tuple([k for k in kinds if not names_bfloat16(k)])))


def _item(x: ArrayLike, *index: Index) -> Any:
    """``t.item()``: the Python number, if it is known."""
    if index:
        return x[index if len(index) > 1 else index[0]].item()
    if x.size != 1:
        raise ArgumentError(f"item: an array of shape {x.shape} has more than one element; index it first")
    return _NUMBERS[dtype_kind(x.dtype)](x.reshape(()))


_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "b": bool,
    "i": operator.index,
    "u": operator.index,
    "f": float,
    "c": complex,
}


operators.attribute["item"] = _item
operators.attribute["itemsize"] = property(lambda x: x.dtype.itemsize)
operators.attribute["nbytes"] = property(lambda x: x.size * x.dtype.itemsize)
