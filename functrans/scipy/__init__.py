"""SciPy's functions for arrays and traced values: `special` and `linalg`."""

from ..core.names import no_such_name as _no_such_name
from . import linalg, special

__all__ = ["linalg", "special"]

__getattr__ = _no_such_name("functrans.scipy", globals())
