"""Loops over rows: ``scan``, ``map``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...api.vmap import vmap
from ...core import aval_of, boundary, is_abstract, last_line
from ...core.values import ArrayLike, PyTree, Value
from ...errors import ArgumentError, ArgumentValueError, TracerIntegerConversionError
from ...frontend.arguments import check_function, flatten_values, given, name_of
from ...frontend.checked import checked
from ...frontend.pytree import PyTreeDef, tree_flatten_with_path, tree_map, tree_structure, tree_unflatten
from ...frontend.pytree.nodes import keystr
from ...numpy.shaping.joining import concatenate
from ...numpy.shaping.reshaping import reshape
from ...primitives.structure.linear import shape_of
from .scanning import ScanLoop

__all__ = ["map", "scan"]


@boundary
@checked
def scan(
    f: Callable[..., PyTree],
    init: PyTree,
    xs: ArrayLike = None,
    length: ArrayLike = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    checkpoint_every: int | None = None,
) -> PyTree:
    """Loop over the rows of arrays, with a carry: one native loop, differentiable in both modes.

    Parameters
    ----------
    f : callable
        ``f(carry, x) -> (carry, y)``, with `x` a row of `xs`.
    init : pytree
        The first carry: arrays and numbers, each of which keeps its shape and dtype. A Python number gets the dtype
        that `f` returns for it.
    xs : pytree of arrays, optional
        Looped over along axis 0. With None the loop reads no rows, and `x` is None.
    length : int, optional
        The number of iterations; required if `xs` is None.
    reverse : bool
        Whether to go from the last row to the first; `ys` keep the order of `xs`.
    unroll : int or bool
        The number of iterations unrolled in each round of the loop; True unrolls all.
    checkpoint_every : int, optional
        In reverse mode, store the carry only once in so many iterations, and recompute what is between: with about
        ``sqrt(length)``, memory grows as the square root of the length, at the cost of one more forward loop.

    Returns
    -------
    carry : pytree
        The last carry.
    ys : pytree
        The second results of `f`, stacked along a new axis 0; None where `f` returns None.

    Raises
    ------
    CarryTypeError
        If `f` returns a carry with another shape, dtype or structure than it was passed.
    ArgumentError
        If `f` is not a function, or does not return a pair.
    ArgumentValueError
        If the arrays of `xs` differ in length, from each other or from `length`; if there are no arrays and no
        `length`; or if `length` is negative.

    Notes
    -----
    Equivalent to this Python loop, which is also what runs under ``functrans.disable_jit()``::

        ys = []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    `f` is traced once, whatever the length. Small carries live in registers, larger ones in two buffers; rows are read
    and written in place. Reverse mode stores, for each iteration, the residuals of `f` (none if `f` is linear in the
    carry). Outside ``jit`` the loop is compiled too, once for each new body; values that `f` captures may change from
    call to call without recompilation.

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
    return ScanLoop("scan", f, _call_pair, carry, tree, rows, rows_tree).run(
        count, bool(reverse), unroll, every
    )


@boundary
@checked
def map(f: Callable[..., PyTree], xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each row of arrays, one after the other.

    Parameters
    ----------
    f : callable
        ``f(x) -> y``, with `x` a row of `xs`.
    xs : pytree of arrays
        Looped over along axis 0.
    batch_size : int, optional
        Rows to process at once, by `vmap`; a remainder at the end makes a smaller batch.

    Returns
    -------
    pytree of Array
        The results of `f`, stacked along a new axis 0.

    Raises
    ------
    ArgumentError, ArgumentValueError
        As for `scan`, and if `batch_size` is not positive.

    Notes
    -----
    `functrans.vmap` computes the same for all rows at once: that is faster for operations on small arrays, while `map`
    needs the memory of one row (or of `batch_size` rows), and runs only the branch of ``cond`` that each row takes.

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


def _over_rows(f: Callable[..., PyTree], rows: list[ArrayLike], tree: PyTreeDef, count: int) -> Any:
    def call(f: Callable[..., PyTree], pair: tuple[ArrayLike, ArrayLike]) -> tuple[ArrayLike, ArrayLike]:
        return None, f(pair[1])

    return ScanLoop("map", f, call, [], tree_structure(None), rows, tree).run(count)[1]


def _call_pair(f: Callable[..., PyTree], tree: tuple[Any, ArrayLike]) -> tuple[Any, Any]:
    out = f(*tree)
    if not (isinstance(out, tuple | list) and len(out) == 2):
        returned = f"an array of shape {out.shape}" if hasattr(out, "shape") else type(out).__name__
        if isinstance(out, tuple | list):
            returned = f"{len(out)} values"
        raise ArgumentError(
            f"scan of {name_of(f)}: the body must return a pair (carry, y), but returned {returned}. If nothing is "
            "to be stacked, return (carry, None)",
            last_line(f),
        )
    return tuple(out)


def _length(name: str, xs: ArrayLike, rows: list[Value], length: ArrayLike) -> int:
    """The number of iterations."""
    shapes = [aval_of(x).shape for x in rows]

    def places() -> list[str]:
        return [f"xs{keystr(path)}" for path, _ in tree_flatten_with_path(xs)[0]]

    for i, shape in enumerate(shapes):
        if not shape:
            raise ArgumentValueError(
                f"{name}: {places()[i]} has no axes, so no rows. A list is a pytree of its elements: make it an array "
                "with functrans.numpy.asarray; let the body capture values that are the same in each iteration"
            )
    lengths = {shape[0] for shape in shapes}
    if length is not None:
        lengths.add(_given_length(name, length))
    if len(lengths) == 1:
        return lengths.pop()
    if not lengths:
        raise ArgumentValueError(f"{name}: without arrays in xs, length is required")
    counts = [f"{place} of length {shape[0]}" for place, shape in zip(places(), shapes)]
    if length is not None:
        counts.append(f"length={length}")
    raise ArgumentValueError(f"{name}: expected one number of iterations, got {', '.join(counts)}")


def _given_length(name: str, length: ArrayLike) -> int:
    if is_abstract(length):
        raise TracerIntegerConversionError(
            f"{name}: length must be a number, but is a traced value of type {length.aval}: it is the number of rows "
            "of the result. Mark the argument static, or use lax.fori_loop, whose bounds may be known only at run time"
        )
    count = index(name, "length", length)
    if count < 0:
        raise ArgumentValueError(f"{name}: length must not be negative, got {count}")
    return count


def unrolled(name: str, unroll: ArrayLike, length: int) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    count = index(name, "unroll", unroll)
    if count < 0:
        raise ArgumentValueError(f"{name}: unroll must not be negative, got {count}")
    return max(count, 1)


def _positive(name: str, argument: str, value: ArrayLike) -> int:
    number = index(name, argument, value)
    if number < 1:
        raise ArgumentValueError(f"{name}: {argument} must be at least 1, got {number}")
    return number


def index(name: str, argument: str, value: Any) -> int:
    """Check that an argument is an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}: {argument} must be an integer, got {value!r}") from None


def name_of_any(fun: Any) -> str:
    """The name of a value not yet known to be a function."""
    return name_of(fun) if callable(fun) else type(fun).__name__
