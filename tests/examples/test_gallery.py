"""All programs are in the gallery, once, and made alike: short, a title, a line that starts them, a figure."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: `test_my_rule.py` is for pytest.
PROGRAMS = sorted(p for p in (ROOT / "examples").glob("*.py") if not p.stem.startswith("test_"))
SECTIONS = re.compile(r"^## (.*?)\n+```\{gallery\}\n(.*?)```", re.MULTILINE | re.DOTALL)


def test_each_program_is_on_the_page_once():
    listed = [
        name
        for _, names in SECTIONS.findall((ROOT / "docs" / "gallery.md").read_text())
        for name in names.split()
    ]
    assert Counter(listed) == Counter(path.stem for path in PROGRAMS)
    assert len(listed) >= 24
    shown = SECTIONS.findall((ROOT / "docs" / "index.md").read_text())
    assert all(set(names.split()) <= set(listed) for _, names in shown)
    assert shown


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_form(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, rule, empty, summary, *_ = (doc := ast.get_docstring(tree, clean=False)).splitlines()
    assert set(rule) == {"="}
    assert len(rule) == len(title)
    assert empty == ""
    assert summary.endswith("."), "the first sentence is the text of a card"
    assert f"python examples/{path.name}" in doc
    assert text.count("\n# %%\n") >= 2, "prose between cells"
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {"main", "draw"} <= names
    # Of code: without the prose of the docstring and of cells, and without empty lines.
    code = text.replace(doc, "")
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 120


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_matplotlib_is_for_drawing_alone(path):
    """Programs print their numbers where it is not installed."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    draw = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "draw")
    inside = {node for node in ast.walk(draw) if isinstance(node, ast.Import | ast.ImportFrom)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in inside:
            assert "matplotlib" not in ast.unparse(node)
