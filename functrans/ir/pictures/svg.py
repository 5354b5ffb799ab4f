"""A laid-out graph as SVG, written here: no fonts, no scripts, no identifiers, so a program has one text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .graph import LETTER, PAD, ROWS, SIZES, Edge, Graph, Node, Row

MARGIN = 16
#: fill, outline; the same in the dark.
_COLOURS = {
    "eqn": ("#e8f0fb", "#7f9fcf", "#182a44", "#5c86c0"),
    "move": ("#f2f3f4", "#a9b0b7", "#262b31", "#6d7681"),
    "fold": ("#fdf0db", "#d7a24a", "#3a2c13", "#b98c3e"),
    "block": ("#ece5fa", "#9a80d3", "#2b2245", "#8b72c8"),
    "host": ("#fde8e6", "#d9705f", "#40201b", "#cc6a5a"),
    "group": ("#e4f4f2", "#5fa79e", "#143431", "#4f958d"),
    "frame": ("#f8fafc", "#9aa7b5", "#10161d", "#56616d"),
    "input": ("#e6f5e9", "#69ad7c", "#15301e", "#4f9464"),
    "const": ("#e6f5e9", "#69ad7c", "#15301e", "#4f9464"),
    "output": ("#fdf7d3", "#c9b037", "#37310f", "#a8932d"),
    "ref": ("#ffffff", "#a9b0b7", "#0d1117", "#6d7681"),
}
#: Of kernels, in their order; the next ones begin again.
_TINTS = (
    ("#dcecfd", "#4a90d9", "#12304f", "#4a90d9"),
    ("#fde7cf", "#e08e2b", "#45290a", "#d9892b"),
    ("#d9f2df", "#3fa45b", "#0f3a1c", "#3fa45b"),
    ("#efdff9", "#9a5fcb", "#34194a", "#a06ad0"),
    ("#d5f2f2", "#2d9c9c", "#0b3838", "#2d9c9c"),
    ("#fbdfea", "#d0567f", "#47162a", "#d0567f"),
    ("#eef3cf", "#8c9f2f", "#2d340c", "#8c9f2f"),
    ("#e6e1da", "#85735c", "#322b23", "#958168"),
)
_HOST = len(_TINTS)


def _style() -> str:
    boxes = [*_COLOURS.items(), *[(f"k{i}", c) for i, c in enumerate([*_TINTS, _COLOURS["host"]])]]
    light = "".join(f".ftp .{k}{{fill:{a};stroke:{b}}}" for k, (a, b, _, _) in boxes)
    dark = "".join(f".ftp .{k}{{fill:{c};stroke:{d}}}" for k, (_, _, c, d) in boxes)
    return (
        ".ftp{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
        ".ftp .card{fill:#fff;stroke:#d0d7de}.ftp text{fill:#1f2328}.ftp .line,.ftp .label{fill:#57606a}"
        ".ftp .wire{fill:none;stroke:#8c959f}.ftp .head{fill:#8c959f;stroke:none}.ftp .order{stroke-dasharray:2 3}"
        ".ftp .saved{stroke:#cf3b3b;stroke-width:1.5}.ftp .head.saved{fill:#cf3b3b;stroke:none}.ftp text.saved{fill:#b42323;stroke:none}"
        f".ftp .tag{{fill:#b3402f;font-style:italic}}.ftp .again,.ftp .const{{stroke-dasharray:4 2}}{light}"
        "@media(prefers-color-scheme:dark){.ftp .card{fill:#0d1117;stroke:#30363d}.ftp text{fill:#e6edf3}"
        ".ftp .line,.ftp .label{fill:#9da7b1}.ftp .wire{stroke:#7d8590}.ftp .head{fill:#7d8590}"
        ".ftp .saved{stroke:#ff7b72}.ftp .head.saved{fill:#ff7b72}.ftp text.saved{fill:#ff9a92}"
        f".ftp .tag{{fill:#ff9a8c}}{dark}}}"
    )


STYLE = _style()


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
            kind = " saved" if e.kind == "saved" else ""
            parts.append(
                f'<text class="label{kind}" x="{_n(x + 4)}" y="{_n(y + 11)}" font-size="{SIZES["label"]}">{_text(e.label)}</text>'
            )


def _frame(node: Node, parts: list[str]) -> None:
    _open(node, parts)
    _shape(node, parts, 8)
    _rows(node, parts, node.x + PAD)
    parts.append("</g>")
    x = node.x
    for part in node.parts:
        parts.append(f'<g transform="translate({_n(node.x)} {_n(node.y)})">')
        if part.name:
            left = min((n.x for n in part.nodes), default=PAD)
            y = min((n.y for n in part.nodes), default=0.0) - 5
            parts.append(
                f'<text class="line" x="{_n(left)}" y="{_n(y)}" font-size="{SIZES["line"]}" font-weight="bold">{_text(part.name)}</text>'
            )
        _graph(part, parts)
        parts.append("</g>")


def _box(node: Node, parts: list[str]) -> None:
    _open(node, parts)
    _shape(node, parts, node.height / 2 if node.kind in ("input", "const", "output", "ref") else 4)
    _rows(node, parts, None)
    parts.append("</g>")


def _open(node: Node, parts: list[str]) -> None:
    title = f"<title>{_text(node.title)}</title>" if node.title else ""
    parts.append(f"<g>{title}")


def _shape(node: Node, parts: list[str], radius: float) -> None:
    kind = node.kind
    if node.tint is not None and kind not in ("input", "const", "output", "ref"):
        kind = f"k{_HOST if node.tint < 0 else node.tint % len(_TINTS)}" + " again" * kind.endswith("again")
    parts.append(
        f'<rect class="{kind}" x="{_n(node.x)}" y="{_n(node.y)}" width="{_n(node.width)}" height="{_n(node.height)}" rx="{_n(radius)}"/>'
    )


def _rows(node: Node, parts: list[str], left: float | None) -> None:
    """The text of a box, in its middle, or from the left."""
    y = node.y + PAD / 2
    for i, row in enumerate(node.rows):
        y += ROWS[row.role]
        room = len(node.tag) * SIZES["tag"] * LETTER + 14 if node.tag and i == 0 else 0.0
        x = node.x + (node.width - room) / 2 if left is None else left
        anchor = ' text-anchor="middle"' if left is None else ""
        bold = ' font-weight="bold"' if row.role == "name" else ""
        parts.append(
            f'<text class="{row.role}" x="{_n(x)}" y="{_n(y - 4)}" font-size="{SIZES[row.role]}"{bold}{anchor}>{_text(row.text)}</text>'
        )
    if node.tag:
        x = node.x + node.width - 6
        parts.append(
            f'<text class="tag" x="{_n(x)}" y="{_n(node.y + 14)}" font-size="{SIZES["tag"]}" text-anchor="end">{_text(node.tag)}</text>'
        )


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
        kind = f"k{_HOST if tint < 0 else tint % len(_TINTS)}"
        parts.append(f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="12" height="12" rx="3"/>')
        parts.append(f'<text x="{_n(x + 17)}" y="{_n(y + 10)}" font-size="10">{_text(text)}</text>')
        x += 17 + len(text) * 10 * LETTER + 16
    return parts, x


def _n(x: float) -> str:
    """A number with at most one digit after the point."""
    text = f"{x:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _text(text: str) -> str:
    return escape("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text), quote=False)


def _attribute(text: str) -> str:
    return escape(_text(text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
