"""A pool of threads for the parallel loops of kernels.

A *job* is a function of the number of a chunk, called once for each chunk of a loop. The thread that runs the kernel
takes part: it and the workers take the next chunk from a counter until there is none. So a job never waits for a worker
that the system has not scheduled yet, and lasts no longer than without workers. There is one job at a time: a kernel
that meets a busy pool, in another thread of Python, runs its chunks alone.

Workers never run Python, and block all signals. They start with the first job that needs them, spin for some
microseconds after each, and then sleep on a condition variable. A child process starts its own: the pool knows the
process that it was made for. Only the thread that runs the kernel asks Python for signals, while it works and while it
waits.

The code is LLVM text that calls the C library's threads, compiled once per process with the first parallel loop. It is
never freed: workers may still sleep in it when the interpreter ends.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys

from ...runtime.context import new_lock
from ..loops import ir
from ..processor import processor
from .objects import compile_object, keep_for_ever, load_object
from .pool_text import ALWAYS, POOL, SERIAL
from .store import obtain

#: The names under which kernels call it: run a job; whether a thread is a worker (0: no, 1: yes, 2: that must stop).
RUN, ROLE = "functrans.run_chunks", "functrans.role"
#: Turns of a worker's loop before it sleeps, and of the loop in which the others are waited for: about 20 us.
_SPINS = 1000
#: Nanoseconds of work that are not worth waking a worker.
_SHORT = 40_000
#: Nanoseconds between two looks at the signals while others work.
_LOOK = 20_000_000

_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_PAUSES["AMD64"], _PAUSES["aarch64"] = _PAUSES["x86_64"], _PAUSES["arm64"]
_MAC = sys.platform == "darwin"
#: C's ``pthread_key_t``, and the numbers of ``SIG_SETMASK`` and ``CLOCK_MONOTONIC``.
_KEY, _SETMASK, _MONOTONIC = ("i64", 3, 6) if _MAC else ("i32", 2, 1)


def _text() -> str:
    declared, pause = _PAUSES.get(platform.machine(), ("", ""))
    text = ALWAYS + (SERIAL if sys.platform == "win32" else POOL)
    # fmt: off
    return text.format(
        declare_pause=declared, pause=pause, key=_KEY, setmask=_SETMASK, monotonic=_MONOTONIC, spins=_SPINS,
        look=_LOOK, short=_SHORT, overwritten=ir.OVERWRITTEN, run=RUN, role=ROLE,
    )
    # fmt: on


@functools.cache
def _loaded() -> tuple[int, ...]:
    cpu, text, entry = processor(), _text(), "functrans.pool"
    code, _ = obtain(
        text,
        cpu,
        "thread pool",
        lambda: compile_object(text, entry, cpu, optimize=False),
        lambda c: load_object(c, {}),
    )
    keep_for_ever(code)  # see above
    place = ctypes.CFUNCTYPE(ctypes.c_size_t)(code.address)()
    return tuple((ctypes.c_size_t * 2).from_address(place))


_loading = new_lock()


def pool_address(name: str) -> int:
    """The address of one of the two functions."""
    with _loading:
        return _loaded()[(RUN, ROLE).index(name)]
