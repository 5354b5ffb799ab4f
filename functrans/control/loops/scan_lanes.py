"""What `vmap` of a scan finds in the body, and makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core import INT64, Aval, Eqn, Jaxpr, NoRuleError, Primitive, axis_key, has_subjaxprs, subjaxprs
from ...core.evaluation import evaluate
from ...core.values import Value
from ...passes.masks import split
from ...primitives.elementwise.arithmetic import lt_p
from ...primitives.products.dot import dot_general_p
from ...primitives.structure.linear import add_p
from ...runtime.config import config
from ...runtime.module_getattr import lazy_import
from ...runtime.passes import LANES
from ...transforms.stage import stage
from ..bodies.building import JaxprBuilder
from ..bodies.transforms import batched_body, chosen_lanes

checking = lazy_import("functrans.control.bodies.checked")
conv = lazy_import("functrans.primitives.windows.conv")


def carrying_counters(jaxpr: Jaxpr, counters: int) -> Jaxpr:
    """A body that carries its counters, which are its rows."""

    def build() -> Jaxpr:
        new = JaxprBuilder(jaxpr)
        following = [new.bind(add_p, v, np.int64(1)) for v in jaxpr.invars[-counters:]]
        return new.finish("counters in the carry", [*jaxpr.outvars, *following])

    return jaxpr.derive("counters in the carry", build)


def body_in_step(
    jaxpr: Jaxpr, size: int, dims: Sequence[int | None], sizes: tuple[int, int]
) -> tuple[Jaxpr, tuple[Any, ...]]:
    """A body for all lanes, of which those that are done keep their values; and the arrays that it captured.

    Its constants are how often each lane runs, what it captured and its constants, whose batch axes are `dims`. It
    carries also the number of the iteration.
    """
    lane = checking.lane_of(jaxpr)
    body, captured, _, state_dims = batched_body(lane.jaxpr, size, (*dims, *[0] * sizes[1]), sizes)
    fixed = len(captured) + sizes[0]

    def step(counts: Value, *values: Value) -> list[Value]:
        consts, carry, (number,) = split(values, fixed, sizes[1])
        outs, state = split(evaluate(body, [*consts, *carry]), sizes[1])
        going = lt_p.bind(number, counts)
        checking.raise_lanes(lane, going, state, state_dims)
        kept = [chosen_lanes(going, new, old) for new, old in zip(outs, carry)]
        return [*kept, add_p.bind(number, np.int64(1))]

    def build() -> Jaxpr:
        avals = [Aval((int(size),), INT64), *body.in_avals, Aval((), INT64)]
        return stage(step, avals, "vmap of scan", body.stats)

    return body.derive(("in step", fixed, axis_key(size)), build), captured


def copies_lanes(scan: Primitive, jaxpr: Jaxpr, body: Jaxpr, size: int, num_carry: int) -> bool:
    """Whether the batched body goes through the lanes of a carried array in each iteration, as for a branch that each
    lane takes or not. This copies them all, while a loop for each lane in turn writes in place. Products of matrices
    are worth more in a batch.
    """
    if not config.runs(LANES) or body.effects.ordered or _multiplies(jaxpr):
        return False
    carried = {(v.aval.shape, v.aval.dtype) for v in body.outvars[:num_carry] if len(v.aval.shape) > 1}
    return any(
        (v.aval.shape, v.aval.dtype) in carried
        for e in _equations(body)
        if e.primitive is scan and e.params["length"] == size and not e.params["num_carry"]
        if any(has_subjaxprs(one.params) for one in e.params["jaxpr"].eqns)
        for v in e.outvars
    )


def _equations(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """The equations of a jaxpr and of those inside of it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in subjaxprs(eqn.params):
            yield from _equations(inner)


def _multiplies(jaxpr: Jaxpr) -> bool:
    """Whether a jaxpr, or one inside of it, multiplies matrices or convolves."""
    return any(
        e.primitive in (dot_general_p, conv.conv_p) or any(map(_multiplies, subjaxprs(e.params)))
        for e in jaxpr.eqns
    )


def no_common_tape() -> NoRuleError:
    """The error for loops whose lanes would have to write or read their tapes together."""
    return NoRuleError(
        "vmap of the reverse-mode derivative of a loop of unknown length with a collective in its body: differentiate "
        "outside vmap, as in grad(lambda x: sum(vmap(f, axis_name=...)(x))), or use scan or fori_loop with known bounds"
    )
