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
from ..passes.cost_analysis import Cost, cost_analysis, costs
from ..runtime.module_getattr import module_attributes as _module_attributes
from .builder import Builder
from .draw import draw, to_dot, to_svg
from .interpreter import Interpreter, Transformer
from .names import primitive
from .passes import (
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    inline,
    simplify,
    verify,
)
from .patterns import Any, Match, Op, match
from .programs import as_function, equal, eval_jaxpr, trace
from .rewriting import Rule, rewrite
from .splitting import Split, split

__all__ = [
    "Any",
    "Aval",
    "Builder",
    "Cost",
    "Effect",
    "Eqn",
    "Interpreter",
    "Jaxpr",
    "Literal",
    "Match",
    "Op",
    "Primitive",
    "Rule",
    "Split",
    "Transformer",
    "Var",
    "as_function",
    "cost_analysis",
    "costs",
    "draw",
    "eliminate_common_subexpressions",
    "eliminate_dead_code",
    "equal",
    "eval_jaxpr",
    "fold_constants",
    "inline",
    "match",
    "primitive",
    "rewrite",
    "simplify",
    "split",
    "to_dot",
    "to_svg",
    "trace",
    "verify",
]

__getattr__, __dir__ = _module_attributes("functrans.ir", globals())
