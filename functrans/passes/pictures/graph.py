"""What a picture shows: boxes with rows of text, arrows between them, and frames, which have graphs inside.

A graph is independent of programs. `layout` gives each box its place; `svg` and `dot` write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ...runtime.records import NamedTuple, dataclass

#: The width of a letter, as a part of the font's size: the font is monospaced, so that no font has to be measured.
LETTER = 0.602
#: The sizes of fonts, by the role of a row.
SIZES = {"name": 12, "type": 10, "line": 9, "label": 9, "tag": 9}
#: The height of a row.
ROWS = {"name": 16, "type": 13, "line": 12, "label": 11, "tag": 11}
#: Between a box and its text, between the parts of a frame.
PAD, GAP = 8, 14


class Row(NamedTuple):
    """A line of text in a box: its role (a key of `SIZES`), and what it says."""

    role: str
    text: str

    @property
    def width(self) -> float:
        """How wide it is."""
        return len(self.text) * SIZES[self.role] * LETTER


@dataclass(eq=False)
class Node:
    """A box, or a frame.

    Attributes
    ----------
    kind : str
        What it stands for, which decides its colours: a class of the picture's style sheet.
    rows : list of Row
    ins, outs : int
        How many values go in and come out.
    title : str
        What shows when the mouse is over it.
    tag : str
        An effect, shown at the upper right corner.
    parts : sequence of Graph
        What is inside of a frame, from left to right.
    tint : int, optional
        The number of a colour, instead of that of its kind.
    width, height, x, y : float
        Its size and its upper left corner, relative to the graph (`layout`).
    tops, bottoms : list of float
        Where values go in and come out, relative to its left side (`layout`).
    """

    kind: str
    rows: list[Row]
    ins: int = 0
    outs: int = 0
    title: str = ""
    tag: str = ""
    parts: Sequence[Graph] = ()
    tint: int | None = None
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0
    tops: list[float] = field(default_factory=list)
    bottoms: list[float] = field(default_factory=list)
    layer: int = 0


@dataclass(eq=False)
class Edge:
    """An arrow from output `port` of a box to input `slot` of a later one.

    Attributes
    ----------
    label : str
        The value's size.
    name : str
        The value's name, for a reference to it where an arrow would be too long.
    kind : str
        ``"value"``, ``"saved"``, ``"input"``, or ``"order"`` if nothing passes along it.
    points : list of (float, float)
        Where it goes, from its upper end (`layout`); pairs of points are straight lines, curves connect them.
    """

    source: Node
    port: int
    target: Node
    slot: int
    label: str = ""
    name: str = ""
    kind: str = "value"
    points: list[tuple[float, float]] = field(default_factory=list)


@dataclass(eq=False)
class Graph:
    """Boxes in an order in which each comes after what it reads, and arrows.

    Attributes
    ----------
    nodes : list of Node
    edges : list of Edge
    name : str
        What the graph is within a frame: a branch, the condition of a loop.
    inner : bool
        Whether it is within a frame, at whose upper side its inputs then stay.
    inputs, outputs : list of Node
        Boxes that stand for what comes from outside and for what goes there.
    width, height : float
        See `layout`.
    """

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    name: str = ""
    inner: bool = False
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def connect(
        self,
        source: Node,
        port: int,
        target: Node,
        slot: int,
        label: str = "",
        name: str = "",
        kind: str = "value",
    ) -> None:
        """Add an arrow."""
        self.edges.append(Edge(source, port, target, slot, label, name, kind))


def text_size(node: Node) -> tuple[float, float]:
    """The width and height of a box's text, with some room around it."""
    tag = len(node.tag) * SIZES["tag"] * LETTER + 14 if node.tag else 0.0
    widths = [row.width for row in node.rows]
    if widths:
        widths[0] += tag
    return max(widths, default=0.0) + 2 * PAD, sum(ROWS[row.role] for row in node.rows) + PAD
