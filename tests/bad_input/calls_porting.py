"""Valid calls of the functions of devices, for `base_calls`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from calls_transformations import TREE, X, entered

import functrans as ft


def stopped(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call with a debugger that goes on at once."""
    before, sys.breakpointhook = sys.breakpointhook, lambda: None
    try:
        return function(*args, **kwargs)
    finally:
        sys.breakpointhook = before


def sharded(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the function that it makes."""
    return function(*args, **kwargs)(X)


MESH = ft.make_mesh((1,), ("i",), backend="self")

OWN: dict[str, list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans": [
        ("block_until_ready", None, (TREE,), {}),
        *[
            (n, None, ("cpu",), {})
            for n in (
                "device_count",
                "devices",
                "local_device_count",
                "process_count",
                "process_index",
            )
        ],
        ("debug_key_reuse", entered, (True,), {}),
        ("default_backend", None, (), {}),
        ("default_device", entered, (ft.devices()[0],), {}),
        ("device_get", None, (TREE,), {}),
        ("device_put", None, (TREE, "cpu"), {}),
        ("effects_barrier", None, (), {}),
        ("local_devices", None, (0, "cpu"), {}),
        ("named_scope", entered, ("name",), {}),
        ("typeof", None, (X,), {}),
        ("P", None, ("i", None), {}),
        ("make_mesh", None, ((1,), ("i",)), {}),
        ("shard_map", sharded, (np.sin,), {"mesh": MESH, "in_specs": ft.P("i"), "out_specs": ft.P("i")}),
    ],
    "functrans.dtypes": [
        ("canonicalize_dtype", None, (float,), {}),
        ("itemsize_bits", None, ("float32",), {}),
        ("result_type", None, (X, 1), {}),
        ("scalar_type_of", None, (X,), {}),
    ],
    "functrans.ad_checkpoint": [("print_saved_residuals", None, (np.sum, X), {})],
    "functrans.sharding": [
        ("SingleDeviceSharding", None, (ft.devices()[0],), {}),
        ("NamedSharding", None, (MESH, ft.P("i")), {}),
        ("PartitionSpec", None, ("i", None), {}),
        ("make_mesh", None, ((1,), ("i",)), {}),
    ],
    "functrans.debug": [("breakpoint", stopped, (), {})],
}
LEFT_OUT: dict[str, set[str]] = {
    # Of functions of JAX, which is another library.
    "functrans": {"Device", "float16", "from_jax", "to_jax"},
    "functrans.sharding": {"AxisType", "Mesh", "Sharding"},
    "functrans.dtypes": {
        "TypePromotionError",
        "extended",
        "finfo",
        "float16",
        "iinfo",
        "issubdtype",
        "prng_key",
    },
}
