"""Decompositions, determinants and systems of equations, in batches."""
