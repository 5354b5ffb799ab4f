"""Further methods and attributes of ndarrays for tracers, and the errors of unsupported ones.

Methods with a function of the same name are registered with that function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import prod
from typing import Any, NoReturn

import numpy as np

from .. import errors
from ..core import CPU, because, canonical, is_abstract, operators
from ..core.values import ArrayLike, DTypeLike, PyTree, Value
from ..primitives import ops
from ..primitives.operands import finish
from . import linalg
from .dispatch import array_operand, on_cpu
from .reductions.reductions import any as any_of
from .shaping.reshaping import ravel

# --- the array API standard ---------------------------------------------------------------------------------


def namespace(x: ArrayLike, /, *, api_version: str | None = None) -> Any:
    """``x.__array_namespace__()``: the module `functrans.numpy`.

    Raises
    ------
    ArgumentValueError
        If the requested version of the standard is not supported.
    """
    module = sys.modules["functrans.numpy"]
    known = tuple(dict.fromkeys(("2021.12", "2022.12", "2023.12", "2024.12", np.__array_api_version__)))
    if api_version is not None and api_version not in known:
        raise errors.ArgumentValueError(
            f"__array_namespace__: api_version must be one of {known}, got {api_version!r}"
        )
    return module


def _to_device(x: Value, device: Any, /, *, stream: Any = None) -> Value:
    on_cpu(device, "to_device")
    if stream is not None:
        raise errors.ArgumentValueError("to_device: stream must be None: a CPU has none")
    return x


# --- where numbers would be needed --------------------------------------------------------------------------


def _tolist(x: ArrayLike) -> Any:
    """Nested lists of Python numbers, if the values are known."""
    if not x.shape:
        return x.item()
    return [_tolist(x[i]) for i in range(x.shape[0])]


def _needs_numbers(name: str, cure: str) -> Callable[..., NoReturn]:
    def method(x: ArrayLike, *args: PyTree, **kwargs: Any) -> NoReturn:
        raise errors.TracerArrayConversionError(
            f"x.{name}(...) of a traced value of type {x.aval} (traced by {x.describe()}): a traced value has no "
            f"memory. {cure}"
        )

    return method


def _view(x: ArrayLike, dtype: DTypeLike = None, type: Any = None) -> Value:
    """Reinterpret the bits as another dtype: a new value, whose derivative is 0."""
    if dtype is None:
        return x
    to = canonical(dtype, "view: dtype")
    if to == x.dtype:
        return x
    old, new = x.dtype.itemsize, to.itemsize
    if old != new and (not x.shape or x.shape[-1] * old % new):
        raise errors.ArgumentValueError(
            f"x.view({to}): the last axis of shape {x.shape}, {x.dtype} must hold a whole number of elements"
        )
    value = array_operand(x, "view")
    if new > old:
        value = ops.reshape_p.bind(value, shape=(*x.shape[:-1], x.shape[-1] * old // new, new // old))
    bits = ops.bitcast_p.bind(value, dtype=to)
    return finish(
        bits if new >= old else ops.reshape_p.bind(bits, shape=(*x.shape[:-1], x.shape[-1] * old // new))
    )


def _byteswap(x: Value, inplace: bool = False) -> NoReturn:
    raise errors.NoRuleError("x.byteswap() of a traced value: functrans supports only native byte order")


def _contains(x: ArrayLike, value: ArrayLike) -> bool:
    """``value in t``, if the values are known."""
    contained = any_of(x == value)
    if is_abstract(contained):
        raise errors.ConcretizationTypeError(
            f"value in x of a traced x: its values are unknown while tracing{because(contained)}. Write "
            "functrans.numpy.any(x == value), and choose with where"
        )
    return bool(contained)


# --- what would change it -----------------------------------------------------------------------------------


def _refused(name: str, instead: str) -> Callable[..., NoReturn]:
    def method(x: Value, *args: PyTree, **kwargs: Any) -> NoReturn:
        raise errors.ImmutableArrayError(
            f"x.{name}(...): a traced value cannot be changed in place. {instead}"
        )

    return method


def _setflags(x: Value, write: Any = None, align: Any = None, uic: Any = None) -> None:
    if write:
        raise errors.ImmutableArrayError(
            "x.setflags(write=True): a traced value cannot be changed in place. Write x = x.at[i].set(v)"
        )


_WRITERS = {
    "fill": "Write x = functrans.numpy.full_like(x, v)",
    "itemset": "Write x = x.at[i].set(v)",
    "put": "Write x = functrans.numpy.put(x, i, v, inplace=False)",
    "resize": "Write x = functrans.numpy.resize(x, shape)",
    "setfield": "Write x = x.at[i].set(v)",
    "_set_dtype": "Write x = x.view(dtype)",
    "_set_shape": "Write x = x.reshape(shape)",
}
_MEMORY = {
    "tobytes": "Call it on the result, outside the function",
    "tofile": "Call it on the result, outside the function",
    "dump": "Call it on the result, outside the function",
    "dumps": "Call it on the result, outside the function",
    "getfield": "To convert the values write x.astype(dtype)",
    "__dlpack__": "Pass the result on, outside the function",
}

operators.attribute.update({name: _refused(name, instead) for name, instead in _WRITERS.items()})
operators.attribute.update({name: _needs_numbers(name, cure) for name, cure in _MEMORY.items()})
operators.attribute.update(
    {
        "__array_namespace__": namespace,
        "__dlpack_device__": lambda x: (1, 0),
        "byteswap": _byteswap,
        "setflags": _setflags,
        "to_device": _to_device,
        "tolist": _tolist,
        "view": _view,
    }
)
operators.operator["contains"] = _contains


def _strides(x: Value) -> tuple[int, ...]:
    """The strides of a contiguous array."""
    return tuple([x.dtype.itemsize * prod(x.shape[d + 1 :]) for d in range(x.ndim)])


operators.attribute["base"] = property(lambda x: None)
operators.attribute["device"] = property(lambda x: CPU)
operators.attribute["flat"] = property(ravel)
operators.attribute["strides"] = property(_strides)
operators.absent.update(
    {
        "ctypes": ": it has no memory that C could read; call the function on a result, or through pure_callback",
        "data": ": it has no memory; call the function on a result, or through pure_callback",
        "flags": ": it has no memory, so it has no layout; arrays are never writable",
        "ptp": ": write functrans.numpy.ptp(x)",
        "newbyteorder": ": numbers are in native byte order",
    }
)

# --- functions that NumPy has under two names, each dispatched for itself -------------------------------------

for _name in linalg.__all__:
    _theirs = getattr(np.linalg, _name, None)
    if callable(_theirs) and not isinstance(_theirs, type):
        operators.function.setdefault(_theirs, getattr(linalg, _name))
