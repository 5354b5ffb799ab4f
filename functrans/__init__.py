"""functrans: composable transformations of NumPy programs, compiled through Numba.

``import functrans as ft`` provides the transformations (`jit`, `grad`, `vmap`, ...). ``ft.numpy``, ``ft.scipy``,
``ft.lax``, ``ft.testing`` and the other namespaces load on first use.
"""

from __future__ import annotations

from . import numpy, scipy  # they also register NumPy's functions and SciPy's ufuncs for traced values
from .api.callback import io_callback, pure_callback
from .api.checkpoint import checkpoint, checkpoint_name, remat
from .api.derivatives import jvp, linear_transpose, linearize, vjp
from .api.grad import grad, value_and_grad
from .api.hookable import MultiHandle, hookable, register_group_hooks
from .api.hooks import (
    RemovableHandle,
    cotangent_hook,
    post_accumulate_hook,
    register_hook,
    register_multi_grad_hook,
)
from .api.jacobian import hessian, jacfwd, jacrev
from .api.jit import clear_caches, disable_jit, jit
from .api.progress import progress
from .api.stages import eval_shape, make_jaxpr
from .api.vmap import vmap
from .arrays.array import Array
from .arrays.donation import donate
from .core import BackwardState, FunctionError, Zero, errors
from .core.config import config
from .core.module_getattr import module_attributes as _module_attributes
from .custom.closures import closure_convert
from .custom.custom_function import custom_gradient, custom_jvp, custom_vjp
from .custom.custom_vmap import custom_vmap
from .custom.function import Function, once_differentiable
from .custom.linear_call import linear_call
from .custom.saving import saved_values_hooks
from .frontend.arguments import ShapeDtypeStruct

__version__ = "0.1.0"

_LAZY = (
    "checkpoint_policies",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "experimental",
    "export",
    "flatten_util",
    "lax",
    "nn",
    "ops",
    "random",
    "testing",
    "tree",
    "tree_util",
)

__all__ = [
    "Array",
    "BackwardState",
    "Function",
    "FunctionError",
    "MultiHandle",
    "RemovableHandle",
    "ShapeDtypeStruct",
    "Zero",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "cotangent_hook",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vmap",
    "debug",
    "disable_jit",
    "donate",
    "errors",
    "eval_shape",
    "experimental",
    "export",
    "flatten_util",
    "grad",
    "hessian",
    "hookable",
    "io_callback",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_call",
    "linear_transpose",
    "linearize",
    "make_jaxpr",
    "nn",
    "numpy",
    "once_differentiable",
    "ops",
    "post_accumulate_hook",
    "progress",
    "pure_callback",
    "random",
    "register_group_hooks",
    "register_hook",
    "register_multi_grad_hook",
    "remat",
    "saved_values_hooks",
    "scipy",
    "testing",
    "tree",
    "tree_util",
    "value_and_grad",
    "vjp",
    "vmap",
]


__getattr__, __dir__ = _module_attributes(
    "functrans",
    globals(),
    {
        "Tensor": "The array class is functrans.Array: make arrays with functrans.numpy.asarray",
        "tensor": "Write functrans.numpy.asarray(x)",
        "device_put": "functrans has one device: use arrays directly",
        "device_get": "Results are NumPy arrays: use them directly",
        "block_until_ready": "Results are ready when a call returns: use them directly",
        "named_scope": "Kernels and messages already name the lines of the program",
        "pmap": "functrans has one device: use vmap",
    },
    parts=_LAZY,
)
