"""Python functions called from inside a program: `pure_callback`, `io_callback`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..control.callbacks.callback import VMAP_METHODS, FlatCallback, io_callback_p, pure_callback_p
from ..core import PYTHON_KEYS, Aval, Tracer, boundary, canonical, is_held
from ..core.values import PyTree, Value
from ..errors import ArgumentError, ArgumentValueError
from ..frontend.arguments import name_of, result, value_of
from ..frontend.checked import checked
from ..frontend.pytree import PyTreeDef, tree_flatten, tree_flatten_with_path, tree_unflatten
from ..frontend.pytree.nodes import keystr


@boundary
@checked
def pure_callback(
    callback: Callable[..., PyTree],
    result_shape_dtypes: Any,
    *args: PyTree,
    sharding: None = None,
    vmap_method: str | None = None,
    **kwargs: PyTree,
) -> Value:
    """Call a Python function without side effects from any program: inside `jit`, `vmap`, `grad`.

    Parameters
    ----------
    callback : callable
        ``callback(*args, **kwargs)``. It receives immutable `Array`s, which NumPy and SciPy accept, and returns a
        pytree of arrays.
    result_shape_dtypes : pytree
        The types of its results: for each array, any object with ``shape`` and ``dtype``.
    *args, **kwargs
        Pytrees of arrays and numbers. Other leaves (strings, flags) are passed unchanged.
    sharding : None
        Must be None, since functrans has one device.
    vmap_method : {None, 'sequential', 'expand_dims', 'broadcast_all', 'legacy_vectorized'}
        The behaviour under `vmap`. 'sequential' makes one call per lane. The others make one call for the whole
        batch, and its results have the batch as leading axis. Mapped arguments have this axis too. Other arguments
        have an axis of size 1 instead ('expand_dims'), are repeated along it ('broadcast_all'), or stay unchanged
        ('legacy_vectorized').

    Returns
    -------
    pytree of Array
        With the structure, shapes and dtypes of `result_shape_dtypes`. Copies of the callback's results.

    Raises
    ------
    CallbackError
        If the callback returns something else; if its arguments are differentiated.
    NoRuleError
        Under `vmap`, if `vmap_method` is None.

    Notes
    -----
    The callback may be called once, several times or (if its result is unused) never, and not necessarily in program
    order. For side effects use `io_callback` or `functrans.debug.callback`. Its exceptions propagate unchanged, with a
    note that gives the line of this call. It has no derivative: define one with ``custom_jvp`` or ``custom_vjp``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> import scipy.special
    >>> @ft.jit
    ... def f(x):
    ...     like = ft.ShapeDtypeStruct(x.shape, x.dtype)
    ...     return 2.0 * ft.pure_callback(scipy.special.j0, like, x, vmap_method="expand_dims")
    >>> f(fnp.asarray([0.0, 1.0]))
    Array([2.        , 1.53039537])
    >>> ft.vmap(f)(fnp.asarray([[0.0], [1.0]])).shape
    (2, 1)
    """
    _check("pure_callback", callback, sharding)
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ArgumentValueError(
            f"pure_callback of {name_of(callback)}: vmap_method must be None or one of {VMAP_METHODS}, "
            f"got {vmap_method!r}"
        )
    avals, out_tree = promised("pure_callback", callback, result_shape_dtypes)
    call, values = host_call("pure_callback", callback, args, kwargs, out_tree)
    outs = pure_callback_p.bind(*values, call=call, result_avals=avals, vmap_method=vmap_method)
    return tree_unflatten(out_tree, [result(x) for x in outs])


@boundary
@checked
def io_callback(
    callback: Callable[..., PyTree],
    result_shape_dtypes: Any,
    *args: PyTree,
    sharding: None = None,
    ordered: bool = False,
    **kwargs: PyTree,
) -> Value:
    """Call a Python function for its side effect: reading a file, drawing a number, updating state.

    Parameters
    ----------
    callback, result_shape_dtypes, *args, sharding, **kwargs
        As for `pure_callback`. For a callback that returns None, `result_shape_dtypes` is None.
    ordered : bool
        Whether to reject `vmap`, which calls it once per lane. Calls keep program order either way.

    Returns
    -------
    pytree of Array

    Raises
    ------
    CallbackError
        If the callback returns something else; if its arguments are differentiated; under `vmap` if `ordered`.

    Notes
    -----
    The callback is called exactly once each time the program reaches it, even if its result is unused.

    Examples
    --------
    >>> import numpy as np, functrans as ft, functrans.numpy as fnp
    >>> rng = np.random.default_rng(0)
    >>> @ft.jit
    ... def noisy(x):
    ...     return x + ft.io_callback(lambda: rng.normal(size=2), ft.ShapeDtypeStruct((2,), float))
    >>> first, second = noisy(0.0), noisy(0.0)
    >>> bool(fnp.all(first != second))
    True
    """
    _check("io_callback", callback, sharding)
    avals, out_tree = promised("io_callback", callback, result_shape_dtypes)
    call, values = host_call("io_callback", callback, args, kwargs, out_tree)
    outs = io_callback_p.bind(*values, call=call, result_avals=avals, ordered=bool(ordered))
    return tree_unflatten(out_tree, [result(x) for x in outs])


def _check(kind: str, callback: Any, sharding: Any) -> None:
    if not callable(callback):
        raise ArgumentError(
            f"{kind}: expected a function to call, got {str(callback)[:60]!r} of type {type(callback).__name__}"
        )
    if sharding is not None:
        raise ArgumentError(
            f"{kind} of {name_of(callback)}: functrans has one device, so sharding must be None"
        )


def promised(kind: str, callback: Callable[..., PyTree], tree: PyTree) -> tuple[tuple[Aval, ...], PyTreeDef]:
    """The types of the results in a pytree of shapes and dtypes."""
    pairs, treedef = tree_flatten_with_path(tree)
    avals = []
    for path, x in pairs:
        where = f"{kind} of {name_of(callback)}: result_shape_dtypes{keystr(path)}"
        if not (hasattr(x, "shape") and hasattr(x, "dtype")) or isinstance(x, type):
            raise ArgumentError(
                f"{where} is {str(x)[:60]!r} of type {type(x).__name__}; expected an object with shape and dtype: "
                "functrans.ShapeDtypeStruct(shape, dtype), or an array like the result"
            )
        avals.append(Aval(tuple(x.shape), canonical(x.dtype, where)))
    return tuple(avals), treedef


def host_call(
    kind: str,
    callback: Callable[..., PyTree],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out_tree: PyTreeDef | None,
) -> tuple[FlatCallback, list[Any]]:
    """The parameters of a callback equation, and its operands."""
    leaves, in_tree = tree_flatten((args, kwargs))
    values = []
    static = []
    for i, x in enumerate(leaves):
        if _is_value(x, strict=out_tree is not None):
            values.append(value_of(x, lambda: f"{kind} of {name_of(callback)}: an argument"))
        else:
            static.append((i, x.copy() if isinstance(x, np.ndarray) else x))
    return FlatCallback(callback, in_tree, tuple(static), out_tree), values


def _is_value(x: Value, strict: bool) -> bool:
    """Whether a leaf is an array or a number; if `strict`, also one of an unsupported dtype."""
    if isinstance(x, np.ndarray | np.generic):
        return strict or is_held(x.dtype)
    return type(x) in PYTHON_KEYS or isinstance(x, Tracer) or hasattr(x, "__array__")
