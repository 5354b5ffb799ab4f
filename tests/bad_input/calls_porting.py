"""Valid calls of the functions of devices, for `base_calls`."""

from __future__ import annotations

from typing import Any

from calls_transformations import TREE, X, entered

import functrans as ft

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
        ("default_backend", None, (), {}),
        ("default_device", entered, (ft.devices()[0],), {}),
        ("device_get", None, (TREE,), {}),
        ("device_put", None, (TREE, "cpu"), {}),
        ("effects_barrier", None, (), {}),
        ("local_devices", None, (0, "cpu"), {}),
        ("named_scope", entered, ("name",), {}),
        ("typeof", None, (X,), {}),
    ],
}
LEFT_OUT: dict[str, set[str]] = {"functrans": {"Device"}}
