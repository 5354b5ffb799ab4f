"""The table in docs/autocast.md: every function has the result dtypes that it says."""

import importlib.util
from pathlib import Path

import pytest

from functrans.arrays.autocast_rules import ALIASES, RULES

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("generate_autocast", DOCS / "scripts" / "generate_autocast.py")
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)

ENTRIES = generate.table.load()
POLICIES = ("low", "wide", "promote", "none", "calls")


def rows():
    """The rows of the table: namespace, policy, results of float64 and of float32, and names of functions."""
    page = (DOCS / "autocast.md").read_text().partition(generate.BEGIN)[2].partition(generate.END)[0]
    cells = [[c.strip() for c in line.strip("|\n").split("|")] for line in page.splitlines() if "`" in line]
    return [(*row[:4], row[4].replace("`", "").split()) for row in cells]


CASES = {
    f"{namespace}.{name}": (policy, wide, narrow)
    for namespace, policy, wide, narrow, names in rows()
    for name in names
}


@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 5))])
def test_results_are_as_the_table_says(part):
    """And as the policies say: low gives float32, wide float64, whatever goes in; the others change nothing."""
    for case in list(CASES)[part::5]:
        policy, *said = CASES[case]
        entry = ENTRIES[case]
        assert list(generate.under_autocast(entry)) == said, case
        assert policy in POLICIES, case
        if policy == "calls" or case in generate.OF_ONE_DTYPE:
            continue
        without = generate.under_autocast(entry, on=False)
        assert said[1] in (said[0], without[1], ""), case
        if policy in ("promote", "none"):
            assert tuple(said) == without, case
        elif policy == "wide":
            assert said[0] == said[1] == without[0], case
        else:
            assert said[0] == said[1] == without[1] != without[0], case


def test_the_table_has_every_function():
    with_floats = {
        name
        for name, entry in ENTRIES.items()
        if not name.startswith("random.") and generate.operands(entry, generate.F64) is not None
    }
    numbers = {"iscomplexobj", "isrealobj", "isscalar", "ndim", "result_type", "shape", "size"}
    assert with_floats - set(CASES) == {f"numpy.{name}" for name in numbers}, (
        "run python docs/scripts/generate_autocast.py"
    )
    names = {getattr(entry.function, "__name__", entry.name) for entry in ENTRIES.values()}
    assert set(RULES) <= names | {ALIASES.get(name, name) for name in names}
