"""Tools on jaxprs: evaluate, inline, slices and dead code, rewriting, checking, costs, pictures."""
