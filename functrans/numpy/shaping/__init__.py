"""Reshape, move, join, pad and edit arrays."""
