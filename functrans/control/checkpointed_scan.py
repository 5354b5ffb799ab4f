"""Scans in chunks: reverse mode stores the carry at the start of each chunk, and later runs the chunk again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.ir import Jaxpr
from ..core.values import Params, Value
from ..passes.check import verified
from ..passes.masks import split
from ..passes.toolkit import single_equation
from ..primitives.structure.linear import reshape_p, shape_of
from ..primitives.structure.shape import concatenate_p, slice_along
from .checkpoint import checkpoint_p
from .scan import bind as bind_scan
from .scan import scan_p


def bind(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    carry: Sequence[Any],
    rows: Sequence[Any],
    *,
    length: int,
    every: int,
    reverse: bool = False,
    unroll: int = 1,
) -> list[Any]:
    """Like `scan.bind`, with a checkpoint before every `every` iterations.

    Parameters
    ----------
    jaxpr, consts, carry, rows, length, reverse, unroll
        As in `scan.bind`.
    every : int
        The size of a chunk, positive. The remaining rows form a final, shorter chunk.
    """
    chunks = length // every
    if chunks <= 1:  # a single chunk would run twice for no gain
        return bind_scan(jaxpr, consts, carry, rows, length=length, reverse=reverse, unroll=unroll)
    whole = chunks * every
    parts: dict[str, list[Any]] = {}

    def full_chunks() -> list[Any]:
        body = _chunk(jaxpr, len(consts), len(carry), every, reverse, unroll)
        blocks = [reshape_p.bind(_part(x, 0, whole), shape=(chunks, every, *shape_of(x)[1:])) for x in rows]
        after, stacked = split(
            bind_scan(body, consts, carry, blocks, length=chunks, reverse=reverse), len(carry)
        )
        parts["front"] = [reshape_p.bind(y, shape=(whole, *shape_of(y)[2:])) for y in stacked]
        return after

    def rest() -> list[Any]:
        body = _chunk(jaxpr, len(consts), len(carry), length - whole, reverse, unroll)
        (eqn,) = body.eqns
        values = [*consts, *carry, *[_part(x, whole, length) for x in rows]]
        after, parts["back"] = split(checkpoint_p.bind(*values, **eqn.params), len(carry))
        return after

    runs = [full_chunks] if whole == length else [rest, full_chunks] if reverse else [full_chunks, rest]
    for run in runs:
        carry = run()
    if "back" not in parts:
        return [*carry, *parts["front"]]
    pairs = zip(parts["front"], parts["back"])
    return [*carry, *[concatenate_p.bind(a, b, dimension=0) for a, b in pairs]]


def _part(x: Value, start: int, stop: int) -> Any:
    """Rows `start` to `stop`."""
    return x if (start, stop) == (0, shape_of(x)[0]) else slice_along(x, 0, start, stop)


def _chunk(jaxpr: Jaxpr, num_consts: int, num_carry: int, length: int, reverse: bool, unroll: int) -> Jaxpr:
    """The body of a scan over chunks: a checkpointed scan, from (consts, carry, rows) to (carry, rows)."""

    def build() -> Jaxpr:
        avals = [a.strong() for a in jaxpr.in_avals]
        front, rows = avals[: num_consts + num_carry], avals[num_consts + num_carry :]
        avals = [*front, *[a.with_shape((length, *a.shape)) for a in rows]]
        params: Params = {
            "num_consts": num_consts,
            "num_carry": num_carry,
            "reverse": reverse,
            "unroll": unroll,
        }
        params.update(jaxpr=jaxpr, length=length)
        loop = single_equation(scan_p, avals, params, name=jaxpr.name, stats=jaxpr.stats)
        # The two runs are in separate loops, so nothing needs to be kept apart.
        options = {"jaxpr": loop, "policy": None, "prevent_cse": False}
        chunk = single_equation(checkpoint_p, avals, options, name=jaxpr.name, stats=jaxpr.stats)
        return verified(chunk, "chunks of a scan")

    return jaxpr.derive(("chunk", num_consts, num_carry, length, reverse, unroll), build)
