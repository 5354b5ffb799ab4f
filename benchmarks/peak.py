"""The peak of the memory that this process holds, as Linux counts it."""

from __future__ import annotations

import ctypes
import gc
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path


def high_water() -> Callable[[], float]:
    """From now on: a function that returns the most bytes held in addition until it is called; NaN except on Linux."""
    if sys.platform != "linux":
        return lambda: math.nan
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts from here
    before = _status("VmRSS")
    return lambda: _status("VmHWM") - before


def peak_memory(call: Callable[[], object]) -> float:
    """The most bytes that the process holds in addition while a call runs; NaN except on Linux."""
    peak = high_water()
    call()
    return peak()


def _status(name: str) -> float:
    """A number of bytes of /proc/self/status."""
    found = re.search(rf"^{name}:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return 1024.0 * int(found[1]) if found else math.nan
