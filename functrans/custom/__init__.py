"""Functions with derivative and batching rules that the user wrote.

One primitive carries a record of rules through all transformations; front ends turn what users wrote into such records,
and know nothing of transformations. Read the mechanism first, then one front end: `linear_call` is the shortest.
``docs/architecture.md`` has the picture.

=================== ========================================================================================
**the mechanism**
`rule`              `CustomRule`, the record: a function of flat values, and its slots; slots run, mapped over
                    the axes of `vmap`
`custom_call`       the primitives `custom_call`, and `custom_linear`, its derivative on the tape; `bind_rule`
`pullback`          the derivative at a point, as the reverse rule gives it; forward mode from a reverse rule,
                    and the reverse: one rule, transposed, for both modes
`closures`          traced values that users' functions captured, as operands; `closure_convert`
`partition`         tuples of arguments and results partitioned into arrays and others
`returned`          what rules returned, checked
**`Function`**
`function`          the class that users derive from (`function_class`: its metaclass, and what it defines)
`function_call`     one call: its slots
`forward`           one run of ``forward``, traced or on the host, and what is kept of it
`context`           ``ctx``, while ``forward`` records and ``backward`` reads
`dirty`             ``mark_dirty``: which output replaces an input, and what becomes of the argument
`saving`            what ``ctx`` recorded, as residuals; `saved_values_hooks`
**`custom_vjp`**    **and its like**
`custom_function`   `custom_vjp`, `custom_jvp`, `custom_gradient`
`jax_call`          one call: its slots
**others**
`linear_call`       a linear function and its transpose
`custom_vmap`       a rule for `vmap`, and its derivatives, which have rules again
`implicit`          `custom_linear_solve` and `custom_root` (`solution`: what their solvers take and return)
=================== ========================================================================================
"""
