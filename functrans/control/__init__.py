"""Higher-order primitives: those whose parameters are jaxprs."""
