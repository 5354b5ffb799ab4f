"""The loop IR, how a jaxpr becomes loops, and the passes over them."""
