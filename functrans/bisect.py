"""Find the optimisation that changes a script's result: ``python -m functrans.bisect script.py``.

The script runs with none of the optimisations of `config.passes`, then with more and more of them, each time in a new
process. Its result is what it prints, and its exit code. Numbers may differ by rounding, and by no more.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence

from .runtime.passes import PASSES, Pass
from .runtime.records import dataclass

__all__ = ("main",)

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")


@dataclass(frozen=True)
class _Result:
    """What a run of the script left."""

    code: int
    output: str
    errors: str

    def equals(self, other: _Result, rtol: float) -> bool:
        """Whether two runs agree: the same exit code and text, and the same numbers but for rounding."""
        if self.code != other.code or _NUMBER.sub("#", self.output) != _NUMBER.sub("#", other.output):
            return False
        pairs = zip(_NUMBER.findall(self.output), _NUMBER.findall(other.output))
        return all(_close(float(a), float(b), rtol) for a, b in pairs)


def _close(a: float, b: float, rtol: float) -> bool:
    return math.isclose(a, b, rel_tol=rtol, abs_tol=rtol) or (math.isnan(a) and math.isnan(b))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the search.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command-line arguments.

    Returns
    -------
    int
        The exit code: 0 if a pass was found, 1 if no pass changes the result, 2 if the script cannot be judged.
    """
    parser = argparse.ArgumentParser(
        prog="python -m functrans.bisect",
        description="Find the optimisation that changes what a script prints, or its exit code.",
    )
    parser.add_argument("--rtol", type=float, default=1e-6, help="how far numbers may differ (%(default)s)")
    parser.add_argument("--timeout", type=float, help="the most seconds of a run")
    parser.add_argument("script", help="a Python file that always does the same")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args(arguments)

    def run(without: Iterable[Pass]) -> _Result:
        return _run([options.script, *options.arguments], without, options.timeout)

    return _search(run, options.rtol)


def _search(run: Callable[[Iterable[Pass]], _Result], rtol: float) -> int:
    right = run(PASSES)
    if not right.equals(run(PASSES), rtol):
        print(
            "two runs without optimisations differ: the script does not always do the same", file=sys.stderr
        )
        return 2
    wrong = run(())
    if wrong.equals(right, rtol):
        print("no optimisation changes the result")
        if wrong.code:
            print(f"The script fails with and without them (exit code {wrong.code}):\n{_end(wrong)}")
        return 1
    # With the first `good` passes the result is right, with the first `bad` ones it is not.
    good, bad = 0, len(PASSES)
    while bad - good > 1:
        middle = (good + bad) // 2
        is_right = run(PASSES[middle:]).equals(right, rtol)
        print(f"with {middle} of {len(PASSES)} optimisations: {'right' if is_right else 'wrong'}", flush=True)
        good, bad = (middle, bad) if is_right else (good, middle)
    found = PASSES[good]
    print(f"\n{found.name} ({found.where}): {found.doc}")
    if run([found]).equals(right, rtol):
        print(f"Without it alone the result is right: FUNCTRANS_WITHOUT={found.name}")
        before = [p for p in PASSES[:good] if p.stage == found.stage and run([p]).equals(right, rtol)]
        for p in before:  # it may have left what `found` reads
            print(f"So it is without {p.name} alone ({p.where}), which runs before it: look there first.")
    else:
        names = ", ".join(p.name for p in PASSES[:good])
        print(f"It changes the result after {names or 'none'}; without it alone another pass does.")
    for title, result in (("without optimisations", right), ("with all", wrong)):
        print(f"\n{title} (exit code {result.code}):\n{_end(result)}")
    return 0


def _run(command: list[str], without: Iterable[Pass], timeout: float | None) -> _Result:
    names = ",".join(p.name for p in without)
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "FUNCTRANS_WITHOUT": names},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return _Result(done.returncode, done.stdout, done.stderr)


def _end(result: _Result, most: int = 20) -> str:
    """The last lines of what a run printed."""
    lines = (result.output + result.errors).splitlines()
    return "\n".join(f"  {line}" for line in lines[-most:])


if __name__ == "__main__":
    sys.exit(main())
