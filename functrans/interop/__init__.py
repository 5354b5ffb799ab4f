"""Numba's doors: jitted functions called in the user's ``@njit`` code, and njit functions made functrans's own."""

from .calls.njit_function import NumbaCall, njit, numba_call

__all__ = ["NumbaCall", "njit", "numba_call"]
