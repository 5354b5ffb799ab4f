"""Functions that take functions: vectorize, apply_along_axis, apply_over_axes, piecewise, fromfunction; and choose."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..api.vmap import vmap
from ..arrays.array import Array
from ..core import INT64, Transformed, canonical, concrete, is_abstract
from ..core.values import ArrayLike, AxisLike, DTypeLike, PyTree, ShapeLike, Value
from ..errors import ArgumentError, ArgumentValueError, InvalidIndexError, ShapeError
from ..frontend.checked import checked
from ..frontend.pytree import tree_map
from ..primitives import ops
from ..primitives.ops import as_shape, dtype_of, finish, one_axis, operand, refuse_out, shape_of
from .creation.filled import asarray
from .creation.ranges import indices
from .dispatch import array_operand, implements, in_one_dtype
from .shaping.reshaping import moveaxis

__all__ = ["apply_along_axis", "apply_over_axes", "choose", "fromfunction", "piecewise", "vectorize"]

# --- vectorize ----------------------------------------------------------------------------------------------

_AXES = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*,?\s*)?\)"
_SIGNATURE = re.compile(rf"\s*(?:{_AXES}\s*(?:,\s*{_AXES}\s*)*)?->\s*{_AXES}\s*(?:,\s*{_AXES}\s*)*")
Axes = list[tuple[str, ...]]


def _parsed(signature: str) -> tuple[Axes, Axes]:
    """The axis names of each argument and each result in a signature such as ``"(n,m),(m)->(n)"``."""
    if not isinstance(signature, str) or not _SIGNATURE.fullmatch(signature):
        raise ArgumentValueError(
            f"vectorize: not a valid signature: {signature!r}; expected one such as '(n,m),(m)->(n)'"
        )
    sides = signature.split("->")
    taken, given = ([tuple(re.findall(r"\w+", part)) for part in re.findall(_AXES, side)] for side in sides)
    return taken, given


def _core_sizes(arrays: Sequence[Any], axes: Axes) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for position, (x, names) in enumerate(zip(arrays, axes)):
        shape = shape_of(x)
        if len(shape) < len(names):
            raise ShapeError(
                f"vectorize: argument {position} of shape {shape} does not have enough axes for ({','.join(names)})"
            )
        for name, n in zip(names, shape[len(shape) - len(names) :]):
            if sizes.setdefault(name, n) != n:
                raise ShapeError(
                    f"vectorize: inconsistent size for core dimension {name!r}: {n} of argument {position}, and "
                    f"{sizes[name]} before"
                )
    return sizes


def _mapped(function: Callable[..., PyTree], arrays: list[Any], ranks: list[int]) -> Any:
    """Map `function` over all axes before the last `ranks`, which broadcast together.

    Axes of extent 1 are not mapped over: they are removed, and restored in the results.
    """
    for x in arrays:
        if len(shape_of(x)) > 32:
            raise ShapeError(
                f"vectorize: an argument has {len(shape_of(x))} axes; at most 32 can be mapped over"
            )
    loops = [shape_of(x)[: len(shape_of(x)) - r] for x, r in zip(arrays, ranks)]
    full = ops.broadcast_shapes("vectorize", *loops) if loops else ()
    squeezed = []
    for x, loop in zip(arrays, loops):
        core = shape_of(x)[len(loop) :]
        squeezed.append(ops.reshape_p.bind(x, shape=tuple([n for n in loop if n != 1]) + core))
    for d in reversed(range(len(full))):
        if full[d] != 1:
            after = len(full) - d
            axes = tuple([0 if len(loop) >= after and loop[-after] != 1 else None for loop in loops])
            function = vmap(function, in_axes=axes)
    mapped = sum(n != 1 for n in full)

    def restored(x: ArrayLike) -> Any:
        out = array_operand(x, "vectorize")
        return finish(ops.reshape_p.bind(out, shape=full + shape_of(out)[mapped:]))

    return tree_map(restored, function(*[finish(x) for x in squeezed]))


def _check_results(outs: ArrayLike, given: Axes, sizes: dict[str, int]) -> Any:
    listed = outs if isinstance(outs, tuple) else (outs,)
    if len(listed) != len(given):
        raise ArgumentValueError(
            f"vectorize: wrong number of outputs from pyfunc: expected {len(given)}, got {len(listed)}"
        )
    for x, names in zip(listed, given):
        shape = np.shape(x)
        if len(shape) != len(names) or any(sizes.setdefault(m, n) != n for m, n in zip(names, shape)):
            raise ShapeError(
                f"vectorize: pyfunc returned shape {shape}, which does not match ({','.join(names)})"
            )
    return outs


@checked
def vectorize(
    pyfunc: Callable[..., Any] | None = None,
    otypes: Any = None,
    doc: str | None = None,
    excluded: Iterable[int | str] | None = None,
    cache: bool = False,
    signature: str | None = None,
) -> Callable[..., Any]:
    """Make a function that applies `pyfunc` to every element of arrays that broadcast together.

    Parameters
    ----------
    pyfunc : callable
        A function of numbers; with a `signature`, of arrays. Without `pyfunc`, a decorator is returned.
    otypes : str or list of dtype-like, optional
        The dtypes to cast the results to.
    doc : str, optional
        The docstring of the result; by default that of `pyfunc`.
    excluded : iterable of int and str, optional
        Positions and names of arguments to pass on unchanged. An argument None is always passed on.
    cache : bool
        Accepted, without effect.
    signature : str, optional
        As for a generalized ufunc: ``"(n),(n)->()"`` maps two vectors to a number.

    Returns
    -------
    callable

    Raises
    ------
    ShapeError
        When called, if shapes do not broadcast, or do not match the signature.
    ArgumentValueError
        If the signature is invalid, or does not match the arguments.

    Notes
    -----
    `numpy.vectorize` is a Python loop; this is `vmap`. `pyfunc` runs once, with traced values, so it must use `where`
    instead of ``if``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.vectorize(lambda a, b: fnp.where(a > b, a - b, a + b))([1, 2, 3, 4], 2)
    Array([3, 4, 1, 2])
    >>> fnp.vectorize(fnp.dot, signature="(n),(n)->()")(fnp.eye(2), fnp.array([3.0, 4.0]))
    Array([3., 4.])
    """
    if pyfunc is None:
        return functools.partial(
            vectorize, otypes=otypes, doc=doc, excluded=excluded, cache=cache, signature=signature
        )
    return _Vectorized(pyfunc, otypes, doc, frozenset(() if excluded is None else excluded), signature)


class _Vectorized(Transformed):
    _copied_names = (*Transformed._copied_names, "__doc__")

    def __init__(
        self,
        pyfunc: Callable[..., Any],
        otypes: Any,
        doc: str | None,
        excluded: frozenset[int | str],
        signature: str | None,
    ):
        super().__init__("vectorize", pyfunc)
        if doc is not None:
            self.__doc__ = doc
        self._otypes = otypes
        self._excluded = excluded
        self._text = signature
        self._axes = None if signature is None else _parsed(signature)

    def __call__(self, *args: PyTree, **kwargs: Any) -> Any:
        """Apply the function to all elements."""
        axes, left_out = self._axes, self._excluded
        taken = [i for i in range(len(args)) if i not in left_out and args[i] is not None]
        names = [] if axes else [n for n, x in kwargs.items() if n not in left_out and x is not None]
        if axes is not None:
            axes = self._without_none(args, axes)
        values = [array_operand(args[i], "vectorize", i) for i in taken]
        values += [array_operand(kwargs[name], f"vectorize: {name}") for name in names]
        if axes is not None and len(values) != len(axes[0]):
            raise ArgumentValueError(
                f"vectorize: wrong number of positional arguments: the signature {self._text!r} has {len(axes[0])}, "
                f"got {len(values)}"
            )
        sizes = {} if axes is None else _core_sizes(values, axes[0])

        def call(*inner: Any) -> Any:
            positional, keywords = list(args), dict(kwargs)
            for i, x in zip(taken, inner):
                positional[i] = x
            keywords.update(zip(names, inner[len(taken) :]))
            out = self._fun(*positional, **keywords)
            return out if axes is None else _check_results(out, axes[1], sizes)

        out = _mapped(call, values, [0] * len(values) if axes is None else [len(a) for a in axes[0]])
        return out if self._otypes is None else _in_types(out, self._otypes)

    def _without_none(self, args: tuple[Any, ...], axes: tuple[Axes, Axes]) -> tuple[Axes, Axes]:
        """The signature of the arguments that are not None."""
        mapped = [x for i, x in enumerate(args) if i not in self._excluded]
        if len(mapped) != len(axes[0]):
            return axes  # refused later
        for i, (x, names) in enumerate(zip(mapped, axes[0])):
            if x is None and names:
                raise ArgumentValueError(
                    f"vectorize: argument {i} is None, but the signature {self._text!r} gives it the axes "
                    f"({','.join(names)}); pass an array, or leave the argument out by excluded="
                )
        return [names for x, names in zip(mapped, axes[0]) if x is not None], axes[1]


def _in_types(outs: ArrayLike, otypes: Any) -> Any:
    types = [canonical(t, "vectorize: otypes") for t in otypes]
    listed = outs if isinstance(outs, tuple) else (outs,)
    if len(types) != len(listed):
        raise ArgumentValueError(
            f"vectorize: expected {len(types)} results, one for each dtype of otypes, got {len(listed)}"
        )
    cast = tuple([asarray(x, t) for x, t in zip(listed, types)])
    return cast if isinstance(outs, tuple) else cast[0]


# --- along axes ---------------------------------------------------------------------------------------------


@implements(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: PyTree, **kwargs: Any
) -> Array:
    """Apply a function of vectors to all vectors along an axis.

    Parameters
    ----------
    func1d : callable
        Called as ``func1d(vector, *args, **kwargs)``, once, with traced values (`vmap`).
    axis : int
    arr : array_like

    Returns
    -------
    Array
        The axes of the results of `func1d` replace `axis`.

    Raises
    ------
    ArgumentValueError
        If the number of vectors is zero.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.apply_along_axis(lambda v: v[::-1] / fnp.sum(v), 1, [[1.0, 3.0], [2.0, 2.0]])
    Array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    x = array_operand(arr, "apply_along_axis")
    shape = shape_of(x)
    d = one_axis(axis, len(shape), "apply_along_axis")
    others = shape[:d] + shape[d + 1 :]
    if 0 in others:
        raise ArgumentValueError(
            f"apply_along_axis: cannot apply a function along axis {axis} of shape {shape}: there is no vector"
        )
    rows = operand(moveaxis(x, d, -1), "apply_along_axis")
    rows = finish(ops.reshape_p.bind(rows, shape=(prod(others), shape[d])))
    out = vmap(lambda row: asarray(func1d(row, *args, **kwargs)))(rows)
    own = shape_of(out)[1:]
    out = finish(ops.reshape_p.bind(operand(out, "apply_along_axis"), shape=others + own))
    return moveaxis(out, tuple(range(len(others), len(others) + len(own))), tuple(range(d, d + len(own))))


@implements(np.apply_over_axes)
def apply_over_axes(func: Callable[..., PyTree], a: ArrayLike, axes: AxisLike) -> Any:
    """Apply ``func(a, axis)`` for one axis after another; axes that it removes are restored with extent 1.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.apply_over_axes(fnp.sum, fnp.ones((2, 3, 4)), (0, 2)).shape
    (1, 3, 1)
    """
    out: Any = finish(array_operand(a, "apply_over_axes"))
    ndim = len(shape_of(out))
    for axis in as_shape(axes, "apply_over_axes"):
        d = one_axis(axis, ndim, "apply_over_axes")
        result = array_operand(func(out, d), "apply_over_axes")
        shape = shape_of(result)
        if len(shape) == ndim - 1:
            result = ops.reshape_p.bind(result, shape=(*shape[:d], 1, *shape[d:]))
        elif len(shape) != ndim:
            raise ArgumentValueError(
                f"apply_over_axes: function is not returning an array of the correct shape: {shape} for {ndim} axes"
            )
        out = finish(result)
    return out


# --- pieces and choices -------------------------------------------------------------------------------------


def _where_it_holds(c: Value, x: Value) -> Value:
    """`x` with elements that fail a condition replaced by one that satisfies it (if any does).

    So a branch is never evaluated outside its domain, and cannot leak an infinite derivative.
    """
    if not prod(shape_of(x)):
        return x
    first = ops.argmax_p.bind(ops.flat(c), axes=(0,))
    inside = ops.gather_p.bind(ops.flat(x), first, axes=(0,), mode="promise_in_bounds")
    return ops.select_p.bind(c, x, ops.broadcast_to(ops.stop_gradient_p.bind(inside), shape_of(x)))


@implements(np.piecewise)
def piecewise(x: ArrayLike, condlist: ArrayLike, funclist: Sequence[Any], *args: PyTree, **kw: Any) -> Value:
    """Evaluate a piecewise-defined function; if several conditions are true, the last one wins.

    Parameters
    ----------
    x : array_like
    condlist : sequence of array_like of bool, or one of them
        With the shape of `x`. They may be traced.
    funclist : sequence of callable or number
        One for each condition, and optionally one more for elements where all conditions are false (by default 0).
        Functions work element by element, and are called as ``f(x, *args, **kw)``.

    Returns
    -------
    Array
        With the shape and dtype of `x`, to which results are cast.

    Raises
    ------
    ArgumentValueError
        If the number of functions does not match the number of conditions.

    Notes
    -----
    Each function gets an array with the shape of `x`. Elements outside its piece are replaced by one inside, so that
    derivatives are correct even if another piece has none there.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> x = fnp.array([-2.0, 0.0, 2.0])
    >>> fnp.piecewise(x, [x < 0, x > 0], [lambda v: -v, lambda v: v**2, 1.0])
    Array([2., 1., 4.])
    """
    value = array_operand(x, "piecewise")
    shape, dtype = shape_of(value), dtype_of(value)
    if _is_one_mask(condlist, len(shape)):
        condlist = [condlist]
    conditions = [ops.truth(array_operand(c, "piecewise", 1)) for c in condlist]
    for c in conditions:
        if shape_of(c) not in (shape, ()):
            raise InvalidIndexError(
                f"piecewise: a condition in condlist has shape {shape_of(c)}, expected {shape}, the shape of x"
            )
    conditions = [ops.broadcast_to(c, shape) for c in conditions]
    n = len(conditions)
    if len(funclist) not in (n, n + 1):
        raise ArgumentValueError(
            f"piecewise: condlist has {n} conditions, so funclist must have {n} or {n + 1} "
            f"functions, got {len(funclist)}"
        )
    pieces = list(zip(conditions, funclist))
    if len(funclist) == n + 1:
        none: Any = ops.broadcast_to(np.asarray(True), shape)
        for c in conditions:
            none = ops.select_p.bind(c, np.False_, none)
        pieces.append((none, funclist[-1]))
    out: Any = ops.broadcast_to(dtype.type(0), shape)
    for c, function in pieces:
        result = function(finish(_where_it_holds(c, value)), *args, **kw) if callable(function) else function
        part = ops.convert(array_operand(result, "piecewise", 2), dtype)
        out = ops.select_p.bind(c, ops.broadcast_to(part, shape), out)
    return finish(out)


def _is_one_mask(condlist: ArrayLike, ndim: int) -> bool:
    """Whether it is a single condition instead of a sequence of them."""
    if isinstance(condlist, (list, tuple)):
        return bool(condlist) and ndim > 0 and np.ndim(condlist[0]) == 0
    return np.ndim(condlist) <= ndim


@implements(np.choose, method="choose")
def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """Select each element from the choice that an index numbers.

    Parameters
    ----------
    a : array_like of int
    choices : sequence of array_like
        They broadcast with each other and with `a`; an array means the sequence of its rows.
    mode : {'raise', 'wrap', 'clip'}
        What to do with an index that is out of range.

    Raises
    ------
    ArgumentValueError
        If an index is out of range; in compiled code, `IndexOutOfBoundsError`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]])
    Array([ 1, 20,  3])
    """
    refuse_out("choose", out)
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentValueError(f"choose: clipmode must be one of 'clip', 'raise', or 'wrap', got {mode!r}")
    i = array_operand(a, "choose")
    if dtype_of(i).kind not in "biu":
        raise ArgumentError(f"choose: the indices have dtype {dtype_of(i)}, expected integers")
    i = ops.convert(i, INT64)
    values = in_one_dtype([operand(c, "choose", 1) for c in choices], None, "choose")
    if not values:
        raise ArgumentValueError("choose: need at least one choice")
    if (
        mode == "raise"
        and not is_abstract(i)
        and np.any((known := concrete(i)) < 0) | np.any(known >= len(values))
    ):
        raise ArgumentValueError(
            f"choose: invalid entry in choice array: an index of a is out of range for {len(values)} choices"
        )
    shape = ops.broadcast_shapes("choose", shape_of(i), *[shape_of(v) for v in values])
    i = ops.broadcast_to(i, shape)
    if mode == "raise":
        i = ops.select_p.bind(ops.lt_p.bind(i, np.int64(0)), np.int64(len(values)), i)
    elif mode == "clip":
        i = ops.max_p.bind(i, np.int64(0))
    stacked = operand(asarray([finish(ops.broadcast_to(v, shape)) for v in values]), "choose")
    places = [ops.iota(shape, d) for d in range(len(shape))]
    return finish(ops.gather_p.bind(stacked, i, *places, axes=tuple(range(len(shape) + 1)), mode=mode))


@checked
def fromfunction(
    function: Callable[..., PyTree], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """Call a function with the coordinates of the elements of an array: ``function(*indices(shape), **kwargs)``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int)
    Array([[0, 1],
           [1, 2]])
    """
    kwargs.pop("like", None)
    return function(*indices(as_shape(shape, "fromfunction"), dtype), **kwargs)
