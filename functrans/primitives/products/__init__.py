"""Products of arrays, summed over axes."""
