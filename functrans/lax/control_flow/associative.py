"""Prefix scans with an associative function: ``associative_scan``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...api.bodies import as_expected, check_structure, check_types
from ...arrays.array import Array
from ...arrays.autocast import made
from ...core import ArgumentError, ArgumentValueError, AxisError, aval_of, boundary, last_line
from ...core.values import ArrayLike, PyTree, Value
from ...frontend.arguments import check_function, flatten_values, given, name_of, result
from ...frontend.checked import checked
from ...frontend.pytree import PyTreeDef, tree_flatten_with_path, tree_unflatten
from ...frontend.pytree.nodes import keystr
from ...numpy.shaping.joining import concatenate, stack
from ...numpy.shaping.moving import flip
from ...numpy.shaping.reshaping import reshape
from ...primitives.structure.linear import shape_of

__all__ = ["associative_scan"]


@boundary
@checked
def associative_scan(
    fn: Callable[..., PyTree], elems: ArrayLike, reverse: bool = False, axis: int = 0
) -> Array:
    """All prefixes ``x0``, ``fn(x0, x1)``, ``fn(fn(x0, x1), x2)``, ... of an associative function.

    Parameters
    ----------
    fn : callable
        ``fn(a, b)`` of two pytrees like `elems`, of any extent along `axis`: it combines many pairs at once. It must be
        associative, ``fn(a, fn(b, c)) == fn(fn(a, b), c)``, and return the structure, shapes and dtypes of its
        arguments.
    elems : pytree of arrays
        All with the same extent along `axis`.
    reverse : bool
        Combine from the end: the first result combines all elements.
    axis : int

    Returns
    -------
    pytree of Array
        With the structure and shapes of `elems`.

    Raises
    ------
    ArgumentError
        If `fn` is not a function, or `elems` has no arrays.
    ArgumentValueError
        If the extents along `axis` differ.
    AxisError
        If an array lacks the axis.
    CarryTypeError
        If `fn` returns another structure, shape or dtype than its arguments have.

    Notes
    -----
    The scan combines neighbours, computes the prefixes of the results recursively, and fills the gaps: at most ``2 n``
    combinations, in about ``2 log2(n)`` calls of `fn` (Blelloch, "Prefix sums and their applications", 1990). Rounding
    errors grow with the logarithm of the length. `scan` does the same with ``n - 1`` combinations one after the other,
    and is as fast if `fn` is small, since functrans uses one processor.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> lax.associative_scan(fnp.maximum, fnp.asarray([3.0, 1.0, 4.0, 1.0, 5.0]))
    Array([3., 3., 4., 4., 5.])
    >>> lax.associative_scan(fnp.add, fnp.arange(1.0, 5.0), reverse=True)
    Array([10.,  9.,  7.,  4.])

    Linear recurrences ``y[i] = a[i] * y[i - 1] + b[i]``:

    >>> def combine(p, q):
    ...     return q[0] * p[0], q[0] * p[1] + q[1]
    >>> lax.associative_scan(combine, (fnp.full(4, 0.5), fnp.ones(4)))[1]
    Array([1.   , 1.5  , 1.75 , 1.875])
    """
    check_function("associative_scan", fn)
    name = f"associative_scan of {name_of(fn)}"
    values, tree = flatten_values(elems, lambda path: f"{name}: elems{keystr(path)}")
    places = [f"elems{keystr(path)}" for path, _ in tree_flatten_with_path(elems)[0]]
    axis = _checked_axis(name, values, places, axis)
    if shape_of(values[0])[axis] < 2:
        ids = {id(x) for x in values}
        return tree_unflatten(tree, [result(x, ids) for x in values])
    leaves = [given(x) for x in values]
    if reverse:
        leaves = [flip(x, axis) for x in leaves]
    leaves = _Prefixes(fn, tree, axis)(leaves)
    if reverse:
        leaves = [flip(x, axis) for x in leaves]
    return tree_unflatten(tree, [result(x) for x in leaves])


def _checked_axis(name: str, values: list[Value], places: list[str], axis: int) -> int:
    """The axis, counted from the front."""
    if not values:
        raise ArgumentError(f"{name}: elems has no arrays")
    rank = len(shape_of(values[0]))
    front = axis + rank if axis < 0 else axis
    for x, place in zip(values, places):
        if not 0 <= front < len(shape_of(x)):
            raise AxisError(f"{name}: axis {axis} is out of bounds for {place} of shape {shape_of(x)}")
    if len({shape_of(x)[front] for x in values}) > 1:
        listed = ", ".join(f"{place} of extent {shape_of(x)[front]}" for x, place in zip(values, places))
        raise ArgumentValueError(f"{name}: expected equal extents along axis {front}, got {listed}")
    return front


class _Prefixes:
    """The recursion, over the leaves of elements."""

    def __init__(self, fn: Callable[..., PyTree], tree: PyTreeDef, axis: int):
        self.fn = fn
        self.tree = tree
        self.axis = axis

    def __call__(self, xs: list[Any]) -> list[Any]:
        """Return all prefixes."""
        n = shape_of(xs[0])[self.axis]
        if n < 2:
            return xs
        odd = self(self.combined(self.part(xs, 0, n - 1, 2), self.part(xs, 1, n, 2)))
        if n == 2:
            return [concatenate([x, y], self.axis) for x, y in zip(self.part(xs, 0, 1), odd)]
        before = odd if n % 2 else self.part(odd, 0, n // 2 - 1)
        even = self.combined(before, self.part(xs, 2, n, 2))
        even = [concatenate([x, y], self.axis) for x, y in zip(self.part(xs, 0, 1), even)]
        return [self.interleaved(x, y) for x, y in zip(even, odd)]

    def part(self, xs: list[Any], start: int, stop: int, step: int = 1) -> list[Any]:
        """Slice each along the axis."""
        index = (*[slice(None)] * self.axis, slice(start, stop, step))
        return [x[index] for x in xs]

    def combined(self, xs: list[Any], ys: list[Any]) -> list[Any]:
        """Apply `fn` to pairs."""
        before = made.count
        out = self.fn(tree_unflatten(self.tree, xs), tree_unflatten(self.tree, ys))
        leaves, tree = flatten_values(out, lambda path: f"the result of {name_of(self.fn)}{keystr(path)}")
        check_structure("associative_scan", self.fn, self.tree, tree)
        casts = made.count != before
        leaves = [as_expected(x, aval_of(y), casts) for x, y in zip(leaves, xs)]
        avals = [aval_of(x) for x in leaves]
        line = last_line(self.fn)
        check_types("associative_scan", self.fn, tree, [aval_of(x) for x in xs], avals, [line] * len(leaves))
        return [given(x) for x in leaves]

    def interleaved(self, even: Any, odd: Any) -> Any:
        """Interleave the elements of both; `even` may have one more."""
        axis = self.axis
        n = shape_of(odd)[axis]
        (first,) = self.part([even], 0, n)
        shape = (*shape_of(odd)[:axis], 2 * n, *shape_of(odd)[axis + 1 :])
        both = reshape(stack([first, odd], axis + 1), shape)
        if shape_of(even)[axis] == n:
            return both
        return concatenate([both, *self.part([even], n, n + 1)], axis)
