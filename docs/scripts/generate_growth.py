"""Draw how costs grow with the size of a program, from the last recorded run: ``python -m benchmarks record sizes``."""

import math

from generate_chart import DOCS, last_run, text

PICTURE = DOCS / "growth.svg"
TITLE = "Cost by size: tracing, lowering, compiling, a call (ms) and memory (MB)"
COLUMNS = 3
WIDTH, HEIGHT, GAP, TOP, LEFT = 250, 170, 34, 92, 52
# Colours that differ in lightness too, on white and on black.
LINES = ("trace", "lowering", "compile", "call", "memory")
STYLE = """
.card { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328 } .note { fill: #57606a } .grid { stroke: #d0d7de }
path, .slope { fill: none; stroke-width: 2 } .slope { stroke: #8b949e; stroke-width: 1; stroke-dasharray: 3 3 }
.trace { stroke: #2f81c5 } .lowering { stroke: #1a7f37 } .compile { stroke: #c76b29 } .call { stroke: #cf222e }
.memory { stroke: #8250df }
@media (prefers-color-scheme: dark) {
.card { fill: #0d1117; stroke: #30363d } text { fill: #e6edf3 } .note { fill: #9da7b1 } .grid { stroke: #30363d }
.trace { stroke: #4493d8 } .lowering { stroke: #3fb950 } .compile { stroke: #d9813f } .call { stroke: #ff7b72 }
.memory { stroke: #bc8cff }
}"""


def families(run):
    """The title, the unit, the sizes and the rows by stage of each table of a run."""
    for header, *rows in run["tables"]:
        name, unit = header[0].split("; ")
        sizes = [int(cell.replace(",", "")) for cell in header[1:-1]]
        yield name, unit, sizes, {row[0].split(",")[0]: [float(x) for x in row[1:-1]] for row in rows}


def decades(values):
    """The powers of ten around values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return range(low, max(high, low + 1) + 1)


def label(exponent):
    """A power of ten in few characters."""
    if exponent < 3:
        return f"{10.0**exponent:g}"
    return f"10{str(exponent).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def panel(left, top, name, unit, sizes, rows):
    """The picture of one family of programs."""
    across = decades(sizes)
    along = decades([x for values in rows.values() for x in values if x > 0])

    def place(size, value):
        x = left + WIDTH * (math.log10(size) - across[0]) / (len(across) - 1)
        return x, top + HEIGHT * (1 - (math.log10(value) - along[0]) / (len(along) - 1))

    parts = [f'<g font-weight="bold">{text(left, top - 10, name)}</g>']
    for n in across:
        x, _ = place(10.0**n, 10.0 ** along[0])
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + HEIGHT}" class="grid"/>')
        parts.append(text(x, top + HEIGHT + 15, label(n), "middle", "note"))
    for n in along:
        _, y = place(10.0 ** across[0], 10.0**n)
        parts.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(text(left - 5, y + 4, label(n), "end", "note"))
    parts.append(text(left + WIDTH, top + HEIGHT + 28, unit, "end", "note"))
    parts.append(f'<path d="{_slope(left, top, across, along)}" class="slope"/>')
    for stage in LINES:
        points = [place(size, x) for size, x in zip(sizes, rows[stage], strict=True) if x > 0]
        corners = " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<path d="M{corners}" class="{stage}"/>')
    return parts


def _slope(left, top, across, along):
    """The diagonal of the panel along which costs grow as the size does, from the lower left corner."""
    decade_x, decade_y = WIDTH / (len(across) - 1), HEIGHT / (len(along) - 1)
    reach = min(len(across), len(along)) - 1
    end = left + reach * decade_x, top + HEIGHT - reach * decade_y
    return f"M{left},{top + HEIGHT} L{end[0]:.1f},{end[1]:.1f}"


def picture(run):
    """The text of the picture of a run."""
    found = list(families(run))
    width = LEFT + COLUMNS * (WIDTH + LEFT)
    step = HEIGHT + GAP + 40
    bottom = TOP + step * math.ceil(len(found) / COLUMNS)
    names = "; ".join(name for name, *_ in found)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom}" width="{width}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12" role="img" '
        f'aria-label="{TITLE}, for {names}">',
        f"<style>{STYLE}\n</style>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{bottom - 1}" rx="6" class="card"/>',
        f'<g font-size="15" font-weight="bold">{text(16, 26, TITLE)}</g>',
        text(
            16,
            44,
            f"{run['machine'].split(';')[0]}; {run['date']}; dashed: costs grow as the size",
            kind="note",
        ),
    ]
    for i, stage in enumerate(LINES):
        x = 16 + 110 * i
        parts.append(f'<path d="M{x},60 L{x + 24},60" class="{stage}"/>')
        parts.append(text(x + 30, 64, stage))
    for i, (name, unit, sizes, rows) in enumerate(found):
        left, top = LEFT + (i % COLUMNS) * (WIDTH + LEFT), TOP + GAP - 20 + step * (i // COLUMNS)
        parts += panel(left, top, name, unit, sizes, rows)
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(last_run("sizes")), encoding="utf-8")
    print(f"wrote {PICTURE}")
