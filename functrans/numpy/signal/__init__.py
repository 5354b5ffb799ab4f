"""Convolution, interpolation, windows, differences."""
