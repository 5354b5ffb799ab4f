"""Equations that Python evaluates: inside of kernels, and after one has failed or returned NaN."""
