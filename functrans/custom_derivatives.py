"""Functions with custom derivative rules, under the names of ``jax.custom_derivatives``."""

from __future__ import annotations

from .core.aval import Zero as SymbolicZero
from .custom.closures import closure_convert
from .custom.custom_function import custom_gradient, custom_jvp, custom_vjp
from .custom.jax_call import CustomVJPPrimal, custom_vjp_primal_tree_values, zero_from_primal
from .custom.linear_call import linear_call
from .runtime.module_getattr import module_attributes as _module_attributes

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]
__getattr__, __dir__ = _module_attributes("functrans.custom_derivatives", globals())
