"""A pool of threads for the parallel loops of kernels.

A *job* is a function of the number of a chunk, called once for each chunk of a loop. The thread that runs the kernel
takes part: it and the workers take the next chunk from a counter until there is none. So a job never waits for a worker
that the system has not scheduled yet, and lasts no longer than without workers. There is one job at a time: a kernel
that meets a busy pool, in another thread of Python, runs its chunks alone.

Workers never run Python, and block all signals. They start with the first job that needs them, spin for some
microseconds after each, and then sleep on a condition variable. A child process starts a new pool: the pool knows the
process that it was made for. Only the thread that runs the kernel asks Python for signals, while it works and while it
waits.

The code calls the C library's threads. Its source is ``pool.c``, which explains the order of each access to memory;
`generate` has made LLVM text of it, which is compiled once per process with the first parallel loop. The machine code
is never freed: workers may still sleep in it when the interpreter ends.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys

from ....runtime.context import new_lock
from ...processor import processor
from ..objects import compile_object, keep_for_ever, load_object
from ..store import obtain
from .texts import text_of

#: The names under which kernels call it: run a job; whether a thread is a worker (0: no, 1: yes, 2: that must stop).
RUN, ROLE = "functrans.run_chunks", "functrans.role"
#: The processor's hint that a loop spins: its declaration and its call. On ARM it is a barrier of instructions, which
#: takes some ten cycles: YIELD does nothing on most of its processors.
_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "arm64": ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"),
}
_PAUSES["AMD64"], _PAUSES["aarch64"] = _PAUSES["x86_64"], _PAUSES["arm64"]
_MAC = sys.platform == "darwin"
#: The numbers of ``SIG_SETMASK`` and ``CLOCK_MONOTONIC``.
_NUMBERS = {"sig_setmask": 3, "clock_monotonic": 6} if _MAC else {"sig_setmask": 2, "clock_monotonic": 1}


def _text() -> str:
    """The text for this system: what ``pool.c`` only declares is defined."""
    if sys.platform == "win32":
        return text_of("pool_serial.ll", {})
    text = text_of("pool.ll", _NUMBERS)
    declared, pause = _PAUSES.get(platform.machine(), ("", ""))
    text = text.replace("declare void @functrans.spinning()", declared)
    return text.replace("call void @functrans.spinning()", pause)


@functools.cache
def _loaded() -> tuple[int, ...]:
    cpu, text, entry = processor(), _text(), "functrans.pool"
    code, _ = obtain(
        text,
        cpu,
        "thread pool",
        lambda: compile_object(text, entry, cpu, "code"),
        lambda c: load_object(c, {}),
        lasting="",
    )
    keep_for_ever(code)  # see above
    place = ctypes.CFUNCTYPE(ctypes.c_size_t)(code.address)()
    return tuple((ctypes.c_size_t * 2).from_address(place))


_loading = new_lock()


def pool_address(name: str) -> int:
    """The address of one of the two functions."""
    with _loading:
        return _loaded()[(RUN, ROLE).index(name)]
