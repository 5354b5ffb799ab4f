"""From a jaxpr to machine code, in five rooms.

============ ===============================================================================================
`jaxpr`      Passes from jaxpr to jaxpr: `simplify` (`algebra`, `reshapes`, `sparse_sums`, `dead_code`; forms of
             operations that only lowering knows are `lowering_primitives`), then `partition` into kernels and host
             calls, in order.
`loops`      The loop IR (`ir`, `check`, `show`, `mapping`); a jaxpr becomes loops by `materialize` (which values are
             computed once and kept; `read_patterns`: reads, and their cost), `fuse` (which of them share loops) and
             `build_loops` (`aliasing`: values that share memory; `folds`: reductions), written with `builder`
             (`arithmetic`, `handles`) and the kernel rules of the primitives. Then passes over the loops: `collapse`
             (adjacent axes), `blocked` (long sums), `plan` (scratch and stack), `outline` (numbers become parameters).
`llvm`       Loops as LLVM: `split_complex` and `split_functions` of `loops` first, then `emit` (`function`,
             `statements`, `calls`, `ops`; `maths`: scalar functions; `gemm`: products of matrices; `interrupts`:
             Ctrl-C), then `entry`: Numba.
`python`     Loops as readable Python: `emit`, and the names that it uses in `runtime`. It is what is printed, the
             oracle in tests, and the fallback.
`run`        `executable` (`wrapper`: the quick call), `compile` and `cache` (kernels by their text), `host_calls`,
             `explain_failure`, `debug_nans`, `checked` (guard words around the memory), `undisturbed` (by signals).
============ ===============================================================================================

`blas` finds SciPy's routines for both forms.
"""
