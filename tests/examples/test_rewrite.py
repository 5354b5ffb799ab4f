"""The rules of the example apply once each, and the values are right."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "rewrite.py"


def test_both_rules(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    first, second = capsys.readouterr().out.splitlines()
    assert first == "logsumexp: 1 rewrite, from [       inf 1.31326169] to [1000.69314718    1.31326169]"
    assert second == "gate: 1 rewrite, products before 2, after 1"
