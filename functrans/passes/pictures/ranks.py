"""The layers of a graph as lists of items: boxes, and points where arrows pass a layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from .graph import Edge, Graph, Node


class Link:
    """A piece of an arrow, between two neighbouring layers; all arrows of one value share pieces.

    `leaves` and `arrives` tell at which part of the items, from -0.5 to 0.5; `start` and `end` at which offset from
    their middles.
    """

    __slots__ = ("arrives", "end", "leaves", "lower", "start", "upper", "weight")

    def __init__(self, upper: Item, lower: Item, leaves: float, arrives: float):
        self.upper = upper
        self.lower = lower
        self.leaves = leaves
        self.arrives = arrives
        self.start = self.end = 0.0
        self.weight = (1, 3, 8)[(upper.node is None) + (lower.node is None)]


class Item:
    """A box, or a point where an arrow passes a layer (`node` is None)."""

    __slots__ = ("above", "below", "node", "place", "width", "x")

    def __init__(self, node: Node | None, width: float):
        self.node = node
        self.width = width
        self.place = 0
        self.x = 0.0
        self.above: list[Link] = []
        self.below: list[Link] = []


Ways = list[tuple[Edge, list[Link]]]


def ranked(graph: Graph) -> tuple[list[list[Item]], Ways]:
    """The layers of a graph, and the pieces of each arrow."""
    ranks: list[list[Item]] = [[] for _ in range(1 + max((n.layer for n in graph.nodes), default=0))]
    items: dict[Node, Item] = {}
    for node in graph.nodes:
        items[node] = Item(node, node.width)
        ranks[node.layer].append(items[node])
    values: dict[tuple[Node, int], list[Edge]] = defaultdict(list)
    for e in graph.edges:
        values[e.source, e.port].append(e)
    ways: Ways = []
    for (source, port), edges in values.items():
        chain: list[Link] = []
        at, leaves = items[source], _part(port, source.outs)
        for e in sorted(edges, key=lambda e: e.target.layer):
            while source.layer + len(chain) + 1 < e.target.layer:
                point = Item(None, 2.0)
                ranks[source.layer + len(chain) + 1].append(point)
                chain.append(_link(at, point, leaves, 0.0))
                at, leaves = point, 0.0
            target = items[e.target]
            ways.append((e, [*chain, _link(at, target, leaves, _part(e.slot, e.target.ins))]))
    return ranks, ways


def _part(number: int, count: int) -> float:
    return (number + 1) / (count + 1) - 0.5


def _link(upper: Item, lower: Item, leaves: float, arrives: float) -> Link:
    link = Link(upper, lower, leaves, arrives)
    upper.below.append(link)
    lower.above.append(link)
    return link


def spread(count: int, width: float, margin: float = 14.0) -> list[float]:
    """So many places along a side, evenly."""
    if count <= 1:
        return [width / 2] * count
    inside = max(width - 2 * margin, width / 2)
    return [(width - inside) / 2 + inside * i / (count - 1) for i in range(count)]


def sort_ports(ways: Ways, ranks: Sequence[Sequence[Item]]) -> None:
    """Give the ends of arrows at a box the order of where they come from or go to, so that they do not cross there."""
    into: dict[Node, dict[int, float]] = defaultdict(dict)
    out: dict[Node, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for e, links in ways:
        into[e.target][e.slot] = links[-1].upper.place + links[-1].leaves
        out[e.source][e.port].append(links[0].lower.place + links[0].arrives)
    for rank in ranks:
        for item in rank:
            node = item.node
            if node is None or node.parts:
                continue
            came = into[node]
            order = sorted(range(node.ins), key=lambda i: (came.get(i, float(item.place)), i))
            places = spread(node.ins, node.width)
            node.tops = [places[order.index(i)] for i in range(node.ins)]
            goes = {i: sum(ends) / len(ends) for i, ends in out[node].items()}
            order = sorted(range(node.outs), key=lambda i: (goes.get(i, float(item.place)), i))
            places = spread(node.outs, node.width)
            node.bottoms = [places[order.index(i)] for i in range(node.outs)]
    for e, links in ways:
        links[0].start = e.source.bottoms[e.port] - e.source.width / 2
        links[-1].end = e.target.tops[e.slot] - e.target.width / 2
