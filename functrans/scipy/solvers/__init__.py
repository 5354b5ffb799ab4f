"""SciPy's solvers, driven with compiled derivatives, and derivatives of what they find."""
