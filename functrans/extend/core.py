"""The names of ``jax.extend.core``: primitives, jaxprs and traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..control.call import call_p as jit_p
from ..core import Aval, Jaxpr, Literal, Trace, Tracer, Var, is_held, subjaxprs
from ..core.evaluation import ClosedJaxpr, JaxprEqn, ShapedArray, jaxpr_as_fun
from ..errors import JaxprTypeError
from ..passes.check import check_jaxpr
from ..runtime.module_getattr import module_attributes as _module_attributes
from .primitive import ExtendedPrimitive as Primitive
from .primitive import typed
from .tracing import (
    OpaqueTraceState,
    find_top_trace,
    get_opaque_trace_state,
    set_current_trace,
    take_current_trace,
    trace_state_clean,
)

__all__ = [
    "Aval", "ClosedJaxpr", "DropVar", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "OpaqueTraceState",
    "Primitive", "ShapedArray", "Trace", "TraceTag", "Tracer", "Var", "check_jaxpr", "find_top_trace", "get_aval",
    "get_opaque_trace_state", "jaxpr_as_fun", "jit_p", "mapped_aval", "set_current_trace", "subjaxprs",
    "take_current_trace", "trace_state_clean", "unmapped_aval", "valid_jaxtype",
]  # fmt: skip
__getattr__, __dir__ = _module_attributes("functrans.extend.core", globals())


class TraceTag:
    """A mark that distinguishes the tracers of one trace from those of others."""


class DropVar(Var):
    """JAX's variable of a result that nothing uses; functrans's programs name them like others."""


def get_aval(x: Any) -> Aval:
    """The type of an array, a number or a traced value.

    Examples
    --------
    >>> from functrans import extend
    >>> extend.core.get_aval([1.0][0])
    f64[]*
    """
    return typed(x)


def mapped_aval(size: int, axis: int | None, aval: Aval) -> Aval:
    """The type of an element along an axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import extend
    >>> extend.core.mapped_aval(3, 0, extend.core.get_aval(fnp.ones((3, 2))))
    f64[2]
    """
    if axis is None:
        return aval
    return aval.with_shape(tuple(np.delete(np.array(aval.shape, dtype=int), axis).tolist()))


def unmapped_aval(size: int, axis: int | None, aval: Aval, *names: Any) -> Aval:
    """The type of a stack of values along a new axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import extend
    >>> extend.core.unmapped_aval(3, 0, extend.core.get_aval(fnp.ones(2)))
    f64[3,2]
    """
    if axis is None:
        return aval
    shape: Sequence[int] = np.insert(np.array(aval.shape, dtype=int), axis, size).tolist()
    return aval.with_shape(tuple(shape))


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array, a number or a traced value.

    Examples
    --------
    >>> from functrans import extend
    >>> extend.core.valid_jaxtype(1.0), extend.core.valid_jaxtype("one")
    (True, False)
    """
    if isinstance(x, Tracer | bool | int | float | complex):
        return True
    return isinstance(x, np.ndarray | np.generic) and is_held(x.dtype)
