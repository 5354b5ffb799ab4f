"""What the ranks of an axis exchange: collectives on contiguous NumPy buffers, blocking or in the background.

`Communicator` checks what it is called with, and keeps order; a backend carries it out, in the methods whose names
begin with ``_do_``. Results are written to buffers of the caller, so kernels and host calls pass theirs on as they are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from ..core.low_precision import is_low
from ..core.values import PyTree
from ..errors import CollectiveError, FunctransError, ShardingError
from ..errors.source import user_source
from ..runtime.config import config
from .worker import Request, Worker

#: Pairs of source and destination.
Permutation = tuple[tuple[int, int], ...]
OPERATIONS = ("sum", "max", "min")
COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "permute",
    "broadcast",
    "barrier",
)
_DIGEST = 16
_checks = type(config).check_collectives


class Communicator(ABC):
    """The ranks along one axis of a mesh, or several axes; see `Mesh.communicator`.

    All ranks call the same methods in the same order, with buffers of the same shape and dtype. Buffers are contiguous;
    dtypes are bool, integers, floats (float16 and bfloat16 among them) and complex. What a method sends may be reused
    when it returns.

    Attributes
    ----------
    rank : int
        The position of this rank along the axis.
    size : int
        The number of ranks.
    name : str
        The axes, for messages.
    """

    def __init__(self, rank: int, size: int, name: str):
        self.rank = rank
        self.size = size
        self.name = name
        self.closed = False
        self._worker: Worker | None = None
        self._permutations: set[Permutation] = set()  # checked ones

    # --- collectives ------------------------------------------------------------------------------------------

    def all_reduce(self, send: np.ndarray, recv: np.ndarray, op: str) -> None:
        """Combine the buffers of all ranks, element by element, with the result on every rank.

        Parameters
        ----------
        send, recv : ndarray, of one shape
        op : {'sum', 'max', 'min'}
            As NumPy computes it: NaN goes through, the sum of bools is `or`, complex numbers are ordered by their real
            part. Sums of float16 and bfloat16 are computed in float32, and rounded once.

        Raises
        ------
        CollectiveError
            If buffers do not fit, or `op` is another one.
        ShardingError
            If the mesh is closed.
        """
        if op not in OPERATIONS:
            raise CollectiveError(f"all_reduce: op must be one of {', '.join(OPERATIONS)}, got {op!r}")
        send = self._checked("all_reduce", send, recv, send.shape, op)
        self._do_all_reduce(send, recv, op)

    def all_gather(self, send: np.ndarray, recv: np.ndarray) -> None:
        """Collect the buffers of all ranks on every rank: `recv`, of shape ``(size, *send.shape)``."""
        send = self._checked("all_gather", send, recv, (self.size, *send.shape))
        self._do_all_gather(send, recv)

    def reduce_scatter(self, send: np.ndarray, recv: np.ndarray) -> None:
        """Sum over ranks; rank i receives row i of the sum of `send`, of shape ``(size, *recv.shape)``."""
        if send.shape[:1] != (self.size,):
            raise self._misfit("reduce_scatter", f"send must have {self.size} rows, one a rank", send)
        send = self._checked("reduce_scatter", send, recv, send.shape[1:])
        self._do_reduce_scatter(send, recv)

    def all_to_all(self, send: np.ndarray, recv: np.ndarray) -> None:
        """Row j of `send` goes to rank j; row i of `recv` comes from rank i. Both have a row for each rank."""
        if send.shape[:1] != (self.size,):
            raise self._misfit("all_to_all", f"send must have {self.size} rows, one a rank", send)
        send = self._checked("all_to_all", send, recv, send.shape)
        self._do_all_to_all(send, recv)

    def permute(self, send: np.ndarray, recv: np.ndarray, perm: Permutation) -> None:
        """Send from rank to rank; `recv` is zero on ranks that are not a target.

        Parameters
        ----------
        send, recv : ndarray, of one shape
        perm : tuple of (source, target)
            No rank may be a source twice, or a target twice.
        """
        perm = tuple([(source, target) for source, target in perm])
        if perm not in self._permutations:
            self.check_permutation(perm)
            self._permutations.add(perm)
        send = self._checked("permute", send, recv, send.shape, perm)
        self._do_permute(send, recv, perm)

    def broadcast(self, buffer: np.ndarray, root: int) -> None:
        """Copy the buffer of rank `root` to every rank."""
        if not 0 <= root < self.size:
            raise CollectiveError(f"broadcast: root must be from 0 to {self.size - 1}, got {root}")
        self._checked("broadcast", buffer, buffer, buffer.shape, root)
        self._do_broadcast(buffer, root)

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self._enter("barrier")
        self._do_barrier()

    # --- in the background ------------------------------------------------------------------------------------

    def start(self, name: str, *args: PyTree) -> Request:
        """Start a collective by its name, as ``start("all_gather", send, recv)``, and return without waiting for it.

        Those that are started run one after another, in the background; ones called directly may run meanwhile. Leave
        the buffers alone until ``wait()`` of the returned `Request` has returned.
        """
        if name not in COLLECTIVES:
            raise CollectiveError(f"start: the collectives are {', '.join(COLLECTIVES)}, got {name!r}")
        self._check_open(name)
        if self._worker is None:
            self._worker = Worker(f"functrans collectives over {self.name}")
        twin = self._twin()
        checks = config.check_collectives
        source = user_source()

        def call() -> None:
            try:
                with config.patch(check_collectives=checks):
                    getattr(twin, name)(*args)
            except FunctransError as error:  # of the line that started it
                raise type(error)(error.message, source) from error

        return self._submit(self._worker, call)

    def _submit(self, worker: Worker, call: Callable[[], None]) -> Request:
        return worker.submit(call, Request())

    @abstractmethod
    def _twin(self) -> Communicator:
        """A communicator over the same ranks whose calls do not meet those of this one."""

    # --- agreement --------------------------------------------------------------------------------------------

    def agree(self, signature: str) -> None:
        """Check that all ranks are about to do the same.

        Parameters
        ----------
        signature : str
            What this rank is about to do. Lines are compared one by one.

        Raises
        ------
        CollectiveError
            On every rank, if they differ. It shows the first line that does.
        """
        digest = np.frombuffer(blake2b(signature.encode(), digest_size=_DIGEST).digest(), np.uint8)
        digests = np.empty((self.size, _DIGEST), np.uint8)
        self._do_all_gather(digest, digests)
        if (digests == digest).all():
            return
        signatures = [text.decode() for text in self.gather_bytes(signature.encode())]
        other = next(r for r in range(self.size) if signatures[r] != signatures[0])
        raise CollectiveError(
            f"ranks along {self.name} differ in what they call:\n{_difference(signatures, 0, other)}\n"
            f"All ranks must call the same collectives in the same order: look for a branch, a loop or a size that "
            f"depends on the rank or its data"
        )

    def gather_bytes(self, text: bytes) -> list[bytes]:
        """The bytes of every rank, of any lengths, on every rank."""
        lengths = np.empty((self.size, 1), np.int64)
        self._do_all_gather(np.array([len(text)]), lengths)
        most = int(lengths.max())
        rows = np.zeros((self.size, most), np.uint8)
        self._do_all_gather(np.frombuffer(text.ljust(most, b"\0"), np.uint8), rows)
        return [row[:n].tobytes() for row, (n,) in zip(rows, lengths, strict=True)]

    # --- interruption -----------------------------------------------------------------------------------------

    def interrupt(self, step: int) -> None:
        """Let the other ranks know, without waiting for them, that work after a step is in vain."""
        if self.size > 1:
            self._do_interrupt(step)

    def interrupted(self) -> float:
        """The least step with which another rank has called `interrupt`; infinite if none has."""
        return min(self._interruptions().values(), default=math.inf) if self.size > 1 else math.inf

    def resume(self, by: Sequence[int]) -> None:
        """Forget interruptions. All ranks call it, after a collective, with the ranks that called `interrupt`."""
        if self.size > 1:
            self._do_resume([rank for rank in by if rank != self.rank])

    # --- end --------------------------------------------------------------------------------------------------

    def pending(self) -> int:
        """The number of collectives that were started and have not ended."""
        return 0 if self._worker is None else self._worker.pending

    def close(self) -> None:
        """Wait for what was started, and end the thread. Called by `Mesh.close`."""
        if not self.closed:
            self.closed = True
            if self._worker is not None:
                self._worker.close()

    # --- checks -----------------------------------------------------------------------------------------------

    def check_permutation(self, perm: Permutation) -> None:
        """Raise `CollectiveError` if a rank does not exist, or is a source or a target twice."""
        for kind, ranks in zip(("source", "target"), zip(*perm) if perm else ((), ()), strict=True):
            bad = [r for r in ranks if not 0 <= r < self.size]
            if bad:
                raise CollectiveError(
                    f"permute: {kind} {bad[0]} does not exist: ranks along {self.name} are 0 to {self.size - 1}"
                )
            twice = [r for r in ranks if ranks.count(r) > 1]
            if twice:
                raise CollectiveError(f"permute: rank {twice[0]} is a {kind} twice in {perm}")

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise ShardingError(f"{what}: the mesh is closed. Make a new one, or close it later")

    def _enter(self, what: str) -> None:
        self._check_open(what)
        if config.check_collectives:
            self.agree(what)

    def _checked(
        self, what: str, send: np.ndarray, recv: np.ndarray, expected: tuple[int, ...], *further: Any
    ) -> np.ndarray:
        """What to send: a copy if it shares memory with `recv`."""
        if recv.shape != expected:
            raise self._misfit(what, f"recv must have the shape {expected}", recv)
        if send.dtype != recv.dtype or not _is_number(send.dtype):
            raise CollectiveError(
                f"{what}: send and recv must have one numeric dtype, got {send.dtype} and {recv.dtype}"
            )
        if not (send.flags.c_contiguous and recv.flags.c_contiguous and recv.flags.writeable):
            raise CollectiveError(f"{what}: buffers must be contiguous, and recv must be writable")
        self._check_open(what)
        if _checks.ever_changed and config.check_collectives:
            self.agree(" ".join(map(str, (what, f"{send.dtype}{list(send.shape)}", *further))))
        return send.copy() if send is not recv and np.may_share_memory(send, recv) else send

    def _misfit(self, what: str, must: str, got: np.ndarray) -> CollectiveError:
        return CollectiveError(
            f"{what}: {must}, got {got.shape}; there are {self.size} ranks along {self.name}"
        )

    # --- of the backend ---------------------------------------------------------------------------------------

    @abstractmethod
    def _do_all_reduce(self, send: np.ndarray, recv: np.ndarray, op: str) -> None: ...

    @abstractmethod
    def _do_all_gather(self, send: np.ndarray, recv: np.ndarray) -> None: ...

    @abstractmethod
    def _do_reduce_scatter(self, send: np.ndarray, recv: np.ndarray) -> None: ...

    @abstractmethod
    def _do_all_to_all(self, send: np.ndarray, recv: np.ndarray) -> None: ...

    @abstractmethod
    def _do_permute(self, send: np.ndarray, recv: np.ndarray, perm: Permutation) -> None: ...

    @abstractmethod
    def _do_broadcast(self, buffer: np.ndarray, root: int) -> None: ...

    @abstractmethod
    def _do_barrier(self) -> None: ...

    @abstractmethod
    def _do_interrupt(self, step: int) -> None: ...

    @abstractmethod
    def _interruptions(self) -> dict[int, int]:
        """The steps at which other ranks interrupted."""

    @abstractmethod
    def _do_resume(self, by: list[int]) -> None: ...


class AloneCommunicator(Communicator):
    """Of one rank: everything is a copy."""

    def _twin(self) -> Communicator:
        return self

    def _do_all_reduce(self, send: np.ndarray, recv: np.ndarray, op: str) -> None:
        recv[...] = send

    def _do_all_gather(self, send: np.ndarray, recv: np.ndarray) -> None:
        recv[0] = send

    def _do_reduce_scatter(self, send: np.ndarray, recv: np.ndarray) -> None:
        recv[...] = send[0]

    def _do_all_to_all(self, send: np.ndarray, recv: np.ndarray) -> None:
        recv[...] = send

    def _do_permute(self, send: np.ndarray, recv: np.ndarray, perm: Permutation) -> None:
        recv[...] = send if perm else 0

    def _do_broadcast(self, buffer: np.ndarray, root: int) -> None:
        pass

    def _do_barrier(self) -> None:
        pass

    def _do_interrupt(self, step: int) -> None:
        pass

    def _interruptions(self) -> dict[int, int]:
        return {}

    def _do_resume(self, by: list[int]) -> None:
        pass


def _is_number(dtype: np.dtype) -> bool:
    return dtype.kind in "biufc" or is_low(dtype)


def _difference(signatures: list[str], a: int, b: int) -> str:
    """The first lines that two ranks differ in."""
    lines = [signatures[a].splitlines(), signatures[b].splitlines()]
    at = next((i for i, (x, y) in enumerate(zip(*lines)) if x != y), min(map(len, lines)))
    of = [own[at] if at < len(own) else "(no further call)" for own in lines]
    where = f"call {at + 1}: " if max(map(len, lines)) > 1 else ""
    return "\n".join(f"  rank {r}: {where}{text}" for r, text in zip((a, b), of, strict=True))


def bytes_of(x: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array, of any dtype, as bytes."""
    return x.reshape(math.prod(x.shape)).view(np.uint8)
