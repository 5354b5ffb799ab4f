"""The source line of each entry of a tape: in programs, while a profile is open, and while ``config.debug_nans`` is on.

The equations of the reverse pass then have the line whose derivative they are, marked as backward, and a NaN in it is
reported at that line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..core import Linear, NaNError, Source, looks_for_faults, replayed, run_with, user_source
from ..core.trace import is_staged
from ..core.values import Param, Rule
from ..runtime.unusual import unusual


def locates() -> bool:
    """Whether a tape that is recorded now, or read, should have the lines of its entries."""
    return unusual.recorder is not None or looks_for_faults() or is_staged()


class LocatedTape(list[Any]):
    """A tape that records the user's line for each entry."""

    def append(self, entry: Any) -> None:
        """Record an entry."""
        source = user_source()
        for v in entry.outs:
            v.source = source
        super().append(entry)


def source_of(outs: tuple[Linear, ...]) -> Source | None:
    """The line that computed linear variables, if known."""
    return getattr(outs[0], "source", None) if outs else None


def backward_source(outs: tuple[Linear, ...], otherwise: Source | None) -> Source | None:
    """The source for equations that transpose an entry with these results."""
    source = source_of(outs)
    return otherwise if source is None else source.transposed()


def located(entry: Any) -> Any:
    """The same entry, transposed as if its line were running."""
    source = source_of(entry.outs)
    if source is None:
        return entry
    prim = entry.primitive

    def there(rule: Rule) -> Callable[..., Any]:
        def at_line(*args: Any, **params: Param) -> Any:
            try:
                return run_with(replayed, source, rule, *args, **params)
            except NaNError as error:
                if error.source != source:
                    raise
                raise NaNError(f"{error.message}, in the reverse pass of this line", source) from None

        return at_line

    accumulate = prim.accumulate and there(prim.accumulate)
    return entry._replace(
        primitive=replace(prim, transpose=there(prim.rule("transpose")), accumulate=accumulate)
    )
