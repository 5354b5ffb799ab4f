"""Functions with derivative and batching rules of their own.

`rule` holds the record that every front end builds, and the primitive that carries it; `running` runs its slots, mapped
over the axes of `vmap`; `capture` turns what users' functions captured into operands; `forward` derives forward mode
from a reverse rule; `once` refuses a second derivative. All else are front ends.
"""
