"""functrans beside JAX, hand-written Numba and HIPS autograd; README.md here says how to run it."""
