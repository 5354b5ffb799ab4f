"""From a jaxpr to machine code. Begin reading at `lower.lower`, which is the whole pipeline.

The stages, in order; each imports only earlier ones:

============ ===============================================================================================
`host`       Python evaluates equations: `host_calls` (from inside kernels), `explain_failure` (after a kernel
             failed), `debug_nans` (after one returned NaN).
`jaxpr`      Jaxpr passes: `simplify` (with the `simplify` rules of the primitives, `reshapes`,
             `sparse_sums`, `windows` and `counters`), `partition` (into kernels and host calls, in order).
`loops`      The loop IR (`ir`, `check`, `show`, `mapping`). A jaxpr becomes loops through `order` (reads before
             writes), `materialize` (which values to store; `read_patterns`: reads and their cost), `fuse` (which of
             them share loops; `pairs`: where half of the iterations suffice), `aliasing` (which of them share memory;
             `late_reads`: what is read after it is overwritten) and `build_loops` (`nests`; `folds`: reductions;
             `pair_nests`, `row_sums`: half of all pairs), written with `builder` (`arithmetic`, `handles`) and the
             kernel rules of the primitives.
             Then passes over the loops: `versions` (indices are tested before a loop), `collapse` (adjacent axes),
             `hold` (elements in variables; `hand_on`: from one iteration to the next; `offsets`: which places differ),
             `parallel` (loops for several threads), `blocked` (long sums), `plan` (scratch and stack), `outline`
             (numbers become parameters), and for LLVM `split_complex` and `split_functions`.
`steps`      What a program runs: kernels, host calls and views; all that `run.wrapper` knows of them.
`backend`    The protocols that a backend implements.
`llvm`       Loops as LLVM: `emit` (`function`, `statements`, `calls`, `ops`; `maths`: mathematical functions; `gemm`:
             matrix products; `interrupts`: Ctrl-C; `teams`, `pool`: threads), `objects` (compiles and loads it),
             `store` (object code made before, also on `disk`), `symbols` (addresses of what it calls),
             `native_call`, `texts` (LLVM text made of C), and `backend`.
`python`     Loops as readable Python: `emit`, `runtime` (the names that it uses) and `backend`. It is
             printed for users, and serves as the oracle in tests and as the fallback.
`lower`      The pipeline.
`run`        `executable` (`wrapper`: fast calls), `compile` and `cache` (kernels by their text), `checked` (guard
             words around the memory), `filed` (programs from files, which are not lowered again).
============ ===============================================================================================

`processor` says what kernels are compiled for; `blas` finds SciPy's routines; `undisturbed` compiles where no signal
can interrupt.
"""
