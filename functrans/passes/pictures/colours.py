"""Colours of pictures, for light and dark pages."""

from __future__ import annotations

#: fill, outline; the same in the dark.
COLOURS = {
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
TINTS = (
    ("#dcecfd", "#4a90d9", "#12304f", "#4a90d9"),
    ("#fde7cf", "#e08e2b", "#45290a", "#d9892b"),
    ("#d9f2df", "#3fa45b", "#0f3a1c", "#3fa45b"),
    ("#efdff9", "#9a5fcb", "#34194a", "#a06ad0"),
    ("#d5f2f2", "#2d9c9c", "#0b3838", "#2d9c9c"),
    ("#fbdfea", "#d0567f", "#47162a", "#d0567f"),
    ("#eef3cf", "#8c9f2f", "#2d340c", "#8c9f2f"),
    ("#e6e1da", "#85735c", "#322b23", "#958168"),
)
HOST = len(TINTS)
#: Kinds of boxes that are round, and have no colours of kernels.
PILLS = ("input", "const", "output", "ref")


_LIGHT = """
.ftp { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace }
.ftp .card { fill: #fff; stroke: #d0d7de } .ftp text { fill: #1f2328 } .ftp .line, .ftp .label { fill: #57606a }
.ftp .label { paint-order: stroke; stroke: #fff; stroke-width: 3px } .ftp .tag { fill: #b3402f; font-style: italic }
.ftp .wire { fill: none; stroke: #8c959f } .ftp .head { fill: #8c959f; stroke: none }
.ftp .order { stroke-dasharray: 2 3 } .ftp .again, .ftp .const { stroke-dasharray: 4 2 }
.ftp .wire.saved { stroke: #cf3b3b; stroke-width: 1.5 } .ftp .head.saved { fill: #cf3b3b }
.ftp text.saved { fill: #b42323 }
"""
_DARK = """
.ftp .card { fill: #0d1117; stroke: #30363d } .ftp text { fill: #e6edf3 } .ftp .line, .ftp .label { fill: #9da7b1 }
.ftp .label { stroke: #0d1117 } .ftp .tag { fill: #ff9a8c }
.ftp .wire { stroke: #7d8590 } .ftp .head { fill: #7d8590 }
.ftp .wire.saved { stroke: #ff7b72 } .ftp .head.saved { fill: #ff7b72 } .ftp text.saved { fill: #ff9a92 }
"""


def tint_class(tint: int) -> str:
    """The class of a kernel's boxes; of host calls, for -1."""
    return f"k{HOST if tint < 0 else tint % len(TINTS)}"


def colours_of(kind: str, tint: int | None = None) -> tuple[str, str]:
    """How a box of this kind, or of this kernel, is filled and outlined on a light page."""
    if tint is None or kind in PILLS:
        return COLOURS[kind][:2]
    return COLOURS["host"][:2] if tint < 0 else TINTS[tint % len(TINTS)][:2]


def _style() -> str:
    boxes = [*COLOURS.items(), *[(f"k{i}", c) for i, c in enumerate([*TINTS, COLOURS["host"]])]]
    light = "\n".join(f".ftp .{k} {{ fill: {a}; stroke: {b} }}" for k, (a, b, _, _) in boxes)
    dark = "\n".join(f".ftp .{k} {{ fill: {c}; stroke: {d} }}" for k, (_, _, c, d) in boxes)
    return f"{_LIGHT}{light}\n@media (prefers-color-scheme: dark) {{{_DARK}{dark}\n}}\n"


STYLE = _style()
