"""Valid calls of `jet` and `checkify`, for `base_calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans.experimental import checkify

X = np.array([0.25, 0.5, 0.75])

#: name in the namespace -> (through, args, kwargs)
OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans.experimental.jet": [("jet", None, (fnp.sin, (X,), ((X, None),)), {})],
    "functrans.experimental.checkify": [
        ("check", None, (True, "{} {x}", X), {"x": 1.0}),
        ("debug_check", None, (True, "{} {x}", X), {"x": 1.0}),
        ("check_error", None, (checkify.checkify(fnp.sin)(X)[0],), {}),
        ("checkify", lambda function, *args, **kwargs: function(*args, **kwargs)(X), (fnp.sin,), {}),
    ],
}
LEFT_OUT = {"functrans.experimental.checkify": {"Error", "JaxRuntimeError"}}
