"""Reductions and cumulative sums."""
