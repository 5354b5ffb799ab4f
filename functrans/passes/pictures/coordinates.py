"""Where the items of ordered layers are, from left to right: as near to their neighbours above and below as fits."""

from __future__ import annotations

from math import inf

from .layers import BETWEEN
from .ranks import Item, Ways

#: Passes over all layers: down, up, and so on; the last ones look both ways.
PASSES = (True, False, True, False, *[None] * 10)
#: The least move, of an item that moves most, that is worth another pass.
SETTLED = 2.0


def set_coordinates(ranks: list[list[Item]], ways: Ways) -> float:
    """Set `Item.x`, the middles; returns the width of all."""
    for rank in ranks:
        at = 0.0
        for item in rank:
            item.x = at + item.width / 2
            at += item.width + _room(item)
    for i, above in enumerate(PASSES):
        upward = above is False or (above is None and i % 2 == 0)
        moved = max([_move(rank, above) for rank in (ranks[::-1] if upward else ranks)], default=0.0)
        if above is None and moved < SETTLED:
            break
    _straighten(ranks, ways)
    left = min((item.x - item.width / 2 for rank in ranks for item in rank), default=0.0)
    for rank in ranks:
        for item in rank:
            item.x = round(2 * (item.x - left)) / 2
    return max((item.x + item.width / 2 for rank in ranks for item in rank), default=0.0)


def _straighten(ranks: list[list[Item]], ways: Ways) -> None:
    """Make long arrows straight as far as there is room, without moving anything else."""
    rows = {id(item): rank for rank in ranks for item in rank if item.node is None}
    done: set[int] = set()
    for _, links in ways:
        run: list[Item] = []
        low, high = -inf, inf
        for link in links[:-1]:
            item = link.lower
            if id(item) in done:
                continue
            done.add(id(item))
            a, b = _free(item, rows[id(item)])
            if max(a, low) > min(b, high):
                _align(run, low, high)
                run, low, high = [], -inf, inf
            run.append(item)
            low, high = max(a, low), min(b, high)
        _align(run, low, high)


def _free(item: Item, rank: list[Item]) -> tuple[float, float]:
    """Where an item may be, between its neighbours; it is always where it is."""
    low, high, i = -inf, inf, item.place
    if i:
        other = rank[i - 1]
        low = other.x + other.width / 2 + _room(other) + item.width / 2
    if i + 1 < len(rank):
        other = rank[i + 1]
        high = other.x - other.width / 2 - _room(other) - item.width / 2
    return min(low, item.x), max(high, item.x)


def _align(run: list[Item], low: float, high: float) -> None:
    if len(run) > 1:
        middle = sorted(item.x for item in run)[len(run) // 2]
        for item in run:
            item.x = min(max(middle, low), high)


def _room(item: Item) -> float:
    return BETWEEN if item.node is not None else 12.0


def _move(rank: list[Item], above: bool | None) -> float:
    """Move a layer to where its links want it, keeping the order and the distances; returns the longest move.

    The least squares for that is an isotonic regression, which merges neighbours that want to overlap into blocks.
    """
    blocks: list[list[float]] = []  # of offsets and wishes: the place, the weight, how many
    offset, offsets = 0.0, []
    previous: Item | None = None
    for item in rank:
        if previous is not None:
            offset += previous.width / 2 + max(_room(previous), _room(item)) + item.width / 2
        previous = item
        offsets.append(offset)
        total = weight = 0.0
        if above is not False:
            for link in item.above:
                total += link.weight * (link.upper.x + link.start - link.end)
                weight += link.weight
        if above is not True:
            for link in item.below:
                total += link.weight * (link.lower.x + link.end - link.start)
                weight += link.weight
        wish, weight = (total / weight, weight) if weight else (item.x, 0.01)
        block = [wish - offset, weight, 1]
        while blocks and blocks[-1][0] > block[0]:
            place, other, count = blocks.pop()
            together = other + block[1]
            block = [(place * other + block[0] * block[1]) / together, together, count + block[2]]
        blocks.append(block)
    i, longest = 0, 0.0
    for place, _, count in blocks:
        for _ in range(int(count)):
            longest = max(longest, abs(rank[i].x - place - offsets[i]))
            rank[i].x = place + offsets[i]
            i += 1
    return longest
