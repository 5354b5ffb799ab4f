"""A laid-out graph as SVG, written here: no fonts, no scripts, no identifiers, so a program has one text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .colours import PILLS, STYLE, tint_class
from .graph import LETTER, PAD, ROWS, SIZES, Edge, Graph, Node

MARGIN = 16


def write_svg(graph: Graph, name: str, legend: Sequence[tuple[str, int]] = ()) -> str:
    """The text of the picture.

    Parameters
    ----------
    graph : Graph
        With places.
    name : str
        Its heading.
    legend : sequence of (str, int)
        What the colours of kernels mean.
    """
    top = MARGIN + 22.0
    keys, width = _legend(legend, top)
    width = max(width, graph.width + 2 * MARGIN, len(name) * 14 * LETTER + 2 * MARGIN)
    top += 24 if legend else 0
    height = top + graph.height + MARGIN
    left = (width - graph.width) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ftp" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label="{_attribute(name)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{_n(width - 1)}" height="{_n(height - 1)}" rx="6"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 10}" font-size="14" font-weight="bold">{_text(name)}</text>',
        *keys,
        f'<g transform="translate({_n(left)} {_n(top)})">',
    ]
    _graph(graph, parts)
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _graph(graph: Graph, parts: list[str]) -> None:
    for node in graph.nodes:
        if node.parts:
            _frame(node, parts)
    for e in graph.edges:
        _wire(e, parts)
    for node in graph.nodes:
        if not node.parts:
            _box(node, parts)
    labelled: set[tuple[Node, int]] = set()
    for e in graph.edges:
        if e.label and (e.source, e.port) not in labelled:
            labelled.add((e.source, e.port))
            x, y = e.points[0]
            role = "label saved" if e.kind == "saved" else "label"
            parts.append(_line(role, x + 4, y + 11, e.label, SIZES["label"]))


def _frame(node: Node, parts: list[str]) -> None:
    _shape(node, parts, 8)
    _rows(node, parts, node.x + PAD)
    parts.append("</g>")
    for part in node.parts:
        parts.append(f'<g transform="translate({_n(node.x)} {_n(node.y)})">')
        if part.name:
            left = min((n.x for n in part.nodes), default=PAD)
            y = min((n.y for n in part.nodes), default=0.0) - 5
            parts.append(_line("line", left, y, part.name, SIZES["line"], BOLD))
        _graph(part, parts)
        parts.append("</g>")


def _box(node: Node, parts: list[str]) -> None:
    _shape(node, parts, node.height / 2 if node.kind in PILLS else 4)
    _rows(node, parts, None)
    parts.append("</g>")


def _shape(node: Node, parts: list[str], radius: float) -> None:
    """The outline of a box, and what the mouse shows."""
    kind = node.kind
    if node.tint is not None and kind not in PILLS:
        kind = tint_class(node.tint) + " again" * kind.endswith("again")
    parts.append(f"<g><title>{_text(node.title)}</title>" if node.title else "<g>")
    size = f'width="{_n(node.width)}" height="{_n(node.height)}" rx="{_n(radius)}"'
    parts.append(f'<rect class="{kind}" x="{_n(node.x)}" y="{_n(node.y)}" {size}/>')


BOLD, MIDDLE, END = ' font-weight="bold"', ' text-anchor="middle"', ' text-anchor="end"'


def _rows(node: Node, parts: list[str], left: float | None) -> None:
    """The text of a box, in its middle, or from the left."""
    y = node.y + PAD / 2
    for i, row in enumerate(node.rows):
        y += ROWS[row.role]
        room = len(node.tag) * SIZES["tag"] * LETTER + 14 if node.tag and i == 0 else 0.0
        x = node.x + (node.width - room) / 2 if left is None else left
        style = BOLD * (row.role == "name") + MIDDLE * (left is None)
        parts.append(_line(row.role, x, y - 4, row.text, SIZES[row.role], style))
    if node.tag:
        parts.append(_line("tag", node.x + node.width - 6, node.y + 14, node.tag, SIZES["tag"], END))


def _line(role: str, x: float, y: float, text: str, size: int, style: str = "") -> str:
    return f'<text class="{role}" x="{_n(x)}" y="{_n(y)}" font-size="{size}"{style}>{_text(text)}</text>'


def _wire(e: Edge, parts: list[str]) -> None:
    (x, y), *rest = e.points
    path = [f"M{_n(x)} {_n(y)}"]
    straight = True
    for a, b in rest:
        if straight or a == x:
            if (a, b) != (x, y):
                path.append(f"V{_n(b)}" if a == x else f"L{_n(a)} {_n(b)}")
        else:
            middle = (y + b) / 2
            path.append(f"C{_n(x)} {_n(middle)} {_n(a)} {_n(middle)} {_n(a)} {_n(b)}")
        x, y = a, b
        straight = not straight
    kind = "" if e.kind in ("value", "input") else f" {e.kind}"
    parts.append(f'<path class="wire{kind}" d="{"".join(path)}"/>')
    if e.kind != "order":
        parts.append(f'<path class="head{kind}" d="M{_n(x)} {_n(y)}l-3 -6h6z"/>')


def _legend(legend: Sequence[tuple[str, int]], y: float) -> tuple[list[str], float]:
    parts, x = [], float(MARGIN)
    for text, tint in legend:
        parts.append(
            f'<rect class="{tint_class(tint)}" x="{_n(x)}" y="{_n(y)}" width="12" height="12" rx="3"/>'
        )
        parts.append(f'<text x="{_n(x + 17)}" y="{_n(y + 10)}" font-size="10">{_text(text)}</text>')
        x += 17 + len(text) * 10 * LETTER + 16
    return parts, x


def _n(x: float) -> str:
    """A number with at most one digit after the point."""
    text = f"{x:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _text(text: str) -> str:
    """Text for XML, which has no control characters."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
    return escape(text, quote=False)


def _attribute(text: str) -> str:
    return _text(text).replace('"', "&quot;")
