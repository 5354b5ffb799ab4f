"""Jitted functions of functrans in the user's ``@njit`` code."""
