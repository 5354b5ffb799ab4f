"""A profile as a flame graph: each box is as wide as its share of the time, and stands on what it is part of."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from html import escape

from .lines import KINDS, LineTimes
from .table import duration

WIDTH, HEIGHT, MARGIN, LETTER = 1200, 20, 10, 6.6
#: Boxes of less than this share of the width are left out.
NARROW = 0.0005


class _Flame:
    """A box, and those on top of it by name."""

    def __init__(self, name: str):
        self.name = name
        self.seconds = 0.0
        self.above: dict[str, _Flame] = {}

    def add(self, names: Sequence[str], seconds: float) -> None:
        """Add time to a stack of boxes."""
        self.seconds += seconds
        if names:
            self.above.setdefault(names[0], _Flame(names[0])).add(names[1:], seconds)

    def depth(self) -> int:
        """The number of rows."""
        return 1 + max([b.depth() for b in self.above.values()], default=0)


def flame_graph(lines: Sequence[LineTimes], total: float) -> str:
    """The text of an SVG file."""
    root = _Flame("all")
    for line in lines:
        for kind, seconds in line.seconds.items():
            if seconds > 0.0:
                root.add(_stack(line, kind), seconds)
    rows = root.depth()
    height = rows * HEIGHT + 2 * MARGIN
    boxes: list[str] = []
    _draw(root, MARGIN, WIDTH - 2 * MARGIN, rows - 1, root.seconds or 1.0, boxes)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">'
    )
    return "\n".join([head, *boxes, "</svg>"]) + "\n"


def _stack(line: LineTimes, kind: str) -> list[str]:
    if not line.line:
        return [line.filename]
    function = f"{os.path.basename(line.filename)}: {line.function}"
    return [function, f"{line.line}: {line.text}", f"{KINDS[kind]}{', backward' if line.backward else ''}"]


def _draw(box: _Flame, left: float, width: float, row: int, whole: float, boxes: list[str]) -> None:
    if width < NARROW * WIDTH:
        return
    top = MARGIN + row * HEIGHT
    title = f"{box.name}\n{duration(box.seconds)}, {100 * box.seconds / whole:.1f} %"
    letters = int((width - 6) / LETTER)
    text = box.name if len(box.name) <= letters else box.name[: max(letters - 1, 0)] + "…"
    shown = f'<text x="{left + 3:.1f}" y="{top + 14}">{escape(text)}</text>' if letters >= 3 else ""
    boxes.append(
        f"<g><title>{escape(title)}</title>"
        f'<rect x="{left:.2f}" y="{top}" width="{max(width - 0.5, 0.5):.2f}" height="{HEIGHT - 1}" '
        f'fill="{_colour(box.name)}" rx="2"/>{shown}</g>'
    )
    for above in sorted(box.above.values(), key=lambda b: (-b.seconds, b.name)):
        share = above.seconds / box.seconds if box.seconds else 0.0
        _draw(above, left, width * share, row - 1, whole, boxes)
        left += width * share


def _colour(name: str) -> str:
    """A warm colour, the same for equal names in every process."""
    number = zlib.crc32(name.encode())
    return f"hsl({number % 55}, {60 + number // 55 % 25}%, {66 + number // 1375 % 12}%)"
