"""Meshes: ranks arranged along named axes, over a world that a backend provides."""

from __future__ import annotations

import atexit
import contextvars
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from ..core import ArgumentError, Device
from ..core.values import ArrayLike
from ..errors import ArgumentValueError, CollectiveError, ShardingError
from ..runtime.context import Living
from ..runtime.module_getattr import lazy_import
from .communicator import AloneCommunicator, Communicator
from .threads import RankTeam, ThreadsCommunicator

BACKENDS = ("mpi", "threads", "self")
#: Seconds that the end of the process waits for collectives that were started.
_PATIENCE = 5.0
_mpi = lazy_import("functrans.distributed.mpi")
_open: Living[None] = Living()


class World(Protocol):
    """All ranks of a program, as one of them sees them."""

    rank: int
    size: int
    how: str

    def connect(self, members: Sequence[int], name: str) -> Communicator:
        """The communicator of these ranks, this one among them. All of them call it."""

    def abandon(self, reason: str) -> None:
        """End the program although collectives have not ended."""

    def close(self) -> None:
        """Release what `connect` made."""


class Mesh:
    """Ranks arranged along named axes; made by `make_mesh`, or as JAX makes it, of all devices.

    Parameters
    ----------
    devices : array of Device
        All those of `functrans.devices`, each of which is a process, in their order, with an axis for each name.
    names : sequence of str

    Attributes
    ----------
    shape : dict of str to int
        The number of ranks along each axis.
    names : tuple of str
        The axes; ranks count along the last one first.
    rank, size : int
        The number of this rank, and of all.
    devices : ndarray of object
        The device of each rank.
    closed : bool

    Examples
    --------
    >>> import numpy as np, functrans as ft
    >>> ft.sharding.Mesh(np.array(ft.devices()), ("dp",))
    <Mesh dp=1: rank 0 of 1>
    >>> from functrans.distributed import run_threads
    >>> def where(mesh):
    ...     return mesh.rank, mesh.axis_index("dp"), mesh.axis_index("tp")
    >>> run_threads((2, 2), ("dp", "tp"), where)
    [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]
    """

    def __init__(self, devices: ArrayLike, names: Any, *, world: World | None = None):
        shape, names = _axes(np.shape(devices), names)
        if world is None:
            if not are_all_devices(devices):
                raise ShardingError(
                    f"Mesh: the devices must be those of functrans.devices(), in their order, got {devices!r}. "
                    "Make the mesh by functrans.make_mesh(shape, names)"
                )
            world = _checked_world(backend_here(), None, shape)
        self.shape = dict(zip(names, shape, strict=True))
        self.devices = np.empty(shape, object)
        self.devices.flat[:] = [Device(i) for i in range(prod(shape))]
        self.names = names
        self.rank = world.rank
        self.size = world.size
        self.closed = False
        self._world = world
        self._place = tuple(int(i) for i in np.unravel_index(self.rank, shape))
        self._communicators: dict[tuple[str, ...], Communicator] = {}
        for axes in dict.fromkeys([names, *[(name,) for name in names]]):  # at once, since all ranks are here
            self.communicator(axes)
        _open.add(self)

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}={n}" for name, n in self.shape.items())
        return f"<Mesh {axes}: rank {self.rank} of {self.size}{', closed' if self.closed else ''}>"

    def __enter__(self) -> Mesh:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if error is None and self.size > 1:  # one rank has nothing to wait for: the mesh can be entered again
            self.close()

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The axes, under JAX's name."""
        return self.names

    @property
    def empty(self) -> bool:
        """Whether it has no ranks: it has one at least."""
        return False

    def axis_index(self, name: str) -> int:
        """The position of this rank along an axis.

        Raises
        ------
        ShardingError
            If there is no such axis.
        """
        return self._place[self._checked((name,))[0]]

    def communicator(self, axes: str | Sequence[str]) -> Communicator:
        """The ranks along some axes that differ from this one in their position along these alone.

        Parameters
        ----------
        axes : str or sequence of str
            Ranks count along the last one first, so the order matters.

        Returns
        -------
        Communicator
            The same one each time. The ranks of a combination of axes that is asked for the first time wait for each
            other.

        Raises
        ------
        ShardingError
            If there is no such axis, one is named twice, or the mesh is closed.
        """
        axes = (axes,) if isinstance(axes, str) else tuple(axes)
        if self.closed:
            raise ShardingError("communicator: the mesh is closed. Make a new one, or close it later")
        if axes not in self._communicators:
            positions = self._checked(axes)
            name = ", ".join(map(repr, axes))
            members = self._members(positions)
            alone = len(members) == 1
            self._communicators[axes] = (
                AloneCommunicator(0, 1, name) if alone else self._world.connect(members, name)
            )
        return self._communicators[axes]

    def _checked(self, axes: tuple[str, ...]) -> list[int]:
        for axis in axes:
            if axis not in self.shape:
                raise ShardingError(
                    f"the mesh has no axis {axis!r}. Its axes are {', '.join(map(repr, self.names))}"
                )
            if axes.count(axis) > 1:
                raise ShardingError(f"the axis {axis!r} is named twice in {axes}")
        return [self.names.index(axis) for axis in axes]

    def _members(self, positions: list[int]) -> list[int]:
        """The ranks along these axes, this one among them."""
        ranks = np.arange(self.size).reshape(tuple(self.shape.values()))
        own = ranks[tuple(slice(None) if d in positions else i for d, i in enumerate(self._place))]
        return np.transpose(own, np.argsort(np.argsort(positions))).ravel().tolist()

    def close(self) -> None:
        """Wait for collectives that were started, end threads, and release the communicators. All ranks call it.

        Raises
        ------
        Exception
            The error of a collective that was started, if no one has waited for it.
        """
        if self.closed:
            return
        self.closed = True
        _open.discard(self)
        try:
            for communicator in self._communicators.values():
                communicator.close()
        finally:
            self._world.close()

    def leave(self, patience: float) -> None:
        """At the end of the process: close, or abandon the program if collectives do not end."""
        until = time.monotonic() + patience
        while waiting := [c.name for c in self._communicators.values() if c.pending()]:
            if time.monotonic() > until:
                self._world.abandon(
                    f"rank {self.rank} ends while collectives over {', '.join(waiting)} have not ended"
                )
                return
            time.sleep(0.001)
        for communicator in self._communicators.values():
            communicator.close()


@atexit.register
def _leave_all() -> None:
    # If the process ends by an exception, the others end with it: waiting would delay that.
    if hasattr(sys, "last_value"):
        return
    for mesh in _open:
        mesh.leave(_PATIENCE)


class AloneWorld:
    """One rank."""

    rank = 0
    size = 1
    how = "pass backend='mpi', and start the script with: python -m functrans.distributed.run -n {size} script.py"

    def connect(self, members: Sequence[int], name: str) -> Communicator:
        """Not reached for meshes, whose communicators of one rank need no world."""
        return AloneCommunicator(0, 1, name)

    def abandon(self, reason: str) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing to release."""


class ThreadsWorld:
    """The virtual ranks of a team, as one of them sees them."""

    how = "pass the shape of the mesh to run_threads"

    def __init__(self, team: RankTeam, rank: int):
        self.rank = rank
        self.size = team.size
        self.team = team
        self._connected: dict[tuple[int, ...], int] = {}

    def connect(self, members: Sequence[int], name: str) -> Communicator:
        """The communicator of these ranks; the n-th one of each rank belongs together."""
        key = tuple(members)
        number = self._connected[key] = self._connected.get(key, 0) + 1
        return ThreadsCommunicator(self.team, (key, number), key.index(self.rank), len(key), name)

    def abandon(self, reason: str) -> None:
        """Release who waits."""
        self.team.fail(reason)

    def close(self) -> None:
        """Nothing to release."""


#: The world of a virtual rank, in its thread.
_virtual: contextvars.ContextVar[ThreadsWorld | None] = contextvars.ContextVar("functrans_rank", default=None)


def virtual_world() -> ThreadsWorld | None:
    """The virtual ranks among which this thread is one; None outside of `run_threads`."""
    return _virtual.get()


#: What the starters of MPI programs set for each process.
_STARTED = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")


def is_started_by_mpi() -> bool:
    """Whether this process is one of several, as far as can be known without loading MPI."""
    return "mpi4py.MPI" in sys.modules or any(name in os.environ for name in _STARTED)


def backend_here() -> str:
    """The backend of meshes that are made here."""
    if virtual_world() is not None:
        return "threads"
    return "mpi" if is_started_by_mpi() else "self"


def make_mesh(
    shape: int | Sequence[int], names: str | Sequence[str], *, backend: str = "mpi", comm: Any = None
) -> Mesh:
    """Arrange the ranks of the program along named axes. All ranks call it.

    Parameters
    ----------
    shape : sequence of int
        The number of ranks along each axis; their product is the number of ranks.
    names : sequence of str
        The names of the axes.
    backend : {'mpi', 'threads', 'self'}
        Processes that MPI connects; virtual ranks, inside of `run_threads`; or one rank alone.
    comm : mpi4py.MPI.Comm, optional
        The processes, if not all of ``COMM_WORLD``. It is duplicated, so your messages and these do not meet.

    Returns
    -------
    Mesh
        Close it, or use it in a ``with`` block.

    Raises
    ------
    CollectiveError
        If the number of ranks differs from that of the world.
    ShardingError
        If names repeat, or virtual ranks are asked for outside of `run_threads`.
    MissingLibraryError
        If the mesh has several ranks, and mpi4py is not installed.

    Examples
    --------
    >>> from functrans.distributed import make_mesh
    >>> make_mesh((1,), ("dp",), backend="self")
    <Mesh dp=1: rank 0 of 1>
    """
    sizes, axes = _axes(shape, names)
    if backend not in BACKENDS:
        raise ArgumentValueError(f"make_mesh: backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if comm is not None and backend != "mpi":
        raise ArgumentValueError(f"make_mesh: comm is for backend='mpi', not {backend!r}")
    return _mesh(sizes, axes, _checked_world(backend, comm, sizes))


def _mesh(sizes: tuple[int, ...], axes: tuple[str, ...], world: World) -> Mesh:
    return Mesh(np.empty(sizes, bool), axes, world=world)


def are_all_devices(devices: Any) -> bool:
    """Whether these may be the devices of all processes in the order of their numbers.

    NumPy makes arrays of text of devices, without their numbers.
    """
    numbers = [x.id for x in np.asarray(devices, object).flat if isinstance(x, Device)]
    return numbers in ([], list(range(len(numbers))))


def _checked_world(backend: str, comm: Any, sizes: tuple[int, ...]) -> World:
    world = _world(backend, comm, prod(sizes))
    if prod(sizes) != world.size:
        there = "is 1" if world.size == 1 else f"are {world.size}"
        text = f"make_mesh: a mesh of shape {sizes} has {prod(sizes)} ranks, but there {there}. To have "
        size, how = world.size, world.how.format(size=prod(sizes))
        world.close()
        raise CollectiveError(f"{text}{prod(sizes)}, {how}; or let the sizes multiply to {size}")
    return world


def _axes(shape: ArrayLike, names: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    for text, value, one in (("shape", shape, "int"), ("names", names, "str")):
        if not isinstance(value, Iterable | int | np.integer):
            raise ArgumentError(f"make_mesh: {text} must be a sequence of {one}, got {value!r}")
    sizes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    axes = (names,) if isinstance(names, str | int) else tuple(names)
    if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0 for n in sizes):
        raise ArgumentValueError(f"make_mesh: shape must contain positive integers, got {shape!r}")
    if not all(isinstance(name, str) for name in axes):
        raise ArgumentError(f"make_mesh: names must be strings, got {names!r}")
    if len(sizes) != len(axes):
        raise ArgumentValueError(f"make_mesh: {len(sizes)} sizes, {sizes}, but {len(axes)} names, {axes}")
    if len(set(axes)) != len(axes):
        raise ShardingError(f"make_mesh: the names of axes must differ, got {axes}")
    return tuple(map(int, sizes)), axes


def _world(backend: str, comm: Any, size: int) -> World:
    if backend == "threads":
        world = _virtual.get()
        if world is None:
            raise ShardingError(
                "make_mesh: virtual ranks are threads, which run_threads starts: "
                "functrans.distributed.run_threads(shape, names, fun) calls fun(mesh) on each"
            )
        return world
    if backend == "self" or (size == 1 and comm is None and not _mpi.is_installed()):
        return AloneWorld()
    made: World = _mpi.MPIWorld(comm)
    return made


def run_threads(
    shape: int | Sequence[int], names: str | Sequence[str], fun: Callable[[Mesh], Any]
) -> list[Any]:
    """Run a function on virtual ranks: threads of this process.

    Parameters
    ----------
    shape, names
        As for `make_mesh`.
    fun : callable
        Called as ``fun(mesh)`` on each rank, in the context of the caller: its `config.patch` holds.

    Returns
    -------
    list
        The results, by rank.

    Raises
    ------
    Exception
        The first error of a rank. The others are released: what they wait for raises `CollectiveError`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.distributed import run_threads
    >>> def total(mesh):
    ...     received = np.zeros(2)
    ...     mesh.communicator("dp").all_reduce(np.array([1.0, mesh.rank]), received, "sum")
    ...     return received
    >>> run_threads((3,), ("dp",), total)
    [array([3., 3.]), array([3., 3.]), array([3., 3.])]
    """
    sizes, axes = _axes(shape, names)
    team = RankTeam(prod(sizes))
    results: list[Any] = [None] * team.size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        world = ThreadsWorld(team, rank)
        _virtual.set(world)
        try:
            mesh = _mesh(sizes, axes, world)
            results[rank] = fun(mesh)
            mesh.close()
        except BaseException as error:  # raised in the caller's thread
            error.add_note(f"on virtual rank {rank} of {team.size}")
            errors.append(error)
            team.fail(f"rank {rank} failed: {type(error).__name__}: {error}")
        finally:
            team.end(rank)

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(run, r), name=f"functrans rank {r}")
        for r in range(team.size)
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException as error:
        team.fail(f"interrupted: {type(error).__name__}")
        raise
    if errors:
        raise errors[0]
    return results
