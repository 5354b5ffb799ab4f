"""A thread that carries out calls one after another, and the requests by which one waits for them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from ..errors import CollectiveError


class Request:
    """A collective that was started; see `Communicator.start`."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._waited = False

    @property
    def done(self) -> bool:
        """Whether it has ended, also by an error."""
        return self._ended.is_set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end; raise its error.

        Parameters
        ----------
        timeout : float, optional
            Seconds.

        Raises
        ------
        CollectiveError
            If it has not ended after `timeout` seconds.
        """
        if not self.settle(timeout):
            raise CollectiveError(f"a collective that was started has not ended after {timeout} s")
        self._waited = True
        if self._error is not None:
            raise self._error

    def settle(self, timeout: float | None = None) -> bool:
        """Wait for its end, and return whether it came in time."""
        return self._ended.wait(timeout)

    def end(self, error: BaseException | None) -> None:
        """Mark it as ended."""
        self._error = error
        self._ended.set()

    @property
    def unseen(self) -> BaseException | None:
        """An error that no one has waited for."""
        return None if self._waited else self._error


class Worker:
    """A daemon thread with a queue.

    Parameters
    ----------
    name : str
        Of the thread.
    """

    def __init__(self, name: str):
        self._queue: queue.SimpleQueue[tuple[Callable[[], None], Request] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._pending = 0
        self._failed: Request | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def pending(self) -> int:
        """The number of calls that have not ended."""
        return self._pending

    def submit(self, call: Callable[[], None], request: Request) -> Request:
        """Carry out a call after those before it; `request` is that of the call."""
        with self._lock:
            self._pending += 1
        self._queue.put((call, request))
        return request

    def close(self) -> None:
        """Wait for all calls, end the thread, and raise the first error that no one has seen."""
        self._queue.put(None)
        self._thread.join()
        error = self._failed.unseen if self._failed is not None else None
        if error is not None:
            raise error

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            call, request = item
            error = None
            try:
                call()
            except BaseException as raised:  # who waits for the request raises it
                error = raised
                self._failed = self._failed or request
            with self._lock:
                self._pending -= 1
            request.end(error)
            del item, call, request, error  # the buffers go now, not with the next call
