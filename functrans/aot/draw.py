"""A picture of a forward and a backward program, and of the values that cross the cut between them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from ..core import ArgumentValueError, Eqn, Jaxpr, Var

WIDTH, HEIGHT, GAP, MARGIN = 190, 24, 10, 20
#: The distance between the two columns, where the saved values cross.
CROSSING = 200


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


class _Box:
    """A drawn value or equation: its name, its text, and the boxes that it reads."""

    def __init__(self, name: str, text: str, style: str):
        self.name = name
        self.text = text
        self.style = style
        self.reads: list[_Box] = []


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
    target = Path(path)
    write = {".svg": _svg, ".dot": _dot}.get(target.suffix)
    if write is None:
        raise ArgumentValueError(
            f"draw: path {str(path)!r} must end with .svg, for a picture, or with .dot, for Graphviz"
        )
    left = _boxes("f", forward, recomputed)
    right = _boxes("b", backward, ())
    made = dict(_values(left, forward))
    crossings = []
    for s, v in zip(saved, backward.invars):
        source = forward.invars[s.index] if s.kind == "input" else forward.outvars[s.index]
        label = "input" if s.kind == "input" else f"{s.bytes:,} bytes"
        if type(source) is Var and source in made:
            crossings += [(made[source], box, label) for box in right if v in _read_by(box, backward)]
    target.write_text(write(left, right, crossings), encoding="utf-8")


def _boxes(prefix: str, jaxpr: Jaxpr, recomputed: Collection[Eqn]) -> list[_Box]:
    """A box for each input that is read, and for each equation, in their order."""
    made: dict[Any, _Box] = {}
    boxes = []
    if prefix == "f":
        for i, v in enumerate(jaxpr.invars):
            made[v] = _Box(f"f_in{i}", f"input {i}: {v.aval}", "input")
            boxes.append(made[v])
    for i, e in enumerate(jaxpr.eqns):
        style = "again" if e in recomputed else "equation"
        box = _Box(f"{prefix}{i}", f"{e.primitive.name}: {', '.join(str(v.aval) for v in e.outvars)}", style)
        box.reads = list(dict.fromkeys(made[a] for a in e.invars if a in made))
        made.update(dict.fromkeys(e.outvars, box))
        boxes.append(box)
    return boxes


def _values(boxes: Sequence[_Box], jaxpr: Jaxpr) -> Iterator[tuple[Var, _Box]]:
    count = len(jaxpr.invars)
    yield from zip(jaxpr.invars, boxes)
    for e, box in zip(jaxpr.eqns, boxes[count:]):
        for v in e.outvars:
            yield v, box


def _read_by(box: _Box, jaxpr: Jaxpr) -> tuple[Any, ...]:
    return jaxpr.eqns[int(box.name[1:])].invars


Crossings = Sequence[tuple[_Box, _Box, str]]


def _dot(left: Sequence[_Box], right: Sequence[_Box], crossings: Crossings) -> str:
    styles = {"input": "shape=ellipse", "equation": "shape=box", "again": "shape=box, style=dashed"}
    lines = ["digraph pair {", "  rankdir=TB;"]
    for name, boxes in (("forward", left), ("backward", right)):
        lines.append(f"  subgraph cluster_{name} {{ label={name};")
        lines += [f'    {b.name} [label="{b.text}", {styles[b.style]}];' for b in boxes]
        lines.append("  }")
    lines += [f"  {a.name} -> {b.name};" for b in (*left, *right) for a in b.reads]
    lines += [f'  {a.name} -> {b.name} [label="{label}", color=red];' for a, b, label in crossings]
    return "\n".join([*lines, "}", ""])


def _svg(left: Sequence[_Box], right: Sequence[_Box], crossings: Crossings) -> str:
    rows = max(len(left), len(right))
    width, height = 2 * (MARGIN + WIDTH) + CROSSING, 2 * MARGIN + (rows + 1) * (HEIGHT + GAP)
    place = {b: (MARGIN, MARGIN + (i + 1) * (HEIGHT + GAP)) for i, b in enumerate(left)}
    # The backward program runs upward, beside what it undoes.
    bottom = MARGIN + rows * (HEIGHT + GAP)
    place |= {b: (MARGIN + WIDTH + CROSSING, bottom - i * (HEIGHT + GAP)) for i, b in enumerate(right)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="11"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 8}" font-weight="bold">forward</text>',
        f'<text x="{MARGIN + WIDTH + CROSSING}" y="{MARGIN + 8}" font-weight="bold">backward</text>',
    ]
    for b in (*left, *right):
        for a in b.reads:
            (x0, y0), (x1, y1) = place[a], place[b]
            side = x0 + 8 + 4 * (abs(y1 - y0) // (HEIGHT + GAP) % 40)
            parts.append(
                f'<path d="M{side} {y0 + HEIGHT / 2} V{y1 + HEIGHT / 2}" stroke="#aaa" fill="none"/>'
            )
    labelled: set[tuple[_Box, str]] = set()
    for a, b, label in crossings:
        (x0, y0), (x1, y1) = place[a], place[b]
        start, end, y, z = x0 + WIDTH, x1, y0 + HEIGHT / 2, y1 + HEIGHT / 2
        colour = "#bbb" if label == "input" else "#c33"
        parts.append(
            f'<path d="M{start} {y} C{start + 70} {y} {end - 70} {z} {end} {z}" stroke="{colour}" fill="none"/>'
        )
        if label != "input" and (a, label) not in labelled:
            labelled.add((a, label))
            parts.append(f'<text x="{start + 6}" y="{y - 3}" fill="{colour}">{label}</text>')
    for b in (*left, *right):
        x, y = place[b]
        fill = {"input": "#e8f0fe", "equation": "#f6f6f6", "again": "#fff3d6"}[b.style]
        dash = ' stroke-dasharray="4 2"' if b.style == "again" else ""
        parts.append(
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{fill}" stroke="#555"{dash}/>'
        )
        parts.append(f'<text x="{x + 8}" y="{y + 16}">{escape(_short(b.text))}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _short(text: str) -> str:
    return text if len(text) <= 32 else text[:31] + "…"
