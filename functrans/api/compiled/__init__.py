"""``jit``: tracing, caches, jitted methods, donation, the quick way of a call."""
