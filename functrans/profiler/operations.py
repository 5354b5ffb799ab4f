"""Operations outside `jit`, which `EvalTrace` computes: the first ones are all timed, later ones in samples.

Timing one takes about as long as computing with a small array. So after `EXACT` of them, they are timed only in windows
of `WINDOW` in every `PERIOD`. In between `EvalTrace` is as it was. What was measured in the windows stands for all the
time since then. A window begins with the end of an operation, so that a long wait for one is not counted twice.
"""

from __future__ import annotations

import threading
from typing import Any

from ..core.trace import EvalTrace
from ..core.values import Params
from ..lowering.run.timing import thread_times
from ..runtime.unusual import unusual
from .recorder import Recorder, now

#: How many operations are timed before there are windows.
EXACT = 1000
#: The length of a window, in nanoseconds, and the seconds from one to the next: timed operations take twice as long.
WINDOW, PERIOD = 500_000, 0.04
#: What timing an operation adds to a window, in nanoseconds.
ADDED = 800

_plain = EvalTrace.process


class Operations:
    """How operations are timed while a profile is open.

    Attributes
    ----------
    since : int
        The time at which the windows began; 0 before.
    open : int
        The nanoseconds of all windows, without what timing adds to them.
    """

    def __init__(self, recorder: Recorder):
        self.recorder = recorder
        self.left = EXACT
        self.since = self.open = 0
        self._start = self._number = 0
        self._over = threading.Event()

    def begin(self) -> None:
        """Time operations from now on."""
        EvalTrace.process = self._method()  # type: ignore[method-assign]

    def end(self) -> None:
        """Time no more."""
        self._over.set()
        EvalTrace.process = _plain  # type: ignore[method-assign]

    def _method(self) -> Any:
        def process(trace: EvalTrace, prim: Any, args: tuple[Any, ...], params: Params) -> Any:
            return self.timed(trace, prim, args, params)

        return process

    def timed(self, trace: EvalTrace, prim: Any, args: tuple[Any, ...], params: Params) -> Any:
        """Instead of `EvalTrace.process`."""
        thread = self.recorder.thread()
        kind = "sampled" if self.since else "eager"
        outer, thread.inside = thread.inside, 0
        outer_kernels, thread.kernels = thread.kernels, 0
        ticks, start = thread_times[thread.slot], now()
        try:
            return _plain(trace, prim, args, params)
        finally:
            end, kernels = now(), thread_times[thread.slot] - ticks
            opens = self.since and not self._start
            if not opens:
                thread.operation(kind, prim.name, start, end, kernels)
            thread.inside, thread.kernels = outer + end - start, outer_kernels + kernels
            self._number += 1
            if opens:
                self._start, self._number = end, 0
            elif self.since:
                if end > self._start + WINDOW:
                    self._close(end)
            elif self._number >= self.left:
                self.since, self._number = end, 0
                EvalTrace.process = _plain  # type: ignore[method-assign]
                threading.Thread(target=self._open_windows, name="profile", daemon=True).start()

    def _close(self, end: int) -> None:
        """End a window."""
        start, self._start = self._start, 0
        if start and unusual.recorder is self.recorder:
            EvalTrace.process = _plain  # type: ignore[method-assign]
            self.open += max(end - start - ADDED * self._number, 1)
            self._number = 0

    def _open_windows(self) -> None:
        method = self._method()
        while not self._over.wait(PERIOD):
            if self._start:
                self._close(now())
            if unusual.recorder is self.recorder:
                EvalTrace.process = method  # type: ignore[method-assign]
