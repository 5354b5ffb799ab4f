"""What ``forward`` returned: a tuple of several outputs, or one; arrays among them, and anything else."""

from __future__ import annotations

from typing import Any

from .layout import Layout, Static, taken_apart


class Outputs:
    """The structure of what a function returned, without the arrays.

    Attributes
    ----------
    layout : Layout
        Of the tuple of outputs.
    static : Static
    many : bool
        Whether a tuple was returned; a tuple of one is one.
    """

    __slots__ = ("_kind", "layout", "many", "static")

    def __init__(self, layout: Layout, static: Static, kind: type | None):
        self.layout = layout
        self.static = static
        self.many = kind is not None
        self._kind = kind

    @staticmethod
    def of(returned: Any) -> tuple[Outputs, list[Any]]:
        """The structure of what a function returned, and the arrays in it."""
        kind: type | None = None
        if isinstance(returned, tuple):
            kind = type(returned) if hasattr(returned, "_fields") else tuple
        layout, arrays, static = taken_apart((returned,) if kind is None else tuple(returned))
        return Outputs(layout, static, kind), arrays

    def filled(self, arrays: list[Any]) -> Any:
        """What the function returned, with these arrays."""
        parts = self.layout.filled(arrays, self.static)
        if self._kind is None:
            return parts[0]
        return parts if self._kind is tuple else self._kind(*parts)

    def __str__(self) -> str:
        """The structure, with ``*`` for arrays."""
        parts = [
            "*" if p.is_array else str(p.tree) if p.last > p.first else repr(x)
            for p, x in zip(self.layout.parts, self.static.parts or [None] * len(self.layout.parts))
        ]
        if not self.many:
            return parts[0]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"

    def place(self, position: int) -> str:
        """``output 1``, or ``the output`` of a function that has one."""
        return f"output {position}" if self.many else "the output"
