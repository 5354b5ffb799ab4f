"""Gather and scatter, and the translation of NumPy's index expressions into them."""
