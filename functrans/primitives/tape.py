"""What can be done with tapes outside of loops: an empty one, and the sum of two of the same length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.aval import Aval
from ..core.config import config
from ..core.errors import TapeLimitError
from ..core.kernel import Block, BlockEmitter
from ..core.primitive import Primitive
from ..core.source import Source
from ..core.tape import Tape, TapeAval, TapeWriter, new_pool, records
from .shape import loops


def write_tape(item: Aval, values: Sequence[Any]) -> Tape:
    """A tape of these records."""
    writer = TapeWriter(item, config.tape_limit)
    span = writer.write(values)
    if span is None:
        raise tape_is_full(config.tape_limit)
    return Tape(span, writer.pools, writer.aval)


def stacked(item: Aval, values: Sequence[Any]) -> Any:
    """Values of one type along a new first axis: an array, or an array of tapes."""
    if not isinstance(item, TapeAval):
        found = np.empty((len(values), *item.shape), item.dtype)
        for i, value in enumerate(values):
            found[i] = value
        return found
    # A tape whose records are tapes holds their spans; without its own level it is an array of tapes.
    whole = write_tape(item, values)
    spans = records(whole.pools[0], item.shape, item.dtype)[: len(values)].copy()
    return Tape(spans, whole.pools[1:], item.with_shape((len(values), *item.shape)))


def _empty_kernel(k: BlockEmitter, operands: Any, results: Sequence[Any], *, aval: TapeAval) -> None:
    zero = k.const(0, aval.dtype)
    with loops(k, aval.shape) as index:
        k.store(results[0].spans, index, zero)


def _empty_impl(*, aval: TapeAval) -> Tape:
    pools = tuple([new_pool() for _ in range(aval.levels)])
    return Tape(np.zeros(aval.shape, np.int64), pools, aval)


#: Tapes without records: what a branch gives in the place of another one's.
empty_tape_p = Primitive("empty_tape", lambda *, aval: aval, _empty_impl, kernel=Block(_empty_kernel))


def tape_is_full(limit: int, source: Source | None = None) -> TapeLimitError:
    """The error of a tape that has reached the limit."""
    return TapeLimitError(
        f"what the derivative of a loop must keep of its iterations exceeds config.tape_limit = {limit} bytes. "
        "Wrap the body in functrans.checkpoint to keep less of each, make the loop shorter, or raise the limit",
        source,
    )
