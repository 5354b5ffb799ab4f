"""Mutation testing: which small changes of a source file does no test notice?

``python -m tests.mutate functrans/control/scan.py --record tests/control tests/api`` runs tests, and records which of
them execute which line, and how long each takes. ``python -m tests.mutate functrans/control/scan.py`` then changes one
operator, number, condition or statement of a file at a time, in a copy of the package, and runs tests until one fails:
those that execute the changed line, the quickest first. A folder stands for the files in it.

A mutant that passes them all has survived: either a test is missing, or the change alters speed alone. The second kind
is listed, with its reason, in ``tests/equivalent_mutants.txt``, and does not count. Tests run in checked mode, without
LLVM's passes. ``FUNCTRANS_TESTS=shipped python -m tests.mutate functrans/lowering --only OUTPUT`` runs those of the
survivors as shipped.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import contextlib
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.line_record import QUICK, ROOT, SPREAD, LineRecord, record, run_pytest

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")

_COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes
    ----------
    path : str
        The file, from the root of the repository.
    function : str
        The qualified name of the function or class that contains the change.
    lines : tuple of int
        A test that executes the first of them executes the change; where none is known, the next one tells.
    before, after : str
        The changed expression or statement.
    place : int
        Its place among the mutants of the file.
    again : int
        How many mutants of the function before it read the same.
    """

    path: str
    function: str
    lines: tuple[int, ...]
    before: str
    after: str
    place: int
    again: int

    @property
    def key(self) -> str:
        """Its line in the list of equivalent mutants, without line numbers, so that other edits leave it valid."""
        which = f" | {self.again + 1}" if self.again else ""
        return f"{self.path} | {self.function} | {self.before} -> {self.after}{which}"

    @property
    def room(self) -> str:
        """The folder of the package that contains the file."""
        return Path(self.path).parts[1]

    def source(self) -> str:
        """The whole changed file."""
        tree, found = _search(self.path)
        old, new = found[self.place][-2:]
        return ast.unparse(ast.fix_missing_locations(_Replace(old, new).visit(tree)))


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """The mutated forms of a node."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            new = copy.deepcopy(node)
            new.ops = [_COMPARISONS[type(op)]()]
            yield new
        case ast.BoolOp(op=op):
            new = copy.deepcopy(node)
            new.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield new
            yield copy.deepcopy(node.values[0])
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield copy.deepcopy(operand)
        case ast.BinOp(op=op) if type(op) in _OPERATORS:
            new = copy.deepcopy(node)
            new.op = _OPERATORS[type(op)]()
            yield new
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.IfExp(body=body, orelse=orelse):
            yield copy.deepcopy(body)
            yield copy.deepcopy(orelse)
        case ast.If():
            new = copy.deepcopy(node)
            new.test = ast.Constant(False)
            yield new
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break():
            yield ast.Pass()


def _text(node: ast.AST) -> str:
    """A node on one line; of a compound statement the head."""
    return ast.unparse(node).splitlines()[0]


class _Search:
    """Collects ``(function, lines, node, replacement)``, and leaves out what no test of behaviour should notice."""

    def __init__(self) -> None:
        self.found: list[tuple[str, tuple[int, ...], ast.AST, ast.AST]] = []

    def visit(self, node: ast.AST, function: str, statement: int) -> None:
        if isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)):
            return
        if isinstance(node, ast.If) and _text(node.test).endswith("TYPE_CHECKING"):
            return
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}".lstrip(".")
        if isinstance(node, ast.stmt):
            statement = node.lineno
        for new in _changed(node):
            # A branch that is never taken shows in the tests that take it.
            first = node.body[0].lineno if isinstance(node, ast.If) else getattr(node, "lineno", statement)
            self.found.append((function, (first, statement), node, new))
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child, function, statement)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self.new, node) if node is self.old else self.generic_visit(node)


def _search(path: str) -> tuple[ast.AST, list[tuple[str, tuple[int, ...], ast.AST, ast.AST]]]:
    """A file's tree, and what can be changed in it."""
    tree = ast.parse((ROOT / path).read_text())
    search = _Search()
    search.visit(tree, "", 0)
    return tree, search.found


def mutants(path: str) -> list[Mutant]:
    """All mutants of a file, in the order of its text."""
    found, seen = [], Counter[tuple[str, str, str]]()
    for place, (function, lines, old, new) in enumerate(_search(path)[1]):
        change = function, _text(old), _text(new)
        found.append(Mutant(path, function, lines, *change[1:], place, seen[change]))
        seen[change] += 1
    return found


class _Only:
    """A plugin of pytest: the given tests in the given order, with a clock for each."""

    def __init__(self, tests: list[str], patience: int, note: Path) -> None:
        self.order = {test: i for i, test in enumerate(tests)}
        self.patience, self.note = patience, note

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        _watch(self.patience)
        self.note.write_text(item.nodeid)


def _watch(patience: int) -> None:
    """End this process after so many seconds of computing, or many more of waiting."""
    signal.setitimer(signal.ITIMER_PROF, patience)
    signal.alarm(10 * patience)


def _run(package: Path, stages: list[list[str]], patience: int) -> int:
    """In a child process: 0 if all tests pass on the package in a folder."""
    with open(os.devnull, "w") as null:
        for stream in (1, 2):
            os.dup2(null.fileno(), stream)
    os.environ.update(PYTHONPATH=str(package), FUNCTRANS_CACHE_DIR=str(package / "cache"))
    sys.path.insert(0, str(package))
    sys.dont_write_bytecode = True
    for stage in stages:
        _watch(patience)
        files = sorted({test.partition("::")[0] for test in stage})
        only = _Only(stage, patience, package / "running")
        if run_pytest(["-x", *(str(ROOT / f) for f in files)], only) not in (0, 5):
            return 1
    return 0


class _Job:
    """A child process that tests one mutant in its own copy of the package."""

    def __init__(self, package: Path, mutant: Mutant, tests: list[str], patience: int) -> None:
        self.package, self.mutant = package, mutant
        self.running = package / "running"
        self.running.write_text("the import of the tests")
        (package / mutant.path).write_text(mutant.source())
        self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                os.setsid()
                stages = [tests[:SPREAD], tests[SPREAD:QUICK], tests[QUICK:]]
                status = _run(package, [stage for stage in stages if stage], patience)
            finally:
                os._exit(status)

    def verdict(self) -> str | None:
        """'survived', or what killed it; None while it runs. A test that does not end has noticed the change."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # what the tests have started
        shutil.copy2(ROOT / self.mutant.path, self.package / self.mutant.path)
        shutil.rmtree(self.package / "cache", ignore_errors=True)
        return f"killed by {self.running.read_text()}" if status else "survived"


def judged(
    work: list[tuple[Mutant, list[str]]], jobs: int, patience: int, minutes: float
) -> Iterator[tuple[Mutant, str]]:
    """Pairs of mutant and verdict, as they come."""
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        free = [Path(folder) / str(i) for i in range(jobs)]
        for package in free:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / "functrans", package / "functrans", ignore=ignored)
            compileall.compile_dir(package / "functrans", quiet=1)
        running: list[_Job] = []
        while (work and time.monotonic() < end) or running:
            while work and free and time.monotonic() < end:
                mutant, tests = work.pop(0)
                if tests:
                    running.append(_Job(free.pop(), mutant, tests, patience))
                else:
                    yield mutant, "not executed"
            time.sleep(0.05)
            for job in list(running):
                verdict = job.verdict()
                if verdict is not None:
                    running.remove(job)
                    free.append(job.package)
                    yield job.mutant, verdict


def equivalent() -> dict[str, str]:
    """The mutants that change speed alone, each with its reason."""
    lines = [s for s in EQUIVALENT.read_text().splitlines() if s and not s.startswith("#")]
    return dict(line.rsplit("  # ", 1) for line in lines)


def chosen(paths: list[str], sample: int | None, seed: int) -> list[Mutant]:
    """The mutants of some files in random order; of each room at most `sample`."""
    found = [m for path in paths for m in mutants(path)]
    rooms = []
    for room in sorted({m.room for m in found}):
        inside = [m for m in found if m.room == room]
        generator = random.Random(f"{room} {seed}")
        rooms.append(generator.sample(inside, min(len(inside), sample or len(inside))))
        print(f"{room}: {len(rooms[-1])} of {len(inside)} mutants", flush=True)
    # In turns, so that a run that ends early has the same share of each room's sample.
    turns = [(i / len(room), m) for room in rooms for i, m in enumerate(room)]
    return [m for _, m in sorted(turns, key=lambda turn: turn[0])]


def main() -> int:
    """Prints what becomes of each mutant and the score of each room; 1 if one survived that is not listed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", help="source files or folders, from the root of the repository")
    parser.add_argument("--record", nargs="+", metavar="TESTS", help="note what these tests execute, and end")
    parser.add_argument(
        "--cases", type=int, default=1000, help="so many cases of a parametrized test to --record"
    )
    default = Path(tempfile.gettempdir()) / f"functrans-mutate-{os.getuid()}" / "tests.json"
    parser.add_argument("--file", type=Path, default=default, help="the record")
    parser.add_argument("--sample", type=int, help="so many mutants of each room, at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument(
        "--only", type=Path, help="an earlier output: those of its mutants that were not killed"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes side by side")
    parser.add_argument(
        "--budget", type=float, default=30.0, help="seconds of tests for a mutant, as recorded"
    )
    parser.add_argument("--patience", type=int, default=60, help="seconds of computing for one test")
    parser.add_argument("--minutes", type=float, default=1e9, help="no mutant begins later")
    options = parser.parse_args()
    files = [f for p in options.paths for f in (sorted((ROOT / p).rglob("*.py")) or [ROOT / p])]
    paths = [str(f.relative_to(ROOT)) for f in files]
    options.file.parent.mkdir(exist_ok=True)
    known = equivalent()
    work = [m for m in chosen(paths, options.sample, options.seed) if m.key not in known]
    if options.record:
        lines: dict[str, set[int]] = {}
        for mutant in work:
            lines.setdefault(mutant.path, set()).update(mutant.lines)
        record(lines, options.record, options.cases, options.file)
        return 0
    recorded = LineRecord(options.file)
    if options.only:
        lines = options.only.read_text().splitlines()
        wanted = {s.partition(": ")[2] for s in lines if not s.startswith("killed")}
        work = [m for m in work if m.key in wanted]
    pairs = [(m, recorded.tests(m.path, m.lines, options.budget)) for m in work]
    scores: dict[str, Counter[str]] = {}
    for mutant, verdict in judged(pairs, options.jobs, options.patience, options.minutes):
        scores.setdefault(mutant.room, Counter())[verdict.partition(" by")[0]] += 1
        print(f"{verdict}, line {mutant.lines[0]}: {mutant.key}", flush=True)
    for room, score in sorted(scores.items()):
        print(f"{room}: {score['killed']} of {score.total()} killed, {score['not executed']} not executed")
    return int(any(score["killed"] < score.total() for score in scores.values()))


if __name__ == "__main__":
    import numba  # noqa: F401  children fork from a process that has loaded what does not change
    import scipy.special  # noqa: F401

    sys.exit(main())
