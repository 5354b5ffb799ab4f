"""Reductions and cumulative operations along axes."""
