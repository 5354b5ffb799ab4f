"""From a jaxpr to loops: what is stored, which values share loops, and the statements of each."""
