"""What operations need of the function that they are written into."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Emitter(Protocol):
    """The part of `function.Function` that the operations use."""

    fast: str
    converts_half: bool

    def new(self, code: str) -> str:
        """Append ``name = code`` and return the name."""
        ...

    def maths(self, name: str, dtype: np.dtype, args: list[str]) -> str:
        """A call of a mathematical function."""
        ...
