"""What the functions of this room do with their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..core import DtypeError, default_float, is_bfloat16
from ..core.values import ArrayLike, PyTree, Value
from ..frontend.checked import checked
from ..frontend.docstrings import with_sections
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import dtype_of, finish

_SECTIONS = """
Parameters
----------
x : array_like, shape (...)
    Real; integers and booleans become float64.

Returns
-------
Array, shape (...)

Raises
------
DtypeError
    If `x` is complex.
"""


def real_operand(x: Value, name: str, position: int = 0) -> Value:
    """A float array or tracer; integers become float64.

    Raises
    ------
    DtypeError
        If it is complex.
    """
    value = array_operand(x, name, position)
    dtype = dtype_of(value)
    if dtype.kind == "f":
        return value
    if dtype.kind == "c":
        raise DtypeError(f"{name}: argument {position} is complex; take its real part, or its absolute value")
    return (
        with_weak_numbers(value) if is_bfloat16(dtype) else ops.convert(value, default_float(dtype_of(value)))
    )


def inexact_operand(x: Value, name: str) -> Any:
    """A float or complex array or tracer; integers become float64."""
    value = array_operand(x, name)
    return value if dtype_of(value).kind == "c" else real_operand(value, name)


def parameter(x: ArrayLike, name: str, position: int) -> Any:
    """A real parameter of an activation: Python numbers stay weak.

    Raises
    ------
    DtypeError
        If it is complex.
    """
    value = ops.operand(x, name, position)
    if dtype_of(value).kind == "c":
        raise DtypeError(f"{name}: argument {position} is complex; expected a real number")
    return with_weak_numbers(value)


def with_weak_numbers(value: Value) -> Value:
    """The value; an ndarray of bfloat16, which ``0.5 *`` would make one of float32, as an `Array`."""
    return ops.finish(value) if is_bfloat16(dtype_of(value)) else value


def activation(body: Callable[..., PyTree]) -> Callable[..., Any]:
    """A public elementwise function of a real `x`, and perhaps of parameters that broadcast against it.

    The sections that all share join its docstring.
    """
    name = body.__name__

    def function(x: Value, *parameters: Any) -> Value:
        others = [parameter(p, name, i) for i, p in enumerate(parameters, 1)]
        return finish(body(real_operand(x, name), *others))

    function.__signature__ = inspect.signature(body)  # type: ignore[attr-defined]
    function.__annotations__ = body.__annotations__
    function.__doc__ = with_sections(_SECTIONS, body.__doc__ or "")
    function.__name__ = function.__qualname__ = name
    function.__module__ = body.__module__
    return checked(function)


#: ``where`` for operands of one dtype, without the conversions of NumPy's function.
select = ops.select_p.bind
