"""Compile kernels, cache them, and call them."""
