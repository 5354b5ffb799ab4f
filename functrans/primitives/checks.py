"""`check`: an equation that raises if a condition does not hold. It has no results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..core import Aval, Block, BlockEmitter, Buffer, Effect, Primitive
from ..core.values import Param, Tangent, Value
from ..errors import CheckError, IndexOutOfBoundsError
from ..runtime.failures import Failure, OneOf
from .structure.linear import batched_first

Check = Failure | OneOf


def raise_failure(check: Check, values: Sequence[Value]) -> None:
    """Raise the error of a check that failed."""
    failure, values = check.failed(values)
    if failure.exception is not None:
        raise failure.exception(values)
    native = failure.category == "index" and isinstance(check, OneOf) and check.native
    raise (IndexOutOfBoundsError if native else CheckError)(failure.message(values), failure.source)


def _impl(ok: Value, *values: Value, check: Check, debug: bool) -> list[Any]:
    if not debug and not np.all(ok):
        lane = tuple(np.argwhere(np.logical_not(ok))[0].tolist())
        raise_failure(check, [np.asarray(x)[lane][()] for x in values])
    return []


def _batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], **params: Param
) -> tuple[list[Any], list[int | None]]:
    check_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)], **params)
    return [], []


def _kernel(
    k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer], *, check: Check, debug: bool
) -> None:
    if debug:
        return
    ok = operands[0]
    with ExitStack() as loops:
        place = [loops.enter_context(k.loop(n)) for n in ok.shape]
        k.fail_if(~k.load(ok, place))


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param
) -> tuple[list[Any], list[Tangent]]:
    check_p.bind(*primals, **params)
    return [], []


def _abstract(ok: Aval, *values: Aval, **params: Param) -> tuple[Aval, ...]:
    return ()


#: ``check(ok, *values)`` raises unless `ok`. Under `vmap` all operands have the lanes' axes in front. With `debug` it
#: does nothing; `checkify` sees it nevertheless.
check_p: Primitive = Primitive(
    "check",
    _abstract,
    _impl,
    jvp=_jvp,
    batch=_batch,
    kernel=Block(_kernel),
    effects=lambda *, check, debug: Effect.RAISE,
    multiple_results=True,
)
