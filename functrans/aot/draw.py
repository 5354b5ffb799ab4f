"""A picture of a forward and a backward program, and of the values that cross the cut between them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os import PathLike
from typing import Protocol

from ..core import Eqn, Jaxpr
from ..passes.pictures.dot import write_dot
from ..passes.pictures.graph import Graph, Node, Row
from ..passes.pictures.layout import place
from ..passes.pictures.picture import write
from ..passes.pictures.program import graph_of
from ..passes.pictures.svg import write_svg


class Crossing(Protocol):
    """A saved value."""

    @property
    def kind(self) -> str:
        """``"input"``, ``"output"`` or ``"value"``."""

    @property
    def index(self) -> int:
        """Its number among the inputs or outputs."""

    @property
    def bytes(self) -> int:
        """The memory that it takes."""


def drawn(
    forward: Jaxpr,
    backward: Jaxpr,
    saved: Sequence[Crossing],
    recomputed: Collection[Eqn],
    path: str | PathLike[str],
) -> None:
    """Write the picture to a file.

    Raises
    ------
    ArgumentValueError
        If its name does not end with .svg or .dot.
    """
    graph = _graph(forward, backward, saved, recomputed)

    def svg() -> str:
        place(graph)
        return write_svg(graph, forward.name)

    write("draw", path, svg, lambda: write_dot(graph, forward.name))


def _graph(forward: Jaxpr, backward: Jaxpr, saved: Sequence[Crossing], recomputed: Collection[Eqn]) -> Graph:
    """A frame for each program; between them arrows for what is saved, and for arguments that both read."""
    graph = Graph()
    first, second = (
        _frame(name, jaxpr, recomputed) for name, jaxpr in (("forward", forward), ("backward", backward))
    )
    for i, v in enumerate(forward.invars):
        node = Node("input", [Row("type", f"input {i}: {v.aval}")], outs=1)
        graph.nodes.append(node)
        graph.connect(node, 0, first, i)
    graph.nodes.append(first)
    for i, v in enumerate(backward.invars[len(saved) :]):
        node = Node("input", [Row("type", f"cotangent {i}: {v.aval}")], outs=1)
        graph.nodes.append(node)
        graph.connect(node, 0, second, len(saved) + i)
    graph.nodes.append(second)
    for i, s in enumerate(saved):
        if s.kind == "input":
            graph.connect(graph.nodes[s.index], 0, second, i)
        else:
            graph.connect(first, s.index, second, i, f"{s.bytes:,} bytes", kind="saved")
    return graph


def _frame(name: str, jaxpr: Jaxpr, dashed: Collection[Eqn]) -> Node:
    inside = graph_of(jaxpr, dashed=tuple(dashed))
    inside.inner = True
    return Node("frame", [Row("name", name)], len(jaxpr.invars), len(jaxpr.outvars), parts=[inside])
