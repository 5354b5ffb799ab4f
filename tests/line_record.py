"""Which tests execute which lines of the package, and how long each takes: what `tests.mutate` chooses tests by."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).resolve().parent.parent
QUICK = 15  # tests that run before any other, wherever they stand
FEW = 2  # cases of the same test among these


def run_pytest(arguments: list[str], plugin: object) -> int:
    """Run the quick tests among some, in checked mode unless the environment has another."""
    os.environ.setdefault("FUNCTRANS_TESTS", "checked")
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    return pytest.main([*options, *arguments], plugins=[plugin])


def _cpu_time() -> float:
    """The processor's seconds for this process and those that it waited for: the same on a busy machine."""
    return sum(os.times()[:4])


class _Recorder:
    """A plugin of pytest that notes which lines each test executes, and its seconds."""

    def __init__(self, measured: coverage.Coverage, cases: int) -> None:
        self.measured, self.cases = measured, cases
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        of_test: dict[str, list[pytest.Item]] = {}
        for item in items:
            of_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
        items[:] = [item for some in of_test.values() for item in some[:: -(-len(some) // self.cases)]]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.measured.switch_context(item.nodeid)
        start = _cpu_time()
        result = yield
        self.seconds[item.nodeid] = _cpu_time() - start
        self.measured.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def record(paths: list[str], tests: list[str], cases: int, file: Path) -> None:
    """Run tests, of a parametrized one some cases, and write down which of them execute which lines."""
    file.unlink(missing_ok=True)
    measured = coverage.Coverage(data_file=str(file), include=[str(ROOT / p) for p in paths])
    recorder = _Recorder(measured, cases)
    measured.start()
    run_pytest(tests, recorder)
    measured.stop()
    measured.save()
    passed = {test: s for test, s in recorder.seconds.items() if test not in recorder.failed}
    file.with_suffix(".json").write_text(json.dumps(passed))


class LineRecord:
    """What `record` wrote."""

    def __init__(self, file: Path) -> None:
        self.data = coverage.CoverageData(str(file))
        self.data.read()
        self.seconds = json.loads(file.with_suffix(".json").read_text())
        self.written = file.stat().st_mtime
        self.lines: dict[str, dict[int, list[str]]] = {}

    def tests(self, path: str, lines: Iterable[int], budget: float) -> list[str]:
        """The tests that execute the first of some lines that any does: the quickest, then the nearest to the file.

        Cases of one test take turns with other tests. A line that only runs when the package is imported concerns all
        tests of the file. Altogether they take `budget` seconds.
        """
        if path not in self.lines:
            if (ROOT / path).stat().st_mtime > self.written:
                sys.exit(f"{path} has changed since the tests were recorded: --record them again")
            self.lines[path] = self.data.contexts_by_lineno(str(ROOT / path))
        by_line = self.lines[path]
        found = next((by_line[n] for n in lines if by_line.get(n)), [])
        if found == [""]:
            found = list({test for tests in by_line.values() for test in tests} - {""}) or list(self.seconds)
        chosen = sorted([t for t in found if t in self.seconds])
        chosen.sort(key=self.seconds.__getitem__)
        inner = Path(path).relative_to("functrans")
        cases, turn = Counter[str](), {}
        for test in chosen:
            function = test.partition("[")[0]
            turn[test] = cases[function]
            cases[function] += 1

        def far(test: str) -> tuple[int, int]:
            file = Path(test.partition("::")[0]).relative_to("tests")
            mirrors = file.parent == inner.parent and inner.stem in file.stem
            return 2 - mirrors - (file.parts[0] == inner.parts[0]), turn[test]

        chosen.sort(key=lambda test: turn[test] >= FEW)
        chosen[QUICK:] = sorted(chosen[QUICK:], key=far)
        spent, some = 0.0, []
        for test in chosen:
            spent += self.seconds[test]
            if spent > budget and some:
                break
            some.append(test)
        return some
