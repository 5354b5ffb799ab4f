"""Random programs outside of pytest, counted: ``python -m tests.properties.run --comparisons 1000000``.

Each program is drawn by a seed of its own, compiled under a random setting, and compared with the oracles of
`generator.checks` at many points. One comparison is one array. A failure prints the line that repeats it; with
``--reduce`` that line looks for the smallest program that fails, too.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from typing import NamedTuple

#: Seconds of computing for all checks of a program: one that takes longer is reported.
PATIENCE = 300
POINTS = 40
#: Programs between two lines of the log.
BATCH = 20


class Result(NamedTuple):
    """Of one program: the arrays compared, and a text for each failure."""

    seed: int
    arrays: int
    failures: list[str]


def check(
    seed: int, only: str = "", reduce: bool = False, points: int = POINTS, checks: int | None = None
) -> Result:
    """Run the checks of one program: all, one by its name, or so many by the number of the program."""
    import functrans as ft

    from .generator.checks import CHECKS, Case
    from .generator.choices import Seeded
    from .generator.comparing import Counter
    from .generator.drawing import EVERYTHING

    before, failures = Counter.arrays, []
    choose = Seeded(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = Case(choose, weights=EVERYTHING, most=choose.integer(2, 9))
        names = [only] if only else [*CHECKS, "stack"]
        for name in [names[(seed + i) % len(names)] for i in range(min(checks or len(names), len(names)))]:
            try:
                case.check(name, points)
            except Exception as error:
                again = (
                    f"python -m tests.properties.run --one {seed} --check {name!r} --points {points} --reduce"
                )
                failures.append(f"{again}\n    {type(error).__name__}: {str(error)[:600]}")
                if reduce:
                    failures.append(_reduced(case, name, error, points))
    if seed % 50 == 0:
        ft.clear_caches()
    return Result(seed, Counter.arrays - before, failures)


def _reduced(case, name, error, points):
    """A small program that fails in the same way, and the trace of its error."""
    from .generator.reducing import reduced

    def failure(program):
        try:
            case.check(name, points, program)
        except Exception as found:
            return found
        return None

    def same(program):
        found = failure(program)
        return type(found) is type(error) and str(found)[:12] == str(error)[:12]

    small = reduced(case.program, same)
    found = "".join(traceback.format_exception(failure(small)))
    return f"{small}\n{case.stack}\n{case.setting}\n{found}"


def _alarmed(seed: int, points: int, checks: int | None) -> Result:
    """`check`, within the time that a program is given."""

    def late(*_):
        raise TimeoutError(f"more than {PATIENCE} s")

    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        return check(seed, points=points, checks=checks)
    except BaseException as error:
        return Result(
            seed, 0, [f"python -m tests.properties.run --one {seed}\n    {type(error).__name__}: {error}"]
        )
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def many(comparisons: int, most: int, seed: int, jobs: int, points: int, checks: int | None) -> int:
    """Programs from a seed on until so many arrays are compared, at most so many; returns the number of failures."""
    start, arrays, programs, failures = time.time(), 0, 0, 0
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=200) as pool:
        while arrays < comparisons and programs < most:
            first, programs = seed + programs, programs + BATCH
            for result in pool.imap_unordered(
                functools.partial(_alarmed, points=points, checks=checks), range(first, first + BATCH)
            ):
                arrays, failures = arrays + result.arrays, failures + len(result.failures)
                for failure in result.failures:
                    print(f"FAILED {failure}", flush=True)
            seconds = time.time() - start
            print(
                f"{arrays} comparisons, {programs} programs, {failures} failures, {seconds:.0f} s", flush=True
            )
    print(f"TOTAL {arrays} comparisons of {programs} programs from seed {seed} on, {failures} failures, "
          f"{time.time() - start:.0f} s")  # fmt: skip
    return failures


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=10_000)
    parser.add_argument("--programs", type=int, default=sys.maxsize, help="not more than so many")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--points", type=int, default=POINTS, help="at which values are compared")
    parser.add_argument(
        "--checks", type=int, help="so many of each program, others of the next one; by default all"
    )
    parser.add_argument("--one", type=int, help="check the program of one seed alone")
    parser.add_argument("--check", default="", help="one check alone")
    parser.add_argument("--reduce", action="store_true", help="look for a smaller program that fails")
    options = parser.parse_args()
    os.environ.setdefault("FUNCTRANS_CACHE_DIR", tempfile.mkdtemp(prefix="functrans-programs-"))
    try:
        if options.one is None:
            how = options.seed, options.jobs, options.points, options.checks
            return bool(many(options.comparisons, options.programs, *how))
        result = check(options.one, options.check, options.reduce, options.points)
        print(*result.failures, f"{result.arrays} comparisons", sep="\n")
        return bool(result.failures)
    finally:
        shutil.rmtree(os.environ["FUNCTRANS_CACHE_DIR"], ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
