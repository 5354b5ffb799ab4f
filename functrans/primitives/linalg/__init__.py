"""Decompositions, determinants and systems of linear equations, in batches."""
