"""``functrans.scipy.sparse``: iterative solvers for systems of linear equations, in `linalg`."""

from ...runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["linalg"]

__getattr__, __dir__ = _module_attributes("functrans.scipy.sparse", globals(), parts=("linalg",))
