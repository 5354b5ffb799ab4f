"""Write docs/passes.md and its picture, docs/passes.svg, from the records of the optimisations."""

import json
from pathlib import Path

from functrans.runtime.passes import PASSES, STAGES

HISTORY = Path(__file__).parents[2] / "benchmarks" / "history.jsonl"
PAGE = Path(__file__).parents[1] / "passes.md"
PICTURE = Path(__file__).parents[1] / "passes.svg"
HEAD = """# Optimisations

For those who change the compiler, and for users who suspect it of a wrong result. The optimisations run in the order
of this page. Each has a name, and can be turned off:

```python
>>> import numpy as np
>>> import functrans as ft
>>> f = ft.jit(lambda x: x * 2.0)
>>> with ft.config.patch(without={{"fusion", "read_back"}}):
...     f(np.ones(2))
Array([2., 2.])
>>> ft.config.passes[0].name, ft.config.passes[0].stage
('hoisting', 'residuals')

```

`FUNCTRANS_WITHOUT=fusion,read_back` does the same for a process. With all of them off, a program is slow but right.

If you suspect an optimisation, `python -m functrans.bisect script.py` runs a script with more and more of them, and
names the first that changes what the script prints. {measured}

To add an optimisation, add its record to `runtime/passes.py`, and test `config.runs(RECORD)` where it begins.
`tests/properties` then runs random programs without it. An *exact* one changes no bit of a result; the others change
its rounding.

Next: [how to add a primitive](primitives.md).

![The stages and their optimisations](passes.svg)
"""
MEASURED = """

The column *worth* shows what `python -m benchmarks passes` measured. The first number says in how many of {count}
programs the pass changes the kernels. For these programs, the time of a call without the pass is divided by the time
with all passes; the second number is the geometric mean of these ratios, and the one in brackets the largest. Below 1,
programs are faster without the pass; 5% are noise. `benchmarks/README.md` has the names of the programs, and compile
times. Measured on one core of an {machine}, {date}."""
STYLE = """
.card { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328 } .pass { fill: #e3eef9; stroke: #57606a }
.other { fill: #fdf1dc; stroke: #57606a } .arrow { stroke: #57606a; fill: none } .note { fill: #57606a }
@media (prefers-color-scheme: dark) {
.card { fill: #0d1117; stroke: #30363d } text { fill: #e6edf3 } .pass { fill: #10243b; stroke: #8b949e }
.other { fill: #33270f; stroke: #8b949e } .arrow { stroke: #8b949e } .note { fill: #9da7b1 }
}"""
WIDTH, LEFT, ROW, LETTER = 800, 110, 34, 8


def measured():
    """What the last recorded run of the benchmark says, and the worth of each pass in a few words."""
    entries = [e for e in map(json.loads, HISTORY.read_text().splitlines()) if e["command"] == "passes"]
    if not entries:
        return "What each is worth is\nmeasured by `python -m benchmarks passes`.", {}
    (_, *rows) = entries[-1]["tables"][0]
    machine = entries[-1]["machine"].split(", core")[0]
    text = MEASURED.format(count=max(int(row[1]) for row in rows), machine=machine, date=entries[-1]["date"])
    return text, {
        name: f"{changes}: {mean} ({worst})" if changes != "0" else "0"
        for name, changes, mean, _, worst, _ in rows
    }


def page():
    """The text of the page."""
    text, worth = measured()
    parts = [HEAD.format(measured=text)]
    for stage, doc in STAGES.items():
        parts.append(
            f"## {stage.capitalize()}\n\n{doc}\n\n| name | what it does | assumes | exact | worth | module |"
        )
        parts.append("| --- | --- | --- | --- | --- | --- |")
        for p in PASSES:
            if p.stage == stage:
                cells = [f"`{p.name}`", *[text.replace("``", "`") for text in (p.doc, p.assumes)]]
                cells += [
                    "yes" if p.exact else "",
                    worth.get(p.name, ""),
                    f"`{p.where.replace('.', '/')}.py`",
                ]
                parts.append(f"| {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)


def rows_of(stage):
    """The names of a stage in rows that fit, each with its place and width."""
    rows, x = [[]], LEFT
    for p in PASSES:
        if p.stage != stage:
            continue
        width = LETTER * len(p.name) + 14
        if x + width > WIDTH - 14:
            rows.append([])
            x = LEFT
        rows[-1].append((p, x, width))
        x += width + 16
    return rows


def picture():
    """The text of the picture."""
    parts, y = [], 48
    for stage in STAGES:
        parts.append(f'<text x="16" y="{y + 16}" font-weight="bold">{stage}</text>')
        for row in rows_of(stage):
            for p, x, width in row:
                kind = "pass" if p.exact else "other"
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="24" rx="4" class="{kind}"/>'
                )
                parts.append(
                    f'<text x="{x + width / 2:.1f}" y="{y + 16}" text-anchor="middle">{p.name}</text>'
                )
                if p is not row[-1][0]:
                    end = x + width
                    parts.append(f'<path d="M{end + 2:.1f} {y + 12} h10 m-4 -3 l4 3 l-4 3" class="arrow"/>')
            y += ROW
        y += 10
    label = "; ".join(f"{s}: {', '.join(p.name for p in PASSES if p.stage == s)}" for s in STAGES)
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="13" role="img" aria-label="{label}">',
        f"<style>{STYLE}\n</style>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{y - 1}" rx="6" class="card"/>',
        '<text x="16" y="26" class="note">A program meets the optimisations from top to bottom; those in the second '
        "colour change the rounding of results.</text>",
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


if __name__ == "__main__":
    PAGE.write_text(page())
    PICTURE.write_text(picture())
    print(f"wrote {PAGE} and {PICTURE}")
