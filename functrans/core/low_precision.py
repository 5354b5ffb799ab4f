"""float16 and bfloat16: two bytes in memory, computed with in float32, rounded to nearest, ties to even.

bfloat16 is a dtype of the package ml_dtypes, which loads when bfloat16 is first asked for. To NumPy it is not a float:
its kind is "V" and `numpy.finfo` refuses it. So ask `is_float` and its neighbours, never ``dtype.kind``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import MissingLibraryError
from ..runtime import libraries
from .values import DTypeLike, Param, Rule, Value

FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
_BFLOAT16 = "E"
#: ``dtype.char`` of both.
LOW = frozenset(("e", _BFLOAT16))


def is_low(dtype: np.dtype) -> bool:
    """Whether it is float16 or bfloat16, which are stored in two bytes and computed with in float32."""
    return dtype.char in LOW


def is_bfloat16(dtype: np.dtype) -> bool:
    """Whether it is bfloat16; the package ml_dtypes need not be loaded."""
    return dtype.char == _BFLOAT16


def names_bfloat16(x: Any) -> bool:
    """Whether a dtype-like object stands for bfloat16; ml_dtypes need not be loaded."""
    if isinstance(x, np.dtype):
        return is_bfloat16(x)
    return x == "bfloat16" if isinstance(x, str) else isinstance(x, type) and x.__name__ == "bfloat16"


def bfloat16() -> np.dtype:
    """The dtype of ml_dtypes, which is loaded for it.

    Raises
    ------
    MissingLibraryError
        If ml_dtypes is not installed.
    """
    try:
        return np.dtype(libraries.ml_dtypes.bfloat16)
    except ImportError:
        raise MissingLibraryError(
            "bfloat16 is a dtype of the package ml_dtypes, which is not installed: "
            "pip install 'functrans[lowp]', or use float16 or float32"
        ) from None


def low_dtype(name: str) -> Any:
    """The type that a module has under the name ``bfloat16``; None for another name.

    Raises
    ------
    MissingLibraryError
        If ml_dtypes is not installed.
    """
    return bfloat16().type if name == "bfloat16" else None


def as_dtype(dtype: DTypeLike) -> np.dtype:
    """Like ``np.dtype(dtype)``, which knows the name of bfloat16 only once ml_dtypes is loaded."""
    return bfloat16() if isinstance(dtype, str) and dtype == "bfloat16" else np.dtype(dtype)


def finfo(dtype: DTypeLike) -> np.finfo:
    """The limits of a floating-point dtype, as in `numpy.finfo`, including bfloat16.

    Parameters
    ----------
    dtype : dtype-like

    Raises
    ------
    ValueError
        If the dtype is not floating point.

    Examples
    --------
    >>> finfo(np.float16).eps
    np.float16(0.000977)
    """
    if isinstance(dtype, np.ndarray | np.generic):
        dtype = dtype.dtype
    own = as_dtype(dtype)
    return libraries.ml_dtypes.finfo(own) if is_bfloat16(own) else np.finfo(own)


def loop_dtypes(ufunc: np.ufunc, dtypes: tuple[Any, ...], **options: Param) -> tuple[np.dtype, ...]:
    """``ufunc.resolve_dtypes(dtypes, **options)``, where bfloat16 finds the loop of float16.

    ml_dtypes has loops for most ufuncs, and NumPy finds those of float32 for the others (``matmul``) and for Python
    floats. With float16 and bfloat16 the loop is that of float32, as NumPy finds it.
    """
    signature = options.get("signature", ())
    given = [d for d in (*dtypes, *signature) if isinstance(d, np.dtype)]
    low = next((d for d in given if is_bfloat16(d)), None)
    if low is None:
        return ufunc.resolve_dtypes(dtypes, **options)
    stand_in = FLOAT32 if FLOAT16 in given else FLOAT16
    if signature:
        options["signature"] = tuple(stand_in if d == low else d for d in signature)
    resolved = ufunc.resolve_dtypes(tuple(stand_in if d == low else d for d in dtypes), **options)
    return tuple(low if d == FLOAT16 else d for d in resolved)


def run_in_float32(impl: Rule, *operands: Value, **params: Param) -> Any:
    """The results of `impl` on operands in float32, in the dtype that the first operand has.

    Parameters
    ----------
    impl : callable
        ``impl(*operands, **params)``, whose operands have one dtype, up to indices and the like after the first.

    Examples
    --------
    >>> def mean_square(x):
    ...     return np.mean(x * x)
    >>> x = np.float16([300.0, 1.0])
    >>> run_in_float32(mean_square, x), mean_square(x)
    (np.float16(4.5e+04), np.float16(inf))
    """
    low = operands[0].dtype
    out = impl(*[x.astype(FLOAT32) if x.dtype == low else x for x in operands], **params)
    if isinstance(out, tuple):
        return tuple([_stored(x, low) for x in out])
    return _stored(out, low)


def _stored(x: Any, low: np.dtype) -> Any:
    return x.astype(low) if x.dtype == FLOAT32 else x
