"""Polynomials as vectors of coefficients."""
