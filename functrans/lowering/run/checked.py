"""Checked mode: a kernel runs on memory surrounded by guard words, which are checked afterwards.

The kernel itself checks the guards of memory on the stack (`llvm.function`); the memory of tapes always has guards
(`core.tape`).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...core import GUARD, WORD, MemoryDamageError, fill, tape, words
from ..backend import Run
from ..loops import ir

#: The name of a storage in messages, by the last of its declarations' roles.
_ROLES = {
    "tape": "a pool of tapes",
    "in": "an input",
    "out": "an output",
    "update": "an input that becomes an output",
    "pool": "a pool of tapes",
    "scratch": "scratch memory",
}


def checked(run: Run, kernel: ir.Kernel, ints: tuple[int, ...]) -> Run:
    """A kernel as a function of its buffers that raises if the kernel does something forbidden.

    Parameters
    ----------
    run : callable
        The result of `CompiledKernel.bind`, for a kernel compiled with ``Options(checked=True)``.
    kernel : Kernel
        The outlined kernel, whose names reports use.
    ints : tuple of int

    Raises
    ------
    MemoryDamageError
        From the returned function: for a write outside a buffer, a write to an input, an unwritten element of an
        output, and a pool that is too small for its records.
    """
    return _CheckedKernel(run, kernel, ints)


class _Layout:
    """The positions of buffers of these sizes in one block of memory."""

    def __init__(self, sizes: tuple[int, ...]):
        self.sizes = sizes
        self.places: list[tuple[int, int]] = []
        gaps, end = [], 0
        for n in sizes:
            start = -(-(end + GUARD) // 64) * 64
            gaps.append((end, start))
            self.places.append((start, end := start + n))
        total = -(-(end + GUARD) // 8) * 8
        self.gaps = [(a, b, words(b - a, a)) for a, b in [*gaps, (end, total)]]
        self.words = total // 8


class _CheckedKernel:
    def __init__(self, run: Run, kernel: ir.Kernel, ints: tuple[int, ...]):
        self.run = run
        self.kernel = kernel
        self.ints = ints
        order = [*_ROLES]
        self.decls = [
            max((b for b in kernel.buffers if b.place == place), key=lambda b: order.index(b.role))
            for place in kernel.storages
        ]
        self.roles = [b.role for b in self.decls]
        self.records = {
            i: max(b.dtype.itemsize * prod(map(self.extent, b.shape[1:])), 1)
            for i, place in enumerate(kernel.storages)
            for b in kernel.buffers
            if b.place == place and b.role == "tape"
        }
        self.layout = _Layout(())

    def extent(self, n: Any) -> int:
        return n if isinstance(n, int) else self.ints[n.slot]

    def __call__(self, arrays: tuple[np.ndarray, ...]) -> int:
        sizes = tuple([a.nbytes for a in arrays])
        if sizes != self.layout.sizes:
            self.layout = _Layout(sizes)
        layout = self.layout
        block = np.full(layout.words, WORD, np.uint64).view(np.uint8)
        given = [np.ndarray((n,), np.uint8, a) for n, a in zip(sizes, arrays)]
        guarded = tuple([block[a:b] for a, b in layout.places])
        headers = [i for i, a in enumerate(arrays) if isinstance(a, tape.Pool)]
        for i, role in enumerate(self.roles):
            if role in ("in", "update") or i in headers:
                guarded[i][:] = given[i]
        try:
            status = self.run(guarded)
        finally:
            for i in headers:
                if self.roles[i] != "in":
                    given[i][:] = guarded[i]
        if status > 0 and status & ir.OVERWRITTEN:
            b = self.kernel.buffers[status & ~ir.OVERWRITTEN]
            raise self.error(f"wrote outside '{b.name}', {self.type(b)} on the stack")
        self.look(block, layout)
        for i in headers:
            self.look_at_pool(i, arrays[i])
        for i, role in enumerate(self.roles):
            if role == "in" and (given[i] != guarded[i]).any():
                raise self.error(f"wrote to {self.name(i)}")
            if role in ("out", "update") and i not in headers:
                given[i][:] = guarded[i]
                if role == "out" and not status:
                    self.check_output(i, guarded[i])
        block.view(np.uint64).fill(WORD)
        return status

    def look(self, block: np.ndarray, layout: _Layout) -> None:
        """Raise if a guard word was overwritten."""
        held = memoryview(block)
        for i, (a, b, expected) in enumerate(layout.gaps):
            if held[a:b] != expected:
                bad = [k for k, (x, y) in enumerate(zip(held[a:b], expected)) if x != y]
                after = i == len(self.decls) or (i > 0 and bad[0] < b - a - 1 - bad[-1])
                where = (
                    f"past the end of {self.name(i - 1)}" if after else f"before the start of {self.name(i)}"
                )
                raise self.error(f"wrote {where}")

    def look_at_pool(self, i: int, pool: np.ndarray) -> None:
        """Raise if the records of tapes were overrun."""
        where = tape.damage(pool)
        if where:
            raise self.error(f"wrote {where} of the records of {self.name(i)}")
        needed = int(pool[1]) * self.records.get(i, 0)
        if needed > tape.size_of(pool):
            message = (
                f"reserved {tape.size_of(pool)} bytes for the records of {self.name(i)}, which need {needed}"
            )
            raise self.error(message)
        if self.roles[i] == "pool" and pool[0]:
            fill(int(pool[0]), tape.size_of(pool))

    def check_output(self, i: int, output: np.ndarray) -> None:
        """Raise if part of an output was not written."""
        dtype = self.decls[i].dtype
        if dtype.itemsize >= 8:
            unwritten = output.view(np.uint64) == WORD
        elif dtype == np.float32:
            unwritten = output.view(np.uint32) == WORD & 0xFFFFFFFF
        else:
            return
        if unwritten.any():
            count = f"{np.count_nonzero(unwritten)} of {unwritten.size} words of {self.name(i)}"
            raise self.error(f"did not write {count}, or computed them from memory that it did not write")

    def name(self, i: int) -> str:
        """The name of a buffer in messages."""
        b = self.decls[i]
        return f"'{b.name}', {_ROLES[self.roles[i]]} of type {self.type(b)}"

    def type(self, b: ir.BufferDecl) -> str:
        """``f64[3]``, with the name that NumPy gives to the dtype."""
        return f"{b.dtype.name}[{','.join(str(self.extent(n)) for n in b.shape)}]"

    def error(self, what: str) -> MemoryDamageError:
        """The error that describes what the kernel did."""
        return MemoryDamageError(
            f"kernel '{self.kernel.name}' {what}: this is a bug in functrans, not in your program. Please report it; "
            "config.backend = 'python' runs the program without compiled kernels"
        )
