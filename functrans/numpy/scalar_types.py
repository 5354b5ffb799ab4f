"""The types of numbers: ``fnp.float32`` and its like."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..core import operators
from ..core.low_precision import low_dtype
from ..core.values import ArrayLike
from .creation.filled import asarray


class ScalarType(type):
    """The class of ``fnp.float32`` and its like.

    Each is a subclass of NumPy's type that equals it, has its hash and its instances, and is a dtype wherever NumPy's
    is one. A call returns an `Array`.
    """

    dtype: np.dtype

    def __call__(cls, x: ArrayLike = 0, /) -> Any:
        """The numbers of `x`, an array or a traced value, cast to the dtype."""
        return asarray(cls.dtype.type(x) if isinstance(x, str | bytes) else x, cls.dtype)

    def __eq__(cls, other: ArrayLike) -> Any:
        return cls is other or cls.dtype.type == other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, x: ArrayLike) -> bool:
        return isinstance(x, cls.dtype.type)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.dtype.type)


def scalar_type(of: Any, doc: str | None = None) -> Any:
    """The type of `functrans.numpy` for one of NumPy's."""
    name = "bool_" if of is np.bool_ else of.__name__
    text = f"""Cast to ``{name}``: a number, array or traced value. Also a dtype, equal to ``numpy.{name}``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.{name}([0, 1]).dtype, fnp.zeros(2, fnp.{name}).dtype == fnp.{name}
    (dtype('{np.dtype(of).name}'), True)
    """
    operators.converting[f"numpy.{of.__name__}"] = (
        f"Write functrans.numpy.{name}(x) in place of numpy.{name}(x), which needs the number"
    )
    names = {"dtype": np.dtype(of), "__module__": "functrans.numpy", "__doc__": doc or text}
    return ScalarType(name, (of,), names)


@cache
def _bfloat16(of: type[np.generic]) -> Any:
    return scalar_type(
        of, "Cast to bfloat16: a number, array or traced value. Also a dtype, that of ml_dtypes."
    )


def low_scalar_type(name: str) -> Any:
    """What `functrans.numpy` has under the name ``bfloat16``; None for another name."""
    of = low_dtype(name)
    return None if of is None else _bfloat16(of)


bool_ = scalar_type(np.bool_)
int8, int16, int32, int64 = map(scalar_type, (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = map(scalar_type, (np.uint8, np.uint16, np.uint32, np.uint64))
float16, float32, float64 = map(scalar_type, (np.float16, np.float32, np.float64))
complex64, complex128 = map(scalar_type, (np.complex64, np.complex128))
