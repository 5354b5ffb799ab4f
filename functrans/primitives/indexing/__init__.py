"""Gather and scatter, and NumPy's index expressions that become them."""
