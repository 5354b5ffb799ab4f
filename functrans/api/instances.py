"""Jitted functions with an instance in them: methods, and objects that are called."""

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
    "Register {} as a tree (functrans.tree_util.register_dataclass), so that its arrays are arguments; or pass the "
    "value as an argument of the method; or make the instance a constant on purpose, whatever changes, by "
    "jit(..., static_argnames='self') or functools.partial of a plain function"
)


def untransformed(fun: Any) -> Any:
    """What `grad`, `vmap`, `jit` and the like were made of: the function below all of them."""
    while type(fun).__module__.partition(".")[0] == _PACKAGE and hasattr(fun, "__wrapped__"):
        fun = fun.__wrapped__
    return fun


def instance_of(fun: Any) -> Any:
    """The instance that a bound method, or an object that is called, gets; None for other functions.

    Also where the function is a transformed one: ``grad(model.loss)`` reads the model as ``model.loss`` does.
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
        If it may change unseen. What is compared by an ``__eq__`` and a ``__hash__`` of its own is trusted.
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
            f"jit of {title_of(fun)}: {path} is of type {type(value).__name__}, which may change unseen, while what is "
            f"read from it becomes a constant of the compiled program. {_CURES.format(kind.__name__)}"
        ) from None


def check(watch: Watch, title: str, instance: Any) -> None:
    """Raise `StaleInstanceError` where an instance has changed; under `disable_jit` it may."""
    where = watch.changed(instance)
    if where is not None and not config.disable_jit:
        raise StaleInstanceError(
            f"jit of {title}: self{where} has changed since the method was traced with it, and the compiled program "
            f"holds what it was. {_CURES.format(type(instance).__name__)}; or clear_cache() of the method, to trace it "
            "anew"
        )


def held_weakly(instance: Any) -> Callable[[], Any]:
    """A function that gives the instance, and does not keep it alive where that is possible."""
    try:
        return weakref.ref(instance)
    except TypeError:
        return lambda: instance


def title_of(fun: Any) -> str:
    """The name of a function, for messages."""
    fun = untransformed(fun)
    return str(getattr(fun, "__qualname__", type(fun).__qualname__))
