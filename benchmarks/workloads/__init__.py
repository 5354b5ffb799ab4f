"""The programs that several commands run, and the same by hand in Numba."""
