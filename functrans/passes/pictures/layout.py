"""The places of boxes and the ways of arrows: Sugiyama's method, inner graphs first.

Layers (`layers`), an order within them (`order`), coordinates (`coordinates`). All of it is arithmetic on lists in the
order of the program, so a program has one picture.
"""

from __future__ import annotations

from .coordinates import set_coordinates
from .graph import GAP, LETTER, PAD, ROWS, SIZES, Graph, Node, text_size
from .layers import assign_layers, cut_long_edges
from .order import reduce_crossings
from .ranks import Item, Ways, ranked, sort_ports, spread

#: The distance between two layers, at least and at most.
LEAST, MOST = 30.0, 90.0


def place(graph: Graph) -> None:
    """Set the places and sizes of everything in a graph."""
    labels: dict[Node, float] = {}
    for e in graph.edges:
        width = len(e.label) * SIZES["label"] * LETTER + 10
        labels[e.source] = max(labels.get(e.source, 0.0), width)
    for node in graph.nodes:
        _measure(node, labels.get(node, 0.0))
    assign_layers(graph)
    cut_long_edges(graph)
    ranks, ways = ranked(graph)
    reduce_crossings(ranks)
    sort_ports(ways, ranks)
    graph.width = set_coordinates(ranks, ways)
    _rows(graph, ranks, ways)


def _measure(node: Node, label: float) -> None:
    """The size of a box, and of what is inside."""
    width, height = text_size(node)
    if not node.parts:
        node.width = max(width, 12.0 * max(node.ins, 1), label * node.outs if node.outs > 1 else 0.0)
        node.height = height
        return
    x, deepest = float(GAP), 0.0
    names = any(part.name for part in node.parts)
    top = height + (ROWS["line"] + 2 if names else 0)
    for part in node.parts:
        place(part)
        for inner in part.nodes:
            inner.x += x
            inner.y += top
        for e in part.edges:
            e.points = [(a + x, b + top) for a, b in e.points]
        x += max(part.width, len(part.name) * SIZES["line"] * LETTER) + 2 * GAP
        deepest = max(deepest, part.height)
    node.width = max(width, x - GAP)
    node.height = top + deepest + PAD + 4
    node.tops = _ports(node, [n for part in node.parts for n in part.inputs], node.ins)
    node.bottoms = _ports(node, [n for part in node.parts for n in part.outputs], node.outs)


def _ports(node: Node, boxes: list[Node], count: int) -> list[float]:
    """Where values enter a frame: above the boxes that stand for them inside, if there is one for each."""
    if len(node.parts) == 1 and len(boxes) == count:
        return [n.x + n.width / 2 for n in boxes]
    return spread(count, node.width, GAP)


def _rows(graph: Graph, ranks: list[list[Item]], ways: Ways) -> None:
    """The places from top to bottom, and the points of arrows."""
    tops, bottoms, y = [], [], 0.0
    for rank in ranks:
        tops.append(y)
        y += max([item.node.height for item in rank if item.node is not None], default=0.0)
        bottoms.append(y)
        leaps = [abs(k.lower.x + k.end - k.upper.x - k.start) for item in rank for k in item.below]
        y += min(max(LEAST, LEAST + max(leaps, default=0.0) / 14), MOST)
        for item in rank:
            if item.node is not None:
                item.node.x, item.node.y = item.x - item.width / 2, tops[-1]
    graph.height = bottoms[-1] if bottoms else 0.0
    for e, links in ways:
        layer = e.source.layer
        x = links[0].upper.x + links[0].start
        points = [(x, e.source.y + e.source.height), (x, bottoms[layer])]
        for i, link in enumerate(links):
            x = link.lower.x + link.end
            points.append((x, tops[layer + i + 1]))
            if link.lower.node is None:
                points.append((x, bottoms[layer + i + 1]))
        e.points = points
