"""Loops over rows: ``scan``, ``map``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..api.vmap import vmap
from ..core.aval import aval_of
from ..core.errors import ArgumentError, ArgumentValueError, TracerIntegerConversionError
from ..core.source import last_line
from ..core.trace import is_abstract
from ..core.tracebacks import boundary
from ..frontend.arguments import check_function, flatten_values, given, name_of
from ..frontend.checked import checked
from ..frontend.pytree import PyTreeDef, tree_flatten_with_path, tree_map, tree_structure, tree_unflatten
from ..frontend.pytree.nodes import keystr
from ..numpy.shaping.joining import concatenate
from ..numpy.shaping.reshaping import reshape
from ..primitives.structure.linear import shape_of
from .scanning import Loop

__all__ = ["map", "scan"]


@boundary
@checked
def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    checkpoint_every: int | None = None,
) -> Any:
    """Loop over the rows of arrays, carrying a value along: one native loop, differentiable in both modes.

    Parameters
    ----------
    f : callable
        ``f(carry, x) -> (carry, y)``, with `x` a row of `xs`.
    init : tree
        The first carry: arrays and numbers, of which each keeps its shape and dtype. A Python number takes on the
        dtype that `f` gives it.
    xs : tree of arrays, optional
        Looped over along axis 0. None for a loop that reads no rows; then `x` is None.
    length : int, optional
        The number of iterations; needed where `xs` is None.
    reverse : bool
        Go from the last row to the first; `ys` are in the order of `xs` all the same.
    unroll : int or bool
        Iterations written out in each round of the loop; True for all of them.
    checkpoint_every : int, optional
        In reverse mode keep the carry before every so many iterations, and run what is between again: about
        ``sqrt(length)`` makes memory grow as the square root of the length, for one more forward loop.

    Returns
    -------
    carry : tree
        The last carry.
    ys : tree
        What `f` returned second, stacked along a new axis 0. None where it is None.

    Raises
    ------
    CarryTypeError
        If the carry comes out of `f` with another shape, dtype or structure than it goes in with.
    ArgumentError
        If `f` is no function, or does not return a pair.
    ArgumentValueError
        If the arrays of `xs` differ in length, from each other or from `length`; or none is given; or it is negative.

    Notes
    -----
    The same as this Python loop, which is what runs under ``functrans.disable_jit()``::

        ys = []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    `f` is traced once, whatever the length. Carries that are small live in registers, larger ones in two buffers;
    rows are read and written in place. Reverse mode stores for each iteration what the derivative of `f` needs of it
    (nothing where `f` is linear in the carry). Outside ``jit`` the loop is compiled too, for each new body; what `f`
    captures may change from call to call without cost.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> lax.scan(lambda total, x: (total + x, total), 0.0, fnp.arange(1.0, 5.0))
    (Array(10.), Array([0., 1., 3., 6.]))

    Logistic map, and how its last value depends on the parameter:

    >>> def last(r):
    ...     return lax.scan(lambda x, _: (r * x * (1 - x), None), 0.5, length=20)[0]
    >>> ft.value_and_grad(last)(2.0)
    (Array(0.5), Array(0.25))
    """
    name = f"scan of {name_of_any(f)}"
    check_function("scan", f)
    carry, tree = flatten_values(init, lambda path: f"{name}: init{keystr(path)}")
    rows, rows_tree = flatten_values(xs, lambda path: f"{name}: xs{keystr(path)}")
    count = _length(name, xs, rows, length)
    unroll = unrolled(name, unroll, count)
    every = (
        checkpoint_every
        if checkpoint_every is None
        else _positive(name, "checkpoint_every", checkpoint_every)
    )
    return Loop("scan", f, _call_pair, carry, tree, rows, rows_tree).run(count, bool(reverse), unroll, every)


@boundary
@checked
def map(f: Callable[..., Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each row of arrays, one after the other.

    Parameters
    ----------
    f : callable
        ``f(x) -> y``, with `x` a row of `xs`.
    xs : tree of arrays
        Looped over along axis 0.
    batch_size : int, optional
        Rows that are taken together, by `vmap`; what is left over at the end makes a smaller batch.

    Returns
    -------
    tree of Array
        What `f` returned, stacked along a new axis 0.

    Raises
    ------
    ArgumentError, ArgumentValueError
        As for `scan`; if `batch_size` is not positive.

    Notes
    -----
    `functrans.vmap` computes the same, all rows at once: faster where the function is made of operations on small
    arrays, while `map` needs the memory of one row (or of `batch_size` of them), and runs the branch of ``cond`` that
    each row takes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> lax.map(lambda x: fnp.sum(x) * x, fnp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    Array([[ 3.,  6.],
           [21., 28.]])
    >>> lax.map(lambda x: x * x, fnp.arange(5.0), batch_size=2)
    Array([ 0.,  1.,  4.,  9., 16.])
    """
    name = f"map of {name_of_any(f)}"
    check_function("map", f)
    rows, tree = flatten_values(xs, lambda path: f"{name}: xs{keystr(path)}")
    count = _length(name, xs, rows, None)
    if batch_size is None:
        return _over_rows(f, rows, tree, count)
    size = _positive(name, "batch_size", batch_size)
    if size >= count:
        return vmap(f)(xs)
    whole = count - count % size
    batches = [reshape(x[:whole], (-1, size, *shape_of(x)[1:])) for x in rows]
    ys = _over_rows(vmap(f), batches, tree, count // size)
    ys = tree_map(lambda y: reshape(y, (-1, *shape_of(y)[2:])), ys)
    if whole == count:
        return ys
    rest = vmap(f)(tree_unflatten(tree, [given(x[whole:]) for x in rows]))
    return tree_map(lambda y, z: concatenate([y, z]), ys, rest)


def _over_rows(f: Callable[..., Any], rows: list[Any], tree: PyTreeDef, count: int) -> Any:
    def call(f: Callable[..., Any], pair: tuple[Any, Any]) -> tuple[Any, Any]:
        return None, f(pair[1])

    return Loop("map", f, call, [], tree_structure(None), rows, tree).run(count)[1]


def _call_pair(f: Callable[..., Any], tree: tuple[Any, Any]) -> tuple[Any, Any]:
    out = f(*tree)
    if not (isinstance(out, tuple | list) and len(out) == 2):
        met = f"an array of shape {out.shape}" if hasattr(out, "shape") else type(out).__name__
        if isinstance(out, tuple | list):
            met = f"{len(out)} values"
        raise ArgumentError(
            f"scan of {name_of(f)}: the body must return a pair (carry, y), but returned {met}. Where there is nothing "
            "to stack, return (carry, None)",
            last_line(f),
        )
    return tuple(out)


def _length(name: str, xs: Any, rows: list[Any], length: Any) -> int:
    """The number of iterations."""
    shapes = [aval_of(x).shape for x in rows]

    def places() -> list[str]:
        return [f"xs{keystr(path)}" for path, _ in tree_flatten_with_path(xs)[0]]

    for i, shape in enumerate(shapes):
        if not shape:
            raise ArgumentValueError(
                f"{name}: {places()[i]} has no axes, so no rows. A list is a tree of its elements: make it an array by "
                "functrans.numpy.asarray; what is the same in each iteration is captured by the body"
            )
    lengths = {shape[0] for shape in shapes}
    if length is not None:
        lengths.add(_given_length(name, length))
    if len(lengths) == 1:
        return lengths.pop()
    if not lengths:
        raise ArgumentValueError(f"{name}: without arrays in xs, length must be given")
    met = [f"{place} of length {shape[0]}" for place, shape in zip(places(), shapes)]
    if length is not None:
        met.append(f"length={length}")
    raise ArgumentValueError(f"{name}: the numbers of iterations differ: {', '.join(met)}")


def _given_length(name: str, length: Any) -> int:
    if is_abstract(length):
        raise TracerIntegerConversionError(
            f"{name}: length must be a number, but is a traced value of type {length.aval}: it is the number of rows "
            "of the result. Mark the argument static, or use lax.fori_loop, which takes bounds known only when it runs"
        )
    found = index(name, "length", length)
    if found < 0:
        raise ArgumentValueError(f"{name}: length must not be negative, got {found}")
    return found


def unrolled(name: str, unroll: Any, length: int) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    found = index(name, "unroll", unroll)
    if found < 0:
        raise ArgumentValueError(f"{name}: unroll must not be negative, got {found}")
    return max(found, 1)


def _positive(name: str, argument: str, value: Any) -> int:
    found = index(name, argument, value)
    if found < 1:
        raise ArgumentValueError(f"{name}: {argument} must be at least 1, got {found}")
    return found


def index(name: str, argument: str, value: Any) -> int:
    """An argument that must be an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}: {argument} must be an integer, got {value!r}") from None


def name_of_any(fun: Any) -> str:
    """The name of what is about to be checked for being a function."""
    return name_of(fun) if callable(fun) else type(fun).__name__
