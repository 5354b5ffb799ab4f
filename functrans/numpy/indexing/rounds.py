"""Elements changed one update after another, where the order matters: what ``np.<ufunc>.at`` does for any function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...api.bodies import trace_body
from ...control import scan
from ...core.aval import Aval, aval_of
from ...core.dtypes import INT64
from ...core.pytree import tree_structure
from ...core.trace import concrete, is_abstract
from ...primitives.elementwise.arithmetic import eq_p, ge_p, select_p, stop_gradient_p, sub_p
from ...primitives.indexing.gather_scatter import gathered, scatter_p
from ...primitives.indexing.index_shapes import rest_of
from ...primitives.indexing.placed_windows import arranged, inverse
from ...primitives.indexing.repeated import all_different, flat_places, ranks
from ...primitives.reductions.reduce import reduce_max_p
from ...primitives.structure.linear import add_p, broadcast_in_dim_p, reshape_p, shape_of

Step = Callable[[Any], Any]

#: Rounds written out in a traced function; more of them, or as many as the data say, make a loop.
_WRITTEN_OUT = 2


def one_by_one(
    step: Step,
    x: Any,
    indices: Sequence[Any],
    axes: tuple[int, ...],
    mode: str,
    idle: Any = None,
    unique: bool = False,
) -> Any:
    """`x` with elements replaced by a function of themselves, again each time that an element is named.

    Parameters
    ----------
    step : callable
        From what stands at all indices, shape ``S + rest``, to what is to stand there. Elementwise.
    x : array
    indices : sequence of int arrays of shape ``S``
    axes : tuple of int
        The axes of `x` that they index.
    mode : str
        See `primitives.bounds`.
    idle : scalar of the dtype of `x`, optional
        What `step` is given where it is not wanted; by default what stands there at first.
    unique : bool
        A promise that no element is named twice.

    Notes
    -----
    Round `r` writes the updates before which there are `r` with the same place. What `step` makes of the others is
    dropped; so that it does no harm to derivatives, it is not given what they have become, for which it may be
    undefined.
    """
    common, shape = shape_of(indices[0]), shape_of(x)
    if prod(common) == 0:
        return x
    if unique or all_different(shape, indices, axes, mode):
        new = step(gathered(x, indices, axes, mode))
        return scatter_p.bind(x, new, *indices, axes=axes, mode=mode, unique_indices=True)
    rest = rest_of(shape, axes)
    order = (*axes, *[d for d in range(len(shape)) if d not in axes])
    moved = arranged(x, order)
    size = prod([shape[d] for d in axes])
    places = flat_places(shape, indices, axes, mode)
    rank = select_p.bind(ge_p.bind(places, np.int64(0)), ranks(places), np.int64(-1))
    rows = reshape_p.bind(moved, shape=(size, *rest))
    if not size:  # every index was left out
        return x
    first = gathered(rows, [places], (0,), "clip")
    resting = stop_gradient_p.bind(first) if idle is None else idle

    def turn(rows: Any, r: Any) -> Any:
        now = eq_p.bind(rank, r)
        active = broadcast_in_dim_p.bind(
            now, shape=shape_of(first), broadcast_dimensions=tuple(range(len(common)))
        )
        new = step(select_p.bind(active, gathered(rows, [places], (0,), "clip"), resting))
        target = select_p.bind(now, places, np.int64(size))
        return scatter_p.bind(rows, new, target, axes=(0,), mode="drop", unique_indices=True)

    count = add_p.bind(reduce_max_p.bind(rank, axes=tuple(range(len(common)))), np.int64(1))
    known, done = concrete(count), 0
    while known is not None and done < known and (done < _WRITTEN_OUT or not is_abstract(rows)):
        rows, done = turn(rows, np.int64(done)), done + 1
    if known is None or done < known:
        rows = _loop(turn, rows, np.int64(done), count)
    return arranged(reshape_p.bind(rows, shape=shape_of(moved)), inverse(order))


def _loop(turn: Callable[[Any, Any], Any], rows: Any, start: Any, count: Any) -> Any:
    """The rounds from `start` on, as a loop of as many iterations as it takes."""

    def call(fun: Callable[[Any, Any], Any], carry: tuple[Any, Any]) -> tuple[Any, Any]:
        return fun(*carry), add_p.bind(carry[1], np.int64(1))

    avals = [aval_of(rows).strong(), Aval((), INT64)]
    body = trace_body(turn, avals, tree_structure((0, 0)), call)
    number = sub_p.bind(count, start)
    return scan.bind(body.jaxpr, body.consts, [rows, start], [], length=None, count=number)[0]
