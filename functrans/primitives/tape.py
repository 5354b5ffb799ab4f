"""Operations on tapes outside of loops: write one, and add two of equal length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core import (
    INT64,
    Aval,
    Block,
    BlockEmitter,
    Primitive,
    Source,
    Tape,
    TapeAval,
    TapeWriter,
    Zero,
    records,
)
from ..core.values import ArrayLike, Tangent, Value
from ..errors import TapeLimitError
from ..runtime.config import config
from .series import of_jointly_linear
from .structure.linear import add_p
from .structure.shape import loops


def write_tape(item: Aval, values: Sequence[Value]) -> Tape:
    """Return a tape with these entries."""
    writer = TapeWriter(item, config.tape_limit)
    span = writer.write(values)
    if span is None:
        raise tape_is_full(config.tape_limit)
    return Tape(span, writer.pools, writer.aval)


def stacked(item: Aval, values: Sequence[Any]) -> Any:
    """Stack values of one type along a new first axis: as an array, or as an array of tapes."""
    if not isinstance(item, TapeAval):
        array = np.empty((len(values), *item.shape), item.dtype)
        for i, value in enumerate(values):
            array[i] = value
        return array
    # A tape whose entries are tapes stores their spans; without its outermost level it is an array of tapes.
    whole = write_tape(item, values)
    spans = records(whole.pools[0], item.shape, item.dtype)[: len(values)].copy()
    return Tape(spans, whole.pools[1:], item.with_shape((len(values), *item.shape)))


# --- sums ---------------------------------------------------------------------------------------------------


def _add_abstract(x: TapeAval, y: TapeAval) -> TapeAval:
    return x if len(x.shape) >= len(y.shape) else y


def _add_impl(x: Tape, y: Tape) -> Tape:
    aval = _add_abstract(x.aval, y.aval)
    if aval.shape == (2,):
        return write_tape(aval.item, _sums(x, y))
    rows = [_add_impl(*[t[i] if t.shape == aval.shape else t for t in (x, y)]) for i in range(aval.shape[0])]
    return stacked(aval.with_shape(aval.shape[1:]), rows)


def _sums(x: Tape, y: Tape) -> list[Any]:
    if not len(x) or not len(y):  # from a branch that did not run
        x = x if len(x) else y
        return [x.record(i) for i in range(len(x))]
    add = _add_impl if isinstance(x.aval.item, TapeAval) else np.add
    return [add(x.record(i), y.record(i)) for i in range(len(x))]


def _add_kernel(k: BlockEmitter, operands: Sequence[Value], results: Sequence[Any]) -> None:
    out = results[0]
    with loops(k, out.shape[:-1]) as index:
        rows = []
        for tape in (*operands, out):
            for i in index if tape.shape == out.shape else ():
                tape = k.row(tape, i)
            rows.append(tape)
        _add_one(k, *rows)


def _add_one(k: BlockEmitter, x: ArrayLike, y: ArrayLike, out: ArrayLike, has: tuple[Any, ...] = ()) -> None:
    """Add two tapes. An empty one comes from a branch that did not run, and stands for zeros.

    `has` says at run time whether `x` and `y` are there to be read: an empty tape of tapes has no spans.
    """
    (a, n), (b, m) = [_span(k, tape, *has[i : i + 1]) for i, tape in enumerate((x, y))]
    count = k.where(n < m, m, n)
    start = k.begin_tape(out)
    k.reserve(out, start + count)
    with k.loop(count) as i:
        first, second, there = k.record(x, a + i), k.record(y, b + i), k.record(out, start + i)
        add = _add_one if isinstance(out.aval.item, TapeAval) else _add_records
        add(k, first, second, there, (i < n, i < m))
    k.end_tape(out, start, count)


def _span(k: BlockEmitter, tape: Any, has: Any = None) -> tuple[Any, Any]:
    """The span of a tape; that of an empty one where it is not there."""
    if has is None:
        return k.span(tape)
    zero = k.const(0, INT64)
    return k.guarded(has, lambda: k.span(tape)[0], zero), k.guarded(has, lambda: k.span(tape)[1], zero)


def _add_records(k: BlockEmitter, x: ArrayLike, y: ArrayLike, out: ArrayLike, has: tuple[Any, Any]) -> None:
    zero = k.const(0, out.dtype)
    with loops(k, out.shape) as index:
        parts = [k.guarded(h, partial(k.load, r, index), zero) for r, h in zip((x, y), has)]
        k.store(out, index, parts[0] + parts[1])


def _add_jvp(primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[Value, Tangent]:
    out = add_tapes_p.bind(*primals)
    nonzero = [t for t in tangents if type(t) is not Zero]
    if not nonzero:
        return out, Zero(out)
    return out, nonzero[0] if len(nonzero) == 1 else add_tapes_p.bind(*nonzero)


#: The sum of two tapes of equal length, entry by entry: adds the cotangents of a tape that is read twice.
add_tapes_p: Primitive = Primitive(
    "add_tapes",
    _add_abstract,
    _add_impl,
    jvp=_add_jvp,
    taylor=of_jointly_linear,
    transpose=lambda ct, x, y: [ct, ct],
    batch=lambda size, args, dims: (add_tapes_p.bind(*args), 0),
    kernel=Block(_add_kernel),
)


def sum_primitive(aval: Aval) -> Primitive:
    """Return the primitive that adds two values of a type."""
    return add_tapes_p if isinstance(aval, TapeAval) else add_p


def tape_is_full(limit: int, source: Source | None = None) -> TapeLimitError:
    """Return the error for a tape that has reached the limit."""
    return TapeLimitError(
        f"the residuals of a loop exceed config.tape_limit = {limit} bytes. "
        "Wrap the body in functrans.checkpoint to store less per iteration, make the loop shorter, or raise the limit",
        source,
    )
