"""SciPy's functions for arrays and traced values: `special`, `linalg` and `signal`."""

from ..core.names import module_attributes as _module_attributes
from . import linalg, signal, special

__all__ = ["linalg", "signal", "special"]

__getattr__, __dir__ = _module_attributes("functrans.scipy", globals())
