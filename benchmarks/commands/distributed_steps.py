"""A data-parallel step of training on two processes, beside one process with the whole batch on one core."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.distributed import Mesh, P, fully_shard, shard_map

from ..measure import number, ratio, table

WIDTH, DEPTH, ROWS = 384, 6, 3072

Step = Callable[[], object]


def loss(params: Any, x: Any) -> Any:
    """A perceptron whose layers are groups."""
    for layer in params:
        x = fnp.tanh(x @ layer["w"] + layer["b"])
    return fnp.mean(x**2)


def parameters() -> list[dict[str, np.ndarray]]:
    """The same on all ranks."""
    rng = np.random.default_rng(0)
    return [{"w": rng.normal(size=(WIDTH, WIDTH)) / 20, "b": np.zeros(WIDTH)} for _ in range(DEPTH)]


def _descending(gradient: Callable[..., Any], params: Any, x: Any) -> Step:
    """A compiled step of gradient descent, on parameters or on shards of them."""
    step = ft.jit(lambda params, x: ft.tree.map(lambda p, g: p - 0.1 * g, params, gradient(params, x)))
    step(params, x)
    return lambda: step(params, x)


def steps(mesh: Mesh, x: np.ndarray) -> dict[str, Step]:
    """What is measured on all ranks at once: `x` has the rows of this rank."""
    params = parameters()
    mean = shard_map(
        lambda p, x: ft.lax.pmean(loss(p, x), "dp"),
        mesh=mesh,
        in_specs=(P(), P("dp")),
        out_specs=P(),
        local=True,
    )
    found = {"copies, shard_map": _descending(ft.grad(mean), params, x)}
    groups = [(i,) for i in range(DEPTH)]
    variants: dict[str, dict[str, Any]] = {
        "fully_shard": {},
        "fully_shard, prefetch=0": {"prefetch": 0},
        "fully_shard, no reshard": {"reshard_after_forward": False},
    }
    for name, options in variants.items():
        model = fully_shard(loss, mesh, groups=groups, **options)
        found[name] = _descending(ft.grad(model), model.init(params), x)
    return found


@ft.config.patch(num_threads=1)
def measure_steps(mesh: Mesh, repeats: int) -> None:
    """On each rank, with one thread; rank 0 prints."""
    whole = np.random.default_rng(1).normal(size=(ROWS, WIDTH))
    mine = np.array_split(whole, mesh.size)[mesh.rank]
    alone = _descending(ft.grad(loss), parameters(), whole)
    several = steps(mesh, mine)
    times: dict[str, list[float]] = {"one process, one core": [], **{name: [] for name in several}}
    for _ in range(repeats):
        times["one process, one core"].append(_in_turn(mesh, alone))
        for name, step in several.items():
            mesh.communicator("dp").barrier()
            times[name].append(_seconds(step))
    if mesh.rank == 0:
        middle = {name: median(samples) for name, samples in times.items()}
        first = middle["one process, one core"]
        rows = [[name, number(1e3 * seconds), ratio(seconds, first)] for name, seconds in middle.items()]
        print(
            f"\nA step of {DEPTH} layers of {WIDTH}, {ROWS} rows on {mesh.size} processes: median milliseconds.\n"
        )
        print(table(("program", "ms", "/ one process"), rows), flush=True)


def _seconds(step: Step) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _in_turn(mesh: Mesh, step: Step) -> float:
    """Rank 0 measures while the others sleep: who waits in MPI keeps a core busy."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if mesh.rank:
        while not comm.Iprobe(0):
            time.sleep(1e-3)
        comm.recv(source=0)
        return 0.0
    seconds = _seconds(step)
    for rank in range(1, comm.size):
        comm.send(None, rank)
    return seconds
