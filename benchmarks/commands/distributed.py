"""Collectives on two processes, beside mpi4py's own calls; then a step of training (`distributed_steps.py`).

``python -m benchmarks.commands.distributed`` is what each process runs. To add a contestant, add a row to
`CONTESTANTS`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import functrans as ft
from functrans import lax
from functrans.distributed import Communicator, Mesh, P, make_mesh, shard_map
from functrans.distributed.run import find_mpiexec

from ..environment import require
from ..measure import number, ratio, table
from .distributed_steps import measure_steps

RANKS = 2
#: Bytes of a rank's contribution.
SIZES = {"8 MB": 8 << 20, "64 kB": 64 << 10, "8 B": 8}
#: Calls in a row, by size: small ones are too short for a clock.
_TURN = {"8 MB": 1, "64 kB": 20, "8 B": 200}
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "broadcast")

Call = Callable[[], object]


def buffers(collective: str, size: int, nbytes: int) -> tuple[np.ndarray, np.ndarray]:
    """What a rank sends, and where it receives."""
    n = max(1, nbytes // 8)
    if collective == "all_gather":
        return np.ones(n), np.empty((size, n))
    if collective == "reduce_scatter":
        return np.ones((size, n)), np.empty(n)
    if collective == "all_to_all":
        return np.ones((size, n)), np.empty((size, n))
    return np.ones(n), np.empty(n)


def by_mpi4py(collective: str, mesh: Mesh, send: np.ndarray, recv: np.ndarray) -> Call:
    """mpi4py's call on these buffers."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    return {
        "all_reduce": lambda: comm.Allreduce(send, recv),
        "all_gather": lambda: comm.Allgather(send, recv),
        "reduce_scatter": lambda: comm.Reduce_scatter_block(send, recv),
        "all_to_all": lambda: comm.Alltoall(send, recv),
        "permute": lambda: comm.Sendrecv(send, after, 0, recv, before, 0),
        "broadcast": lambda: comm.Bcast(send, 0),
    }[collective]


def into_new_arrays(collective: str, mesh: Mesh, send: np.ndarray, recv: np.ndarray) -> Call:
    """mpi4py's call with a new array for each result: the system provides the pages of 8 MB."""
    return lambda: by_mpi4py(collective, mesh, send, np.empty_like(recv))()


def by_communicator(collective: str, mesh: Mesh, send: np.ndarray, recv: np.ndarray) -> Call:
    """The method of our communicator."""
    c = mesh.communicator("dp")
    method = getattr(c, collective)
    return lambda: method(*_arguments(collective, c, send, recv))


def in_background(collective: str, mesh: Mesh, send: np.ndarray, recv: np.ndarray) -> Call:
    """The same, started and waited for."""
    c = mesh.communicator("dp")
    return lambda: c.start(collective, *_arguments(collective, c, send, recv)).wait()


def _arguments(collective: str, c: Communicator, send: np.ndarray, recv: np.ndarray) -> tuple[Any, ...]:
    further = {
        "all_reduce": (recv, "sum"),
        "permute": (recv, tuple((r, (r + 1) % c.size) for r in range(c.size))),
        "broadcast": (0,),
    }
    return send, *further.get(collective, (recv,))


def compiled(collective: str, mesh: Mesh, send: np.ndarray, recv: np.ndarray) -> Call | None:
    """The collective of `lax` in a jitted program on blocks. It returns new arrays, in memory that it keeps."""
    ring = [(r, (r + 1) % mesh.size) for r in range(mesh.size)]
    programs: dict[str, Callable[[Any], Any]] = {
        "all_reduce": lambda x: lax.psum(x, "dp"),
        "all_gather": lambda x: lax.all_gather(x, "dp"),
        "reduce_scatter": lambda x: lax.psum_scatter(x, "dp"),
        "all_to_all": lambda x: lax.all_to_all(x, "dp", 0, 0, tiled=True),
        "permute": lambda x: lax.ppermute(x, "dp", ring),
    }
    if collective not in programs:
        return None
    out = P() if collective == "all_reduce" else P("dp")
    mapped = shard_map(programs[collective], mesh=mesh, in_specs=P("dp"), out_specs=out, local=True)
    jitted = ft.jit(mapped)
    return lambda: jitted(send)


#: ``make(collective, mesh, send, recv)`` returns a call, or None if it has no such collective.
CONTESTANTS: dict[str, Callable[[str, Mesh, np.ndarray, np.ndarray], Call | None]] = {
    "mpi4py": by_mpi4py,
    "mpi4py, new": into_new_arrays,
    "communicator": by_communicator,
    "start, wait": in_background,
    "compiled": compiled,
}


#: Ratios of the table: one contestant's time by another's.
RATIOS = [*[(name, "mpi4py") for name in CONTESTANTS if name != "mpi4py"], ("compiled", "mpi4py, new")]
HEAD = ("collective", *CONTESTANTS, *[" / ".join(pair) for pair in RATIOS])


def main(options: argparse.Namespace) -> int:
    """Start the processes; rank 0 prints the tables."""
    require("mpi4py")
    mpiexec = find_mpiexec()
    if mpiexec is None:
        print("benchmarks: there is no mpiexec. It comes with the extra `mpi`", file=sys.stderr)
        return 2
    repeats = str(options.repeats or 50)
    ranks = [
        mpiexec,
        "-n",
        str(RANKS),
        sys.executable,
        "-m",
        "mpi4py",
        "-m",
        "benchmarks.commands.distributed",
        repeats,
    ]
    return subprocess.run(ranks, check=False).returncode


def measure_ranks(repeats: int) -> None:
    """On each rank: all collectives, sizes and contestants; rank 0 prints."""
    with make_mesh(RANKS, "dp") as mesh:
        for text, nbytes in SIZES.items():
            rows = []
            for collective in COLLECTIVES:
                seconds = measure(collective, mesh, nbytes, _TURN[text], repeats)
                rows.append(_row(collective, seconds))
            if mesh.rank == 0:
                print(
                    f"\n{RANKS} processes, {text} from each: least microseconds of a call, and ratios to mpi4py's.\n"
                )
                print(table(HEAD, rows), flush=True)
        measure_steps(mesh, repeats)


def measure(collective: str, mesh: Mesh, nbytes: int, turn: int, repeats: int) -> dict[str, list[float]]:
    """Seconds of a call of each contestant, in each round. The ranks begin each sample together."""
    calls = {}
    send, recv = buffers(collective, mesh.size, nbytes)  # where they lie in memory matters: one pair for all
    for name, make in CONTESTANTS.items():
        call = make(collective, mesh, send, recv)
        if call is not None:
            call()
            calls[name] = call
    c = mesh.communicator("dp")
    times: dict[str, list[float]] = {name: [] for name in calls}
    for r in range(repeats):
        names = [*calls][r % len(calls) :] + [*calls][: r % len(calls)]
        for name in names:
            call = calls[name]
            c.barrier()
            start = perf_counter()
            for _ in range(turn):
                call()
            times[name].append((perf_counter() - start) / turn)
    return times


def _row(collective: str, seconds: dict[str, list[float]]) -> list[str]:
    """The least of the samples, and ratios: where ranks wait for each other, other programs disturb most samples."""
    least = {name: min(samples) for name, samples in seconds.items()}
    times = [number(1e6 * least[name] if name in least else None) for name in CONTESTANTS]
    return [collective, *times, *[ratio(least.get(a), least[b]) for a, b in RATIOS]]


if __name__ == "__main__":
    measure_ranks(int(sys.argv[1]))
