"""The order of boxes within layers, such that few arrows cross: sweeps by barycentres, the best of which is kept."""

from __future__ import annotations

from bisect import bisect_right, insort
from itertools import groupby

from .ranks import Item

#: Sweeps down and up; two in a row without success are the end.
SWEEPS = 8


def reduce_crossings(ranks: list[list[Item]]) -> None:
    """Order the items of each layer, in place."""
    _number(ranks)
    for rank in ranks[1:]:
        _sort(rank, above=True)
    best, order = crossings(ranks), [list(rank) for rank in ranks]
    failed = 0
    for i in range(SWEEPS):
        if best == 0 or failed == 2:
            break
        for rank in ranks[1:] if i % 2 == 1 else ranks[-2::-1]:
            _sort(rank, above=i % 2 == 1)
        count = crossings(ranks)
        failed += 1
        if count < best:
            best, order, failed = count, [list(rank) for rank in ranks], 0
    ranks[:] = order
    _number(ranks)


def _number(ranks: list[list[Item]]) -> None:
    for rank in ranks:
        for i, item in enumerate(rank):
            item.place = i


def _sort(rank: list[Item], above: bool) -> None:
    """Sort a layer by where the neighbours in the layer above or below are; what has none keeps its place."""
    keys = []
    for item in rank:
        near = item.above if above else item.below
        if near:
            total = 0.0
            for link in near:
                total += link.upper.place + link.leaves if above else link.lower.place + link.arrives
            keys.append((total / len(near), item.place))
        else:
            keys.append((float(item.place), item.place))
    ordered = sorted(zip(keys, rank), key=lambda pair: pair[0])
    rank[:] = []
    for _, same in groupby(ordered, key=lambda pair: pair[0][0]):
        items = [item for _, item in same]
        boxes = [item for item in items if item.node is not None]
        half = len(boxes) // 2
        # Where an arrow goes on between boxes that read the same value, these are on both sides of it.
        rank += [*boxes[:half], *[item for item in items if item.node is None], *boxes[half:]]
    for i, item in enumerate(rank):
        item.place = i


def crossings(ranks: list[list[Item]]) -> int:
    """The number of crossings of straight lines between neighbouring layers."""
    count = 0
    for rank in ranks[:-1]:
        lines = [
            (link.upper.place + link.leaves, link.lower.place + link.arrives)
            for item in rank
            for link in item.below
        ]
        lines.sort()
        ends: list[float] = []
        for _, end in lines:
            count += len(ends) - bisect_right(ends, end)
            insort(ends, end)
    return count
