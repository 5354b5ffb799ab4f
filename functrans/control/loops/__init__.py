"""The kernels of loops, and the memory of what they carry."""
