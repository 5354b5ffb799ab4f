"""Functions with derivative and batching rules of their own.

One primitive carries a record of rules through all transformations; front ends turn what users wrote into such records,
and know nothing of transformations. Read the mechanism first, then one front end: `linear_call` is the shortest, in
one file; of `Function` and `custom_vjp` read the file of the call, in which the slots of the record are, and the others
when it asks for them. ``docs/architecture.md`` has the picture.

=================== ========================================================================================
**the mechanism**
`record`            `CustomRule`, the record: a function of flat values, and its slots
`rule`              the primitives `custom_call`, and `custom_linear`, its derivative on the tape; `bind_rule`
`running`           slots run, mapped over the axes of `vmap`
`capture`           traced values that users' functions captured, as operands
`pull`              the derivative at a point, as the reverse rule gives it (`constants`: zeros among what it returns)
`pushing`           forward mode from a reverse rule, and the reverse: one rule, transposed, for both modes
`once`              a function whose result has no derivative
`stripping`         rules taken off again, for tests of rules
**`Function`**
`function`          the class that users derive from (`function_class`: its metaclass, `function_rules`: what it
                    defines, `signature`: its parameters)
`function_call`     one call: its slots (`recording`: how ``forward`` is run; `host` for forwards that NumPy runs;
                    `vmap_rule`; `linear_function` for those with a ``transpose``)
`context`           ``ctx`` (`saving`: what it holds, as residuals)
`layout`            tuples of arguments taken apart in arrays and others (`outputs`: those of results)
`gradients`         what ``backward`` returned, checked; `tangents`: what ``jvp`` returned
**`custom_vjp`**    **and its like**
`decorated`         the class behind `custom_vjp`, `custom_jvp`, `custom_gradient` (`declared`: what the user declared;
                    `positions`: arguments by position)
`declared_call`     one call: its slots
`fitting`           what rules returned, checked
`primal`            arguments and zeros of rules that ask for symbolic zeros
`closure`           `closure_convert`
**others**
`linear_call`       a linear function and its transpose
`custom_vmap`       a rule for `vmap` (`mapped`: its derivatives have rules again; `map_returns`: what rules returned)
`linear_solve`      `custom_linear_solve`; `root`: `custom_root` (`matching`: trees that must look like another)
=================== ========================================================================================
"""
