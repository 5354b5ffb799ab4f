"""Valid calls of the functions of `nn` that make functions, for `base_calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans import random

KEY = random.key(0)


def drawn(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Draw by the initializer that the function returns."""
    return function(*args, **kwargs)(KEY, (2, 3, 4))


FANS = ("glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform")
OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans.nn.initializers": [
        ("constant", drawn, (2.0,), {}),
        *[
            (n, drawn, (), {})
            for n in ("delta_orthogonal", "normal", "orthogonal", "truncated_normal", "uniform")
        ],
        *[(n, drawn, (), {}) for n in FANS],
        ("variance_scaling", drawn, (1.0, "fan_in", "normal"), {}),
        *[(n, None, (KEY, (2, 3)), {}) for n in ("ones", "zeros")],
    ],
}
LEFT_OUT = {"functrans.nn.initializers": {"Initializer"}}
