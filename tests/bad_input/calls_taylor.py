"""Valid calls of `jet`, `checkify` and the flags, for `base_calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans.experimental import checkify

X = np.array([0.25, 0.5, 0.75])


def entered(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Enter the context that the function returns."""
    with function(*args, **kwargs):
        return fnp.sin(X)


def decorated(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call what the function decorates."""
    return function(*args, **kwargs)(X)


#: name in the namespace -> (through, args, kwargs)
OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans": [
        *[
            (name, entered, (False,), {})
            for name in ("debug_nans", "debug_infs", "log_compiles", "check_tracer_leaks")
        ],
        ("no_tracing", entered, (False,), {}),
        ("autocast", entered, ("float32",), {"enabled": True, "cache_casts": True, "rules": {"exp": "none"}}),
        ("custom_fwd", decorated, (fnp.sin,), {"cast_inputs": "float32"}),
        ("custom_bwd", decorated, (fnp.sin,), {}),
        ("is_autocast_enabled", None, (), {}),
        ("get_autocast_dtype", None, (), {}),
        ("checking_leaks", entered, (), {}),
        ("enable_x64", entered, (True,), {}),
        ("numpy_dtype_promotion", entered, ("standard",), {}),
        ("numpy_rank_promotion", entered, ("allow",), {}),
        ("default_matmul_precision", entered, ("float32",), {}),
        ("ensure_compile_time_eval", entered, (), {}),
    ],
    "functrans.experimental.jet": [("jet", None, (fnp.sin, (X,), ((X, None),)), {})],
    "functrans.experimental.checkify": [
        ("check", None, (True, "{} {x}", X), {"x": 1.0}),
        ("debug_check", None, (True, "{} {x}", X), {"x": 1.0}),
        ("check_error", None, (checkify.checkify(fnp.sin)(X)[0],), {}),
        ("checkify", lambda function, *args, **kwargs: function(*args, **kwargs)(X), (fnp.sin,), {}),
    ],
}
LEFT_OUT = {"functrans.experimental.checkify": {"Error", "JaxRuntimeError"}}
