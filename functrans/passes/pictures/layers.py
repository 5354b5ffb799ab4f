"""Layers from top to bottom: each box is below all that it reads."""

from __future__ import annotations

from collections import defaultdict

from .graph import SIZES, Edge, Graph, Node, Row

#: The width that a layer has at most, unless one box is wider.
WIDEST = 1500.0
#: So many layers may an arrow cross, at most; the longest limit with few crossings of layers is taken.
SPANS = (1 << 30, 40, 24, 16, 12, 8, 6, 4)
#: The room between two boxes of a layer.
BETWEEN = 22.0


def assign_layers(graph: Graph) -> None:
    """Set `Node.layer`: as high as possible, then as low as makes arrows shorter."""
    reads: dict[Node, list[Edge]] = defaultdict(list)
    read_by: dict[Node, list[Edge]] = defaultdict(list)
    for e in graph.edges:
        reads[e.target].append(e)
        read_by[e.source].append(e)
    used: dict[int, float] = defaultdict(float)
    for node in _outputs_early(graph, reads):
        layer = max([e.source.layer + 1 for e in reads[node]], default=0)
        while used[layer] and used[layer] + node.width > WIDEST:
            layer += 1
        node.layer = layer
        used[layer] += node.width + BETWEEN
    fixed = set(graph.inputs) if graph.inner or len(graph.inputs) <= 3 else set()
    for node in reversed(graph.nodes):
        if node in fixed or not read_by[node]:
            continue
        if len({(e.source, e.port) for e in reads[node]}) >= len({e.port for e in read_by[node]}):
            continue
        lowest = min(e.target.layer for e in read_by[node]) - 1
        while lowest > node.layer and used[lowest] and used[lowest] + node.width > WIDEST:
            lowest -= 1
        if lowest > node.layer:
            used[node.layer] -= node.width + BETWEEN
            used[lowest] += node.width + BETWEEN
            node.layer = lowest
    last = max((n.layer for n in graph.nodes), default=0)
    if len(graph.outputs) <= 6:
        lowest = max([last, *[n.layer for n in graph.outputs]])
        for node in graph.outputs:
            node.layer = lowest
    _close_gaps(graph)


def _outputs_early(graph: Graph, reads: dict[Node, list[Edge]]) -> list[Node]:
    """The boxes in order, those of outputs directly after what makes them: both are in a row then, if the row ends."""
    after: dict[Node | None, list[Node]] = defaultdict(list)
    for node in graph.outputs:
        after[reads[node][0].source if reads[node] else None].append(node)
    outputs = set(graph.outputs)
    ordered = [n for node in graph.nodes if node not in outputs for n in (node, *after[node])]
    return ordered + after[None]


def _close_gaps(graph: Graph) -> None:
    layers = {layer: i for i, layer in enumerate(sorted({n.layer for n in graph.nodes}))}
    for node in graph.nodes:
        node.layer = layers[node.layer]


def cut_long_edges(graph: Graph) -> None:
    """Replace arrows across very many layers by references: a small box with the name of the value above its reader."""
    spans: dict[tuple[Node, int], list[int]] = defaultdict(list)
    for e in graph.edges:
        spans[e.source, e.port].append(e.target.layer - e.source.layer)
    most = 4 * len(graph.nodes) + 120
    for limit in SPANS:
        if sum(max([s for s in each if s <= limit], default=1) - 1 for each in spans.values()) <= most:
            break
    kept = []
    references: dict[tuple[Node, int, int], Node] = {}
    for e in graph.edges:
        if e.target.layer - e.source.layer <= limit or e.kind == "order":
            kept.append(e)
            continue
        key = e.source, e.port, e.target.layer
        node = references.get(key)
        if node is None:
            rows = [Row("line", e.name)]
            node = references[key] = Node("ref", rows, outs=1, title=e.source.title, layer=e.target.layer - 1)
            node.width, node.height = rows[0].width + 12, SIZES["line"] + 7
            node.bottoms = [node.width / 2]
            graph.nodes.append(node)
        kept.append(Edge(node, 0, e.target, e.slot, e.label, e.name, e.kind))
    graph.edges[:] = kept
