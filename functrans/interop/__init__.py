"""Numba's doors: jitted functions called in the user's ``@njit`` code, and njit functions made functrans's own."""
