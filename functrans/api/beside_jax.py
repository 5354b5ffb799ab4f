"""Functions of JAX in functrans's programs, and functrans's in JAX's, with derivatives: `from_jax`, `to_jax`.

Both are callbacks whose derivative is the same again: a pullback of the one is a function of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import is_inexact
from ..core.values import ArrayLike, PyTree
from ..custom.custom_function import custom_vjp
from ..errors import ArgumentError, MissingLibraryError
from ..frontend.checked import checked
from ..frontend.pytree import tree_flatten, tree_map, tree_unflatten
from ..frontend.structs import ShapeDtypeStruct
from ..runtime import libraries
from .callback import pure_callback
from .compiled.jit import jit
from .compiled.stages import eval_shape
from .derivatives import vjp


def _jax(name: str) -> Any:
    """JAX itself."""
    try:
        library = libraries.jax
        functranss = hasattr(library, "__functrans__")
    except ImportError:
        raise MissingLibraryError(f"{name}: JAX is not installed: pip install jax") from None
    if functranss:
        raise ArgumentError(
            f"{name}: `jax` is functrans in this process (functrans.as_jax), whose functions need no conversion"
        )
    return library


def _type_in_jax(jax: Any, x: ArrayLike) -> Any:
    """The shape and the dtype that JAX gives a value."""
    dtype = getattr(x, "dtype", None)
    return jax.ShapeDtypeStruct(
        np.shape(x), jax.dtypes.canonicalize_dtype(np.result_type(type(x)) if dtype is None else dtype)
    )


def _plain(x: ArrayLike) -> Any:
    """An array as NumPy's, which both take."""
    return np.asarray(x)


def _has_derivatives(x: ArrayLike) -> bool:
    return is_inexact(np.dtype(getattr(x, "dtype", type(x))))


def _no_tangent(jax: Any, x: ArrayLike) -> np.ndarray:
    return np.zeros(np.shape(x), jax.dtypes.float0)


def _pulled_back(
    jax: Any, differentiate: Any, fun: Callable[..., Any], args: PyTree, ct: PyTree
) -> list[Any]:
    """The cotangents of those leaves of the arguments that have derivatives."""
    out, pull = differentiate(fun, *args)
    outs, tree = tree_flatten(out)
    cts = [c if _has_derivatives(y) else _no_tangent(jax, y) for y, c in zip(outs, tree_flatten(ct)[0])]
    found = tree_flatten(pull(tree_unflatten(tree, cts)))[0]
    return [c for x, c in zip(tree_flatten(args)[0], found) if _has_derivatives(x)]


def _for_all(jax: Any, args: PyTree, found: list[Any]) -> PyTree:
    """Cotangents of all leaves."""
    leaves, tree = tree_flatten(args)
    rest = iter(found)
    return tree_unflatten(tree, [next(rest) if _has_derivatives(x) else _no_tangent(jax, x) for x in leaves])


@checked
def from_jax(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX as one of functrans, for all transformations, with JAX's derivatives in reverse mode.

    Parameters
    ----------
    fun : callable
        A pure function of pytrees of JAX's arrays; jit it for speed.

    Returns
    -------
    callable
        The same of functrans's arrays, with positional arguments. The dtypes of its results are those of JAX: float32
        unless ``jax_enable_x64`` is set.

    Raises
    ------
    MissingLibraryError
        If JAX is not installed.
    ArgumentError
        If `fun` is not a function, or `jax` is functrans in this process.

    Notes
    -----
    It is a `pure_callback`: kernels call Python, and under `vmap` once for each example. Forward mode needs a
    derivative that JAX does not give to others.

    Examples
    --------
    >>> import functrans as ft
    >>> import jax.numpy as jnp  # doctest: +SKIP
    >>> f = ft.from_jax(lambda x: jnp.sum(jnp.sin(x)))  # doctest: +SKIP
    >>> ft.jit(ft.grad(f))(0.0)  # doctest: +SKIP
    Array(1., dtype=float32)
    """
    jax = _jax("from_jax")

    def called(*args: PyTree) -> PyTree:
        types = tree_map(lambda x: _type_in_jax(jax, x), args)
        like = tree_map(lambda s: ShapeDtypeStruct(s.shape, s.dtype), jax.eval_shape(fun, *types))

        def host(*xs: PyTree) -> PyTree:
            return tree_map(_plain, fun(*tree_map(lambda x: jax.numpy.asarray(_plain(x)), xs)))

        return pure_callback(host, like, *args, vmap_method="sequential")

    def pullback(args: PyTree, ct: PyTree) -> list[Any]:
        return _pulled_back(jax, jax.vjp, fun, args, ct)

    function = custom_vjp(called)
    function.defvjp(
        lambda *args: (function(*args), args),
        lambda args, ct: _for_all(jax, args, from_jax(pullback)(args, ct)),
    )
    return function


@checked
def to_jax(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of functrans as one of JAX, for all of its transformations, with derivatives in reverse mode.

    Parameters
    ----------
    fun : callable
        A pure function of pytrees of arrays. It is jitted.

    Returns
    -------
    callable
        The same of JAX's arrays, with positional arguments. Results have the dtypes that JAX gives them: float32 unless
        ``jax_enable_x64`` is set.

    Raises
    ------
    MissingLibraryError
        If JAX is not installed.
    ArgumentError
        If `fun` is not a function, or `jax` is functrans in this process.

    Notes
    -----
    It is a ``jax.pure_callback``, which calls `fun` once for each example under ``jax.vmap``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> import jax  # doctest: +SKIP
    >>> f = ft.to_jax(lambda x: fnp.sum(fnp.sin(x)))  # doctest: +SKIP
    >>> jax.jit(jax.grad(f))(0.0)  # doctest: +SKIP
    Array(1., dtype=float32, weak_type=True)
    """
    jax = _jax("to_jax")
    compiled = jit(fun)

    def called(*args: PyTree) -> PyTree:
        types = tree_map(
            lambda x: ShapeDtypeStruct(x.shape, x.dtype), tree_map(lambda x: _type_in_jax(jax, x), args)
        )
        like = tree_map(lambda s: _type_in_jax(jax, s), eval_shape(fun, *types))

        def host(*xs: PyTree) -> PyTree:
            outs = compiled(*tree_map(_plain, xs))
            return tree_map(lambda s, y: np.asarray(y, s.dtype), like, outs)

        return jax.pure_callback(host, like, *args, vmap_method="sequential")

    def pullback(args: PyTree, ct: PyTree) -> list[Any]:
        return _pulled_back(jax, vjp, fun, args, ct)

    function = jax.custom_vjp(called)
    function.defvjp(
        lambda *args: (function(*args), args),
        lambda args, ct: _for_all(jax, args, to_jax(pullback)(args, ct)),
    )
    return function
