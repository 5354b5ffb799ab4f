"""A profile as text: the table by lines, and source with times in the margin."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from html import escape

from .lines import KINDS, LineTimes

#: The most rows of a table; the others are one row.
MOST = 40
#: Lines of source around a line with time that `annotated` shows.
AROUND = 2
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_SIZES = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"), (1, "B"))


def duration(seconds: float) -> str:
    """``1.23 ms``."""
    if seconds < 5e-10:
        return "."
    scale, unit = next((s, u) for s, u in _UNITS if seconds >= s * 0.9995 or u == "ns")
    return f"{seconds / scale:.3g} {unit}"


def size(nbytes: int) -> str:
    """``3.5 MB``."""
    if not nbytes:
        return "."
    scale, unit = next((s, u) for s, u in _SIZES if nbytes >= s)
    number = nbytes / scale
    return f"{number:.0f} {unit}" if number >= 100 or unit == "B" else f"{number:.3g} {unit}"


def _rows(lines: Sequence[LineTimes], total: float) -> tuple[list[str], list[list[str]]]:
    """The headings, and the cells of each row."""
    kinds = [k for k in KINDS if any(line.seconds.get(k) for line in lines)]
    shown = list(lines) if len(lines) <= MOST else _longest(lines)
    head = ["share", "time", *(KINDS[k] for k in kinds), "calls", "in", "out", "line", "source"]
    return head, [_cells(line, kinds, total) for line in [*shown, _sum("total", lines)]]


def _longest(lines: Sequence[LineTimes]) -> list[LineTimes]:
    """The lines with most time, in their order, and one for the rest."""
    chosen = set(sorted(lines, key=lambda x: -x.total)[: MOST - 1])
    rest = [line for line in lines if line not in chosen]
    return [*[line for line in lines if line in chosen], _sum(f"({len(rest)} more lines)", rest)]


def _sum(name: str, lines: Sequence[LineTimes]) -> LineTimes:
    whole = LineTimes(name, 0, "")
    for line in lines:
        for kind, seconds in line.seconds.items():
            whole.add(kind, seconds)
        whole.calls += line.calls
        whole.bytes_read += line.bytes_read
        whole.bytes_written += line.bytes_written
    return whole


def _cells(line: LineTimes, kinds: Sequence[str], total: float) -> list[str]:
    return [
        f"{100 * line.total / total:.1f} %" if total else "",
        duration(line.total),
        *(duration(line.seconds.get(k, 0.0)) for k in kinds),
        str(line.calls or "."),
        size(line.bytes_read),
        size(line.bytes_written),
        line.place,
        line.text,
    ]


def table(lines: Sequence[LineTimes], total: float) -> str:
    """The table."""
    head, rows = _rows(lines, total)
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    numbers = len(head) - 2

    def text(row: list[str]) -> str:
        cells = [c.rjust(w) if i < numbers else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))]
        return "  ".join(cells).rstrip()

    rule = "-" * min(sum(widths) + 2 * len(widths), 160)
    return "\n".join([text(head), rule, *map(text, rows[:-1]), rule, text(rows[-1])])


def html_table(lines: Sequence[LineTimes], total: float) -> str:
    """The same as HTML."""
    head, rows = _rows(lines, total)

    def row(cells: list[str], tag: str) -> str:
        style = ' style="text-align: left; font-family: monospace"'
        parts = [
            f"<{tag}{style if i >= len(head) - 2 else ''}>{escape(c)}</{tag}>" for i, c in enumerate(cells)
        ]
        return f"<tr>{''.join(parts)}</tr>"

    return "\n".join(["<table>", row(head, "th"), *(row(r, "td") for r in rows), "</table>"])


def annotated(lines: Sequence[LineTimes], total: float) -> str:
    """The source of a file around its lines with time, with forward and backward times in the margin."""
    filename = lines[0].filename
    source = linecache.getlines(filename)
    forward: dict[int, float] = {}
    backward: dict[int, float] = {}
    for line in lines:
        times = backward if line.backward else forward
        times[line.line] = times.get(line.line, 0.0) + line.total
    numbers = {*forward, *backward}
    last = max([len(source), *numbers])
    shown = [n for n in range(1, last + 1) if any(abs(n - m) <= AROUND for m in numbers)]
    text = [filename, f"{'share':>7} {'time':>9} {'backward':>9}"]
    previous = 0
    for n in shown:
        if n != previous + 1:
            text.append("        ...")
        previous = n
        code = source[n - 1].rstrip() if n <= len(source) else ""
        both = forward.get(n, 0.0), backward.get(n, 0.0)
        share = f"{100 * sum(both) / total:.1f} %" if n in numbers and total else ""
        margin = [duration(t) if t else "" for t in both]
        text.append(f"{share:>7} {margin[0]:>9} {margin[1]:>9} {n:>5} | {code}".rstrip())
    return "\n".join(text)
