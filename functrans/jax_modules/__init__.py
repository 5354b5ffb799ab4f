"""Modules of JAX whose names are functrans's objects; `functrans.as_jax` lets Python find them."""
