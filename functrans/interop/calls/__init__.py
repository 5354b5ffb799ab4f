"""The user's njit functions as operations of functrans: Numba's typed IR becomes a jaxpr."""
