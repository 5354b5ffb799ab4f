"""All processes of the program, without a mesh: their number, and what they exchange besides collectives of meshes."""

from __future__ import annotations

import os
import sys

from ..runtime.context import Living
from ..runtime.module_getattr import lazy_import
from .mesh import Mesh, make_mesh, virtual_world

_mpi = lazy_import("functrans.distributed.mpi")
#: What the starters of MPI programs set for each process.
_STARTED = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
#: A mesh of all ranks for each of their worlds; for processes under None.
_meshes: Living[Mesh] = Living()
_of_processes: list[Mesh] = []


def is_started_by_mpi() -> bool:
    """Whether this process is one of several, as far as can be known without loading MPI."""
    return "mpi4py.MPI" in sys.modules or any(name in os.environ for name in _STARTED)


def backend_here() -> str:
    """The backend of meshes that are made here."""
    if virtual_world() is not None:
        return "threads"
    return "mpi" if is_started_by_mpi() else "self"


def place() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    world = virtual_world()
    if world is not None:
        return world.rank, world.size
    if is_started_by_mpi() and _mpi.is_installed():
        comm = _mpi.mpi().COMM_WORLD
        return comm.rank, comm.size
    return 0, 1


def everyone() -> Mesh:
    """A mesh of all processes along one axis. All of them call it."""
    world = virtual_world()
    if world is not None:
        return _meshes.get(world) or _meshes.setdefault(
            world, make_mesh((world.size,), ("process",), backend="threads")
        )
    if not _of_processes or _of_processes[0].closed:
        _of_processes[:] = [make_mesh((place()[1],), ("process",), backend=backend_here())]
    return _of_processes[0]
