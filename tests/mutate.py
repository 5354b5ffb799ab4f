"""Mutation testing: which small changes of a source file does no test notice?

``python -m tests.mutate functrans/control/scan.py ...`` changes one operator, number, condition or statement of a file
at a time, in a copy of the package, and runs tests until one fails: first those that mirror the file, then those of its
folder, then those that ``--tests`` names. A mutant that passes them all has survived: either a test is missing, or the
change alters speed alone. The second kind is listed, with its reason, in ``tests/equivalent_mutants.txt``.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
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
    line : int
    before, after : str
        The changed expression or statement.
    source : str
        The whole changed file.
    """

    path: str
    function: str
    line: int
    before: str
    after: str
    source: str

    @property
    def key(self) -> str:
        """Its line in the list of equivalent mutants, without line numbers, so that other edits leave it valid."""
        return f"{self.path} | {self.function} | {self.before} -> {self.after}"


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
    """Collects ``(function, node, replacement)``, and leaves out what no test of behaviour should notice."""

    def __init__(self) -> None:
        self.found: list[tuple[str, ast.AST, ast.AST]] = []

    def visit(self, node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)):
            return
        if isinstance(node, ast.If) and _text(node.test).endswith("TYPE_CHECKING"):
            return
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}".lstrip(".")
        self.found.extend((function, node, new) for new in _changed(node))
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child, function)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self.new, node) if node is self.old else self.generic_visit(node)


def mutants(path: str) -> list[Mutant]:
    """All mutants of a file, in the order of its text."""
    tree = ast.parse((ROOT / path).read_text())
    search = _Search()
    search.visit(tree, "")
    found = []
    for function, old, new in search.found:
        places = {id(node): i for i, node in enumerate(ast.walk(tree))}
        changed = copy.deepcopy(tree)
        twin = list(ast.walk(changed))[places[id(old)]]
        source = ast.unparse(ast.fix_missing_locations(_Replace(twin, new).visit(changed)))
        found.append(Mutant(path, function, getattr(old, "lineno", 0), _text(old), _text(new), source))
    return found


def tests_of(path: str, more: list[str]) -> list[list[str]]:
    """The tests for a file, in stages: those that mirror it, those of its folder, `more`."""
    inner = Path(path).relative_to("functrans")
    folder = ROOT / "tests" / inner.parent
    stages = [[str(p) for p in sorted(folder.glob(f"test_*{inner.stem}*.py"))]]
    while not folder.is_dir() or not any(folder.glob("test_*.py")):
        folder = folder.parent
    stages.append([str(folder)] if folder != ROOT / "tests" else [])
    stages.append([str(ROOT / t) for t in more])
    return [stage for stage in stages if stage]


def _run(package: Path, stages: list[list[str]]) -> int:
    """In a child process: 0 if all tests pass on the package in a folder."""
    with open(os.devnull, "w") as null:
        for stream in (1, 2):
            os.dup2(null.fileno(), stream)
    os.setsid()
    os.environ.update(
        FUNCTRANS_TESTS="checked", PYTHONPATH=str(package), FUNCTRANS_CACHE_DIR=str(package / "cache")
    )
    sys.path.insert(0, str(package))
    import pytest

    for stage in stages:
        code = pytest.main(
            ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *stage]
        )
        if code not in (0, 5):
            return 1
    return 0


class _Job:
    """A child process that tests one mutant in its own copy of the package."""

    def __init__(self, package: Path, mutant: Mutant, stages: list[list[str]], patience: float) -> None:
        self.package, self.mutant = package, mutant
        self.file = package / mutant.path
        self.original = self.file.read_text()
        self.file.write_text(mutant.source)
        self.end = time.monotonic() + patience
        self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                status = _run(package, stages)
            finally:
                os._exit(status)

    def verdict(self) -> str | None:
        """'killed', 'survived' or 'too slow'; None while it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        late = not pid and time.monotonic() > self.end
        if late:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        elif not pid:
            return None
        self.file.write_text(self.original)
        return "too slow" if late else "killed" if status else "survived"


def judged(
    work: list[tuple[Mutant, list[list[str]]]], jobs: int, patience: float
) -> Iterator[tuple[Mutant, str]]:
    """Pairs of mutant and verdict, as they come."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        free = []
        for i in range(jobs):
            package = Path(folder) / str(i)
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / "functrans", package / "functrans", ignore=ignored)
            free.append(package)
        running: list[_Job] = []
        while work or running:
            while work and free:
                mutant, stages = work.pop()
                running.append(_Job(free.pop(), mutant, stages, patience))
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


def main() -> int:
    """Prints each survivor and the score of each file; 1 if a mutant survived that is not listed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", help="source files, from the root of the repository")
    parser.add_argument("--tests", nargs="*", default=[], help="tests that run last")
    parser.add_argument("--sample", type=int, help="so many mutants of each file, at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes side by side")
    parser.add_argument(
        "--patience", type=float, default=600.0, help="seconds; a slower mutant counts as killed"
    )
    options = parser.parse_args()
    known, work, scores = equivalent(), [], {}
    for path in options.files:
        found = [m for m in mutants(path) if m.key not in known]
        if options.sample is not None and options.sample < len(found):
            found = random.Random(options.seed).sample(found, options.sample)
        work.extend((m, tests_of(path, options.tests)) for m in found)
        scores[path] = [0, len(found)]
    for mutant, verdict in judged(work, options.jobs, options.patience):
        if verdict == "survived":
            print(f"survived, line {mutant.line}: {mutant.key}", flush=True)
        else:
            scores[mutant.path][0] += 1
    for path, (killed, total) in scores.items():
        print(f"{path}: {killed} of {total} killed")
    return int(any(killed < total for killed, total in scores.values()))


if __name__ == "__main__":
    import numba  # noqa: F401  children fork from a process that has loaded what does not change
    import pytest  # noqa: F401
    import scipy.special  # noqa: F401

    sys.exit(main())
