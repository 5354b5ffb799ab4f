"""`ShapeDtypeStruct`, and what else describes an array without its numbers."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays.protocols import has_protocol
from ..core.aval import Aval, Zero
from ..core.dtypes import canonical
from ..core.low_precision import as_dtype
from ..core.trace import Tracer
from ..errors import ArgumentError, MissingLibraryError
from ..primitives.axes import positive_shape
from ..runtime.context import pass_on
from ..runtime.device import CPU


@dataclass(frozen=True)
class ShapeDtypeStruct:
    """A shape and a dtype, instead of an array.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    weak_type : bool
        Whether the dtype came from a Python scalar.
    sharding : Device or NamedSharding, optional
        Accepted, without effect.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.eval_shape(lambda x: x @ x.T, ft.ShapeDtypeStruct((3, 5), "float32"))
    ShapeDtypeStruct(shape=(3, 3), dtype=dtype('float32'), weak_type=False)
    """

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool = False
    sharding: InitVar[Any] = field(default=None, kw_only=True)

    def __post_init__(self, sharding: Any) -> None:
        is_cpu = isinstance(sharding, str) and sharding == CPU  # not of an array, which has no one answer
        if not (sharding is None or is_cpu or hasattr(sharding, "device_set")):
            raise ArgumentError(
                f"ShapeDtypeStruct: sharding must be None, a sharding or the CPU, got {sharding!r}"
            )
        object.__setattr__(self, "shape", positive_shape(self.shape, "ShapeDtypeStruct"))
        try:
            object.__setattr__(self, "dtype", as_dtype(self.dtype))
        except MissingLibraryError:
            raise
        except Exception as error:  # NumPy raises several classes
            pass_on(error)
            raise ArgumentError(f"ShapeDtypeStruct: {self.dtype!r} is not a dtype: {error}") from None

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ShapeDtypeStruct without axes")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same with another ``shape``, ``dtype`` or ``weak_type``.

        Examples
        --------
        >>> import functrans as ft
        >>> ft.ShapeDtypeStruct((3,), "int32").update(dtype=float)
        ShapeDtypeStruct(shape=(3,), dtype=dtype('float64'), weak_type=False)
        """
        return replace(self, **changes)


def described(x: Any) -> Aval | None:
    """The aval of a `ShapeDtypeStruct`, of a symbolic zero, or of another object with a shape and a dtype that is no
    array; None for anything else.
    """
    if isinstance(x, ShapeDtypeStruct):
        return Aval(x.shape, x.dtype, x.weak_type)
    if isinstance(x, Aval) and isinstance(x.dtype, np.dtype):
        return x
    if isinstance(x, Zero):
        return x.aval
    if isinstance(x, Tracer | type) or not (hasattr(x, "shape") and hasattr(x, "dtype")) or has_protocol(x):
        return None
    what = f"a {type(x).__name__} instead of an array"
    weak = getattr(x, "weak_type", getattr(x, "weak", False))
    return Aval(positive_shape(x.shape, what), canonical(x.dtype, what), bool(weak))


def struct_of(aval: Aval) -> ShapeDtypeStruct:
    """An aval in the form that users see."""
    return ShapeDtypeStruct(aval.shape, aval.dtype, aval.weak)
