"""The programs whose loops write arrays, with their data and sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from . import array_loops as written
from . import array_loops_handwritten as by_hand


@dataclass(frozen=True)
class ArrayLoop:
    """A program of `array_loops`, and how it is measured.

    Attributes
    ----------
    name : str
    f, by_hand : callable
        The program, and the same by hand.
    data : callable
        The arguments, from a generator and a size.
    size : int
    steps : callable
        From the size to the number of iterations of the innermost loops.
    argnums : tuple of int
        What is differentiated.
    jax_size : int or None
        The size at which JAX's gradient is measured: it may copy the array at each iteration. None: not at all,
        because JAX rejects the program or its gradient.
    runs_in_jax : bool
    grows : bool
        Whether the cost of a step is shown for several sizes. The size is the number of steps then.
    sets : int
        How many sets of data the calls take in turn. A processor learns the branches that a few thousand numbers
        decide, if it meets the same ones in each call.
    """

    name: str
    f: Callable[..., Any]
    by_hand: Callable[..., Any]
    data: Callable[[numpy.random.Generator, int], tuple[Any, ...]]
    size: int
    steps: Callable[[int], int]
    argnums: tuple[int, ...] = (0,)
    jax_size: int | None = None
    runs_in_jax: bool = True
    grows: bool = False
    sets: int = 1

    def arguments(self, size: int | None = None, number: int = 0) -> tuple[Any, ...]:
        """One of the sets of data, the same at each call."""
        return self.data(numpy.random.default_rng(number), size or self.size)


def _numbers(rng, n):
    return (rng.normal(size=n),)


def _returns(rng, n):
    return rng.normal(size=n), *map(numpy.array, (0.1, 0.7, 0.1))


def _lanes(rng, n):
    return (rng.normal(size=(64, n)),)


def _rows(rng, n):
    return rng.normal(size=(n, 16)), rng.normal(size=16)


def _tridiagonal(rng, n):
    return rng.normal(size=n), rng.uniform(4, 5, n), rng.normal(size=n), rng.normal(size=n)


def _alignment(rng, n):
    return rng.normal(size=(n, n)), numpy.array(0.5)


def _band(rng, n):
    """Zero where the band leaves the matrix."""
    band = rng.normal(size=(n, 9))
    band[:, 0] = rng.uniform(20, 21, n)
    return (numpy.where(numpy.arange(n)[:, None] >= numpy.arange(9), band, 0.0),)


def _heat(rng, steps):
    return rng.normal(size=400), rng.normal(size=steps), rng.normal(size=steps)


def _implicit_heat(rng, steps):
    return *_heat(rng, steps), numpy.array(0.3)


def _filter(rng, n):
    return numpy.array([0.6, 0.3, 0.6]), rng.normal(size=(100, n)), rng.random(100), rng.normal(size=100)


def _distances(rng, n):
    return (rng.uniform(1, 10, (n, n)),)


def _matrix(rng, n):
    return (rng.normal(size=(n, n)) + 2 * n * numpy.eye(n),)


def _events(rng, n):
    return numpy.sort(rng.random(63)), rng.exponential(size=n)


def _same(n: int) -> int:
    return n


def _cubed(n: int) -> int:
    return n**3


ARRAY_LOOPS = [
    ArrayLoop(
        "recursion", written.recursion, by_hand.recursion, _numbers, 1000, _same, jax_size=1000, grows=True
    ),
    ArrayLoop(
        "recursion in scan",
        written.recursion_in_scan,
        by_hand.recursion,
        _numbers,
        1000,
        _same,
        jax_size=1000,
        grows=True,
    ),
    ArrayLoop(
        "recursion in scan, checkpoints",
        written.recursion_checkpointed,
        by_hand.recursion,
        _numbers,
        1000,
        _same,
        runs_in_jax=False,
        grows=True,
    ),
    ArrayLoop(
        "recursion in while_loop",
        written.recursion_in_while,
        by_hand.recursion_in_while,
        _numbers,
        1000,
        _same,
        grows=True,
    ),
    ArrayLoop(
        "recursion with cond",
        written.recursion_with_cond,
        by_hand.recursion_with_cond,
        _numbers,
        1000,
        _same,
        jax_size=1000,
        grows=True,
    ),
    ArrayLoop(
        "GARCH with leverage",
        written.leverage,
        by_hand.leverage,
        _returns,
        1000,
        _same,
        argnums=(0, 1, 2, 3),
        jax_size=1000,
        grows=True,
    ),
    ArrayLoop(
        "recursion, 64 lanes",
        written.recursion_in_lanes,
        by_hand.recursion_in_lanes,
        _lanes,
        1000,
        lambda n: 64 * n,
        jax_size=1000,
    ),
    ArrayLoop(
        "recursion of rows of 16",
        written.recursion_of_rows,
        by_hand.recursion_of_rows,
        _rows,
        1000,
        _same,
        argnums=(0, 1),
        jax_size=1000,
        grows=True,
    ),
    ArrayLoop(
        "tridiagonal solve",
        written.tridiagonal,
        by_hand.tridiagonal,
        _tridiagonal,
        1000,
        _same,
        argnums=(0, 1, 2, 3),
        jax_size=1000,
        grows=True,
    ),
    ArrayLoop(
        "alignment 500x500",
        written.alignment,
        by_hand.alignment,
        _alignment,
        500,
        lambda n: n * n,
        argnums=(0, 1),
        jax_size=50,
    ),
    ArrayLoop(
        "banded Cholesky, 1000 rows, 8 diagonals",
        written.banded_cholesky,
        by_hand.banded_cholesky,
        _band,
        1000,
        lambda n: 9 * n,
    ),
    ArrayLoop(
        "explicit heat, 400 cells",
        written.explicit_heat,
        by_hand.explicit_heat,
        _heat,
        1000,
        _same,
        argnums=(0, 1, 2),
        jax_size=1000,
    ),
    ArrayLoop(
        "implicit heat, 400 cells",
        written.implicit_heat,
        by_hand.implicit_heat,
        _implicit_heat,
        100,
        lambda n: 800 * n,
        argnums=(0, 1, 2, 3),
        jax_size=10,
    ),
    ArrayLoop(
        "particle filter, 100 steps",
        written.particle_filter,
        by_hand.particle_filter,
        _filter,
        200,
        lambda n: 100 * n,
    ),
    ArrayLoop(
        "insertion sort of 200",
        written.insertion_sort,
        by_hand.insertion_sort,
        _numbers,
        200,
        lambda n: n * n // 4,
    ),
    ArrayLoop(
        "insertion sort of 64 times 100",
        written.insertion_sort_in_lanes,
        by_hand.insertion_sort_in_lanes,
        _lanes,
        100,
        lambda n: 16 * n * n,
    ),
    ArrayLoop(
        "quicksort's partition",
        written.partition,
        by_hand.partition,
        _numbers,
        1000,
        _same,
        jax_size=1000,
        grows=True,
    ),
    ArrayLoop(
        "Floyd-Warshall 200",
        written.floyd_warshall,
        by_hand.floyd_warshall,
        _distances,
        200,
        _cubed,
        jax_size=10,
    ),
    ArrayLoop(
        "Floyd-Warshall 200, by rows",
        written.floyd_warshall_by_rows,
        by_hand.floyd_warshall,
        _distances,
        200,
        _cubed,
        jax_size=25,
    ),
    ArrayLoop("prefix sums of 4096", written.prefix_sums, by_hand.prefix_sums, _numbers, 4096, _same),
    ArrayLoop("LU 100x100", written.lu, by_hand.lu, _matrix, 100, lambda n: n**3 // 3),
    ArrayLoop(
        "event queue",
        written.event_queue,
        by_hand.event_queue,
        _events,
        1000,
        _same,
        argnums=(0, 1),
        grows=True,
    ),
    ArrayLoop(
        "event queue, other events in each call",
        written.event_queue,
        by_hand.event_queue,
        _events,
        1000,
        _same,
        argnums=(0, 1),
        sets=64,
    ),
]
