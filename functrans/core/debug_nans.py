"""NaN and infinities as errors, while ``config.debug_nans`` or ``config.debug_infs`` is on.

`EvalTrace` checks the results of operations outside `jit`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InfError, NaNError
from ..errors.source import Source
from ..runtime.config import Config, config
from .dtypes import is_inexact
from .kernel import Indexed, Reshape
from .values import ArrayLike, Params, Value

if TYPE_CHECKING:
    from .primitive_record import PrimitiveRecord

_nans, _infs = Config.debug_nans, Config.debug_infs


def has_nan(x: ArrayLike) -> bool:
    """Whether a value (array or number of any dtype) contains a NaN."""
    if isinstance(x, float | complex):
        return x != x
    return isinstance(x, np.ndarray | np.generic) and is_inexact(x.dtype) and bool(np.isnan(x).any())


def only_moves(prim: PrimitiveRecord) -> bool:
    """Whether an operation only moves numbers, so that a NaN cannot originate in it."""
    return prim.moves_data or isinstance(prim.kernel, Indexed | Reshape)


def fault_in(x: Value) -> str:
    """What a value contains that is an error now: ``"NaN"``, ``"inf"``, or nothing."""
    if config.debug_nans and has_nan(x):
        return "NaN"
    if not config.debug_infs or not isinstance(x, float | complex | np.ndarray | np.generic):
        return ""
    return "inf" if is_inexact(np.asarray(x).dtype) and bool(np.isinf(x).any()) else ""


def describe(x: ArrayLike, fault: str = "NaN") -> str:
    """Where the NaNs of an array are: ``(2 of 5 elements, the first at (1,))``; empty for a number."""
    if not np.ndim(x):
        return ""
    bad = np.argwhere(np.isnan(x) if fault == "NaN" else np.isinf(x))
    first = ", ".join(map(str, bad[0].tolist()))
    return f" ({len(bad)} of {np.size(x)} elements, the first at ({first}{',' if np.ndim(x) == 1 else ''}))"


def fault_of(
    name: str, outs: Sequence[Any], operands: Sequence[Any], source: Source | None = None
) -> NaNError | InfError | None:
    """The error for an operation with these results; None if they contain nothing that is an error now."""
    for i, x in enumerate(outs):
        fault = fault_in(x)
        if fault:
            which = f" in output {i}" if len(outs) > 1 else ""
            before = [str(k) for k, a in enumerate(operands) if fault_in(a) == fault]
            known = f". It was there before: in operand {' and '.join(before)}" if before else ""
            error = NaNError if fault == "NaN" else InfError
            return error(f"{name} returned {fault}{which}{describe(x, fault)}{known}", source)
    return None


@contextmanager
def blamed(what: str) -> Iterator[None]:
    """Name a user's rule (``MyOpBackward``) in the errors for NaNs and infinities that appear within the block."""
    try:
        yield
    except (NaNError, InfError) as error:
        if what in error.message:
            raise
        raise type(error)(f"{error.message}, inside {what}", error.source) from None


def title(prim: PrimitiveRecord, params: Params) -> str:
    """The name of an operation for messages, with the name of the function or rule that it applies."""
    names = [p.name for p in params.values() if isinstance(getattr(p, "name", None), str)]
    return f"{prim.name} of {names[0]}" if names else prim.name


def debug_nans_active() -> bool:
    """Whether ``config.debug_nans`` is on in this context; fast if it has never been on."""
    return _nans.ever_changed and config.debug_nans


def looks_for_faults() -> bool:
    """Whether NaN or infinities are errors in this context; fast if they have never been."""
    return (_nans.ever_changed or _infs.ever_changed) and (config.debug_nans or config.debug_infs)


def check_results(prim: PrimitiveRecord, params: Params, args: Sequence[Any], out: ArrayLike) -> None:
    """Raise an error if an operation outside `jit` produced a NaN or an infinity, where this is one."""
    if not only_moves(prim):
        error = fault_of(title(prim, params), out if prim.multiple_results else (out,), args)
        if error is not None:
            raise error
