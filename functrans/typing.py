"""Types for annotations, under the names of ``jax.typing``."""

from __future__ import annotations

import numpy.typing as npt

from .arrays.array import Array
from .runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["Array", "ArrayLike", "DTypeLike"]

#: Anything that becomes an array: arrays, traced values, numbers, nested lists.
ArrayLike = npt.ArrayLike
DTypeLike = npt.DTypeLike

__getattr__, __dir__ = _module_attributes("functrans.typing", globals())
