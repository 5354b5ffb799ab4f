"""Read, write and search for elements by index."""
