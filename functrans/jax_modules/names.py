"""Which module of JAX has which of functrans's objects: one table, of text, so that nothing loads before it is used.

A row names modules of functrans, all of whose public names the module of JAX has, and places (``"module:name"``) of
further names. Where JAX's libraries use what is private in JAX (``jax._src``), rows have those names alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..runtime.records import NamedTuple

#: The version of JAX whose names these are.
VERSION = "0.10.2"
VERSION_INFO = tuple(map(int, VERSION.split(".")))


class JaxNames(NamedTuple):
    """What a module of JAX has.

    Attributes
    ----------
    sources : tuple of str
        Modules of functrans, which are searched in this order.
    names : mapping from str to str
        Places of further names.
    constants : mapping from str to Any
        Values that have no place.
    """

    sources: tuple[str, ...] = ()
    names: Mapping[str, str] = {}
    constants: Mapping[str, Any] = {}


def _same(*names: str) -> dict[str, JaxNames]:
    """Modules that have the same name in functrans."""
    return {f"jax.{name}": JaxNames((f"functrans.{name}",)) for name in names}


def _at(module: str, names: str) -> dict[str, str]:
    """Names that a module of functrans has, with their places."""
    return {name: f"{module}:{name}" for name in names.split()}


_VERSIONS = {"__version__": VERSION, "__version_info__": VERSION_INFO}
_EXTEND = "functrans.extend"
_PRIVATE = "functrans.jax_modules.private"

MODULES: dict[str, JaxNames] = {
    "jax": JaxNames(
        ("functrans", "functrans.sharding"),
        {"__functrans__": "functrans", "pmap": f"{_PRIVATE}:pmap"},
        _VERSIONS,
    ),
    "jax.version": JaxNames((), {}, _VERSIONS),
    "jax.core": JaxNames(
        ("functrans.extend.core",),
        {
            **_at(
                "functrans.core.evaluation", "AbstractValue ParamDict eval_context eval_jaxpr max_dim min_dim"
            ),
            "Atom": "functrans.core.ir:Atom",
            "pytype_aval_mappings": f"{_PRIVATE}:array_types",
            "ensure_compile_time_eval": "functrans:ensure_compile_time_eval",
        },
    ),
    **_same(
        "ad_checkpoint",
        "checkpoint_policies",
        "custom_batching",
        "debug",
        "distributed",
        "dtypes",
        "errors",
        "example_libraries",
        "example_libraries.optimizers",
        "example_libraries.stax",
        "experimental.jet",
        "experimental.multihost_utils",
        "experimental.ode",
        "export",
        "flatten_util",
        "image",
        "lax.linalg",
        "nn",
        "nn.initializers",
        "numpy.fft",
        "numpy.linalg",
        "ops",
        "profiler",
        "random",
        "ref",
        "scipy",
        "scipy.cluster",
        "scipy.cluster.vq",
        "scipy.fft",
        "scipy.integrate",
        "scipy.interpolate",
        "scipy.linalg",
        "scipy.ndimage",
        "scipy.optimize",
        "scipy.signal",
        "scipy.sparse",
        "scipy.sparse.linalg",
        "scipy.spatial",
        "scipy.spatial.transform",
        "scipy.special",
        "scipy.stats",
        "test_util",
        "tree",
        "tree_util",
        "typing",
    ),
    "jax.custom_derivatives": JaxNames(
        ("functrans.custom_derivatives",), _at(_PRIVATE, "custom_jvp_call_p custom_vjp_call_p")
    ),
    "jax.numpy": JaxNames(
        ("functrans.numpy",),
        _at(
            "ml_dtypes",
            (
                "float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
                "float8_e5m2fnuz float8_e8m0fnu int2 int4 uint2 uint4"
            ),
        ),
    ),
    "jax.lax": JaxNames(
        ("functrans.lax",),
        _at(_PRIVATE, "rsqrt_p stop_gradient_p"),
    ),
    "jax.sharding": JaxNames(
        ("functrans.sharding",), _at(_PRIVATE, "AbstractMesh get_abstract_mesh reshard")
    ),
    "jax.stages": JaxNames(
        (),
        {
            "Compiled": "functrans.api.compiled.lowered:Compiled",
            "Lowered": "functrans.api.compiled.lowered:Lowered",
            "Traced": "functrans.api.compiled.lowered:TracedFunction",
            "Wrapped": "functrans.api.compiled.jitted:Jitted",
            "CompilerOptions": "builtins:dict",
            "ArgInfo": "functrans:ShapeDtypeStruct",
        },
    ),
    "jax.api_util": JaxNames(
        (),
        {
            **_at(f"{_EXTEND}.linear_util", "debug_info flatten_fun flatten_fun_nokwargs"),
            "safe_map": f"{_PRIVATE}:safe_map",
        },
    ),
    "jax.dlpack": JaxNames((), {"from_dlpack": "functrans.numpy:from_dlpack"}),
    "jax.extend": JaxNames(),
    "jax.extend.backend": JaxNames((), {}),
    "jax.extend.core": JaxNames((f"{_EXTEND}.core",), {"Effect": f"{_PRIVATE}:JaxEffect"}),
    "jax.extend.core.primitives": JaxNames(
        (),
        {
            "jit_p": f"{_EXTEND}.core:jit_p",
            **_at(_PRIVATE, "call_p closed_call_p"),
        },
    ),
    "jax.extend.linear_util": JaxNames((f"{_EXTEND}.linear_util",)),
    "jax.extend.random": JaxNames((), {}),
    "jax.extend.source_info_util": JaxNames((), _at(_PRIVATE, "register_exclusion")),
    "jax.interpreters": JaxNames(),
    "jax.interpreters.ad": JaxNames((f"{_EXTEND}.ad",)),
    "jax.interpreters.batching": JaxNames((f"{_EXTEND}.batching",)),
    "jax.interpreters.mlir": JaxNames((f"{_EXTEND}.mlir",)),
    "jax.interpreters.partial_eval": JaxNames((f"{_EXTEND}.partial_eval",)),
    "jax.interpreters.pxla": JaxNames(),
    "jax.interpreters.xla": JaxNames(
        (), dict.fromkeys(("canonicalize_dtype_handlers", "pytype_aval_mappings"), f"{_PRIVATE}:array_types")
    ),
    "jax.experimental": JaxNames(
        ("functrans.experimental",),
        {
            "enable_x64": "functrans:enable_x64",
            "cur_qdd": f"{_EXTEND}.hijax:cur_qdd",
            "shard_map": "functrans:shard_map",
        },
    ),
    "jax.experimental.checkify": JaxNames(
        ("functrans.experimental.checkify",), {"ErrorCategory": "builtins:str"}
    ),
    "jax.experimental.layout": JaxNames((), _at(_PRIVATE, "Format")),
    "jax.experimental.hijax": JaxNames((f"{_EXTEND}.hijax",)),
    "jax.experimental.shard_map": JaxNames((), {"shard_map": "functrans:shard_map"}),
    "jax.experimental.sparse": JaxNames((), _at(_PRIVATE, "BCOO")),
    "jax.lib": JaxNames(),
    "jax.monitoring": JaxNames(
        (),
        {
            "record_event": f"{_PRIVATE}:record_event",
            "record_event_duration_secs": f"{_PRIVATE}:record_event",
        },
    ),
    **{
        f"jax.scipy.stats.{name}": JaxNames((f"functrans.scipy.stats:{name}",))
        for name in (
            "bernoulli",
            "beta",
            "betabinom",
            "binom",
            "cauchy",
            "chi2",
            "dirichlet",
            "expon",
            "gamma",
            "gennorm",
            "geom",
            "gumbel_l",
            "gumbel_r",
            "laplace",
            "logistic",
            "multinomial",
            "multivariate_normal",
            "nbinom",
            "norm",
            "pareto",
            "poisson",
            "t",
            "truncnorm",
            "uniform",
            "vonmises",
            "wrapcauchy",
        )
    },
    # --- what is private in JAX, and its libraries use --------------------------------------------------------
    "jax._src": JaxNames(),
    "jax._src.ad_util": JaxNames((), _at(_PRIVATE, "stop_gradient_p")),
    "jax._src.checkify": JaxNames(
        ("functrans.experimental.checkify",),
        {
            "JaxException": f"{_PRIVATE}:JaxException",
            "Out": "typing:Any",
        },
    ),
    "jax._src.compiler": JaxNames(),
    "jax._src.core": JaxNames(("functrans.extend.core",)),
    "jax._src.dispatch": JaxNames((), _at(_PRIVATE, "wait_for_tokens")),
    "jax._src.dtypes": JaxNames(
        ("functrans.dtypes",),
        {
            **_at(_PRIVATE, "ExtendedDType supports_inf to_complex_dtype"),
            "DType": "numpy:dtype",
        },
    ),
    "jax._src.flatten_util": JaxNames(("functrans.flatten_util",)),
    "jax._src.literals": JaxNames((), {"LiteralArray": f"{_PRIVATE}:LiteralArray"}),
    "jax._src.public_test_util": JaxNames(("functrans.test_util",), _at(_PRIVATE, "check_close")),
    "jax._src.state": JaxNames(),
    "jax._src.state.types": JaxNames((), {"AbstractRef": f"{_PRIVATE}:AbstractRef"}),
    "jax._src.traceback_util": JaxNames(
        (),
        {
            **_at(_PRIVATE, "api_boundary include_frame register_exclusion"),
            "_exclude_paths": f"{_PRIVATE}:exclude_paths",
        },
    ),
    "jax._src.tree_util": JaxNames(("functrans.tree_util",), {"_registry": f"{_PRIVATE}:registry"}),
    "jax._src.xla_bridge": JaxNames(),
    "jaxlib": JaxNames((), {}, _VERSIONS),
}

#: What to use instead of modules and names that do not exist, besides the nearest names.
MISSING: dict[str, str] = {
    "jax.experimental.pallas": "functrans has no kernels for accelerators: write a loop in functrans.njit",
    "jax.experimental.host_callback": "Use jax.pure_callback or jax.experimental.io_callback",
}
