"""Record the dtypes of JAX's results, in an environment that has it: ``python record_promotion.py > promotion.json``.

A table has, for 64 bits on and off, the results of binary operations on all pairs of dtypes and Python numbers, and of
functions of one operand. A result is the kind and the size of a dtype (``f4``; ``bf`` is bfloat16), or ``!`` for an
error.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
NUMBERS = {"True": True, "2": 2, "1.5": 1.5, "2j": 2j}
KINDS = (*_DTYPES.split(), *NUMBERS)
BINARY = (
    "add",
    "multiply",
    "true_divide",
    "floor_divide",
    "power",
    "maximum",
    "bitwise_and",
    "left_shift",
    "arctan2",
)
UNARY = (
    "sin",
    "exp",
    "square",
    "absolute",
    "floor",
    "sum",
    "mean",
    "argmax",
    "cumsum",
    "negative",
    "reciprocal",
)


def operand(jnp: Any, kind: str) -> Any:
    """A Python number, or an array of two elements."""
    return NUMBERS[kind] if kind in NUMBERS else jnp.ones(2, kind)


def outcome(f: Callable[..., Any], *args: Any) -> str:
    """The dtype of a result."""
    try:
        out = f(*args)
    except (TypeError, ValueError):
        return "!"
    return "bf" if out.dtype.name == "bfloat16" else f"{out.dtype.kind}{out.dtype.itemsize}"


def table(jnp: Any, wrapped: Callable[..., Any]) -> dict[str, list[str]]:
    """All results, with functions as `wrapped` makes them: of a binary operation a line for each first operand."""
    rows: dict[str, list[str]] = {}
    for name in BINARY:
        f = wrapped(getattr(jnp, name))
        rows[name] = [" ".join([outcome(f, operand(jnp, a), operand(jnp, b)) for b in KINDS]) for a in KINDS]
    for name in UNARY:
        rows[name] = [" ".join([outcome(wrapped(getattr(jnp, name)), operand(jnp, a)) for a in KINDS])]
    return rows


def main() -> None:
    """Print the tables."""
    import jax
    import jax.numpy as jnp

    warnings.simplefilter("ignore")
    tables = {}
    for x64 in (False, True):
        jax.config.update("jax_enable_x64", x64)
        tables["64" if x64 else "32"] = table(jnp, lambda f: lambda *args: jax.eval_shape(lambda: f(*args)))
    json.dump({"jax": jax.__version__, **tables}, sys.stdout, indent=0, separators=(",", ":"))


if __name__ == "__main__":
    main()
