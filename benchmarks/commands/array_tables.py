"""Loops that write arrays: the time of the program and of its gradient beside Numba by hand, steps, and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from time import process_time
from typing import Any

from .. import backends
from ..measure import alternate, disagreement, number, ratio, table
from ..peak import peak_memory
from ..workloads.array_loop_cases import ARRAY_LOOPS, ArrayLoop

Call = Callable[[], Any]

#: In processor time, because some calls take longer than the process runs undisturbed.
medians = partial(alternate, clock=process_time)

#: Numbers of steps for which the cost of one is shown.
STEPS = (1_000, 8_000, 64_000)

#: With fewer steps, memory is not shown: Linux counts the pages of a process in lots.
FEWEST_STEPS = 8_000

#: Where a step needs more bytes than this, larger sizes are left out: they might need all of the memory.
MOST_BYTES = 4_000

TOLERANCE = 1e-8


def report(only: str, repeats: int) -> list[str]:
    """Print the tables; what went wrong."""
    rows, costs, faults = [], [], []
    chosen = [loop for loop in ARRAY_LOOPS if only.lower() in loop.name.lower()]
    # First of all: later, calls get memory that the allocator kept from others.
    memory = {loop.name: memory_of_a_step(loop) for loop in chosen}
    for loop in chosen:
        row, its_faults = ratios(loop, repeats)
        rows.append([*row, number(memory[loop.name].get(loop.size))])
        faults += [f"{loop.name}: {fault}" for fault in its_faults]
        if loop.grows:
            costs.append(cost_of_a_step(loop, repeats, memory[loop.name]))
        print(f"measured {loop.name}", flush=True)
    if rows:
        print("\nMedians of processor time, as ratios to the program forward by hand and to JAX.\n")
        columns = ("Numba, ms", "forward", "gradient", "forward / JAX", "gradient / JAX", "bytes a step")
        print(table(("loop that writes an array", *columns), rows))
    if costs:
        print("\nNanoseconds of a step, and bytes that the gradient needs for it, by the number of steps.\n")
        header = [f"{kind}, {n:,}" for kind in ("forward", "gradient") for n in STEPS]
        header += [f"bytes, {n:,}" for n in STEPS if n >= FEWEST_STEPS]
        print(table(("", *header), costs))
    return faults


def ratios(loop: ArrayLoop, repeats: int) -> tuple[list[str], list[str]]:
    """A row of the first table, and what went wrong."""
    faults = []
    arguments = loop.arguments()
    reference = loop.by_hand(*arguments)
    own, jax = backends.functrans(), backends.jax()
    calls: dict[str, Call] = {
        "hand": in_turn(loop.by_hand, [loop.arguments(number=n) for n in range(loop.sets)]),
        "own": forward(loop, own),
        "own gradient": gradient(loop, own),
    }
    if loop.runs_in_jax:
        calls["jax"] = forward(loop, jax)
    for name in ("own", "jax"):
        if name in calls and (difference := disagreement(calls[name](), reference)) > TOLERANCE:
            faults.append(f"{name} differs from the hand-written result by {difference:.1e} (relative)")
    times = medians(calls, repeats)
    against_jax: dict[str, float] = {}
    if loop.jax_size is not None:
        pair = {name: gradient(loop, b, loop.jax_size) for name, b in (("own", own), ("jax", jax))}
        if (difference := disagreement(pair["own"](), pair["jax"]())) > TOLERANCE:
            faults.append(f"the gradients differ by {difference:.1e} (relative)")
        against_jax = medians(pair, repeats)
    hand = times["hand"]
    return [
        loop.name,
        number(1e3 * hand),
        ratio(times["own"], hand),
        ratio(times["own gradient"], hand),
        ratio(times["own"], times.get("jax")),
        ratio(against_jax.get("own"), against_jax.get("jax")),
    ], faults


def memory_of_a_step(loop: ArrayLoop) -> dict[int, float]:
    """The bytes that the gradient needs for a step, by size."""
    found: dict[int, float] = {}
    for size in STEPS if loop.grows else (loop.size,):
        steps = loop.steps(size)
        if steps >= FEWEST_STEPS and max(found.values(), default=0.0) < MOST_BYTES:
            call = gradient(loop, backends.functrans(), size)
            call()
            found[size] = peak_memory(call) / steps
    return found


def cost_of_a_step(loop: ArrayLoop, repeats: int, memory: dict[int, float]) -> list[str]:
    """A row of the second table: a dash where memory would run out."""
    own = backends.functrans()
    cells: list[list[str]] = [[], []]
    for size in STEPS:
        calls = {"forward": forward(loop, own, size)}
        if size < FEWEST_STEPS or size in memory:
            calls["gradient"] = gradient(loop, own, size)
        times = medians(calls, repeats)
        for column, name in zip(cells, ("forward", "gradient"), strict=True):
            column.append(number(1e9 * times[name] / loop.steps(size) if name in times else None))
    bytes_of_a_step = [number(memory.get(size)) for size in STEPS if size >= FEWEST_STEPS]
    return [loop.name, *cells[0], *cells[1], *bytes_of_a_step]


def forward(loop: ArrayLoop, backend: backends.Backend, size: int | None = None) -> Call:
    """The compiled program as a call without arguments."""
    compiled = backend.api.jit(backend.bind(loop.f))
    sets = [backend.arrays(loop.arguments(size, n)) for n in range(loop.sets)]
    return in_turn(lambda *x: backend.wait(compiled(*x)), sets)


def gradient(loop: ArrayLoop, backend: backends.Backend, size: int | None = None) -> Call:
    """The compiled value and gradient of the sum of the squared results."""
    sets = [backend.arrays(loop.arguments(size, n)) for n in range(loop.sets)]
    compiled = backend.api.jit(backend.api.value_and_grad(loss_of(loop, backend), loop.argnums))
    return in_turn(lambda *x: backend.wait(compiled(*x)), sets)


def loss_of(loop: ArrayLoop, backend: backends.Backend) -> Callable[..., Any]:
    """The sum of the squared results of the program."""
    program = backend.bind(loop.f)

    def loss(*x: Any) -> Any:
        result = program(*x)
        return backend.numpy.sum(result * result)

    return loss


def in_turn(f: Callable[..., Any], sets: Sequence[tuple[Any, ...]]) -> Call:
    """Call a function with one set of arguments after the other, from the first one."""
    following = cycle(sets)
    return lambda: f(*next(following))
