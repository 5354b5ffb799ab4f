"""The foundation: avals, jaxprs, primitives, traces, options, errors."""
