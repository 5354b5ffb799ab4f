"""Faults in compiled code."""

from __future__ import annotations

from .base import FunctransError


class MemoryDamageError(FunctransError, RuntimeError):
    """A compiled function wrote outside its memory, or did not write its result. ``config.checked`` detects this.

    Programs written with functrans cannot cause it, unless functrans itself has a bug. A kernel written by hand in the
    loop IR can:

    >>> import numpy as np, functrans as ft
    >>> from functrans.lowering.backend import Options
    >>> from functrans.lowering.loops.builder import Builder
    >>> from functrans.lowering.run.compile import compile_kernel
    >>> b = Builder("shift")
    >>> x = b.buffer("x", np.dtype(float), (3,), "in")
    >>> y = b.buffer("y", np.dtype(float), (3,), "out")
    >>> with b.loop(3) as i:
    ...     b.store(y, (i + 1,), b.load(x, (i,)))
    >>> compile_kernel(b.finish(), Options(checked=True)).run((np.ones(3), np.zeros(3)))
    Traceback (most recent call last):
    ...
    functrans.core.errors.MemoryDamageError: kernel 'shift' wrote past the end of 'y', an output of type float64[3]...

    Outside checked mode, such a write corrupts other memory, and the process crashes later or computes wrong numbers.
    Please report it, with the program. Meanwhile, ``functrans.config.backend = "python"`` or
    ``functrans.disable_jit()`` run the program without compiled code.
    """
