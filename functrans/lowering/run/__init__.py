"""Kernels compiled, kept, called, and explained where they fail."""
