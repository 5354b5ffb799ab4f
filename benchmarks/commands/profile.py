"""What an open profile costs, and whether what it says agrees with timers placed by hand."""

from __future__ import annotations

import argparse
import inspect
import math
from collections.abc import Callable
from time import perf_counter, sleep, thread_time
from typing import Any, NamedTuple

import numba
import numpy

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

from ..measure import number, table

#: Seconds that a block of calls takes at least: opening and closing a profile takes some 0.1 ms.
BLOCK = 0.05
#: The most that an open profile may add, and the most by which shares and sums may be off.
COST, SHARE, SUM = 0.05, 0.05, 0.03


@numba.njit
def _integral(x: Any) -> Any:
    total = 0.0
    for _ in range(40):
        for i in range(x.size):
            total += numpy.sin(x[i])
    return total


def _wait(x: Any) -> Any:
    sleep(0.002)
    return x


def _struct(x: Any) -> Any:
    return ft.ShapeDtypeStruct(x.shape, x.dtype)


def maps(x: Any) -> Any:
    """Elementwise functions."""
    return fnp.sum(fnp.tanh(fnp.sin(x)))


def products(x: Any) -> Any:
    """Matrix products."""
    return fnp.sum(fnp.matmul(fnp.matmul(x, x), x))


def sorts(x: Any) -> Any:
    """A sort."""
    return fnp.sort(fnp.ravel(x))[5]


def scans(x: Any) -> Any:
    """A loop over rows."""
    return lax.scan(lambda c, row: (fnp.tanh(c @ x + row), None), x[0], x)[0][0]


def whiles(x: Any) -> Any:
    """A loop of unknown length."""
    return fnp.sum(lax.while_loop(lambda c: c[0] < 30, lambda c: (c[0] + 1, fnp.sin(c[1])), (0, x))[1])


def natives(x: Any) -> Any:
    """Code of Numba."""
    return ft.numba_call(_integral, result_shape_dtypes=ft.ShapeDtypeStruct((), "float64"))(fnp.ravel(x))


def hosts(x: Any) -> Any:
    """Python, called from a loop."""
    return lax.fori_loop(0, 3, lambda i, c: ft.pure_callback(_wait, _struct(c), c), x)[0, 0]


def hooked(x: Any) -> Any:
    """A hook in Python on a cotangent."""
    return fnp.sum(ft.cotangent_hook(fnp.sin(x), _wait))


class Program(NamedTuple):
    """Two parts of a program, whose shares of the time are compared; `transform` is applied to each, and to the sum."""

    parts: tuple[Callable[..., Any], Callable[..., Any]]
    transform: Callable[..., Any]
    threads: int = 1


def _eager(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


def _grad(f: Callable[..., Any]) -> Callable[..., Any]:
    return ft.jit(ft.grad(f))


PROGRAMS = {
    "elementwise, products": Program((maps, products), ft.jit),
    "the same, gradient": Program((maps, products), _grad),
    "products, a sort": Program((products, sorts), ft.jit),
    "a scan, products": Program((scans, products), ft.jit),
    "a scan, gradient": Program((scans, maps), _grad),
    "a while_loop, gradient": Program((whiles, products), _grad),
    "a numba_call, products": Program((natives, products), ft.jit),
    "two threads": Program((maps, products), ft.jit, 2),
    "host calls in a loop": Program((hosts, products), ft.jit),
    "a host hook, gradient": Program((hooked, products), _grad),
    "outside jit": Program((maps, products), _eager),
}


def _lines(f: Callable[..., Any]) -> range:
    lines, first = inspect.getsourcelines(f)
    return range(first, first + len(lines))


def _least(f: Callable[[], Any], clock: Callable[[], float], calls: int) -> float:
    start = clock()
    for _ in range(calls):
        f()
    return (clock() - start) / calls


class Row(NamedTuple):
    """What was measured of a program."""

    cost: float
    by_hand: float
    profiled: float
    whole: float


def measure(program: Program, repeats: int) -> Row:
    """Measure one program."""
    x = numpy.random.default_rng(0).normal(size=(300, 300)) / 20
    first, second = program.parts
    with ft.config.patch(num_threads=program.threads):
        whole = program.transform(lambda x: first(x) + second(x))
        alone = [program.transform(f) for f in program.parts]
        calls = [lambda f=f: f(x) for f in (whole, *alone)]
        for call in calls:
            call()
            with ft.profile():
                call()
        number_of_calls = max(3, math.ceil(BLOCK / _least(calls[0], perf_counter, 3)))
        off, on, shares, sums = [], [], [], []
        by_hand: list[list[float]] = [[], []]
        waits = hosts in program.parts or hooked in program.parts
        alone_on_it = (
            program.threads == 1 and not waits and program.transform is not _eager
        )  # BLAS has threads
        clock = thread_time if alone_on_it else perf_counter  # other processes disturb the former less
        for _ in range(repeats):
            off.append(_least(calls[0], clock, number_of_calls))
            for times, call in zip(by_hand, calls[1:]):
                times.append(_least(call, clock, number_of_calls))
            with ft.profile() as p:
                start = perf_counter()
                on.append(_least(calls[0], clock, number_of_calls))
                spent = perf_counter() - start
            of = [
                sum(line.total for line in p.lines if line.filename == __file__ and line.line in _lines(f))
                for f in program.parts
            ]
            shares.append((spent, of[0] / max(sum(of), 1e-12)))
            sums.append(p.total / spent)
    least = [min(times) for times in by_hand]
    return Row(
        min(on) / min(off),
        least[0] / sum(least),
        min(shares)[1],  # of the block that was disturbed least
        float(numpy.median(sums)),
    )


def main(options: argparse.Namespace) -> int:
    """Print the table; 1 where a limit is missed."""
    print(
        "An open profile: its cost, as a ratio; the share of the first part, by timers around each part alone and by "
        "the profile; and the sum of all lines, as a ratio to a timer around the whole.\n"
    )
    rows, faults = [], []
    for name, program in PROGRAMS.items():
        row = measure(program, options.repeats or 9)
        rows.append([name, number(row.cost), f"{row.by_hand:.3f}", f"{row.profiled:.3f}", f"{row.whole:.3f}"])
        for what, off, limit in (
            ("costs", row.cost - 1.0, COST),
            ("shares differ by", abs(row.by_hand - row.profiled), SHARE),
            ("sum is off by", abs(row.whole - 1.0), SUM),
        ):
            if off > limit:
                faults.append(f"{name}: {what} {100 * off:.1f}%, more than {100 * limit:.0f}%")
    print(table(("program", "cost", "by hand", "profiled", "sum"), rows), "", *faults, sep="\n")
    return 1 if faults else 0
