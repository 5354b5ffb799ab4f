"""Long programs: consecutive equations become one box, so that a picture has no more boxes than one can read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from ...core.ir import Eqn, Jaxpr, subjaxprs
from ...runtime.records import NamedTuple

#: A program of so many equations, those of bodies included, is drawn as it is.
READABLE = 200
#: The boxes of a longer one.
BOXES = 90
#: The boxes that it has at least: a loop of Python's has all its equations at a few lines.
FEWEST = 24


def count(jaxpr: Jaxpr, known: dict[Jaxpr, int] | None = None) -> int:
    """The number of equations, those of bodies included."""
    known = {} if known is None else known
    total = known.get(jaxpr)
    if total is None:
        total = known[jaxpr] = sum(1 + size_of_bodies(e, known) for e in jaxpr.eqns)
    return total


def size_of_bodies(eqn: Eqn, known: dict[Jaxpr, int] | None = None) -> int:
    """The number of equations in an equation's bodies."""
    return sum(count(body, known) for body in subjaxprs(eqn.params))


class Shares(NamedTuple):
    """How many boxes a program gets, and each equation with bodies for these."""

    own: int
    of_bodies: Mapping[Eqn, int]


def shares(jaxpr: Jaxpr, boxes: int) -> Shares:
    """Divide boxes between a program and the bodies in it, by their numbers of equations."""
    inside = {e: n for e in jaxpr.eqns if (n := size_of_bodies(e))}
    own, total = len(jaxpr.eqns), sum(inside.values())
    if own + total <= boxes:
        return Shares(own, inside)
    mine = min(own, max(boxes - total, boxes // 2))
    return Shares(mine, {e: (boxes - mine) * n // total for e, n in inside.items()})


Parts = Callable[[Eqn], tuple[str, int, str, str] | None]


def runs(
    eqns: Sequence[Eqn], most: int, tint: Callable[[Eqn], int | None], source: Parts
) -> list[tuple[Eqn, ...]]:
    """The equations in at most so many runs, which then are boxes.

    Those of one line of the user's are together, then those of one function. Since each run follows what it reads, so
    does its box.
    """
    parts: list[list[Eqn]] = [[e] for e in eqns]
    if len(parts) <= most:
        return [tuple(part) for part in parts]
    parts = _joined(parts, lambda e: (source(e), tint(e)), max(2, len(eqns) // FEWEST))
    return [tuple(part) for part in _merged(parts, most, lambda e: (_function(source(e)), tint(e)))]


def _function(place: tuple[str, int, str, str] | None) -> tuple[str, str] | None:
    return None if place is None else (place[0], place[2])


def _joined(parts: list[list[Eqn]], label: Callable[[Eqn], object], most: int) -> list[list[Eqn]]:
    joined = [parts[0]]
    for part in parts[1:]:
        if len(joined[-1]) < most and label(part[0]) == label(joined[-1][-1]):
            joined[-1] = joined[-1] + part
        else:
            joined.append(part)
    return joined


def _merged(parts: list[list[Eqn]], most: int, label: Callable[[Eqn], object]) -> list[list[Eqn]]:
    """Merge the neighbours that make the smallest runs; those of other functions or kernels last."""
    places = [label(part[0]) for part in parts]
    ends = [label(part[-1]) for part in parts]
    after = list(range(1, len(parts) + 1))
    before = list(range(-1, len(parts) - 1))
    average = 1 + sum(map(len, parts)) // most

    def price(i: int, j: int) -> int:
        return len(parts[i]) + len(parts[j]) + (0 if ends[i] == places[j] else 2 * average)

    heap = [(price(i, i + 1), i, i + 1, len(parts[i]), len(parts[i + 1])) for i in range(len(parts) - 1)]
    heapify(heap)
    alive = len(parts)
    while alive > most and heap:
        _, i, j, first, second = heappop(heap)
        if len(parts[i]) != first or len(parts[j]) != second:
            continue
        parts[i], parts[j], ends[i] = parts[i] + parts[j], [], ends[j]
        alive -= 1
        after[i] = after[j]
        if after[i] < len(parts):
            before[after[i]] = i
            heappush(heap, (price(i, after[i]), i, after[i], len(parts[i]), len(parts[after[i]])))
        if before[i] >= 0:
            heappush(heap, (price(before[i], i), before[i], i, len(parts[before[i]]), len(parts[i])))
    return [part for part in parts if part]
