"""Processes that MPI connects, through mpi4py.

Data that is only moved goes as bytes if MPI does not know its dtype. Sums, and extremes of integers, are MPI's. Its
extremes of floats may lose a NaN, and it has none of complex numbers: NumPy's are registered with it. Bools and the
floats of two bytes go in a wider form.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..core.low_precision import FLOAT32, is_low
from ..core.values import PyTree
from ..errors import ArgumentError, CollectiveError, MissingLibraryError
from ..runtime.module_getattr import lazy_import
from .communicator import Communicator, Permutation, bytes_of
from .worker import Request, Worker

_launcher = lazy_import("mpi4py.run")
#: The tag of messages that `interrupt` sends; those of `permute` have 0.
_INTERRUPTION = 1
#: Seconds in which the launcher reads what a rank has written: when a job ends, it drops the rest.
_TO_BE_READ = 0.25
#: The dtypes of NumPy that MPI has as well, but for floats of two bytes and long doubles.
_KNOWN = frozenset("?bBhHiIlLqQfdFD")
_dtypes = lazy_import("mpi4py.util.dtlib")


def is_installed() -> bool:
    """Whether mpi4py is there."""
    return find_spec("mpi4py") is not None


@functools.cache
def mpi() -> Any:
    """mpi4py's module ``MPI``, which starts MPI when it is imported first.

    From then on, an exception that ends this process ends the others as well, as ``python -m mpi4py`` has it.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # no mpi4py, or no library of MPI
        raise MissingLibraryError(
            "meshes of several processes need mpi4py and an MPI: pip install 'functrans[mpi]'. Virtual ranks need "
            f"none: functrans.distributed.run_threads ({error})"
        ) from None
    before = sys.excepthook

    def hook(kind: Any, error: Any, traceback: Any) -> None:
        before(kind, error, traceback)
        sys.stderr.flush()
        _launcher.set_abort_status(error)

    sys.excepthook = hook
    return MPI


@functools.cache
def _operation(op: str) -> Any:
    """NumPy's maximum or minimum, for MPI."""
    combine = {"max": np.maximum, "min": np.minimum}[op]
    dtype_of = _dtypes.to_numpy_dtype

    def call(one: Any, other: Any, datatype: Any) -> None:
        dtype = dtype_of(datatype)
        into = np.frombuffer(other, dtype)
        combine(np.frombuffer(one, dtype), into, out=into)

    return mpi().Op.Create(call, commute=True)


def _sendable(x: np.ndarray) -> np.ndarray:
    """An array that is only moved, in a form that MPI knows."""
    return x if x.dtype.char in _KNOWN else bytes_of(x)


class MPIWorld:
    """The processes of an MPI communicator, as this one sees them.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm, optional
        ``COMM_WORLD`` by default.
    """

    how = "start the script with: python -m functrans.distributed.run -n {size} script.py"

    def __init__(self, comm: Any = None):
        self._mpi = mpi()
        if comm is not None and not isinstance(comm, self._mpi.Intracomm):
            raise ArgumentError(f"make_mesh: comm must be an mpi4py.MPI.Intracomm, got {type(comm).__name__}")
        self._comm = (self._mpi.COMM_WORLD if comm is None else comm).Dup()
        self.rank: int = self._comm.rank
        self.size: int = self._comm.size
        self._made = [self._comm]

    def connect(self, members: Sequence[int], name: str) -> Communicator:
        """The communicator of these ranks, and a second one for what runs in the background."""
        group = self._comm.group.Incl(list(members))
        comm = self._comm.Create_group(group)
        group.Free()
        self._made.append(comm)
        background = None
        if self._mpi.Query_thread() == self._mpi.THREAD_MULTIPLE:
            background = comm.Dup()
            self._made.append(background)
        return MPICommunicator(comm, background, name)

    def abandon(self, reason: str) -> None:
        """End all processes."""
        sys.stderr.write(f"functrans: {reason}: a rank did not call them, or had failed. The job ends\n")
        sys.stderr.flush()
        time.sleep(_TO_BE_READ)
        self._mpi.COMM_WORLD.Abort(1)

    def close(self) -> None:
        """Free all communicators."""
        while self._made:
            self._made.pop().Free()


class MPICommunicator(Communicator):
    """Of processes.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    background : mpi4py.MPI.Intracomm, optional
        For collectives in the background; without it, they run when they are started.
    """

    def __init__(self, comm: Any, background: Any, name: str):
        super().__init__(comm.rank, comm.size, name)
        self._comm = comm
        self._mpi = mpi()
        self._sent: list[Any] = []
        self._received: dict[int, int] = {}
        self._background = MPICommunicator(background, None, name) if background is not None else None

    def _twin(self) -> Communicator:
        return self._background or self

    def _submit(self, worker: Worker, call: Callable[[], None]) -> Request:
        request = super()._submit(worker, call)
        if self._background is None:
            request.wait()
        return request

    def _call(self, method: Callable[..., PyTree], *args: PyTree) -> Any:
        try:
            return method(*args)
        except self._mpi.Exception as error:
            raise CollectiveError(
                f"MPI failed over {self.name}: {error}. If ranks may differ in what they call, "
                f"set config.check_collectives to see where"
            ) from error

    def _reduce(self, method: Callable[..., PyTree], send: np.ndarray, recv: np.ndarray, op: str) -> None:
        """Call a reduction of MPI on a form of the arrays that it knows."""
        if is_low(send.dtype):
            wide = np.empty(recv.shape, FLOAT32)
            self._reduce(method, send.astype(FLOAT32), wide, op)
            recv[...] = wide.astype(recv.dtype)
        elif send.dtype.kind == "b":
            self._reduce(method, send.view(np.uint8), recv.view(np.uint8), "max" if op == "sum" else op)
        elif op == "sum":
            self._call(method, send, recv, self._mpi.SUM)
        elif send.dtype.kind in "iu":
            self._call(method, send, recv, self._mpi.MAX if op == "max" else self._mpi.MIN)
        else:
            self._call(method, send, recv, _operation(op))

    def _do_all_reduce(self, send: np.ndarray, recv: np.ndarray, op: str) -> None:
        self._reduce(self._comm.Allreduce, send.copy() if send is recv else send, recv, op)

    def _do_all_gather(self, send: np.ndarray, recv: np.ndarray) -> None:
        self._call(self._comm.Allgather, _sendable(send), _sendable(recv))

    def _do_reduce_scatter(self, send: np.ndarray, recv: np.ndarray) -> None:
        self._reduce(self._comm.Reduce_scatter_block, send, recv, "sum")

    def _do_all_to_all(self, send: np.ndarray, recv: np.ndarray) -> None:
        self._call(self._comm.Alltoall, _sendable(send), _sendable(recv))

    def _do_permute(self, send: np.ndarray, recv: np.ndarray, perm: Permutation) -> None:
        nowhere = self._mpi.PROC_NULL
        target = source = nowhere
        for s, t in perm:
            target = t if s == self.rank else target
            source = s if t == self.rank else source
        self._call(self._comm.Sendrecv, _sendable(send), target, 0, _sendable(recv), source, 0)
        if source == nowhere:
            recv[...] = 0

    def _do_broadcast(self, buffer: np.ndarray, root: int) -> None:
        self._call(self._comm.Bcast, _sendable(buffer), root)

    def _do_barrier(self) -> None:
        self._call(self._comm.Barrier)

    def _do_interrupt(self, step: int) -> None:
        message = np.array([step])
        others = [rank for rank in range(self.size) if rank != self.rank]
        self._sent += [self._comm.Isend(message, rank, _INTERRUPTION) for rank in others]

    def _interruptions(self) -> dict[int, int]:
        while self._comm.Iprobe(tag=_INTERRUPTION):
            self._receive_interruption(self._mpi.ANY_SOURCE)
        return self._received

    def _receive_interruption(self, source: int) -> None:
        message, status = np.zeros(1, np.int64), self._mpi.Status()
        self._call(self._comm.Recv, message, source, _INTERRUPTION, status)
        self._received[status.source] = int(message[0])

    def _do_resume(self, by: list[int]) -> None:
        for rank in by:
            if rank not in self._received:
                self._receive_interruption(rank)
        self._mpi.Request.Waitall(self._sent)
        self._sent.clear()
        self._received.clear()
