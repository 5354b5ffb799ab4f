"""What everything else stands on: avals, jaxprs, primitives, traces, arrays, pytrees, errors."""
