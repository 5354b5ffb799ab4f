"""Loops: ``scan``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..api.bodies import Body, CarryBody, carry_out, trace_body, trace_carry
from ..api.values import check_function, flatten_values, given, name_of, result
from ..control import scan as scan_primitive
from ..core.aval import Aval, aval_of
from ..core.config import config
from ..core.errors import ArgumentError, ArgumentValueError, TracerIntegerConversionError
from ..core.pytree import PyTreeDef, tree_flatten_with_path, tree_structure, tree_unflatten
from ..core.trace import Tracer
from ..core.tree_nodes import keystr
from .stepping import Carry, Rows

__all__ = ["scan"]


def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
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
    rows are read and written in place. Reverse mode stores for each iteration what the derivative of `f` needs of it (nothing
    where `f` is linear in the carry). Outside ``jit`` the loop is compiled too, for each new body; what `f` captures
    may change from call to call without cost.

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
    name = f"scan of {_name(f)}"
    check_function("scan", f)
    carry, tree = flatten_values(init, lambda path: f"{name}: init{keystr(path)}")
    rows, rows_tree = flatten_values(xs, lambda path: f"{name}: xs{keystr(path)}")
    count = _length(name, xs, rows, length)
    unroll = _unroll(name, unroll, count)
    if config.disable_jit:
        return _in_python(
            f, Carry("scan", f, carry, tree), rows, rows_tree, range(count)[:: -1 if reverse else 1]
        )
    found = _traced(f, carry, tree, rows, rows_tree)
    outs = scan_primitive.bind(
        found.body.jaxpr,
        found.body.consts,
        found.init,
        rows,
        length=count,
        reverse=bool(reverse),
        unroll=unroll,
    )
    last, ys = outs[: len(carry)], outs[len(carry) :]
    ys_tree = found.body.out_tree.children()[1]
    return (
        tree_unflatten(tree, carry_out(last, found.weak)),
        tree_unflatten(ys_tree, [result(y) for y in ys]),
    )


def _traced(
    f: Callable[..., Any], carry: list[Any], tree: PyTreeDef, rows: list[Any], rows_tree: PyTreeDef
) -> CarryBody:
    row_avals = [Aval(a.shape[1:], a.dtype) for a in map(aval_of, rows)]
    in_tree = _pair(tree, rows_tree)

    def trace(avals: list[Aval]) -> Body:
        return trace_body(f, [*avals, *row_avals], in_tree, _call_pair, avals)

    return trace_carry("scan", f, carry, tree, trace, lambda out: out.children()[0])


def _in_python(
    f: Callable[..., Any], carry: Carry, rows: list[Any], rows_tree: PyTreeDef, order: Sequence[int]
) -> tuple[Any, Any]:
    ys = Rows(f"scan of {name_of(f)}")
    for i in order:
        x = tree_unflatten(rows_tree, [given(x[i]) for x in rows])
        value, y = _call_pair(f, (carry.value, x))
        carry.replace(value)
        ys.append(y)
    if order:
        return carry.last, ys.stacked(order[0] > order[-1])
    body = _traced(f, carry.leaves, carry.tree, rows, rows_tree).body  # only the types of no rows
    empty = [result(np.empty((0, *a.shape), a.dtype)) for a in body.outs[len(carry.leaves) :]]
    return carry.last, tree_unflatten(body.out_tree.children()[1], empty)


def _name(f: Any) -> str:
    return name_of(f) if callable(f) else type(f).__name__


def _pair(first: PyTreeDef, second: PyTreeDef) -> PyTreeDef:
    return tree_structure(
        (tree_unflatten(first, [0] * first.num_leaves), tree_unflatten(second, [0] * second.num_leaves))
    )


def _call_pair(f: Callable[..., Any], tree: tuple[Any, Any]) -> tuple[Any, Any]:
    out = f(*tree)
    if not (isinstance(out, tuple | list) and len(out) == 2):
        met = f"{len(out)} values" if isinstance(out, tuple | list) else f"{type(out).__name__}"
        raise ArgumentError(
            f"scan of {name_of(f)}: the body must return a pair (carry, y), but returned {met}. Where there is nothing "
            "to stack, return (carry, None)"
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
                f"{name}: {places()[i]} has no axes, so no rows; what is the same in each iteration is captured by the "
                "body, or part of the carry"
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
    if isinstance(length, Tracer) and length.concrete() is None:
        raise TracerIntegerConversionError(
            f"{name}: length must be a number, but is a traced value of type {length.aval}: it is the number of rows "
            "of the result. Mark the argument static, or use lax.fori_loop, which takes bounds known only when it runs"
        )
    try:
        found = operator.index(length)
    except TypeError:
        raise ArgumentError(f"{name}: length must be an integer, got {length!r}") from None
    if found < 0:
        raise ArgumentValueError(f"{name}: length must not be negative, got {found}")
    return found


def _unroll(name: str, unroll: Any, length: int) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    try:
        found = operator.index(unroll)
    except TypeError:
        raise ArgumentError(f"{name}: unroll must be an integer or a bool, got {unroll!r}") from None
    if found < 1:
        raise ArgumentValueError(f"{name}: unroll must be at least 1, got {found}")
    return found
