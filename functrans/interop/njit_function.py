"""``numba_call``: a function of Numba's ``njit`` as one of functrans's; ``njit``, which makes both at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from ..api.jit import jit
from ..core import Tracer
from ..core.errors import ArgumentError, NumbaTranslationError
from ..frontend.pytree import tree_flatten, tree_unflatten
from .functions import SizeUnknown
from .translation import translate


class NumbaCall:
    """A jitted function that functrans can transform: what `numba_call` returns."""

    def __init__(self, fn: Any, vjp: Any, jvp: Any, result_shape_dtypes: Any) -> None:
        self._fn = fn
        self._vjp, self._jvp, self._result = vjp, jvp, result_shape_dtypes
        self._jitted: dict[Any, Callable[..., Any]] = {}
        self._sized: set[Any] = set()
        self._signature = inspect.signature(fn.py_func)
        update_wrapper(self, fn.py_func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the jitted function; on traced values, its translation."""
        try:
            return self._fn(*args, **kwargs)
        except NumbaTranslationError:
            if not any(isinstance(x, Tracer) for x in tree_flatten((args, kwargs))[0]):
                raise
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._traced(tuple(bound.arguments.values()))

    def __repr__(self) -> str:
        return f"numba_call({self._fn.py_func.__qualname__})"

    @property
    def _numba_type_(self) -> Any:
        """In jitted code it is the jitted function."""
        return self._fn._numba_type_

    @property
    def _numba_dispatcher(self) -> Any:
        return self._fn

    def _traced(self, args: tuple[Any, ...]) -> Any:
        leaves, tree = tree_flatten(args)
        kinds = tuple([type(x) for x in leaves])
        if (tree, kinds) not in self._sized:
            try:
                return self._run(
                    leaves, tree, lambda x: isinstance(x, (Tracer, np.ndarray, float, complex, int))
                )
            except SizeUnknown as error:
                if not any(type(x) is int for x in leaves):
                    raise error.args[0] from None
            self._sized.add((tree, kinds))
        try:
            return self._run(leaves, tree, lambda x: isinstance(x, (Tracer, np.ndarray, float, complex)))
        except SizeUnknown as error:
            raise error.args[0] from None

    def _run(self, leaves: list[Any], tree: Any, is_traced: Callable[[Any], bool]) -> Any:
        static = tuple([(k, x) for k, x in enumerate(leaves) if not is_traced(x)])
        key = (tree, static)
        if key not in self._jitted:
            self._jitted[key] = jit(self._translated(tree, dict(static), len(leaves)))
        return self._jitted[key](*[x for x in leaves if is_traced(x)])

    def _translated(self, tree: Any, static: dict[int, Any], count: int) -> Callable[..., Any]:
        def translated(*dynamic: Any) -> Any:
            rest = iter(dynamic)
            leaves = [static[k] if k in static else next(rest) for k in range(count)]
            return translate(self._fn, tree_unflatten(tree, leaves))

        translated.__name__ = self._fn.py_func.__name__
        return translated


def numba_call(
    fn: Any,
    *,
    jvp: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
    result_shape_dtypes: Any = None,
) -> NumbaCall:
    """Make a function of Numba's ``njit`` one that functrans can differentiate, batch and compile in.

    Parameters
    ----------
    fn : callable
        What ``numba.njit`` returned.
    jvp : callable, optional
        ``jvp(args, out, tangents)`` returns the tangent of the result. `args` and `tangents` are tuples with one entry
        for each parameter.
    vjp : callable, optional
        ``vjp(args, out, ct)`` returns a tuple with one cotangent for each parameter; None stands for zero.
    result_shape_dtypes : pytree of ShapeDtypeStruct, or callable, optional
        The shapes and dtypes of the result, or a function of the arguments that returns them. Needed with a rule if
        `fn` returns arrays.

    Returns
    -------
    callable
        Called on arrays and numbers, it is `fn`; so it is in jitted code.

    Raises
    ------
    ArgumentError
        If `fn` is not a function of Numba's, or both rules are given.
    NumbaTranslationError
        On a traced value, if `fn` uses what has no translation and no rule is given.

    Notes
    -----
    For derivatives and ``vmap`` the code that Numba has typed is translated: loops, branches and writes to arrays
    become those of functrans, and every value has the dtype that Numba infers. Values behave as in jitted code:
    indices are not checked unless the function has ``boundscheck=True``, and a division by zero raises unless it has
    ``error_model="numpy"``. What the function raises is raised when the program ends.

    Sizes of arrays must be known when the function is translated: take them from shapes, or pass Python integers.

    Examples
    --------
    >>> import numba, numpy as np, functrans as ft
    >>> @numba.njit
    ... def smooth(x, a):
    ...     y = np.empty_like(x)
    ...     y[0] = x[0]
    ...     for i in range(1, len(x)):
    ...         y[i] = a * x[i] + (1.0 - a) * y[i - 1]
    ...     return y
    >>> x = np.array([1.0, 3.0, 2.0])
    >>> ft.jacobian(ft.numba_call(smooth), argnums=1)(x, 0.5)
    Array([0., 2., 1.])
    """
    if isinstance(fn, NumbaCall):
        fn = fn._fn
    if not isinstance(fn, Dispatcher):
        raise ArgumentError(
            f"numba_call: fn must be a function compiled by numba.njit, got {type(fn).__name__}. Decorate it with "
            "numba.njit, or use functrans.njit"
        )
    return NumbaCall(fn, vjp, jvp, result_shape_dtypes)


def njit(function: Any = None, **options: Any) -> Any:
    """Compile a function with ``numba.njit``, and let functrans differentiate and batch it.

    Parameters
    ----------
    function : callable, optional
        Without it, ``njit`` returns a decorator.
    **options
        Those of ``numba.njit``: ``fastmath``, ``error_model``, ``boundscheck``, ``cache``, ``inline``, ...

    Returns
    -------
    callable
        As of `numba_call`. Jitted functions may call it.

    Examples
    --------
    >>> import functrans as ft
    >>> @ft.njit
    ... def power(x, n):
    ...     result = 1.0
    ...     for _ in range(n):
    ...         result *= x
    ...     return result
    >>> power(2.0, 10)
    1024.0
    >>> ft.grad(power)(2.0, 3), ft.grad(ft.grad(power))(2.0, 3)
    (Array(12.), Array(12.))
    """
    if function is None:
        return lambda f: njit(f, **options)
    return numba_call(numba.njit(function, **options))
