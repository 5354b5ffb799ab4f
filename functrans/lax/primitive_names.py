"""The primitives under JAX's names: ``lax.sin_p``, for interpreters of jaxprs and rules."""

from __future__ import annotations

from typing import Any

from ..control import cond, scan, while_loop
from ..core import Primitive
from ..primitives import ops, special_ops

#: JAX's names of primitives that have another name here and the same operands and parameters.
_NAMES = {
    "acos_p": "arccos_p",
    "acosh_p": "arccosh_p",
    "asin_p": "arcsin_p",
    "asinh_p": "arcsinh_p",
    "atan_p": "arctan_p",
    "atan2_p": "arctan2_p",
    "atanh_p": "arctanh_p",
    "bitcast_convert_type_p": "bitcast_p",
    "erf_inv_p": "erfinv_p",
    "igamma_p": "gammainc_p",
    "igammac_p": "gammaincc_p",
    "regularized_incomplete_beta_p": "betainc_p",
    "rem_p": "fmod_p",
}


def primitive(name: str) -> Primitive | None:
    """The primitive of this name, ``sin_p``; None if there is none."""
    if not name.endswith("_p"):
        return None
    for module in (ops, special_ops, cond, scan, while_loop):
        found: Any = getattr(module, _NAMES.get(name, name), None)
        if isinstance(found, Primitive):
            return found
    return None
