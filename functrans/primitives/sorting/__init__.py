"""Sorting, and searching in sorted arrays."""
