"""Write the figures of docs/testing.md, from the counts that tests/testing/mutants.py and alarms.py recorded."""

import json
from pathlib import Path

PAGE = Path(__file__).parents[1] / "testing.md"
RECORD = PAGE.parents[1] / "tests" / "testing" / "figures.json"
BEGIN, END = "<!-- figures: written by docs/scripts/generate_testing.py -->\n", "<!-- end of figures -->"
MUTANTS = """
`tests/testing/mutants.py` makes wrong rules from right ones: twelve kinds of faults in {operations} operations of every
family, as `Function`, `custom_vjp`, `custom_jvp` and `numba_call(vjp=)`, {all} in all. {sample}`check_custom_rule` and
`check`, with their defaults, caught {caught} of {tried} at up to 100 drawn points:

| what is wrong | caught | at the latest at point |
|---|--:|--:|
{rows}
"""
ALARMS = """
`tests/testing/alarms.py` looks for false alarms: `check`, with its defaults, on right rules, those of functrans,
of up to 200 functions at drawn points, with BLAS for several processors:

| `OPENBLAS_CORETYPE` | functions | points | at kinks, left out | false alarms |
|---|--:|--:|--:|--:|
{rows}
"""


def figures():
    """The text between the two marks."""
    record = json.loads(RECORD.read_text())
    text = ""
    if found := record.get("mutants"):
        kinds = found["kinds"]
        tried, caught = sum(k["tried"] for k in kinds.values()), sum(k["caught"] for k in kinds.values())
        rows = [f"| {name} | {k['caught']} of {k['tried']} | {k['latest']} |" for name, k in kinds.items()]
        sample = "" if tried == found["all"] else "Of a sample, each {}-th, ".format(found["each"])
        text += MUTANTS.format(
            **{**found, "sample": sample}, tried=tried, caught=caught, rows="\n".join(rows)
        )
    if found := record.get("alarms"):
        rows = [
            f"| {name} | {n['functions']} | {n['examples']} | {n['kinks']} | {n['alarms']} |"
            for name, n in found.items()
        ]
        text += ALARMS.format(rows="\n".join(rows))
    return text + "\n"


def page():
    """The page with these figures."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return head + BEGIN + figures() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
