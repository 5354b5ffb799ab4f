"""From a jaxpr to machine code.

=================== =========================================================================================
`simplify`          jaxpr to jaxpr: calls inlined, dead and common equations removed, exact algebra
`fuse`              equations gathered in groups that become one loop nest each
`nests`             groups to the typed loop IR, through `builder` and the kernel rules of the primitives
`plan`              which buffers share memory, and which live on the stack
`outline`           extents and float literals to run-time parameters; the text that keys the cache
`emit_llvm`         loop IR to LLVM (after `complex_parts`, which leaves only real scalars), maths by `maths`
`emit_python`       loop IR to readable Python: what is printed, the oracle, and the fallback
`compile`           LLVM through `numba.extending.intrinsic` inside a Numba-jitted entry
`cache`             compiled kernels by outlined text
`executable`        the steps of a jaxpr (kernels and host calls) as a callable
=================== =========================================================================================

`loopir` declares the loop IR that stands between the two halves.
"""
