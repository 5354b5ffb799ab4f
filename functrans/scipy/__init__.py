"""SciPy's functions for arrays and traced values: `special` and `linalg`."""

from . import linalg, special

__all__ = ["linalg", "special"]
