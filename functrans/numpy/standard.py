"""Further functions of the array API standard and NumPy: data exchange, type queries, text."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.arguments import Device, Like, Order
from ..arrays.array import wrap
from ..core import ArgumentError, Tracer, concrete, finfo
from ..core.values import ArrayLike, DTypeLike, PyTree
from ..frontend.checked import checked
from ..primitives.ops import dtype_of, operand
from .creation.filled import asarray
from .dispatch import array_operand, implements, on_cpu, owned
from .elementwise import selection

__all__ = [
    "array_repr",
    "array_str",
    "asanyarray",
    "ascontiguousarray",
    "common_type",
    "from_dlpack",
    "frombuffer",
    "fromfile",
    "fromiter",
    "fromstring",
    "load",
    "may_share_memory",
    "min_scalar_type",
    "real_if_close",
    "shares_memory",
]  # fmt: skip


@checked
def from_dlpack(x: ArrayLike, /, *, device: Device = None, copy: bool | None = None) -> Any:
    """Copy an array of another library that has ``__dlpack__``.

    Parameters
    ----------
    x : object
    device : {'cpu', None}
    copy : bool, optional
        False raises an error, except for an `Array`.

    Examples
    --------
    >>> import numpy as np
    >>> import functrans.numpy as fnp
    >>> fnp.from_dlpack(np.arange(3))
    Array([0, 1, 2])
    """
    on_cpu(device, "from_dlpack")
    if isinstance(x, Tracer):
        return x
    if not hasattr(x, "__dlpack__"):
        raise ArgumentError(f"from_dlpack: x must have __dlpack__, got {type(x).__name__}")
    # NumPy does not export read-only arrays without a copy, and an Array need not be exported.
    return asarray(x if isinstance(x, np.ndarray) else np.from_dlpack(x), copy=copy)


@implements(np.asanyarray)
def asanyarray(
    a: ArrayLike,
    dtype: DTypeLike = None,
    order: Order | None = None,
    *,
    device: Device = None,
    copy: Any = None,
    like: Like = None,
) -> Any:
    """Like `asarray`: `Array` has no subclasses.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.asanyarray([1, 2])
    Array([1, 2])
    """
    return asarray(a, dtype, order, device=device, copy=copy)


@implements(np.ascontiguousarray)
def ascontiguousarray(a: ArrayLike, dtype: DTypeLike = None, *, like: Like = None) -> Any:
    """Like `asarray`, with at least one axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.ascontiguousarray(3.0)
    Array([3.])
    """
    x = asarray(a, dtype)
    if isinstance(x, Tracer):
        return x if x.shape else x.reshape(1)
    return wrap(np.ascontiguousarray(np.asarray(x)))


# --- from other sources -------------------------------------------------------------------------------------


@checked
def frombuffer(
    buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0, *, like: Like = None
) -> Any:
    """Copy the numbers in a buffer; see `numpy.frombuffer`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.frombuffer(bytes([1, 0, 2]), dtype=np.uint8)
    Array([1, 0, 2], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, dtype, count, offset))


@checked
def fromfile(
    file: Any, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0, *, like: Like = None
) -> Any:
    """Read the numbers in a file; see `numpy.fromfile`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     np.arange(3.0).tofile(file.name)
    ...     fnp.fromfile(file.name)
    Array([0., 1., 2.])
    """
    return asarray(np.fromfile(file, dtype, count, sep, offset))


@checked
def load(file: Any, *args: PyTree, **kwargs: Any) -> Any:
    """Read an array from a file that `save` wrote; see `numpy.load`. Files of several arrays stay NumPy's.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import io
    >>> file = io.BytesIO()
    >>> fnp.save(file, fnp.arange(3))
    >>> _ = file.seek(0)
    >>> fnp.load(file)
    Array([0, 1, 2])
    """
    found = np.load(file, *args, **kwargs)
    return asarray(found) if isinstance(found, np.ndarray) else found


@checked
def fromiter(iter: Any, dtype: DTypeLike, count: int = -1, *, like: Like = None) -> Any:
    """Make an array from an iterable; see `numpy.fromiter`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fromiter((i * i for i in range(3)), int)
    Array([0, 1, 4])
    """
    return asarray(np.fromiter(iter, dtype, count))


@checked
def fromstring(string: Any, dtype: DTypeLike = float, count: int = -1, *, sep: str, like: Like = None) -> Any:
    """Parse the numbers in a string; see `numpy.fromstring`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fromstring("1 2", sep=" ")
    Array([1., 2.])
    """
    return asarray(np.fromstring(string, dtype, count, sep=sep))


# --- questions ----------------------------------------------------------------------------------------------


@implements(np.common_type)
def common_type(*arrays: ArrayLike) -> type:
    """The floating-point type that can represent all arrays; float64 for integers.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.common_type(fnp.ones(2, fnp.float32), fnp.ones(2, fnp.complex64))
    <class 'numpy.complex64'>
    """
    plain = [np.zeros(0, dtype_of(array_operand(a, "common_type", i))) for i, a in enumerate(arrays)]
    try:
        return np.common_type(*plain)
    except TypeError as error:
        raise ArgumentError(f"common_type: {error}") from None


@implements(np.min_scalar_type)
def min_scalar_type(a: ArrayLike, /) -> np.dtype:
    """The smallest dtype that can represent a number; for an array, its dtype.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.min_scalar_type(300)
    dtype('uint16')
    """
    x = operand(a, "min_scalar_type")
    known = concrete(x)
    return dtype_of(x) if known is None else np.min_scalar_type(known)


@implements(np.real_if_close)
def real_if_close(a: ArrayLike, tol: float = 100) -> Any:
    """The real part of complex numbers, if all imaginary parts are within `tol` units of precision of 0.

    The dtype depends on values: if they are unknown while tracing, complex numbers stay complex.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.real_if_close([2.1 + 4e-16j])
    Array([2.1])
    """
    x = array_operand(a, "real_if_close")
    known = concrete(x)
    if dtype_of(x).kind != "c" or known is None:
        return owned(x, a)
    bound = tol * finfo(dtype_of(x)).eps if tol > 1 else tol
    return selection.real(x) if np.all(np.abs(np.imag(known)) < bound) else owned(x, a)


@implements(np.shares_memory)
def shares_memory(a: ArrayLike, b: ArrayLike, /, max_work: Any = None) -> bool:
    """Whether arrays share memory; traced values have none.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.shares_memory(fnp.ones(2), fnp.ones(2))
    False
    """
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        return False
    return bool(np.shares_memory(a, b, max_work))


@implements(np.may_share_memory)
def may_share_memory(a: ArrayLike, b: ArrayLike, /, max_work: Any = None) -> bool:
    """Whether arrays might share memory; traced values have none.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.may_share_memory(fnp.ones(2), fnp.ones(2))
    False
    """
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        return False
    return bool(np.may_share_memory(a, b, max_work))


# --- text ---------------------------------------------------------------------------------------------------


@implements(np.array_repr)
def array_repr(
    arr: ArrayLike, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> str:
    """The result of ``repr``, see `numpy.array_repr`; for a traced value, its type.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.array_repr(fnp.zeros(2))
    'Array([0., 0.])'
    """
    if isinstance(arr, Tracer):
        return repr(arr)
    return f"A{np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)[1:]}"


@implements(np.array_str)
def array_str(
    a: ArrayLike, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> str:
    """The result of ``str``, see `numpy.array_str`; for a traced value, its type.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.array_str(fnp.zeros(2))
    '[0. 0.]'
    """
    return (
        str(a)
        if isinstance(a, Tracer)
        else np.array_str(np.asarray(a), max_line_width, precision, suppress_small)
    )
