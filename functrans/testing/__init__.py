"""Test derivatives, batching and kernels of your functions and of primitives.

`check` tests all laws on a function at a point. Each law is also a separate function: `jvp_is_slope`, `vjp_is_adjoint`
and so on (`LAWS`). `check_primitive` derives the tests of a primitive from its record. `given_op`, the
strategies from `arrays` to `programs`, and `domains` are for property tests with Hypothesis.
"""

from ..runtime.module_getattr import module_attributes as _module_attributes
from . import domains
from .checking import LAWS, check
from .custom_checking import RULE_LAWS, check_custom_rule
from .domain import Bools, Case, Distinct, Domain, Indices, Interval, Numbers, PositiveDefinite, Triangular
from .finite_difference import directional_derivative, is_kink, jacobian
from .given_derivative import derivative_is_right
from .gradient_checks import gradcheck, gradgradcheck
from .laws import (
    derivatives_are_linear,
    gradients_keep_types,
    hessian_is_symmetric,
    inputs_stay,
    is_smooth,
    jit_and_grad_commute,
    jit_is_eager,
    jvp_is_slope,
    vjp_is_adjoint,
    vjp_is_slope,
    vmap_is_loop,
)
from .precision import single_precision_agrees
from .primitive import check_primitive
from .programs import programs
from .report import LawViolation
from .strategies import arrays, broadcastable, given_op, in_axes_for, operands, pytrees, tangents_like

__all__ = [
    "LAWS",
    "RULE_LAWS",
    "Bools",
    "Case",
    "Distinct",
    "Domain",
    "Indices",
    "Interval",
    "LawViolation",
    "Numbers",
    "PositiveDefinite",
    "Triangular",
    "arrays",
    "broadcastable",
    "check",
    "check_custom_rule",
    "check_primitive",
    "derivative_is_right",
    "derivatives_are_linear",
    "directional_derivative",
    "domains",
    "given_op",
    "gradcheck",
    "gradgradcheck",
    "gradients_keep_types",
    "hessian_is_symmetric",
    "in_axes_for",
    "inputs_stay",
    "is_kink",
    "is_smooth",
    "jacobian",
    "jit_and_grad_commute",
    "jit_is_eager",
    "jvp_is_slope",
    "operands",
    "programs",
    "pytrees",
    "single_precision_agrees",
    "tangents_like",
    "vjp_is_adjoint",
    "vjp_is_slope",
    "vmap_is_loop",
]
__getattr__, __dir__ = _module_attributes("functrans.testing", globals())
