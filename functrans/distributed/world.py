"""All processes of the program, without a mesh: their number, and what they exchange besides collectives of meshes."""

from __future__ import annotations

from ..runtime.context import Living
from ..runtime.module_getattr import lazy_import
from .mesh import Mesh, backend_here, is_started_by_mpi, make_mesh, virtual_world

_mpi = lazy_import("functrans.distributed.mpi")
#: A mesh of all ranks for each of their worlds; for processes under None.
_meshes: Living[Mesh] = Living()
_of_processes: list[Mesh] = []


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
