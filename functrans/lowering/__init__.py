"""From a jaxpr to machine code.

=================== ========================================================================================
`simplify`          jaxpr to jaxpr: calls inlined, dead and common equations removed, exact algebra (`algebra`,
                    `reshapes`, `sums`, `unused`; forms of operations that only lowering knows are in `moves`)
`steps`             kernels and host calls, in order
`roots`             which values are computed once and kept, what is inlined (`access`: reads, and their cost)
`fuse`              roots gathered in loop nests, with as little kept as can be
`nests`             groups to the typed loop IR, through `builder` and the kernel rules of the primitives
                    (`folds`: reductions; `storage`: values that share memory; of the builder `arithmetic` is the part
                    without effects, and `handles` are what rules hold)
`collapse`          loops over adjacent axes merged
`blocked`           long sums in blocks
`plan`              which buffers share memory, and which live on the stack
`outline`           extents and float literals to run-time parameters; the text that keys the cache
`hostcalls`         equations inside of loops that Python evaluates (`polling`: how Ctrl-C ends a loop)
`parts`             large kernels in functions of a few loops, equal ones shared
`emit_llvm`         loop IR to LLVM (after `complex_parts`, which leaves only real scalars): the module; functions are
                    written by `llvm_function`, `llvm_statements`, `llvm_calls` and `llvm_ops`, maths by `maths`
`emit_python`       loop IR to readable Python: what is printed, the oracle, and the fallback
`compile`           LLVM through `numba.extending.intrinsic` inside a Numba-jitted entry
`cache`             compiled kernels by outlined text
`executable`        the steps of a jaxpr as a callable (`wrapper`: the quick call; `failure`: what a status means)
=================== ========================================================================================

`loopir` declares the loop IR that stands between the two halves; `mapping` copies kernels with other operands.
`loopcheck` verifies kernels and parts where ``config.verify`` is set, `checked` runs kernels between guard words.
"""
