"""Valid calls of the functions of refs, each with a new one, and of what splits or names a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from calls_transformations import then

import functrans as ft

X = np.array([0.25, 0.5, 0.75])
STRUCT = ft.ShapeDtypeStruct((2,), "float64")


def made(function: Callable[..., Any], ref: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the function with a new ref of the array that stands for it."""
    return function(ft.new_ref(ref) if type(ref) is np.ndarray else ref, *args, **kwargs)


def square(x: Any) -> Any:
    return x * x


def passed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Both passes."""
    fwd, bwd = function(*args, **kwargs)
    out, residuals, *_ = fwd(X)
    return bwd(residuals, out)


OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans": [
        ("new_ref", None, (X,), {}),
        ("empty_ref", None, (STRUCT,), {}),
        ("freeze", made, (X,), {}),
        ("free_ref", made, (X,), {}),
        ("fwd_and_bwd", passed, (square, 0), {}),
        ("jacobian", then(X), (square,), {}),
        ("named_call", then(X), (square,), {"name": "squares"}),
    ],
    "functrans.ref": [
        ("get", made, (X, 0), {}),
        ("set", made, (X, 0, 1.0), {}),
        ("swap", made, (X, 0, 1.0), {}),
        ("addupdate", made, (X, 0, 1.0), {}),
    ],
}
LEFT_OUT: dict[str, set[str]] = {"functrans": {"Ref"}, "functrans.ref": {"Ref"}}
