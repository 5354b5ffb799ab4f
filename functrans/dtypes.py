"""Dtypes under the names of ``jax.dtypes``; they are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import float16, iinfo

from .core import DtypeError as TypePromotionError
from .core import aval_of, canonical, dtype_kind, extended, float0, prng_key
from .core import promote as _promote
from .core.low_precision import low_dtype as _low_dtype
from .core.values import DTypeLike
from .frontend.checked import checked
from .numpy.types import finfo, issubdtype
from .primitives.ops import operand
from .runtime.module_getattr import module_attributes as _module_attributes

__all__ = [
    "TypePromotionError", "canonicalize_dtype", "extended", "finfo", "float0", "float16", "iinfo", "issubdtype",
    "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip

__getattr__, __dir__ = _module_attributes(
    "functrans.dtypes",
    globals(),
    further=_low_dtype,
)


@checked
def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> np.dtype:
    """The dtype that arrays of `dtype` have: the same, since functrans has 64 bits.

    Raises
    ------
    UnsupportedDtypeError
        If functrans has no arrays of it.
    DtypeError
        For the dtype of keys, unless `allow_extended_dtype`.

    Examples
    --------
    >>> from functrans import dtypes
    >>> dtypes.canonicalize_dtype(float)
    dtype('float64')
    """
    canonical_dtype = canonical(dtype, "canonicalize_dtype: dtype")
    if issubdtype(canonical_dtype, extended) and not allow_extended_dtype:
        raise TypePromotionError("canonicalize_dtype: keys are not numbers; pass allow_extended_dtype=True")
    return canonical_dtype


@checked
def itemsize_bits(dtype: DTypeLike) -> int:
    """The number of bits of an element.

    Examples
    --------
    >>> from functrans import dtypes
    >>> dtypes.itemsize_bits("float32")
    32
    """
    return 8 * canonical(dtype, "itemsize_bits: dtype").itemsize


@checked
def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of an operation on arrays, numbers and dtypes, by NumPy's promotion.

    Parameters
    ----------
    *args : array_like or dtype-like
    return_weak_type_flag : bool
        Whether to return a pair of the dtype and whether all arguments are Python numbers.

    Examples
    --------
    >>> from functrans import dtypes
    >>> dtypes.result_type("float32", 1.0)
    dtype('float32')
    >>> dtypes.result_type(1, 2.0, return_weak_type_flag=True)
    (dtype('float64'), True)
    """
    dtype, weak = _promote([_dtype_of(x, i) for i, x in enumerate(args)])
    return (dtype, weak) if return_weak_type_flag else dtype


def _dtype_of(x: Any, position: int) -> tuple[np.dtype, bool]:
    if isinstance(x, str | type | np.dtype):
        return canonical(x, f"result_type: argument {position}"), False
    aval = aval_of(operand(x, "result_type", position))
    return aval.dtype, aval.weak


def scalar_type_of(x: Any) -> type:
    """Python's type of the elements of `x`: bool, int, float or complex.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import dtypes
    >>> dtypes.scalar_type_of(np.float32(1))
    <class 'float'>
    """
    kinds: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
    dtype, _ = _dtype_of(x, 0)
    kind = dtype_kind(dtype)
    if kind not in kinds:
        raise TypePromotionError(f"scalar_type_of: elements of dtype {dtype} are not numbers")
    return kinds[kind]
