"""Programs as data: read them, run them one equation at a time, rewrite them, check them.

`trace` makes a `Jaxpr` of a function, `as_function` makes a function of a `Jaxpr`. A program never changes: whatever
changes one returns another.

Examples
--------
>>> import numpy as np
>>> from functrans import ir
>>> program = ir.trace(lambda x: np.exp(np.sin(x)), 1.0)
>>> [eqn.primitive.name for eqn in program.eqns]
['convert_element_type', 'sin', 'exp']
>>> ir.eval_jaxpr(program, 0.0)
[Array(1.)]
"""

from ..core import Aval, Effect, Eqn, Jaxpr, Literal, Primitive, Var
from ..runtime.module_getattr import module_attributes as _module_attributes
from .draw import draw, to_dot, to_svg
from .names import primitive
from .programs import as_function, equal, eval_jaxpr, trace

__all__ = [
    "Aval",
    "Effect",
    "Eqn",
    "Jaxpr",
    "Literal",
    "Primitive",
    "Var",
    "as_function",
    "draw",
    "equal",
    "eval_jaxpr",
    "primitive",
    "to_dot",
    "to_svg",
    "trace",
]

__getattr__, __dir__ = _module_attributes("functrans.ir", globals())
