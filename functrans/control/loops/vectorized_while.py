"""Many small ``while_loop``s, one per lane of a batch, in groups of lanes that fill a SIMD register.

A loop over lanes whose body is nothing but a ``while_loop`` over numbers cannot be vectorized directly: each lane has
its own trip count. So lanes run in groups: while any lane of a group continues, all of them execute an iteration, and
finished lanes keep their values. Each lane has the same result as alone.

Only the kernel has this form; derivatives are those of the loop over lanes. So a finished lane's results are never
observed and must not fail: only elementwise operations run this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import INT64, BlockEmitter, Buffer, Jaxpr, Literal, Pointwise
from ...passes.masks import split
from ...runtime.config import config
from ...runtime.passes import GROUPS

#: The number of lanes side by side.
WIDTH = 16
#: The minimum number of lanes.
FEWEST = 64

BOOL = np.dtype(bool)


def _can_group(jaxpr: Jaxpr, length: int) -> bool:
    """Whether the ``while_loop`` that is the body of a scan without carry can run in groups of lanes."""
    if length < FEWEST:
        return False
    (eqn,) = jaxpr.eqns
    cond, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    numbers = [a.aval for a in (*eqn.invars, *eqn.outvars, *jaxpr.outvars)]
    own = set(eqn.outvars)
    return (
        all(not a.shape for a in numbers)
        and all(a in own for a in jaxpr.outvars)
        and len(eqn.outvars) == len(body.outvars) + 1
        and len(eqn.invars) == eqn.params["num_cond"] + eqn.params["num_consts"] + len(body.outvars)
        and all(
            isinstance(e.primitive.kernel, Pointwise)
            and e.effects.movable
            and not any(a.aval.shape for a in e.invars)
            for e in (*cond.eqns, *body.eqns)
        )
    )


def in_step(
    k: BlockEmitter,
    jaxpr: Jaxpr,
    consts: Sequence[Buffer],
    rows: Sequence[Buffer],
    out_rows: Sequence[Buffer],
    length: int,
) -> bool:
    """The `Block.over_lanes` rule of ``while_loop``: write the loop over groups of lanes."""
    if not config.runs(GROUPS) or not _can_group(jaxpr, length):
        return False
    (eqn,) = jaxpr.eqns
    counted = eqn.outvars[-1] in jaxpr.outvars
    group = _Group(k, eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"], counted)
    # The last lane fills up the last group, and is then computed more than once.
    last: Any = length - 1  # an extent, so that all lengths share one kernel
    with k.loop(-(-length // WIDTH), interruptible=True, separate=True) as j:

        def lane(i: Any) -> Any:
            number = j * WIDTH + i
            return k.where(number < length, number, last)

        places: dict[Any, Any] = dict(zip(jaxpr.invars, consts))
        shared, own = split(jaxpr.invars, len(consts))
        for v, x in zip(own, rows):
            places[v] = staged = k.scratch((WIDTH,), v.aval.dtype)
            with k.loop(WIDTH, separate=True) as i:
                k.store(staged, (i,), k.load(x, (lane(i),)))

        def memory(a: Any, i: Any) -> Any:
            if isinstance(a, Literal):
                place = k.scratch((), a.aval.dtype)
                k.store(place, (), k.const(a.value, a.aval.dtype))
                return place
            return places[a] if a in shared else k.row(places[a], i)

        def operands(i: Any) -> list[list[Any]]:
            buffers = [memory(a, i) for a in eqn.invars]
            return split(buffers, eqn.params["num_cond"], eqn.params["num_consts"])

        group.run(operands)
        final: dict[Any, Any] = dict(zip(eqn.outvars, [*group.carry, *group.counts]))
        with k.loop(WIDTH, separate=True) as i:
            for v, y in zip(jaxpr.outvars, out_rows):
                k.store(y, (lane(i),), k.load(final[v], (i,)))
    return True


class _Group:
    """The memory of the lanes of a group, and their loop; `counted` if something reads the trip counts."""

    def __init__(self, k: BlockEmitter, cond: Jaxpr, body: Jaxpr, counted: bool):
        self.k = k
        self.cond = cond
        self.body = body
        dtypes = [a.aval.dtype for a in body.outvars]
        self.carry = [k.scratch((WIDTH,), d) for d in dtypes]
        self.new = [k.scratch((), d) for d in dtypes]
        self.counts = [k.scratch((WIDTH,), INT64)] if counted else []
        self.going = k.scratch((WIDTH,), BOOL)
        self.flag = k.scratch((), BOOL)

    def run(self, operands: Any) -> None:
        """All iterations of all lanes, from the operands of the loop (a function of the lane)."""
        k = self.k
        with k.loop(WIDTH, separate=True) as i:
            cond_consts, _, init = operands(i)
            for place, x in zip(self.carry, init):
                k.store(place, (i,), k.load(x, ()))
            for count in self.counts:
                k.store(count, (i,), k.const(0, INT64))
            self.look(i, cond_consts)
            k.store(self.going, (i,), k.load(self.flag, ()))
        with k.while_(self.any_going), k.loop(WIDTH, separate=True) as i:
            cond_consts, consts, _ = operands(i)
            going = k.load(self.going, (i,))
            k.inline(self.body, [*consts, *[k.row(c, i) for c in self.carry]], self.new)
            for place, new in zip(self.carry, self.new):
                k.store(place, (i,), k.where(going, k.load(new, ()), k.load(place, (i,))))
            for count in self.counts:
                n = k.load(count, (i,))
                k.store(count, (i,), k.where(going, n + 1, n))
            self.look(i, cond_consts)
            k.store(self.going, (i,), going & k.load(self.flag, ()))

    def look(self, i: Any, consts: Sequence[Any]) -> None:
        """Whether a lane continues."""
        self.k.inline(self.cond, [*consts, *[self.k.row(c, i) for c in self.carry]], [self.flag])

    def any_going(self) -> Any:
        """Whether any lane of the group continues."""
        k = self.k
        any_going = k.local(k.const(False, BOOL))
        with k.loop(WIDTH) as i:
            any_going.set(any_going.get() | k.load(self.going, (i,)))
        return any_going.get()
