"""Whether a value is traced, or holds traced values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import PYTHON_SCALARS, Tracer
from ..runtime.context import pass_on
from .protocols import has_buffer, is_jax_array, is_sequence

#: Classes that hold nothing.
PLAIN: set[type] = {*PYTHON_SCALARS, np.ndarray, slice, type(None), type(Ellipsis)}


def has_tracer(x: Any) -> bool:
    """Whether a value is traced, or contains a traced one: in any sequence, or a dict; not in an array of objects.
    Objects with ``__jax_array__`` count as traced: NumPy does not know them.
    """
    kind = type(x)
    if kind in PLAIN:
        return False
    if kind is tuple or kind is list:
        return any(has_tracer(part) for part in x)
    if isinstance(x, Tracer) or is_jax_array(x):
        return True
    if isinstance(x, dict):
        return any(map(has_tracer, x.values()))
    return any(map(has_tracer, _elements(x)))


def holds_tracers(x: Any) -> bool:
    """Whether an array of objects, also in a pandas Series, has traced elements."""
    dtype = getattr(x, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind == "O" and any(map(has_tracer, np.asarray(x).flat))


def _elements(x: Any) -> Sequence[Any]:
    """The elements of a sequence that NumPy reads one by one; empty for anything else."""
    if isinstance(x, range | np.ndarray) or not is_sequence(x) or has_buffer(x):
        return ()
    if getattr(x, "dtype", np.dtype(object)) != np.dtype(object):  # a pandas Series of numbers
        return ()
    try:
        return list(x)
    except Exception as error:  # a user's class with other keys
        pass_on(error)
        return ()
