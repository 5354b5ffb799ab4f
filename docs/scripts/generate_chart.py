"""Draw the bar charts of README.md and the manual from the last recorded runs: ``python -m benchmarks record``."""

import json
import math
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[1]
HISTORY = DOCS.parent / "benchmarks" / "history.jsonl"


class Chart(NamedTuple):
    """A picture of the times of functrans and JAX, from the first tables of a command that have both."""

    file: str
    command: str
    title: str
    ours: str = "functrans"
    theirs: str = "JAX"
    note: str = ""
    tables: int = 1


CHARTS = (
    Chart(
        "speed.svg",
        "run",
        "Value and gradient: speed relative to JAX",
        "functrans jit(t)",
        "JAX jit(t)",
        "Hessian where named",
    ),
    Chart("speed_loops.svg", "loops", "Loops: speed relative to JAX"),
    Chart("speed_first_call.svg", "compile", "First call of a function: speed relative to JAX", tables=2),
    Chart("speed_random.svg", "random", "Random numbers: speed relative to JAX"),
)

ROW, TOP = 21, 58  # the height of a row, and of the title above the first row
# Positions: how wide a character of a name is at most, of the longest bar from that of equal speed, space for figures.
CHARACTER, LONGEST, FIGURES = 6.6, 250, 60
# The card has its own background, so the text is legible on any page.
STYLE = """
.card { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328 } .faster { fill: #2f81c5 } .slower { fill: #c76b29 }
.grid { stroke: #d0d7de } .one { stroke: #57606a } .note { fill: #57606a }
@media (prefers-color-scheme: dark) {
.card { fill: #0d1117; stroke: #30363d } text { fill: #e6edf3 } .faster { fill: #4493d8 } .slower { fill: #d9813f }
.grid { stroke: #30363d } .one { stroke: #8b949e } .note { fill: #9da7b1 }
}"""


def last_run(command):
    """The last recorded run of a command, a dict: see `benchmarks.record`."""
    runs = [json.loads(line) for line in HISTORY.read_text().splitlines()]
    return next(run for run in reversed(runs) if run["command"] == command)


def speedups(run, chart):
    """Pairs of a row's name and JAX's time over functrans's, the largest first."""
    pairs = []
    for header, *rows in [t for t in run["tables"] if {chart.ours, chart.theirs} <= {*t[0]}][: chart.tables]:
        ours, theirs = header.index(chart.ours), header.index(chart.theirs)
        pairs += [
            (row[0], float(row[theirs]) / float(row[ours]))
            for row in rows
            if not {"-", ""} & {row[ours], row[theirs]}
        ]
    return sorted(pairs, key=lambda pair: -pair[1])


def text(x, y, words, anchor="start", kind=""):
    name = f' class="{kind}"' if kind else ""
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{name}>{words}</text>'


def bar(y, name, factor, names, one, x):
    """A row: where names end, where the bar begins and ends."""
    kind = "faster" if factor >= 1 else "slower"
    left, right = sorted((one, x))  # the figure is always on the right, clear of the name
    figure = f"{factor:.2f}×" if factor < 1.1 else f"{factor:.1f}×" if factor < 20 else f"{factor:.0f}×"
    return [
        text(names, y + 14, name, "end"),
        f'<rect x="{left:.1f}" y="{y + 3}" width="{max(right - left, 1):.1f}" height="{ROW - 7}" class="{kind}"/>',
        text(right + 6, y + 14, figure),
    ]


def picture(chart, run):
    """The text of the picture of a run."""
    pairs = speedups(run, chart)
    largest, least = max(pairs[0][1], 1.1), min(pairs[-1][1], 0.9)
    scale = LONGEST / math.log10(largest)
    names = 16 + CHARACTER * max(len(name) for name, _ in pairs)
    one = names + 12 - scale * math.log10(least)
    width, bottom = round(one + LONGEST + FIGURES), TOP + ROW * len(pairs)
    label = (
        "; ".join(f"{name} {factor:.2g}" for name, factor in pairs).replace("&", "&amp;").replace("<", "&lt;")
    )
    about = "; ".join(
        filter(None, [run["machine"].split(";")[0], run["date"], chart.note, "logarithmic scale"])
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 34}" width="{width}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13" role="img" '
        f'aria-label="{chart.title}: {label}">',
        f"<style>{STYLE}\n</style>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{bottom + 33}" rx="6" class="card"/>',
        f'<g font-size="15" font-weight="bold">{text(16, 26, chart.title)}</g>',
        text(16, 45, about, kind="note"),
    ]
    for factor in (0.5, 1, 2, 5, 10, 20, 50, 100):
        if not least <= factor <= largest:
            continue
        x, kind = one + scale * math.log10(factor), "one" if factor == 1 else "grid"
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom + 4}" class="{kind}"/>')
        parts.append(text(x, bottom + 20, f"{factor}×", "middle", "note"))
    for i, (name, factor) in enumerate(pairs):
        parts += bar(TOP + ROW * i, name, factor, names, one, one + scale * math.log10(factor))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    for each in CHARTS:
        (DOCS / each.file).write_text(picture(each, last_run(each.command)))
        print(f"wrote {DOCS / each.file}")
