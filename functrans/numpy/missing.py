"""What happens to NumPy functions that have no counterpart here, when they meet a traced value."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..core.errors import NoRuleError
from ..core.trace import Tracer, operators


def _name(func: Callable[..., Any]) -> str:
    module = getattr(func, "__module__", "numpy") or "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{getattr(func, '__name__', func)}"


def nearest(func: Callable[..., Any]) -> list[str]:
    """Names of functions that exist for tracers, most similar first."""
    known = {f.__name__: _name(f) for f in operators.function if callable(f) and not isinstance(f, type)}
    return [known[n] for n in difflib.get_close_matches(func.__name__, known, n=3, cutoff=0.6)]


def _missing(func: Callable[..., Any], args: Any, kwargs: Any) -> NoReturn:
    traced = next((x for x in _flat((args, kwargs)) if isinstance(x, Tracer)), None)
    what = "a traced value" if traced is None else f"a traced value of type {traced.aval}"
    close = nearest(func)
    hint = f"Nearest: {', '.join(close)}" if close else "See functrans.numpy for what there is"
    raise NoRuleError(f"{_name(func)} of {what}: functrans has no such function. {hint}")


def _flat(x: Any) -> Any:
    if isinstance(x, tuple | list):
        for part in x:
            yield from _flat(part)
    elif isinstance(x, dict):
        yield from _flat(list(x.values()))
    else:
        yield x


operators.function[NotImplemented] = _missing
