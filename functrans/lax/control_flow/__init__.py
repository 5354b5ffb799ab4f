"""Loops, branches and prefix scans under JAX's names."""
