"""SciPy's functions for arrays and traced values: `special`, `linalg` and `signal`."""

from ..core.names import no_such_name as _no_such_name
from . import linalg, signal, special

__all__ = ["linalg", "signal", "special"]

__getattr__ = _no_such_name("functrans.scipy", globals())
