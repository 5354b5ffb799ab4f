"""Forward and backward programs as a pair: to look at, to cut, and to compile with another compiler.

`trace_pair` returns both programs, `aot_function` a function that runs them. What the forward program saves for the
backward one is chosen by a partitioner: `min_cut`, `save_all`, `recompute_all`, ``by_policy(policy)``, or yours.
"""

from ..control.residuals.partitioner import Joint, min_cut, recompute_all, save_all
from ..lowering.run.executable import compile_jaxpr
from ..runtime.module_getattr import module_attributes as _module_attributes
from .function import aot_function
from .pair import Pair, SavedValue, by_policy, trace_pair

__all__ = [
    "Joint",
    "Pair",
    "SavedValue",
    "aot_function",
    "by_policy",
    "compile_jaxpr",
    "min_cut",
    "recompute_all",
    "save_all",
    "trace_pair",
]

__getattr__, __dir__ = _module_attributes("functrans.aot", globals())
