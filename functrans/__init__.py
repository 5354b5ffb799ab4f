# ruff: noqa: F401
"""functrans: composable transformations of NumPy programs, compiled through Numba.

``import functrans as ft`` provides the transformations (`jit`, `grad`, `vmap`, ...), and namespaces: ``ft.numpy``,
``ft.scipy``, ``ft.lax``, ``ft.testing`` and others. Each name loads when it is first used.
"""

from __future__ import annotations

from numpy import float16

from .runtime.context import imports as _imports

with _imports():
    from . import errors, numpy, scipy
from .arrays.array import Array
from .core import BackwardState, Device, FunctionError, Zero, float0
from .core.low_precision import low_dtype as _low_dtype
from .runtime.config import config
from .runtime.module_getattr import lazy_import as _lazy_import
from .runtime.module_getattr import module_attributes as _module_attributes
from .runtime.module_getattr import on_demand as _on_demand
from .runtime.module_getattr import slots as _slots

_slots.compiler = _lazy_import("functrans.api.compiled.known_programs")
_slots.numba = _lazy_import("functrans.interop.jitted.type")
_slots.operations = _lazy_import("functrans.api.autocast")
_slots.pictures = _lazy_import("functrans.passes.pictures.picture")
_slots.world = _lazy_import("functrans.distributed.world")

__version__ = "0.2.0"

with _on_demand(globals()) as _later:
    from . import (
        ad_checkpoint,
        aot,
        checkpoint_policies,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        dtypes,
        example_libraries,
        experimental,
        export,
        extend,
        flatten_util,
        image,
        ir,
        lax,
        nn,
        ops,
        profiler,
        random,
        ref,
        sharding,
        test_util,
        testing,
        tree,
        tree_util,
        typing,
    )
    from .api.autocast import autocast, get_autocast_dtype, is_autocast_enabled
    from .api.beside_jax import from_jax, to_jax
    from .api.callback import io_callback, pure_callback
    from .api.checkpoint import checkpoint, checkpoint_name, remat
    from .api.compiled.jit import clear_caches, disable_jit, jit
    from .api.compiled.stages import eval_shape, make_jaxpr
    from .api.configuration import show_config
    from .api.derivatives import jvp, linear_transpose, linearize, vjp
    from .api.devices import (
        block_until_ready,
        default_backend,
        default_device,
        device_count,
        device_get,
        device_put,
        devices,
        effects_barrier,
        local_device_count,
        local_devices,
        named_call,
        named_scope,
        process_count,
        process_index,
        typeof,
    )
    from .api.flags import (
        check_tracer_leaks,
        checking_leaks,
        debug_infs,
        debug_key_reuse,
        debug_nans,
        default_matmul_precision,
        enable_x64,
        ensure_compile_time_eval,
        log_compiles,
        no_tracing,
        numpy_dtype_promotion,
        numpy_rank_promotion,
    )
    from .api.grad import grad, value_and_grad
    from .api.hooks.hookable import MultiHandle, hookable, register_group_hooks
    from .api.hooks.hooks import (
        RemovableHandle,
        cotangent_hook,
        post_accumulate_hook,
        register_hook,
        register_multi_grad_hook,
    )
    from .api.jacobian import fwd_and_bwd, hessian, jacfwd, jacobian, jacrev
    from .api.progress import progress
    from .api.refs import empty_ref, free_ref, freeze, new_ref
    from .api.vmap import vmap
    from .arrays.donation import donate
    from .arrays.ref import Ref
    from .custom.closures import closure_convert
    from .custom.custom_function import custom_gradient, custom_jvp, custom_vjp
    from .custom.custom_vmap import custom_vmap
    from .custom.function import Function, once_differentiable
    from .custom.fwd_bwd import custom_bwd, custom_fwd
    from .custom.linear_call import linear_call
    from .custom.saving import saved_values_hooks
    from .distributed import P, shard_map
    from .frontend.structs import ShapeDtypeStruct
    from .interop import njit, numba_call  # with Numba
    from .profiler import profile
    from .sharding import NamedSharding, make_mesh

__all__ = [
    "Array",
    "BackwardState",
    "Device",
    "Function",
    "FunctionError",
    "MultiHandle",
    "NamedSharding",
    "P",
    "Ref",
    "RemovableHandle",
    "ShapeDtypeStruct",
    "Zero",
    "ad_checkpoint",
    "autocast",
    "block_until_ready",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "cotangent_hook",
    "custom_batching",
    "custom_bwd",
    "custom_derivatives",
    "custom_fwd",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vmap",
    "debug",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "distributed",
    "donate",
    "dtypes",
    "effects_barrier",
    "empty_ref",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "example_libraries",
    "experimental",
    "export",
    "extend",
    "flatten_util",
    "float0",
    "float16",
    "free_ref",
    "freeze",
    "from_jax",
    "fwd_and_bwd",
    "get_autocast_dtype",
    "grad",
    "hessian",
    "hookable",
    "image",
    "io_callback",
    "ir",
    "is_autocast_enabled",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_call",
    "linear_transpose",
    "linearize",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_jaxpr",
    "make_mesh",
    "named_call",
    "named_scope",
    "new_ref",
    "njit",
    "nn",
    "no_tracing",
    "numba_call",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "once_differentiable",
    "ops",
    "post_accumulate_hook",
    "process_count",
    "process_index",
    "profile",
    "profiler",
    "progress",
    "pure_callback",
    "random",
    "ref",
    "register_group_hooks",
    "register_hook",
    "register_multi_grad_hook",
    "remat",
    "saved_values_hooks",
    "scipy",
    "shard_map",
    "sharding",
    "show_config",
    "test_util",
    "testing",
    "to_jax",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "vjp",
    "vmap",
]

__getattr__, __dir__ = _module_attributes(
    "functrans",
    globals(),
    {
        "Tensor": "The array class is functrans.Array: make arrays with functrans.numpy.asarray",
        "live_arrays": "No list of arrays is kept: they are NumPy's. Python's tracemalloc shows their memory",
        "tensor": "Write functrans.numpy.asarray(x)",
    },
    later=_later,
    further=_low_dtype,
)
