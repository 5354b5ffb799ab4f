"""A tracer that only holds a value of the trace around: interpreters that add nothing to numbers have such ones."""

from __future__ import annotations

from typing import Any

from ..core.trace import Key, Tracer, concrete, key_of
from ..core.values import Value


class HeldTracer(Tracer):
    """A value, as well known as it is outside."""

    __slots__ = ("value",)
    differentiated = False
    value: Value

    def key(self) -> Key:
        """The promotion key of the value."""
        return key_of(self.value)

    def concrete(self) -> Any:
        """The value, if it is known."""
        return concrete(self.value)

    @property
    def is_symbolic(self) -> bool:  # type: ignore[override]
        """As that of the value."""
        return isinstance(self.value, Tracer) and self.value.is_symbolic
