"""Equations that Python evaluates: inside kernels, and after a kernel failed or returned NaN."""
