"""Passes from jaxpr to jaxpr."""
