"""Draw docs/rooms.svg, the layers of the package, from the list in tests/test_layers.py and the rooms' docstrings."""

import ast
import html
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "rooms.svg"
#: What a room asks of a higher one: the slot, what it is for, who fills it, whose it is.
SLOTS = [
    ("slots.compiler", "how a call becomes a kernel", "lowering", "control"),
    ("core/kernel.py", "what kernel rules are written with", "lowering", "primitives"),
    ("operators", "what + and np.sin do to a tracer", "primitives", "core"),
]
STYLE = """
.card { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328 } .room { fill: #e3eef9; stroke: #57606a }
.arrow { stroke: #57606a; fill: none } .slot { stroke: #a33; fill: none; stroke-dasharray: 5 4 } .of { fill: #a33 }
@media (prefers-color-scheme: dark) {
.card { fill: #0d1117; stroke: #30363d } text { fill: #e6edf3 } .room { fill: #10243b; stroke: #8b949e }
.arrow { stroke: #8b949e } .slot { stroke: #e88 } .of { fill: #e88 }
}"""
LEFT, RIGHT, WIDTH, LINE, GAP = 40, 760, 1020, 17, 14
#: Of 12 units, the letters are that wide on average.
LETTER = 5.8


def floors():
    """The rooms of each floor, from the top down."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    rooms = next(n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "ROOMS")
    return [rooms for _, rooms in sorted(ast.literal_eval(rooms).items(), reverse=True)]


def about(room):
    """The first paragraph of a room's docstring."""
    folder = ROOT / "functrans" / room
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return " ".join(text.split("\n\n")[0].split()).rstrip(".").replace("`", "")


def described(rooms):
    """What the boxes of a floor say: a name with what it is; of a floor with many rooms, the names of the others."""
    if len(rooms) > 2:
        return [[("api", about("api")), ("", " · ".join(room for room in rooms if room != "api"))]]
    return [[(room, "public names, nothing else" if room == "__init__" else about(room))] for room in rooms]


def box(lines, x, y, width, height):
    """A box with names, and what they are."""
    parts = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="room"/>']
    down = y + 22
    for name, rows in lines:
        if name:
            parts.append(f'<text x="{x + 14}" y="{down}" font-size="15" font-weight="bold">{name}</text>')
        for row in rows:
            parts.append(f'<text x="{x + 110}" y="{down}">{html.escape(row, quote=False)}</text>')
            down += LINE
    return parts


def slot(number, name, purpose, filler, owner):
    """A dashed line from the room that fills a slot to the room that has it, with the name of the slot."""
    x, start, end = RIGHT + 26 + 14 * number, filler, owner
    middle = (start + end) / 2
    return [
        f'<path d="M {RIGHT} {start} H {x} V {end} H {RIGHT + 8}" class="slot" marker-end="url(#red)"/>',
        f'<text x="{x + 6}" y="{middle - 4:g}" font-weight="bold" class="of">{name}</text>',
        f'<text x="{x + 6}" y="{middle + 12:g}" class="of">{purpose}</text>',
    ]


def picture():
    """The text of the picture."""
    parts, y, middle = [], 20, {}
    for rooms in floors():
        boxes = described(rooms)
        width = (RIGHT - LEFT - GAP * (len(boxes) - 1)) // len(boxes)
        letters = int((width - 120) / LETTER)
        texts = [[(name, textwrap.wrap(text, letters)) for name, text in lines] for lines in boxes]
        height = 18 + LINE * max(sum(len(rows) for _, rows in lines) for lines in texts)
        for number, lines in enumerate(texts):
            parts += box(lines, LEFT + number * (width + GAP), y, width, height)
        middle.update(dict.fromkeys(rooms, y + height // 2))
        y += height + GAP
    for number, (name, purpose, filler, owner) in enumerate(SLOTS):
        parts += slot(number % 2, name, purpose, middle[filler] + 4 * number, middle[owner] - 4)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 30}" width="{WIDTH}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12" role="img" '
        'aria-label="The layers of functrans, from the public names at the top to the errors at the bottom">'
    )
    marker = '<marker id="{}" markerWidth="10" markerHeight="8" refX="8" refY="4" orient="auto">{}</marker>'
    return "\n".join(
        [
            head,
            f"<style>{STYLE}\n</style>",
            "<defs>",
            marker.format("head", '<path d="M0 0 L10 4 L0 8" class="arrow"/>'),
            marker.format("red", '<path d="M0 0 L10 4 L0 8 z" class="of"/>'),
            "</defs>",
            f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{y + 29}" rx="6" class="card"/>',
            *parts,
            f'<path d="M20 20 V{y - GAP}" stroke-width="2" class="arrow" marker-end="url(#head)"/>',
            f'<text transform="translate(14 {y // 2}) rotate(-90)" text-anchor="middle">imports</text>',
            f'<text x="{LEFT}" y="{y + 12}">Down: what a layer may import. Dashed: slots of a lower layer that a '
            "higher one fills when it is imported.</text>",
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
