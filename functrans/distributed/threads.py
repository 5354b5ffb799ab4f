"""Virtual ranks: threads of one process, for tests and for programs that try a mesh without starting processes.

All threads of a team share one lock. A collective is a meeting: each rank leaves its buffer and waits for the others,
reads theirs, and meets them once more before anybody's buffer may change. Reductions go in the order of ranks, so
results are the same on every rank and in every run.

The team knows how many of its threads run and how many wait. When all that are left wait, none can ever go on, and each
raises an error that says where the others are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..core.low_precision import FLOAT32, is_low
from ..errors import CollectiveError
from ..runtime.context import run_quietly
from .communicator import Communicator, Permutation
from .worker import Request, Worker

_COMBINE: dict[str, Callable[..., Any]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class RankTeam:
    """The threads of one `run_threads`: who runs, who waits where, and whether it failed."""

    def __init__(self, size: int):
        self.size = size
        self.changed = threading.Condition()
        self.meetings: dict[Any, Meeting] = {}
        self.failure: str | None = None
        self.running = size
        self._waiting: dict[int, str] = {}
        self._ended: list[int] = []

    def meeting(self, key: Any, size: int) -> Meeting:
        """The meeting place of some ranks, the same for all of them."""
        with self.changed:
            return self.meetings.setdefault(key, Meeting(self, size))

    def fail(self, reason: str) -> None:
        """Release everybody who waits, with an error that says why."""
        with self.changed:
            self._fail(reason)

    def _fail(self, reason: str) -> None:
        self.failure = self.failure or reason
        self.changed.notify_all()

    def stops(self) -> None:
        """One thread less runs. Called under the lock."""
        self.running -= 1
        self._notice_deadlock()

    def end(self, rank: int) -> None:
        """The thread of a rank ends."""
        with self.changed:
            self._ended.append(rank)
            self.stops()

    def wait(self, who: str, until: Callable[[], bool]) -> None:
        """Wait, under the lock, until the condition holds; raise if the team failed, or all that are left wait."""
        me = threading.get_ident()
        self._waiting[me] = who
        self._notice_deadlock()
        try:
            self.changed.wait_for(lambda: self.failure is not None or until())
        finally:
            self._waiting.pop(me, None)
        if self.failure is not None and not until():
            raise CollectiveError(f"{who}: {self.failure}")

    def awake(self, threads: Sequence[int]) -> None:
        """What these threads wait for has come: they count as running before they wake."""
        for thread in threads:
            self._waiting.pop(thread, None)
        self.changed.notify_all()

    def _notice_deadlock(self) -> None:
        if self._waiting and len(self._waiting) == self.running:
            ended = f"; ended: {', '.join(f'rank {r}' for r in self._ended)}" if self._ended else ""
            self._fail(
                f"every rank that is left waits, so none can go on. Waiting: {', '.join(self._waiting.values())}{ended}"
            )


class Meeting:
    """Where ranks exchange values, round after round."""

    def __init__(self, team: RankTeam, size: int):
        self.team = team
        self.size = size
        self.interruptions: dict[int, int] = {}
        self._rounds: dict[int, dict[int, tuple[str, int, Any]]] = {}

    def exchange(self, number: int, rank: int, what: str, value: Any, name: str) -> list[Any]:
        """The values of all ranks of round `number`, by rank."""
        team = self.team
        with team.changed:
            if team.failure is not None:
                raise CollectiveError(f"{what} over {name}: {team.failure}")
            here = self._rounds.setdefault(number, {})
            here[rank] = (what, threading.get_ident(), value)
            if len(here) == self.size:
                del self._rounds[number]
                team.awake([thread for _, thread, _ in here.values()])
            else:
                team.wait(f"rank {rank} in {what} over {name}", lambda: len(here) == self.size)
        different = [r for r in here if here[r][0] != here[0][0]]
        if different:
            other = min(different)
            raise CollectiveError(
                f"ranks along {name} differ in what they call:\n  rank 0: {here[0][0]}\n"
                f"  rank {other}: {here[other][0]}\nAll ranks must call the same collectives in the same order"
            )
        return [here[r][2] for r in range(self.size)]


class TeamRequest(Request):
    """A request of a team: who waits for it does not run.

    Parameters
    ----------
    team : RankTeam
    finished : callable
        Called under the lock when it ends.
    """

    def __init__(self, team: RankTeam, finished: Callable[[], None]):
        super().__init__()
        self._team = team
        self._finished = finished
        self._asleep = 0

    def settle(self, timeout: float | None = None) -> bool:
        """Wait for its end, and return whether it came in time."""
        team = self._team
        with team.changed:
            if self.done:
                return True
            self._asleep += 1
            team.stops()
        if super().settle(timeout):
            return True
        with team.changed:
            if not self.done:
                self._asleep -= 1
                team.running += 1
        return self.done

    def end(self, error: BaseException | None) -> None:
        """Mark it as ended; those who wait run from now on."""
        with self._team.changed:
            super().end(error)
            self._team.running += self._asleep
            self._finished()


class ThreadsCommunicator(Communicator):
    """Of virtual ranks.

    Parameters
    ----------
    team : RankTeam
    key : hashable
        The same for all ranks of this communicator, and different from any other's.
    """

    def __init__(self, team: RankTeam, key: Any, rank: int, size: int, name: str):
        super().__init__(rank, size, name)
        self._team = team
        self._key = key
        self._meeting = team.meeting(key, size)
        self._number = 0
        self._background: Communicator | None = None
        self._jobs = 0
        self._last: TeamRequest | None = None

    def _twin(self) -> Communicator:
        if self._background is None:
            key = (self._key, "background")
            self._background = ThreadsCommunicator(self._team, key, self.rank, self.size, self.name)
        return self._background

    def _submit(self, worker: Worker, call: Callable[[], None]) -> Request:
        team = self._team
        with team.changed:
            self._jobs += 1
            team.running += self._jobs == 1  # those behind it do not run
        self._last = TeamRequest(team, self._finished)
        return worker.submit(call, self._last)

    def _finished(self) -> None:
        self._jobs -= 1
        if not self._jobs:
            self._team.stops()

    def close(self) -> None:
        """Wait for what was started, and end the thread."""
        if self._last is not None:
            self._last.settle()
        super().close()

    def _meet(self, what: str, value: Any = None) -> list[Any]:
        self._number += 1
        return self._meeting.exchange(self._number, self.rank, what, value, self.name)

    def _exchanged(self, what: str, send: np.ndarray, read: Callable[[list[np.ndarray]], Any]) -> Any:
        """What `read` makes of all buffers, when all ranks have read them."""
        result = read(self._meet(f"{what} {send.dtype}{list(send.shape)}", send))
        self._meet(what)
        return result

    def _do_all_reduce(self, send: np.ndarray, recv: np.ndarray, op: str) -> None:
        recv[...] = self._exchanged(f"all_reduce {op}", send, lambda all_: _combined(all_, op))

    def _do_all_gather(self, send: np.ndarray, recv: np.ndarray) -> None:
        def read(sent: list[np.ndarray]) -> None:
            for row, x in enumerate(sent):
                recv[row] = x

        self._exchanged("all_gather", send, read)

    def _do_reduce_scatter(self, send: np.ndarray, recv: np.ndarray) -> None:
        recv[...] = self._exchanged(
            "reduce_scatter", send, lambda all_: _combined([x[self.rank] for x in all_], "sum")
        )

    def _do_all_to_all(self, send: np.ndarray, recv: np.ndarray) -> None:
        def read(sent: list[np.ndarray]) -> None:
            for row, x in enumerate(sent):
                recv[row] = x[self.rank]

        self._exchanged("all_to_all", send, read)

    def _do_permute(self, send: np.ndarray, recv: np.ndarray, perm: Permutation) -> None:
        source = {target: source for source, target in perm}.get(self.rank)

        def read(sent: list[np.ndarray]) -> Any:
            return 0 if source is None else sent[source].copy()

        recv[...] = self._exchanged(f"permute {perm}", send, read)

    def _do_broadcast(self, buffer: np.ndarray, root: int) -> None:
        def read(sent: list[np.ndarray]) -> None:
            if self.rank != root:
                buffer[...] = sent[root]

        self._exchanged(f"broadcast from {root}", buffer, read)

    def _do_barrier(self) -> None:
        self._meet("barrier")

    def _do_interrupt(self, step: int) -> None:
        self._meeting.interruptions[self.rank] = step

    def _interruptions(self) -> dict[int, int]:
        every = self._meeting.interruptions.copy()
        every.pop(self.rank, None)
        return every

    def _do_resume(self, by: list[int]) -> None:
        self._meeting.interruptions.pop(self.rank, None)
        self._meet("resume")


def _combined(parts: list[np.ndarray], op: str) -> Any:
    combine = _COMBINE[op]
    if op == "sum" and is_low(parts[0].dtype):
        return reduce(combine, [x.astype(FLOAT32) for x in parts]).astype(parts[0].dtype)
    return run_quietly(reduce, combine, parts)
