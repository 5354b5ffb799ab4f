"""Draw docs/speed.svg, the bar chart in README.md, from the last recorded run of ``python -m benchmarks run``."""

import json
import math
from pathlib import Path

DOCS = Path(__file__).parents[1]
HISTORY = DOCS.parent / "benchmarks" / "history.jsonl"
CHART = DOCS / "speed.svg"
OURS, THEIRS = "functrans jit(t)", "JAX jit(t)"

ROW, TOP = 21, 58  # the height of a row, and of the title above the first row
NAMES, ONE, END, WIDTH = (
    236,
    306,
    600,
    660,
)  # x positions: where names end, of equal speed, where the longest bar ends at most
# The card has its own background, so the text is legible on any page.
STYLE = """
.card { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328 } .faster { fill: #2f81c5 } .slower { fill: #c76b29 }
.grid { stroke: #d0d7de } .one { stroke: #57606a } .note { fill: #57606a }
@media (prefers-color-scheme: dark) {
.card { fill: #0d1117; stroke: #30363d } text { fill: #e6edf3 } .faster { fill: #4493d8 } .slower { fill: #d9813f }
.grid { stroke: #30363d } .one { stroke: #8b949e } .note { fill: #9da7b1 }
}"""


def last_run():
    """The last recorded run, a dict: see `benchmarks.record`."""
    runs = [json.loads(line) for line in HISTORY.read_text().splitlines()]
    return next(run for run in reversed(runs) if run["command"] == "run")


def speedups(run):
    """Pairs of a workload and JAX's time over functrans's."""
    header, *rows = next(t for t in run["tables"] if OURS in t[0] and THEIRS in t[0])
    ours, theirs = header.index(OURS), header.index(THEIRS)
    return [
        (row[0], float(row[theirs]) / float(row[ours])) for row in rows if "-" not in (row[ours], row[theirs])
    ]


def text(x, y, words, anchor="start", kind=""):
    name = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{name}>{words}</text>'


def bar(y, name, factor, x):
    kind = "faster" if factor >= 1 else "slower"
    left, right = sorted((ONE, x))  # the figure is always on the right, clear of the name
    figure = f"{factor:.2f}×" if factor < 1.1 else f"{factor:.1f}×"
    return [
        text(NAMES, y + 14, name, "end"),
        f'<rect x="{left:.1f}" y="{y + 3}" width="{max(right - left, 1):.1f}" height="{ROW - 7}" class="{kind}"/>',
        text(right + 6, y + 14, figure),
    ]


def chart(run):
    """The text of the picture of a run."""
    pairs = sorted(speedups(run), key=lambda pair: -pair[1])
    bottom = TOP + ROW * len(pairs)
    largest, least = pairs[0][1], min(pairs[-1][1], 0.9)
    scale = min((END - ONE) / math.log10(largest), (ONE - NAMES - 10) / -math.log10(least))
    label = "; ".join(f"{name} {factor:.2g}" for name, factor in pairs)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 34}" width="{WIDTH}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13" role="img" '
        f'aria-label="Speed of functrans relative to JAX: {label}">',
        f"<style>{STYLE}\n</style>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{bottom + 33}" rx="6" class="card"/>',
        '<g font-size="15" font-weight="bold">'
        + text(16, 26, "Value and gradient: speed relative to JAX")
        + "</g>",
        text(
            16,
            45,
            f"{run['machine']}, {run['date']}; Hessian where named; logarithmic scale",
            kind="note",
        ),
    ]
    for factor in (0.5, 1, 2, 5, 10, 20, 50, 100):
        if not least <= factor <= largest:
            continue
        x, kind = ONE + scale * math.log10(factor), "one" if factor == 1 else "grid"
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom + 4}" class="{kind}"/>')
        parts.append(text(x, bottom + 20, f"{factor}×", "middle", "note"))
    for i, (name, factor) in enumerate(pairs):
        parts += bar(TOP + ROW * i, name.replace("&", "&amp;"), factor, ONE + scale * math.log10(factor))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    CHART.write_text(chart(last_run()))
    print(f"wrote {CHART}")
