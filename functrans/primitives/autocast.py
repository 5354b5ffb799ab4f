"""Cast the operands of an operation as autocast says, by ordinary conversions, which derivatives follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array, is_immutable, unwrap
from ..arrays.autocast import ambient, ambient_scope, made
from ..arrays.protocols import is_array_like
from ..core import PYTHON_KEYS, FunctransError, Tracer, is_staged
from ..core.trace import Key, key_of
from ..core.values import ArrayLike, Value
from ..runtime.config import Config, config
from .elementwise.arithmetic import convert_element_type_p
from .operands import operand
from .structure.linear import shape_of


def adjusted(name: str, *values: Value) -> Sequence[Any]:
    """The operands of an operation, cast if autocast is on here. What is no array passes unchanged."""
    state = ambient()
    if state is None:
        return values
    policy = state.policy(name, map(_rank, values))
    if policy == "none":
        return values
    targets = state.targets(policy, tuple(map(_key, values)))
    return [x if to is None else cast(x, to, policy == "low") for x, to in zip(values, targets)]


def adjusted_arguments(
    name: str, args: Sequence[Any], operands: int, keywords: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Arguments of a function, with all arrays in them cast, also those in lists and tuples.

    Parameters
    ----------
    name : str
        That of the function.
    args, keywords
        The arguments by position and by name.
    operands : int
        How many of the first arguments are operands, so that lists of numbers in them are arrays.
    """
    state = ambient()
    assert state is not None
    if state.policy(name) == "none":
        return args, keywords
    args = [_with_arrays(x, i < operands) for i, x in enumerate(args)]
    policy = state.policy(name, map(_rank, args[:operands]))
    leaves: list[Any] = []
    _collect([args, list(keywords.values())], leaves)
    targets = state.targets(policy, tuple(map(_key, leaves)))
    if not any(targets):
        return list(args), keywords
    casts = {id(x): cast(x, to, policy == "low") for x, to in zip(leaves, targets) if to is not None}

    def replaced(x: ArrayLike) -> Any:
        if type(x) in (list, tuple):
            return type(x)([replaced(part) for part in x])
        return casts.get(id(x), x)

    return [replaced(x) for x in args], {k: replaced(x) for k, x in keywords.items()}


def cast(x: Value, dtype: np.dtype, cached: bool) -> Any:
    """An array or traced value in another dtype. With `cached`, once for each object in the outermost block."""
    made.count += 1
    cache = _cache_for(x) if cached else None
    known = None if cache is None else cache.get(x, dtype)
    if known is not None:
        return known
    out = convert_element_type_p.bind(unwrap(x), dtype=dtype, weak=False)
    # A value of another trace than that of `x` must not outlive that trace.
    if cache is not None and getattr(out, "_trace", None) is getattr(x, "_trace", None):
        cache.put(x, dtype, out)
    return out


def _cache_for(x: Value) -> Any:
    """The cache for casts of an object; None where there is none.

    A plain array may still change. In programs equal equations are one anyway.
    """
    scope = ambient_scope()
    if scope is None or scope.casts is None or is_staged():
        return None
    if isinstance(x, Tracer):
        looking = _leaks.ever_changed and config.check_tracer_leaks  # it would find the cast
        return None if looking else scope.casts
    return scope.casts if is_immutable(x) else None


_leaks = Config.check_tracer_leaks


def _with_arrays(x: ArrayLike, is_operand: bool) -> Any:
    """An operand as an array, if it is a list of numbers, or something else that NumPy makes one of."""
    kind = type(x)
    if not is_operand or kind in PYTHON_KEYS or _is_array(x) or not is_array_like(x):
        return x
    if kind in (list, tuple) and not _has_floats(x):
        return x
    try:
        return operand(x, "")
    except FunctransError:  # the operation itself says what is wrong
        return x


def _has_floats(x: Value) -> bool:
    """Whether a nested list holds floats, and no arrays, which are cast one by one."""
    leaves: list[Any] = []
    _collect(x, leaves)
    return not leaves and _first_number(x) is float


def _first_number(x: ArrayLike) -> Any:
    while type(x) in (list, tuple) and x:
        x = x[0]
    return type(x)


def _collect(x: ArrayLike, leaves: list[Any]) -> None:
    if type(x) in (list, tuple):
        for part in x:
            _collect(part, leaves)
    elif _is_array(x):
        leaves.append(x)


def _is_array(x: Value) -> bool:
    return isinstance(x, np.ndarray | np.generic | Tracer)


def _key(x: Value) -> Key:
    """The promotion key; that of Python's numbers for what autocast leaves alone."""
    if type(x) is Array or type(x) is np.ndarray or isinstance(x, np.generic):
        return x.dtype
    return key_of(x) if isinstance(x, Tracer) else float


def _rank(x: Value) -> int:
    return len(shape_of(x)) if _is_array(x) else 0
