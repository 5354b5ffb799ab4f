"""The source line of each entry of a tape, recorded while ``config.debug_nans`` is on.

A NaN in the reverse pass is then reported at the line whose derivative it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..core import Linear, NaNError, Source, replayed, run_with, user_source


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


def located(entry: Any) -> Any:
    """The same entry, transposed as if its line were running."""
    source = source_of(entry.outs)
    if source is None:
        return entry
    prim = entry.primitive

    def there(rule: Callable[..., Any]) -> Callable[..., Any]:
        def at_line(*args: Any, **params: Any) -> Any:
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
