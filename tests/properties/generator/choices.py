"""Where the choices of a random program come from: hypothesis, which shrinks them, or a seed, which is fast."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st


class NothingFits(Exception):
    """There is nothing to choose from: the statement cannot be here."""


class Choices:
    """Choices made by integers; the least one is the simplest."""

    def integer(self, low: int, high: int) -> int:
        raise NotImplementedError

    def of(self, options: Sequence[Any]) -> Any:
        """One of some options; the first is the simplest."""
        if not options:
            raise NothingFits
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent

    def some(self, options: Sequence[Any], least: int, most: int) -> list[Any]:
        """Different ones of some options."""
        left, found = list(options), []
        for _ in range(self.integer(least, most)):
            if left:
                found.append(left.pop(self.integer(0, len(left) - 1)))
        return found


class Seeded(Choices):
    """By a seed."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)


class Drawn(Choices):
    """By the `draw` of a composite strategy."""

    def __init__(self, draw: Callable[[Any], Any]):
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))


def drawn_by(make: Callable[..., Any]) -> Callable[..., st.SearchStrategy[Any]]:
    """A function of `Choices` as a function that returns a strategy."""

    @st.composite
    def strategy(draw, *args, **kwargs):
        return make(Drawn(draw), *args, **kwargs)

    return strategy
