"""What NumPy takes for an array, and whose operator comes first beside an object that it does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.values import Value

_NO_SEQUENCES = (dict, str, bytes, np.dtype, np.generic)


def is_sequence(x: Any) -> bool:
    """Whether NumPy takes an object for a sequence: it has a length and is read by ``x[i]``; not a dict or str."""
    kind = type(x)
    if kind is list or kind is tuple:
        return True
    return hasattr(kind, "__len__") and hasattr(kind, "__getitem__") and not isinstance(x, _NO_SEQUENCES)


def has_buffer(x: Any) -> bool:
    """Whether an object, such as a memoryview or an ``array.array``, gives NumPy its memory."""
    kind = type(x)
    if kind is list or kind is tuple:
        return False
    try:
        memoryview(x)
    except (TypeError, ValueError):  # ValueError: released
        return False
    return True


def is_jax_array(x: Any) -> bool:
    """Whether an object says which array it is, possibly a traced one, by JAX's method ``__jax_array__``."""
    return hasattr(type(x), "__jax_array__")


def has_protocol(x: Any) -> bool:
    """Whether an object gives an array: by ``__jax_array__``, or NumPy by ``__array__``, ``__array_interface__`` or its
    memory.
    """
    return is_jax_array(x) or hasattr(x, "__array__") or hasattr(x, "__array_interface__") or has_buffer(x)


def is_array_like(x: Any) -> bool:
    """Whether an array of numbers can be made from an object: by a protocol, or because it is a sequence."""
    return not isinstance(x, str | bytes) and (has_protocol(x) or is_sequence(x))


#: Operands that never take an operator over. (Their ``__rmul__`` and ``__ror__`` mean something else.)
_NEVER = (np.ndarray, np.generic, bool, int, float, complex, str, bytes, dict, type(None))
_REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def reflected_name(operator: str) -> str:
    """The method by which the right operand takes over: ``__rmul__`` for ``mul``, ``__gt__`` for ``lt``."""
    return f"__{_REFLECTED.get(operator, f'r{operator}')}__"


def taken_over(method: str, array: Value, other: Any) -> Any:
    """What the right operand of an operator makes of the array on its left; NotImplemented if it leaves it to that.

    An object that NumPy would not convert to an array decides by itself, as beside a number: NumPy would call its
    method for each element, and collect the results in an array of objects.
    """
    kind = type(other)
    if isinstance(other, _NEVER) or hasattr(kind, "__array_ufunc__") or not hasattr(kind, method):
        return NotImplemented
    return NotImplemented if is_array_like(other) else getattr(kind, method)(other, array)
