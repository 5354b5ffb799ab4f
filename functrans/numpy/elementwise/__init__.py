"""Elementwise functions that are not ufuncs."""
