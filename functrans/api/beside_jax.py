"""Functions of JAX in functrans's programs, and functrans's in JAX's, with derivatives: `from_jax`, `to_jax`.

Both are callbacks whose derivatives are the same again: a pushforward or a pullback of the one is a function of the
other, converted in the same way.
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
from ..frontend.docstrings import described
from ..frontend.pytree import tree_flatten, tree_map, tree_unflatten
from ..frontend.structs import ShapeDtypeStruct
from ..runtime import libraries
from .callback import pure_callback
from .compiled.jit import jit
from .compiled.stages import eval_shape
from .derivatives import jvp, vjp
from .linear_in_jax import linear_call

Fun = Callable[..., Any]


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


def _of_inexact(tree: PyTree, of: PyTree) -> list[Any]:
    """Of the leaves of a tree of tangents, those of leaves of `of` that have derivatives."""
    return [t for x, t in zip(tree_flatten(of)[0], tree_flatten(tree)[0]) if _has_derivatives(x)]


def _for_all(jax: Any, tree: PyTree, found: list[Any]) -> PyTree:
    """Tangents or cotangents of all leaves."""
    leaves, treedef = tree_flatten(tree)
    rest = iter(found)
    return tree_unflatten(
        treedef, [next(rest) if _has_derivatives(x) else _no_tangent(jax, x) for x in leaves]
    )


def _pulled_back(jax: Any, differentiate: Fun, fun: Fun, args: PyTree, cts: list[Any]) -> list[Any]:
    """The cotangents of those leaves of the arguments that have derivatives, from those of such results."""
    out, pull = differentiate(fun, *args)
    return _of_inexact(pull(_for_all(jax, out, cts)), args)


def _pushed_forward(jax: Any, differentiate: Fun, fun: Fun, args: PyTree, ts: list[Any]) -> list[Any]:
    """The tangents of those leaves of the results that have derivatives, from those of such arguments."""
    out, tangent = differentiate(fun, args, _for_all(jax, args, ts))
    return _of_inexact(tangent, out)


_SECTIONS = """
Raises
------
MissingLibraryError
    If JAX is not installed.
ArgumentError
    If `fun` is not a function, or `jax` is functrans in this process.

Notes
-----
Arguments are positional. Results have the dtypes that JAX gives them: float32 unless ``jax_enable_x64`` is set.

It is a ``pure_callback`` of the library that calls it: compiled programs call Python, and `vmap` calls the function
once for each example. Its derivatives in both modes, to any order, are computed by the library that it comes from.
"""


@checked
@described(_SECTIONS)
def from_jax(fun: Fun) -> Fun:
    """A function of JAX as one of functrans, for all of its transformations.

    Parameters
    ----------
    fun : callable
        A pure function of pytrees of JAX's arrays; jit it for speed.

    Returns
    -------
    callable
        The same of functrans's arrays.

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

    def pullback(args: PyTree, cts: list[Any]) -> list[Any]:
        return _pulled_back(jax, jax.vjp, fun, args, cts)

    def pushforward(args: PyTree, ts: list[Any]) -> list[Any]:
        return _pushed_forward(jax, jax.jvp, fun, args, ts)

    function = custom_vjp(called)

    def fwd(*args: PyTree) -> PyTree:
        out = function(*args)
        return out, (args, out)

    def bwd(residuals: PyTree, ct: PyTree) -> PyTree:
        args, out = residuals
        return _for_all(jax, args, from_jax(pullback)(args, _of_inexact(ct, out)))

    def forward(primals: PyTree, tangents: PyTree) -> PyTree:
        out = function(*primals)
        return out, _for_all(jax, out, from_jax(pushforward)(primals, _of_inexact(tangents, primals)))

    function.defvjp(fwd, bwd)
    function.defjvp(forward)
    return function


@checked
@described(_SECTIONS)
def to_jax(fun: Fun) -> Fun:
    """A function of functrans as one of JAX, for all of its transformations.

    Parameters
    ----------
    fun : callable
        A pure function of pytrees of arrays. It is jitted.

    Returns
    -------
    callable
        The same of JAX's arrays.

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

    def pullback(args: PyTree, cts: list[Any]) -> list[Any]:
        return _pulled_back(jax, vjp, fun, args, cts)

    def pushforward(args: PyTree, ts: list[Any]) -> list[Any]:
        return _pushed_forward(jax, jvp, fun, args, ts)

    function = jax.custom_jvp(called)

    def forward(primals: PyTree, tangents: PyTree) -> PyTree:
        out = function(*primals)
        ts = linear_call(jax, to_jax(pushforward), to_jax(pullback), primals, _of_inexact(tangents, primals))
        return out, _for_all(jax, out, ts)

    function.defjvp(forward)
    return function
