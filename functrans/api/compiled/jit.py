"""`jit`: compile a function, one program for each combination of argument types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from ...control.bodies import cache as body_cache
from ...core.values import PyTree
from ...frontend.arguments import check_function
from ...frontend.checked import checked
from ...runtime.config import config
from ...runtime.module_getattr import lazy_import
from .caches import caches
from .instances import instance_of
from .jitted import Jitted, JittedMethod
from .static import DonatedArguments, StaticArguments

kernels = lazy_import("functrans.lowering.run.cache")


@checked
def jit(
    fun: Callable[..., PyTree] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
) -> Any:
    """Compile a function: trace it once per combination of argument types, then run native kernels.

    Parameters
    ----------
    fun : callable
        A pure function of arrays, numbers and pytrees of them. Without it, `jit` returns a decorator.
    static_argnums, static_argnames : int or str, or sequences of them
        Arguments that are constants of the program (a flag, a shape, a function). They must be hashable, and each new
        value traces again. If you pass one of the two, the other follows from the signature.
    donate_argnums, donate_argnames : int or str, or sequences of them
        Arguments whose memory results may take. An `Array` in such a place cannot be used after the call, so that an
        update of large arrays needs no new ones: ``state = step(state)``. Other arguments are not changed; see
        `functrans.donate` for ndarrays. If you pass one of the two, the other follows from the signature.

    Returns
    -------
    Jitted
        Called like `fun`. Has ``.lower(...)``, ``.cache_info()``, ``.clear_cache()``.

    Raises
    ------
    StaticArgumentError
        If a static argument does not exist; when called, if one is not hashable.
    ArgumentValueError
        If a donated argument does not exist, or is static.
    StaleValueError
        When called: an argument was donated before.
    StaleInstanceError
        When called: the instance of a jitted method holds something that may change unnoticed.
    ConcretizationTypeError
        When called: `fun` needs a number (``if x > 0``, ``float(x)``) while only shapes and dtypes are known.

    Notes
    -----
    `fun` runs only while tracing: prints and other side effects happen once for each new combination of argument
    types, and captured values become constants. Donation takes effect where compiled code is called with numbers, not
    inside of another transformation. All `jit` objects of a function share its traces and kernels, which
    live as long as the function. Sizes and most numbers are run-time parameters of the kernel: a new batch size is
    traced but not compiled.

    A method may be jitted. `self` is an argument if its class is a registered pytree. Otherwise the method is traced
    for each instance, which is a constant of these programs, and traced again once any attribute has changed.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.jit
    ... def f(x):
    ...     return fnp.sum(fnp.sin(x) ** 2 + fnp.cos(x) ** 2)
    >>> f(fnp.arange(4.0))
    Array(4.)

    A static argument is part of the program, so Python may branch and loop on it:

    >>> power = ft.jit(lambda x, n: x if n == 1 else x * x, static_argnums=1)
    >>> power(3.0, 2), power(3.0, 1)
    (Array(9.), Array(3.))

    An update in place:

    >>> step = ft.jit(lambda state, grad: state - 0.5 * grad, donate_argnums=0)
    >>> state = fnp.ones(3)
    >>> for _ in range(5):
    ...     state = step(state, 2.0)
    >>> state
    Array([-4., -4., -4.])
    """
    if fun is None:
        return partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
        )
    check_function("jit", fun)
    kind = Jitted if instance_of(fun) is None else JittedMethod
    static = StaticArguments(fun, static_argnums, static_argnames)
    donated = DonatedArguments(fun, donate_argnums, donate_argnames)
    donated.check_apart(fun, static)
    return kind(fun, static, donated)


@checked
def disable_jit(disable: bool = True) -> Any:
    """Context manager (and decorator) under which jitted functions run as plain Python and NumPy.

    Examples
    --------
    >>> import functrans as ft
    >>> with ft.disable_jit():
    ...     ft.jit(lambda x: 2.0 * x if x > 0 else x)(3.0)
    6.0
    """
    return config.patch(disable_jit=disable)


def clear_caches() -> None:
    """Drop the traces and kernels of all functions, and the memory held for new results; counters stay.

    Examples
    --------
    >>> import functrans as ft
    >>> double = ft.jit(lambda x: 2.0 * x)
    >>> double(1.0), double(2.0)
    (Array(2.), Array(4.))
    >>> ft.clear_caches()
    >>> double(3.0), double.cache_info().traces
    (Array(6.), 2)
    """
    caches.clear()
    body_cache.clear()
    kernels.kernels.clear()
