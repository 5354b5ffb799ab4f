"""Functions with transformations of their arguments and results around them: ``jax.extend.linear_util``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import ArgumentError
from ..frontend.pytree import PyTreeDef, tree_flatten, tree_unflatten
from ..runtime.module_getattr import module_attributes as _module_attributes

__all__ = [
    "WrappedFun", "debug_info", "flatten_fun", "flatten_fun_nokwargs", "transformation", "transformation2",
    "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip
__getattr__, __dir__ = _module_attributes("functrans.extend.linear_util", globals())

Call = Callable[..., Any]


class WrappedFun:
    """A function and the transformations around it, the outermost last.

    Attributes
    ----------
    f : callable
        The function itself.
    """

    def __init__(self, f: Call, params: dict[str, Any], around: tuple[Callable[[Call], Call], ...] = ()):
        self.f, self.params, self._around = f, params, around

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "f")

    def wrap(self, transformation: Callable[[Call], Call]) -> WrappedFun:
        """The same with one more transformation around it."""
        return WrappedFun(self.f, self.params, (*self._around, transformation))

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the function, with its transformations."""
        called: Call = self.f
        for transformation in self._around:
            called = transformation(called)
        return called(*args, **{**self.params, **kwargs})


def wrap_init(f: Call, params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """A function without transformations.

    Examples
    --------
    >>> from functrans.extend import linear_util as lu
    >>> lu.wrap_init(lambda x, y: x - y, {"y": 1.0}).call_wrapped(3.0)
    2.0
    """
    return WrappedFun(f, {} if params is None else params)


class _Aux:
    """What a transformation returned besides the result, after the call."""

    _value: Any = None
    _is_set = False

    def __call__(self) -> Any:
        if not self._is_set:
            raise ArgumentError("the function has not been called yet: call call_wrapped first")
        return self._value

    def set(self, value: Any) -> None:
        self._value, self._is_set = value, True


def _driven(gen: Call, aux: _Aux | None, static: tuple[Any, ...], f: Call) -> Call:
    """A function around `f` that a generator drives: it yields arguments, is sent the result, and yields its own."""

    def called(*args: Any, **kwargs: Any) -> Any:
        steps = gen(*static, *args, **kwargs)
        inner_args, inner_kwargs = next(steps)
        out = steps.send(f(*inner_args, **inner_kwargs))
        steps.close()
        if aux is None:
            return out
        result, value = out
        aux.set(value)
        return result

    return called


def _applied(fun: Call, aux: _Aux | None, static: tuple[Any, ...], f: Call) -> Call:
    """A function around `f`: ``fun(f, *static, *args)``."""

    def called(*args: Any, **kwargs: Any) -> Any:
        if aux is None:
            return fun(f, *static, *args, **kwargs)
        stored = _AuxStore(aux)
        return fun(f, stored, *static, *args, **kwargs)

    return called


class _AuxStore:
    """Where a transformation of the newer kind stores what it returns besides the result."""

    def __init__(self, aux: _Aux):
        self._aux = aux

    def store(self, value: Any) -> None:
        self._aux.set(value)

    @property
    def val(self) -> Any:
        return self._aux()


def transformation(gen: Call) -> Call:
    """Decorate a generator ``gen(*static, *args)`` that yields arguments, and then results.

    Examples
    --------
    >>> from functrans.extend import linear_util as lu
    >>> @lu.transformation
    ... def scaled(by, *args):
    ...     out = yield [by * x for x in args], {}
    ...     yield out + 1.0
    >>> scaled(lu.wrap_init(lambda x: x**2), 2.0).call_wrapped(3.0)
    37.0
    """
    return lambda fun, *static: fun.wrap(partial(_driven, gen, None, static))


def transformation_with_aux(gen: Call) -> Call:
    """As `transformation`; the generator yields a pair at the end, and a function returns its second part later.

    Examples
    --------
    >>> from functrans.extend import linear_util as lu
    >>> @lu.transformation_with_aux
    ... def counted(*args):
    ...     out = yield args, {}
    ...     yield out, len(args)
    >>> fun, count = counted(lu.wrap_init(lambda x, y: x + y))
    >>> fun.call_wrapped(1.0, 2.0), count()
    (3.0, 2)
    """

    def around(fun: WrappedFun, *static: Any) -> Any:
        aux = _Aux()
        return fun.wrap(partial(_driven, gen, aux, static)), aux

    return around


def transformation2(fun: Call) -> Call:
    """Decorate a function ``fun(f, *static, *args)``.

    Examples
    --------
    >>> from functrans.extend import linear_util as lu
    >>> @lu.transformation2
    ... def scaled(f, by, *args):
    ...     return f(*[by * x for x in args])
    >>> scaled(lu.wrap_init(lambda x: x**2), 2.0).call_wrapped(3.0)
    36.0
    """
    return lambda wrapped, *static: wrapped.wrap(partial(_applied, fun, None, static))


def transformation_with_aux2(fun: Call) -> Call:
    """Decorate a function ``fun(f, store, *static, *args)`` that calls ``store.store(aux)``.

    Examples
    --------
    >>> from functrans.extend import linear_util as lu
    >>> @lu.transformation_with_aux2
    ... def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> fun, count = counted(lu.wrap_init(lambda x, y: x + y))
    >>> fun.call_wrapped(1.0, 2.0), count()
    (3.0, 2)
    """

    def around(wrapped: WrappedFun, *static: Any) -> Any:
        aux = _Aux()
        return wrapped.wrap(partial(_applied, fun, aux, static)), aux

    return around


def _flattened(f: Call, store: _AuxStore, in_tree: PyTreeDef, with_kwargs: bool, *leaves: Any) -> list[Any]:
    given = tree_unflatten(in_tree, leaves)
    args, kwargs = given if with_kwargs else (given, {})
    outs, out_tree = tree_flatten(f(*args, **kwargs))
    store.store(out_tree)
    return outs


def flatten_fun(f: WrappedFun, in_tree: PyTreeDef) -> tuple[WrappedFun, Callable[[], PyTreeDef]]:
    """A function of leaves from one of ``(args, kwargs)``, and what tells the structure of its results.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.extend import linear_util as lu
    >>> leaves, tree = ft.tree.flatten((({"a": 1.0},), {"y": 2.0}))
    >>> fun, out_tree = lu.flatten_fun(lu.wrap_init(lambda p, y: {"sum": p["a"] + y}), tree)
    >>> fun.call_wrapped(*leaves), out_tree()
    ([3.0], PyTreeDef({'sum': *}))
    """
    return transformation_with_aux2(_flattened)(f, in_tree, True)


def flatten_fun_nokwargs(f: WrappedFun, in_tree: PyTreeDef) -> tuple[WrappedFun, Callable[[], PyTreeDef]]:
    """As `flatten_fun`, for a function without keyword arguments.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.extend import linear_util as lu
    >>> leaves, tree = ft.tree.flatten(({"a": 1.0},))
    >>> lu.flatten_fun_nokwargs(lu.wrap_init(lambda p: p["a"]), tree)[0].call_wrapped(*leaves)
    [1.0]
    """
    return transformation_with_aux2(_flattened)(f, in_tree, False)


def debug_info(*args: Any, **kwargs: Any) -> None:
    """What JAX notes of a function for messages: nothing, since functrans finds the names of arguments itself."""
