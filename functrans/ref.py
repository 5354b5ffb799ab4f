"""Mutable references to arrays, in eager and in traced code: make, read, write and end them.

Examples
--------
>>> import functrans as ft, functrans.numpy as fnp
>>> @ft.jit
... def running_sums(x):
...     sums = ft.new_ref(fnp.zeros(len(x) + 1))
...     def add(i, _):
...         sums[i + 1] = sums[i] + x[i]
...     ft.lax.fori_loop(0, len(x), add, None)
...     return sums[...]
>>> running_sums(fnp.asarray([1.0, 2.0, 4.0]))
Array([0., 1., 3., 7.])
"""

from __future__ import annotations

from .api.refs import addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap
from .arrays.ref import Ref
from .runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]
__getattr__, __dir__ = _module_attributes("functrans.ref", globals())
