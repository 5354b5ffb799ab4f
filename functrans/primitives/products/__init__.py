"""Products of arrays, summed over some axes."""
