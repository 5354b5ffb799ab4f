"""``custom_fwd`` and ``custom_bwd``: the methods of a `Function` under autocast."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from ..arrays.autocast import ambient, without
from ..arrays.autocast_rules import is_real_float, target
from ..core import ArgumentError, Tracer
from ..core.values import PyTree
from ..frontend.checked import checked
from ..frontend.pytree import tree_map
from ..primitives.autocast import cast
from ..primitives.operands import finish

F = TypeVar("F", bound=Callable[..., Any])


@checked
def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """Run the ``forward`` of a `Function` in one precision, whatever autocast says.

    Parameters
    ----------
    fwd : callable, optional
        The function, below ``@staticmethod``. Without it, the result is a decorator.
    cast_inputs : dtype-like, optional
        Where autocast is on, real floating-point arguments are cast to this dtype, and autocast is off inside; where it
        is off, nothing happens. By default nothing is cast, and autocast stays as it is.

    Returns
    -------
    callable
        The function, decorated; or a decorator.

    Raises
    ------
    ArgumentError
        If it is not a function: the decorator stands below ``@staticmethod``.
    ArgumentValueError
        If `cast_inputs` is no floating-point dtype.

    See Also
    --------
    custom_bwd : for ``backward``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Product(ft.Function):
    ...     @staticmethod
    ...     @ft.custom_fwd(cast_inputs="float64")
    ...     def forward(ctx, x, y):
    ...         ctx.save_for_backward(x, y)
    ...         return x @ y
    ...     @staticmethod
    ...     @ft.custom_bwd
    ...     def backward(ctx, g):
    ...         x, y = ctx.saved_tensors
    ...         return g @ y.T, x.T @ g
    >>> with ft.autocast("float32"):
    ...     Product.apply(fnp.ones((2, 2)), fnp.ones((2, 2))).dtype
    dtype('float64')
    """
    dtype = None if cast_inputs is None else target(cast_inputs, "custom_fwd: cast_inputs")
    if fwd is None:
        return partial(_forward, dtype)
    return _forward(dtype, fwd)


def _forward(dtype: np.dtype | None, fwd: F) -> F:
    _check("custom_fwd", fwd)

    @wraps(fwd)
    def forward(*args: PyTree, **kwargs: PyTree) -> Any:
        if dtype is None or ambient() is None:
            return fwd(*args, **kwargs)
        args, kwargs = tree_map(partial(_cast, dtype), (args, kwargs))
        return without(fwd, *args, **kwargs)

    forward.casts_inputs = dtype is not None  # type: ignore[attr-defined]
    return forward  # type: ignore[return-value]


@checked
def custom_bwd(bwd: Any) -> Any:
    """Run the ``backward`` of a `Function` under the autocast of its ``forward``, wherever the pullback is called.

    In a compiled region it takes precedence over ``config.backward_pass_autocast``. If `custom_fwd` casts the inputs,
    autocast is off in ``backward`` too.

    Parameters
    ----------
    bwd : callable
        The function, below ``@staticmethod``.

    Returns
    -------
    callable
        The function, decorated.

    Raises
    ------
    ArgumentError
        If it is not a function: the decorator stands below ``@staticmethod``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Product(ft.Function):
    ...     @staticmethod
    ...     @ft.custom_fwd
    ...     def forward(ctx, x, y):
    ...         ctx.save_for_backward(x, y)
    ...         return x @ y
    ...     @staticmethod
    ...     @ft.custom_bwd
    ...     def backward(ctx, g):
    ...         x, y = ctx.saved_tensors
    ...         print((g @ y.T).dtype)
    ...         return g @ y.T, x.T @ g
    >>> with ft.autocast("float32"):
    ...     out, pullback = ft.vjp(Product.apply, fnp.ones((2, 2)), fnp.ones((2, 2)))
    >>> gradients = pullback(out)
    float32
    """
    _check("custom_bwd", bwd)

    @wraps(bwd)
    def backward(*args: PyTree, **kwargs: PyTree) -> Any:
        return bwd(*args, **kwargs)

    backward.follows_forward = True  # type: ignore[attr-defined]
    return backward


def _check(name: str, f: Any) -> None:
    if isinstance(f, staticmethod) or not callable(f):
        raise ArgumentError(
            f"{name}: {name.removeprefix('custom_')} must be a function, got {type(f).__name__}: write @staticmethod "
            f"above @{name}"
        )


def _cast(dtype: np.dtype, x: Any) -> Any:
    """An array of real floats in another dtype; anything else, also Python's numbers, unchanged."""
    own = x.dtype if isinstance(x, np.ndarray | np.generic | Tracer) else None
    if own == dtype or not is_real_float(own):
        return x
    return finish(cast(x, dtype, False))
