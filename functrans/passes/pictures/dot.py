"""A graph as text for Graphviz."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from .colours import PILLS, colours_of
from .graph import Graph, Node


def write_dot(graph: Graph, name: str, legend: Sequence[tuple[str, int]] = ()) -> str:
    """The text; `legend` as for `write_svg`."""
    writer = _GraphWriter()
    lines = [
        f"digraph {_quoted(name)} {{",
        "  rankdir=TB; compound=true;",
        f"  label={_quoted(name)}; labelloc=t;",
        '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=10];',
        '  edge [fontname="monospace", fontsize=9, color="#8c959f"];',
    ]
    writer.graph(graph, "  ")
    keys = []
    for i, (text, tint) in enumerate(legend):
        fill, line = colours_of("eqn", tint)
        keys.append(f'  legend{i} [label={_quoted(text)}, fillcolor="{fill}", color="{line}"];')
    return "\n".join([*lines, *keys, *writer.lines, "}", ""])


class _GraphWriter:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers = count()
        self.clusters = count()
        self.names: dict[Node, str] = {}

    def graph(self, graph: Graph, indent: str) -> None:
        for node in graph.nodes:
            if node.parts:
                self.frame(node, indent)
            else:
                self.box(node, indent)
        for e in graph.edges:
            style = {"order": "style=dotted, arrowhead=none", "saved": 'color="#cf3b3b"'}.get(e.kind, "")
            label = f"label={_quoted(e.label)}" if e.label else ""
            options = ", ".join(filter(None, (label, style)))
            source, target = self.end(e.source, e.port, out=True), self.end(e.target, e.slot, out=False)
            self.lines.append(f"{indent}{source} -> {target}" + (f" [{options}];" if options else ";"))

    def end(self, node: Node, port: int, out: bool) -> str:
        """The box at an end of an arrow; within a frame, what stands for the value inside."""
        boxes = [n for part in node.parts for n in (part.outputs if out else part.inputs)]
        return self.names[boxes[port] if len(node.parts) == 1 and port < len(boxes) else node]

    def frame(self, node: Node, indent: str) -> None:
        fill, line = colours_of(node.kind.split()[0], node.tint)
        text = "\\n".join(row.text for row in node.rows) + (f"\\n{node.tag}" if node.tag else "")
        self.lines.append(f"{indent}subgraph cluster{next(self.clusters)} {{")
        self.lines.append(
            f'{indent}  label={_quoted(text)}; style="rounded,filled"; fillcolor="{fill}"; color="{line}";'
        )
        # Arrows end at a point in the frame where no box inside stands for the value.
        self.names[node] = f"n{next(self.numbers)}"
        self.lines.append(f'{indent}  {self.names[node]} [shape=point, style=invis, label=""];')
        for part in node.parts:
            if part.name:
                self.lines.append(
                    f"{indent}  subgraph cluster{next(self.clusters)} {{ label={_quoted(part.name)};"
                )
                self.graph(part, indent + "    ")
                self.lines.append(f"{indent}  }}")
            else:
                self.graph(part, indent + "  ")
        self.lines.append(f"{indent}}}")

    def box(self, node: Node, indent: str) -> None:
        self.names[node] = f"n{next(self.numbers)}"
        fill, line = colours_of(node.kind.split()[0], node.tint)
        text = "\\n".join(row.text for row in node.rows) + (f"\\n{node.tag}" if node.tag else "")
        shape = ', shape=box, style="rounded,filled"' if node.kind in PILLS else ""
        dashed = ', style="rounded,filled,dashed"' if "again" in node.kind or node.kind == "const" else shape
        self.lines.append(
            f'{indent}{self.names[node]} [label={_quoted(text)}, fillcolor="{fill}", color="{line}"{dashed}];'
        )


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
