"""SciPy's functions for arrays and traced values: `special`, `linalg`, `signal`, `integrate`, `optimize`."""

from ..core.module_getattr import module_attributes as _module_attributes
from .patched import patch, unpatch

__all__ = ["integrate", "linalg", "optimize", "patch", "signal", "special", "unpatch"]

__getattr__, __dir__ = _module_attributes(
    "functrans.scipy", globals(), parts=("integrate", "linalg", "optimize", "signal", "special")
)

patch()
