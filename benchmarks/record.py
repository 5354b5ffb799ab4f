"""Run benchmarks, and append their tables to ``benchmarks/history.jsonl``, from which charts are drawn.

A line of the file is one run of one command: ``date``, ``commit`` (with a plus sign if the tree differs from it),
``machine``, ``command``, ``tables``: each a list of rows, of which the first is the header.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

HISTORY = Path(__file__).with_name("history.jsonl")


def record(commands: Sequence[str], more: Sequence[str] = ()) -> int:
    """Run commands of the benchmarks with these options, and append what they print; the first failure's exit code."""
    for command in commands:
        text, code = _run([sys.executable, "-m", "benchmarks", command, *more])
        if code:
            print(f"benchmarks {command} failed: not recorded", file=sys.stderr)
            return code
        entry = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "commit": _commit(),
            "machine": text.splitlines()[0],
            "command": command,
            "tables": list(tables(text)),
        }
        with HISTORY.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        print(f"recorded {len(entry['tables'])} tables of {command} in {HISTORY.name}")
    return 0


def tables(text: str) -> Iterator[list[list[str]]]:
    """The Markdown tables of a text, without their rules."""
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not all(set(cell) <= set("-:") and cell for cell in cells):
                rows.append(cells)
        elif rows:
            yield rows
            rows = []


def _run(command: Sequence[str]) -> tuple[str, int]:
    """What a command prints, shown while it runs, and its exit code."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return "".join(lines), process.returncode


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=HISTORY.parent, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain"))
