"""NaN as an error, while ``config.debug_nans`` is on. `EvalTrace` checks the results of operations outside `jit`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .config import Config, config
from .errors import NaNError
from .kernel import Indexed, Reshape
from .source import Source

if TYPE_CHECKING:
    from .primitive import Primitive

_option = Config.debug_nans


def has_nan(x: Any) -> bool:
    """Whether a value (array or number of any dtype) contains a NaN."""
    if isinstance(x, float | complex):
        return x != x
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fc" and bool(np.isnan(x).any())


def only_moves(prim: Primitive) -> bool:
    """Whether an operation only moves numbers, so that a NaN cannot originate in it."""
    return prim.moves_data or isinstance(prim.kernel, Indexed | Reshape)


def describe(x: Any) -> str:
    """Where the NaNs of an array are: ``(2 of 5 elements, the first at (1,))``; empty for a number."""
    if not np.ndim(x):
        return ""
    bad = np.argwhere(np.isnan(x))
    first = ", ".join(map(str, bad[0].tolist()))
    return f" ({len(bad)} of {np.size(x)} elements, the first at ({first}{',' if np.ndim(x) == 1 else ''}))"


def nan_of(
    name: str, outs: Sequence[Any], operands: Sequence[Any], source: Source | None = None
) -> NaNError | None:
    """The error for an operation with these results; None if they contain no NaN."""
    for i, x in enumerate(outs):
        if has_nan(x):
            which = f" in output {i}" if len(outs) > 1 else ""
            before = [str(k) for k, a in enumerate(operands) if has_nan(a)]
            known = f". It was there before: in operand {' and '.join(before)}" if before else ""
            return NaNError(f"{name} returned NaN{which}{describe(x)}{known}", source)
    return None


@contextmanager
def blamed(what: str) -> Iterator[None]:
    """Name a user's rule (``MyOpBackward``) in the errors for NaNs that appear within a ``with`` block."""
    try:
        yield
    except NaNError as error:
        if what in error.message:
            raise
        raise NaNError(f"{error.message}, inside {what}", error.source) from None


def title(prim: Primitive, params: dict[str, Any]) -> str:
    """The name of an operation for messages, with the name of the function or rule that it applies."""
    names = [p.name for p in params.values() if isinstance(getattr(p, "name", None), str)]
    return f"{prim.name} of {names[0]}" if names else prim.name


def debug_nans_active() -> bool:
    """Whether ``config.debug_nans`` is on in this context; fast if it has never been on."""
    return _option.ever_changed and config.debug_nans


def check_results(prim: Primitive, params: dict[str, Any], args: Sequence[Any], out: Any) -> None:
    """Raise a `NaNError` if an operation outside `jit` produced a NaN."""
    if not only_moves(prim):
        error = nan_of(title(prim, params), out if prim.multiple_results else (out,), args)
        if error is not None:
            raise error
