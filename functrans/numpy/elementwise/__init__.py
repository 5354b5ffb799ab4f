"""Functions element by element that are no ufuncs."""
