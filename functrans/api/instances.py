"""Jitted functions bound to an instance: methods and callable objects."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..core.config import config
from ..core.errors import StaleInstanceError
from .reads import attributes_read
from .watch import UnwatchableError, Watch

_PACKAGE = __name__.partition(".")[0]
_CURES = (
    "Register {} as a pytree (functrans.tree_util.register_dataclass), so that its arrays are arguments; or pass the "
    "value as an argument of the method; or make the instance a constant on purpose, ignoring later changes, with "
    "jit(..., static_argnames='self') or functools.partial of a plain function"
)


def untransformed(fun: Any) -> Any:
    """The innermost function, below `grad`, `vmap`, `jit` and other transformations."""
    while type(fun).__module__.partition(".")[0] == _PACKAGE and hasattr(fun, "__wrapped__"):
        fun = fun.__wrapped__
    return fun


def instance_of(fun: Any) -> Any:
    """The instance of a bound method or a callable object; None for other functions.

    Looks through transformations: ``grad(model.loss)`` reads the model as ``model.loss`` does.
    """
    fun = untransformed(fun)
    if type(fun) is MethodType:
        return fun.__self__
    plain = isinstance(fun, FunctionType | BuiltinFunctionType | functools.partial | np.ufunc | type)
    if (
        plain
        or type(fun).__module__.partition(".")[0] == _PACKAGE
        or type(type(fun).__call__) is not FunctionType
    ):
        return None
    return fun


def watch(fun: Any) -> Watch:
    """The watch of the instance in a function.

    Raises
    ------
    StaleInstanceError
        If it may change unnoticed. An object that defines ``__eq__`` and ``__hash__`` is trusted.
    """
    fun = untransformed(fun)
    instance = instance_of(fun)
    kind: Any = type(instance)
    method = fun.__func__ if type(fun) is MethodType else kind.__call__
    own = kind.__eq__ is not object.__eq__ and kind.__hash__ not in (None, object.__hash__)
    try:
        return Watch(instance, attributes_read(method, kind), lenient=own)
    except UnwatchableError as error:
        path, value = error.args
        raise StaleInstanceError(
            f"jit of {title_of(fun)}: {path} is of type {type(value).__name__}, which may change "
            "unnoticed, while what is read from it becomes a constant of the compiled program. "
            f"{_CURES.format(kind.__name__)}"
        ) from None


def check(watch: Watch, title: str, instance: Any) -> None:
    """Raise `StaleInstanceError` if an instance has changed, except under `disable_jit`."""
    where = watch.changed(instance)
    if where is not None and not config.disable_jit:
        raise StaleInstanceError(
            f"jit of {title}: self{where} has changed since the method was traced, and the compiled program "
            f"uses the old value. {_CURES.format(type(instance).__name__)}; or call clear_cache() of the "
            "method, to trace it again"
        )


def held_weakly(instance: Any) -> Callable[[], Any]:
    """A function that returns the instance, and does not keep it alive if possible."""
    try:
        return weakref.ref(instance)
    except TypeError:
        return lambda: instance


def title_of(fun: Any) -> str:
    """The name of a function, for messages."""
    fun = untransformed(fun)
    return str(getattr(fun, "__qualname__", type(fun).__qualname__))
