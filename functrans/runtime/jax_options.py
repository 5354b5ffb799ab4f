"""What JAX calls the options, and which of them follow from `jax_semantics`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from ..errors import ConfigError, UnknownOptionError
from .option_list import OPTIONS
from .options import Option
from .unusual import unusual

#: JAX's names, besides those that only have the prefix ``jax_``.
_JAX_NAMES = {
    "jax_compilation_cache_dir": "cache_dir",
    "jax_compilation_cache_max_size": "cache_limit",
    "jax_enable_compilation_cache": "cache",
    "jax_enable_checks": "verify",
}
#: What `jax_semantics` sets other options to.
_IN_JAX = {"enable_x64": False, "index_errors": "clamp", "linalg_errors": "nan"}
_X64 = (
    "config.enable_x64 can only be True: functrans has 64-bit types, except with config.jax_semantics = True. For "
    "single precision, make the arguments float32 (dtype=float32, x.astype(float32)): what is computed from them is "
    "float32, too"
)


def option_named(name: str) -> Option[object]:
    """The option with that name, perhaps JAX's; raises an `UnknownOptionError` that names the nearest one."""
    own = name if name in OPTIONS else _JAX_NAMES.get(name) or name.removeprefix("jax_")
    if own in OPTIONS:
        return OPTIONS[own]
    near = difflib.get_close_matches(own, OPTIONS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(OPTIONS)}"
    raise UnknownOptionError(f"config has no option {name!r}: {hint}")


def implied(option: Option[object], value: object) -> dict[str, object]:
    """The values of other options that follow from one: by `jax_semantics` JAX's, or the defaults."""
    if option.name != "jax_semantics":
        return {}
    if value:  # JAX's lattice is another promotion: operations look for one alone
        OPTIONS["numpy_dtype_promotion"].ever_changed = True
    return {
        name: OPTIONS[name].checked(jaxs if value else OPTIONS[name].default)
        for name, jaxs in _IN_JAX.items()
    }


def check_bits(values: Mapping[str, object]) -> None:
    """Raise `ConfigError` where 64 bits are off, but JAX's semantics are not on."""
    if values["enable_x64"] is False:
        if not values["jax_semantics"]:
            raise ConfigError(_X64)
        unusual.narrow = True
