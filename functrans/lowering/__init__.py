"""From a jaxpr to machine code: `lower.lower` is the whole way, and the place to begin reading.

The stages, each of which imports only those before it:

============ ===============================================================================================
`host`       Python evaluates equations: `host_calls` (from inside of kernels), `explain_failure` (after a kernel
             failed), `debug_nans` (after one returned NaN).
`jaxpr`      Passes from jaxpr to jaxpr: `simplify` (with the `simplify` rules of the primitives, `reshapes` and
             `sparse_sums`), `partition` into kernels and host calls, in order.
`loops`      The loop IR (`ir`, `check`, `show`, `mapping`). A jaxpr becomes loops by `materialize` (which values are
             computed once and kept; `read_patterns`: reads, and their cost), `fuse` (which of them share loops),
             `aliasing` (which of them share memory) and `build_loops` (`folds`: reductions), written with `builder`
             (`arithmetic`, `handles`) and the kernel rules of the primitives. Then passes over the loops: `collapse`
             (adjacent axes), `blocked` (long sums), `plan` (scratch and stack), `outline` (numbers become parameters),
             and for LLVM `split_complex` and `split_functions`.
`backend`    What a backend is, in three protocols.
`llvm`       Loops as LLVM: `emit` (`function`, `statements`, `calls`, `ops`; `maths`: scalar functions; `gemm`:
             matrix products; `interrupts`: Ctrl-C) and `backend`, which passes the text to Numba.
`python`     Loops as readable Python: `emit`, `runtime` (the names that it uses) and `backend`. It is what is printed,
             the oracle in tests, and the fallback.
`lower`      The pipeline.
`run`        `executable` (`wrapper`: the quick call), `compile` and `cache` (kernels by their text), `checked` (guard
             words around the memory).
============ ===============================================================================================

`blas` finds SciPy's routines; `undisturbed` compiles where no signal interrupts.
"""
