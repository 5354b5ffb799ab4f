"""``functrans.scipy.sparse``: iterative solvers for systems of linear equations, in `linalg`."""

from ...runtime.module_getattr import module_attributes as _module_attributes
from ...runtime.module_getattr import on_demand as _on_demand

with _on_demand(globals()) as _later:
    from . import linalg

__all__ = ["linalg"]

__getattr__, __dir__ = _module_attributes("functrans.scipy.sparse", globals(), later=_later)
