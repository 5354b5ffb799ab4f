"""Which tests execute which lines of the package, and how long each takes: what `tests.mutate` chooses tests by."""

from __future__ import annotations

import ast
import builtins
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QUICK = 15  # tests that run before any other, wherever they stand
FEW = 2  # cases of the same test among these
SPREAD = 6  # of the exact tests
#: Tests that compare all that is made of a program: what executes a changed line fails, if it changes anything.
EXACT = ("tests/lowering/test_kernel_work.py::test_a_program", "tests/golden")


class _AllExact:
    """A plugin of pytest: of the exact tests all cases are quick."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if item.nodeid.startswith(EXACT):
                item.own_markers[:] = [m for m in item.own_markers if m.name != "slow"]


def run_pytest(arguments: list[str], plugin: object) -> int:
    """Run the quick tests among some, in checked mode unless the environment has another."""
    os.environ.setdefault("FUNCTRANS_TESTS", "checked")
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    return pytest.main([*options, *arguments], plugins=[plugin, _AllExact()])


def _cpu_time() -> float:
    """The processor's seconds for this process and those that it waited for: the same on a busy machine."""
    return sum(os.times()[:4])


class _Probed(ast.NodeTransformer):
    """Puts a call before each statement that begins on one of some lines, which says that it runs."""

    def __init__(self, path: str, lines: set[int]) -> None:
        self.path, self.lines = path, lines

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                value[:] = [new for s in value for new in (*self._probe(s), s)]
        return node

    def _probe(self, statement: ast.stmt) -> list[ast.stmt]:
        place = self.path, statement.lineno
        return ast.parse(f"__probe__({place})").body if statement.lineno in self.lines else []


class _Recorder:
    """A plugin of pytest that notes which statements each test executes, and its seconds."""

    def __init__(self, seen: set[tuple[str, int]], cases: int) -> None:
        self.seen, self.cases = seen, cases
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.tests: dict[str, dict[int, list[str]]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._take("")  # what runs when the package is imported
        of_test: dict[str, list[pytest.Item]] = {}
        for item in items:
            of_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
        items[:] = [
            item
            for test, some in of_test.items()
            for item in (some if test.startswith(EXACT) else some[:: -(-len(some) // self.cases)])
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start = _cpu_time()
        result = yield
        self.seconds[item.nodeid] = _cpu_time() - start
        self._take(item.nodeid)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def _take(self, test: str) -> None:
        for path, line in self.seen:
            self.tests.setdefault(path, {}).setdefault(line, []).append(test)
        self.seen.clear()


def record(lines: dict[str, set[int]], tests: list[str], cases: int, file: Path) -> None:
    """Run tests, of a parametrized one some cases, and write down which of them execute the statements on some lines.

    They run on a copy of the package; processes that they start use the package itself.
    """
    seen: set[tuple[str, int]] = set()
    builtins.__probe__ = seen.add  # type: ignore[attr-defined]
    recorder = _Recorder(seen, cases)
    with tempfile.TemporaryDirectory(prefix="recorded-") as folder:
        shutil.copytree(
            ROOT / "functrans", Path(folder) / "functrans", ignore=shutil.ignore_patterns("__pycache__")
        )
        for path, wanted in lines.items():
            tree = _Probed(path, wanted).visit(ast.parse((ROOT / path).read_text()))
            (Path(folder) / path).write_text(ast.unparse(tree))
        sys.path.insert(0, folder)
        run_pytest(tests, recorder)
    passed = {test: s for test, s in recorder.seconds.items() if test not in recorder.failed}
    asked = {path: sorted(wanted) for path, wanted in lines.items()}
    file.write_text(json.dumps({"seconds": passed, "asked": asked, "tests": recorder.tests}))


class LineRecord:
    """What `record` wrote."""

    def __init__(self, file: Path) -> None:
        read = json.loads(file.read_text())
        self.seconds: dict[str, float] = read["seconds"]
        self.asked: dict[str, list[int]] = read["asked"]
        self.by_line = {p: {int(n): t for n, t in found.items()} for p, found in read["tests"].items()}
        self.written = file.stat().st_mtime

    def tests(self, path: str, lines: Iterable[int], budget: float) -> list[str]:
        """The tests that execute the first of some lines that any does: the quickest, then the nearest to the file.

        Some tests that compare exactly come first, short and long ones.
        Cases of one test take turns with other tests. A line that only runs when the package is imported concerns all
        tests of the file. Altogether they take `budget` seconds.
        """
        if (ROOT / path).stat().st_mtime > self.written:
            sys.exit(f"{path} has changed since the tests were recorded: --record them again")
        if not set(lines) & set(self.asked.get(path, ())):
            sys.exit(
                f"line {min(lines)} of {path} was not recorded: --record takes the same --sample and --seed"
            )
        by_line = self.by_line.get(path, {})
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

        exact = [t for t in chosen if t.startswith(EXACT)]
        exact = exact[:: -(-len(exact) // SPREAD) or 1]
        chosen.sort(key=lambda test: (test not in exact, turn[test] >= FEW))
        chosen[QUICK:] = sorted(chosen[QUICK:], key=far)
        spent, some = 0.0, []
        for test in chosen:
            spent += self.seconds[test]
            if spent > budget and some:
                break
            some.append(test)
        return some
