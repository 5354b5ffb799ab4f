"""Python functions called from inside a program: `pure_callback`, `io_callback`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..control.callback import VMAP_METHODS, HostCall, io_callback_p, pure_callback_p
from ..core.aval import Aval
from ..core.checked import checked
from ..core.dtypes import SUPPORTED, canonical
from ..core.errors import ArgumentError, ArgumentValueError
from ..core.pytree import PyTreeDef, tree_flatten, tree_flatten_with_path, tree_unflatten
from ..core.trace import PYTHON_KEYS, Tracer
from ..core.tracebacks import boundary
from ..core.tree_nodes import keystr
from ..transforms.values import name_of, result, value_of


@boundary
@checked
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: None = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function that only computes, from anywhere: inside `jit`, `vmap`, `grad`.

    Parameters
    ----------
    callback : callable
        ``callback(*args, **kwargs)``. It receives `Array`s, which NumPy and SciPy take, and never change; and returns a
        tree of arrays.
    result_shape_dtypes : tree
        What it returns: anything with ``shape`` and ``dtype`` in the place of each array.
    *args, **kwargs
        Trees of arrays and numbers. Other leaves (strings, flags) are passed as they are.
    sharding : None
        There is one device only.
    vmap_method : {None, 'sequential', 'expand_dims', 'broadcast_all', 'legacy_vectorized'}
        What `vmap` does. 'sequential': one call for each lane. The others make one call for the whole batch, whose
        results have the batch as leading axis. Arguments that are mapped have it too; all others have an axis of size 1
        in its place ('expand_dims'), are repeated along it ('broadcast_all'), or come as they are
        ('legacy_vectorized').

    Returns
    -------
    tree of Array
        Of the structure, shapes and dtypes of `result_shape_dtypes`. Copies of what the callback returned.

    Raises
    ------
    CallbackError
        If the callback returns something else; if its arguments are differentiated.
    NoRuleError
        Under `vmap`, if `vmap_method` is None.

    Notes
    -----
    The callback may be called once, more often, or (if nobody needs its result) not at all, and in another order than
    it is written. For effects there are `io_callback` and `functrans.debug.callback`. What it raises arrives as it is,
    with a note that tells the line of this call. It has no derivative: give it one by ``custom_jvp`` or
    ``custom_vjp``.

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
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: None = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function for its effect: reading a file, drawing a number, keeping a record.

    Parameters
    ----------
    callback, result_shape_dtypes, *args, sharding, **kwargs
        As for `pure_callback`. A callback that returns None is promised as None.
    ordered : bool
        Refuse `vmap`, which calls it once for each lane. Calls keep the order in which they are written either way.

    Returns
    -------
    tree of Array

    Raises
    ------
    CallbackError
        If the callback returns something else; if its arguments are differentiated; under `vmap` if `ordered`.

    Notes
    -----
    Called once each time that the program gets there, also if nobody needs its result.

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
            f"{kind}: want a function to call, got {str(callback)[:60]!r} of type {type(callback).__name__}"
        )
    if sharding is not None:
        raise ArgumentError(
            f"{kind} of {name_of(callback)}: there is one device only, so sharding must be None"
        )


def promised(kind: str, callback: Callable[..., Any], tree: Any) -> tuple[tuple[Aval, ...], PyTreeDef]:
    """The types of the results that a tree of shapes and dtypes promises."""
    pairs, treedef = tree_flatten_with_path(tree)
    avals = []
    for path, x in pairs:
        where = f"{kind} of {name_of(callback)}: result_shape_dtypes{keystr(path)}"
        if not (hasattr(x, "shape") and hasattr(x, "dtype")) or isinstance(x, type):
            raise ArgumentError(
                f"{where} is {str(x)[:60]!r} of type {type(x).__name__}; want something with shape and dtype: "
                "functrans.ShapeDtypeStruct(shape, dtype), or an array like the result"
            )
        avals.append(Aval(tuple(x.shape), canonical(x.dtype, where)))
    return tuple(avals), treedef


def host_call(
    kind: str,
    callback: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out_tree: PyTreeDef | None,
) -> tuple[HostCall, list[Any]]:
    """What a callback equation carries, and its operands."""
    leaves, in_tree = tree_flatten((args, kwargs))
    values = []
    static = []
    for i, x in enumerate(leaves):
        if _is_value(x, strict=out_tree is not None):
            values.append(value_of(x, lambda: f"{kind} of {name_of(callback)}: an argument"))
        else:
            static.append((i, x.copy() if isinstance(x, np.ndarray) else x))
    return HostCall(callback, in_tree, tuple(static), out_tree), values


def _is_value(x: Any, strict: bool) -> bool:
    """Whether a leaf is an array or a number; if `strict`, also one of a dtype that is refused."""
    if isinstance(x, np.ndarray | np.generic):
        return strict or x.dtype in SUPPORTED
    return type(x) in PYTHON_KEYS or isinstance(x, Tracer) or hasattr(x, "__array__")
