"""Arrays in other shapes: reshaped, moved, joined, padded, edited."""
