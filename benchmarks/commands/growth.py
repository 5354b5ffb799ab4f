"""How the cost of a step grows with the number of steps.

It is flat in a sound program. If an iteration copies an array that is as long as the loop, the exponent of the growth
goes to two.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np

import functrans as ft

from .. import backends
from ..measure import number, table
from ..programs import PROGRAMS
from ..programs.program import Program
from ..workloads.array_loop_cases import ARRAY_LOOPS, ArrayLoop
from ..workloads.array_loops_handwritten import leverage
from ..workloads.loops import LOOP_WORKLOADS, LoopWorkload, logistic_map, lorenz, lorenz_array
from . import numba_gradients
from .array_tables import in_turn, medians

#: The least numbers of steps, each four times the one before.
STEPS = (4_096, 16_384, 65_536)

#: By how much rows are repeated, where a program's data decide the number of steps.
FACTORS = (1, 4, 16)

#: Time grows as this power of the number of steps at most: between the two largest, where what a call costs
#: once counts least. The rest is for noise, and for arrays that leave a cache.
BOUND = 1.25

Call = Callable[..., Any]


class Looped(NamedTuple):
    """A program with a loop: its name, and for each size a call, made when it is needed, and its number of steps."""

    name: str
    calls: list[tuple[Callable[[], Call], int]]


def main(options: argparse.Namespace) -> int:
    """Print the table; 1 where a program grows faster than it may."""
    grown: list[str] = []
    rows = []
    for program in looped():
        if options.only.lower() in program.name.lower():
            costs, exponent = cost_of_a_step(program, options.repeats or 5)
            rows.append([program.name, *map(number, costs), f"{exponent:.2f}"])
            grown += _too_fast(program.name, exponent)
            print(f"measured {program.name}", flush=True)
    if rows:
        print(
            f"\nNanoseconds of a step, of at least {' or '.join(f'{n:,}' for n in STEPS)} of them; for the programs"
        )
        print(
            f"of `research`, of as many as there and of {FACTORS[1]} and {FACTORS[2]} times as many. The power with"
        )
        print("which the time grows between the two largest.\n")
        print(table(("program", *[f"x {f}" for f in FACTORS], "power"), rows))
    print("", *grown, sep="\n")
    return 1 if grown else 0


def _too_fast(name: str, exponent: float) -> list[str]:
    return [] if exponent <= BOUND else [f"{name} grows with the power {exponent:.2f}, more than {BOUND}"]


def looped() -> Iterator[Looped]:
    """The programs of which the number of steps can be chosen."""
    for loop in ARRAY_LOOPS:
        if loop.sets == 1:
            yield from _of_array_loop(loop)
    yield from _njit_loops()
    yield from _numbered("Lorenz, RK4", lorenz, "Lorenz, RK4, 100k steps", (1,))
    yield from _numbered("Lorenz as array, RK4", lorenz_array, "Lorenz as array, RK4, 100k steps", (1,))
    yield from _numbered("logistic map", logistic_map, "logistic map, 20k iterations", (0, 1))
    programs: tuple[LoopWorkload | Program, ...] = (*LOOP_WORKLOADS, *PROGRAMS)
    for program in programs:
        if program.rows:
            yield _of_rows(program)


def _pair(
    name: str, f: Callable[..., Any], data: Callable[[int, int], Any], sizes: dict[int, int], argnums: Any
) -> Iterator[Looped]:
    """A program and its gradient: `data` makes the arguments from a size and a number; `sizes` have their steps."""
    own = backends.functrans()

    def loss(*x: Any) -> Any:
        return sum(own.numpy.sum(y * y) for y in ft.tree.leaves(f(*x)))

    def make(compiled: Callable[..., Any], size: int) -> Call:
        # A processor learns the branches that a few thousand numbers decide, if it meets the same ones in each call.
        sets = max(1, 4 * STEPS[-1] // sizes[size])
        return in_turn(compiled, [own.arrays(data(size, number)) for number in range(sets)])

    for kind, g in (("forward", f), ("gradient", ft.value_and_grad(loss, argnums))):
        compiled = ft.jit(g)
        yield Looped(f"{name}, {kind}", [(partial(make, compiled, n), steps) for n, steps in sizes.items()])


def _of_array_loop(loop: ArrayLoop) -> Iterator[Looped]:
    sizes = {n: loop.steps(n) for n in (_least_size(loop.steps, wanted) for wanted in STEPS)}
    name = loop.f.__name__.replace("_", " ")
    f = backends.functrans().bind(loop.f)
    return _pair(name, f, loop.arguments, sizes, loop.argnums)


def _least_size(steps: Callable[[int], int], wanted: int) -> int:
    n = 1
    while steps(n) < wanted:
        n *= 2
    return min(k for k in range(n // 2 + 1, n + 1) if steps(k) >= wanted)


def _njit_loops() -> Iterator[Looped]:
    """Loops of njit code, translated."""
    rng = np.random.default_rng(0)

    def diagonals(n: int, _: int) -> Any:
        return rng.normal(size=n), rng.uniform(4, 5, n), rng.normal(size=n), rng.normal(size=n)

    def scores(n: int, _: int) -> Any:
        side = math.isqrt(n)
        return rng.normal(size=(side, side)), 0.5

    def returns(n: int, _: int) -> Any:
        return rng.normal(size=n), 0.1, 0.7, 0.1

    sizes = dict(zip(STEPS, STEPS, strict=True))
    programs: list[tuple[Any, Any, Any]] = [
        (numba_gradients.tridiagonal, diagonals, (0, 1, 2, 3)),
        (numba_gradients.alignment, scores, (0, 1)),
        (numba.njit(leverage.py_func), returns, (0, 1, 2, 3)),
    ]
    for f, data, argnums in programs:
        yield from _pair(f"{f.__name__} in njit code", ft.numba_call(f), data, sizes, argnums)


def _numbered(name: str, f: Callable[..., Any], workload: str, argnums: tuple[int, ...]) -> Iterator[Looped]:
    """A program with a parameter `steps`, which is not an array, and the data of a workload."""
    (data,) = [w for w in LOOP_WORKLOADS if w.name == workload]
    arguments = data.arguments()
    own = backends.functrans()

    def make(kind: str, steps: int) -> Call:
        g = own.bind(f, steps=steps)
        if kind == "gradient":
            program = g
            g = ft.value_and_grad(lambda *x: sum(map(own.numpy.sum, ft.tree.leaves(program(*x)))), argnums)
        compiled = ft.jit(g)
        return lambda: compiled(*arguments)

    for kind in ("forward", "gradient"):
        yield Looped(f"{name}, {kind}", [(partial(make, kind, steps), steps) for steps in STEPS])


def _of_rows(program: LoopWorkload | Program) -> Looped:
    """A program with a step for each row of some arguments, which are repeated."""
    own = backends.functrans()
    f, arguments = ft.jit(own.bind(program.f)), program.arguments()
    count = len(arguments[program.rows[0]])

    def make(factor: int) -> Call:
        longer = [np.resize(a, (factor * len(a), *a.shape[1:])) if i in program.rows else a
                  for i, a in enumerate(arguments)]  # fmt: skip
        given = own.arrays(tuple(longer))
        return lambda: f(*given)

    return Looped(program.name, [(partial(make, factor), factor * count) for factor in FACTORS])


def cost_of_a_step(program: Looped, repeats: int) -> tuple[list[float], float]:
    """Nanoseconds for each size, and the power of the growth; once more, with more samples, if that is large."""
    calls = {str(k): make() for k, (make, _) in enumerate(program.calls)}
    steps = [count for _, count in program.calls]
    times = list(medians(calls, repeats).values())
    if _power(times, steps) > BOUND:
        times = list(medians(calls, 3 * repeats).values())
    return [1e9 * t / n for t, n in zip(times, steps, strict=True)], _power(times, steps)


def _power(times: list[float], sizes: list[int]) -> float:
    return math.log(times[-1] / times[-2]) / math.log(sizes[-1] / sizes[-2])
