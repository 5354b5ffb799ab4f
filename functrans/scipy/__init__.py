"""SciPy's functions for arrays and traced values: `special` and `linalg`."""
