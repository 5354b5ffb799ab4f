"""Plan the memory of scratch buffers: small ones on the stack, the others sharing memory according to liveness.

Storages never overlap, so their pointers may be marked ``noalias``. Two buffers that are not needed at the same time
share the same storage (not just the same bytes), which preserves this.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from heapq import heappop, heappush

from ....runtime.config import config
from ....runtime.passes import SCRATCH
from ....runtime.records import dataclass
from .. import ir, queries
from ..check import verify_plan
from ..touches import touches, touches_of

#: The largest buffer on the stack, in bytes; its extents must also be literals.
STACK_BYTES = 2048


@dataclass(slots=True)
class _Life:
    """A scratch storage: its declarations, the first and last statement of the kernel that use them, its size."""

    buffers: list[ir.BufferDecl]
    first: int
    last: int
    nbytes: int = 0


class _Slots:
    """Storages that serve one life after the other."""

    def __init__(self, lives: Iterable[_Life]):
        self.starts: dict[int, list[int]] = {}
        for life in lives:
            self.starts.setdefault(life.nbytes, []).append(life.first)
        self.count = 0
        #: Those in use, by their last statement and when they were made; the free ones of each size, last used last.
        self.used: list[tuple[int, int, _Life]] = []
        self.free: dict[int, list[tuple[int, int, _Life]]] = {}

    def take(self, life: _Life) -> None:
        """Give a life, the next one by its first statement, a storage."""
        while self.used and self.used[0][0] < life.first:
            entry = heappop(self.used)
            self.free.setdefault(entry[2].nbytes, []).append(entry)
        # A small buffer in a large slot must not live on when the next large one needs a slot.
        sizes = [life.nbytes] if self.free.get(life.nbytes) else self.sizes_not_needed(life)
        if not sizes:
            self.count += 1
            heappush(self.used, (life.last, -self.count, replace(life)))
            return
        # The most recently used one is warm in the cache. Which size is larger must not decide: each batch size would
        # be a new kernel.
        _, number, slot = self.free[max(sizes, key=lambda n: self.free[n][-1][:2])].pop()
        for b in life.buffers:
            b.storage = slot.buffers[0].place
        slot.nbytes = max(slot.nbytes, life.nbytes)
        heappush(self.used, (life.last, number, slot))

    def sizes_not_needed(self, life: _Life) -> list[int]:
        """The sizes of free slots that no life of this size needs while this one lasts."""
        return [n for n, slots in self.free.items() if slots and not self.begins(n, life)]

    def begins(self, nbytes: int, life: _Life) -> bool:
        """Whether a life of this size begins after another one has, and before it ends."""
        starts = self.starts[nbytes]
        return bisect_right(starts, life.first) < bisect_right(starts, life.last)


def plan(kernel: ir.Kernel, specialize_below: int) -> ir.Kernel:
    """Choose the role and storage of every scratch buffer, in place.

    Parameters
    ----------
    kernel : Kernel
        It must not be outlined yet.
    specialize_below : int
        Extents up to this one are literals.

    Returns
    -------
    Kernel
        The same object, without unused buffers.
    """
    before = {id(b): b.place for b in kernel.buffers}
    lives = _lives(kernel)
    _drop_untouched(kernel)
    if not config.runs(SCRATCH):
        return kernel
    ordered = sorted(lives.values(), key=lambda life: life.first)
    slots = _Slots(ordered)
    for life in ordered:
        if _on_stack(life, specialize_below):
            life.buffers[0].role = "stack"
        else:
            slots.take(life)
    if config.verify:
        verify_plan(kernel, before)
    return kernel


def scratch_bytes(kernel: ir.Kernel) -> dict[str, int]:
    """The size of each scratch storage (before outlining); -1 for the header of a pool."""
    sizes: dict[str, int] = {}
    for b in kernel.buffers:
        if b.role == "pool":
            sizes[b.place] = -1
        elif b.role == "scratch":
            sizes[b.place] = max(sizes.get(b.place, 0), b.size * b.dtype.itemsize)
    return sizes


def written_before_failure(kernel: ir.Kernel) -> frozenset[str]:
    """The storages that a kernel may have written to when it reports failure, or when a host call raises."""
    lost: set[str] = set()
    _note_failures(kernel.body, set(), lost)
    return frozenset(lost)


def _note_failures(block: ir.StatementList, written: set[str], lost: set[str]) -> None:
    """Add to `lost` the storages that are in `written` where a statement of a block may fail."""
    for s in block.statements:
        if isinstance(s, _FAILING):
            lost |= written
        elif isinstance(s, ir.If):
            _note_failures(s.then, written, lost)
            _note_failures(s.orelse, written, lost)
        else:
            written |= _written(s)
            if any(isinstance(inner, _FAILING) for inner in queries.walk(ir.StatementList([s]))):
                lost |= written


_FAILING = (ir.Fail, ir.HostCall, ir.Reserve)


def _written(statement: ir.Statement) -> set[str]:
    """The storages that a statement, and those in its blocks, write to."""
    places = set()
    for s in queries.walk(ir.StatementList([statement])):
        if not (isinstance(s, ir.Copy) and s.target.place == s.source.place):
            places |= {touch.buffer.place for touch in touches_of(s) if touch.writes}
    return places


def _drop_untouched(kernel: ir.Kernel) -> None:
    """Remove unused declarations, but keep one for each input and output (the header of a tape is not its records).

    That of an updated input stays: it says that the storage has a value from the start.
    """
    touched = {id(b) for s in kernel.body.statements for b in _touched(s)}
    places = {b.place for b in kernel.buffers if id(b) in touched and b.role != "tape"}
    kernel.buffers = [
        b
        for b in kernel.buffers
        if id(b) in touched or b.role == "update" or (b.role != "scratch" and b.place not in places)
    ]


def _on_stack(life: _Life, specialize_below: int) -> bool:
    return len(life.buffers) == 1 and fits_on_stack(life.buffers[0], specialize_below)


def fits_on_stack(buffer: ir.BufferDecl, specialize_below: int) -> bool:
    """Whether a scratch buffer is small enough for the stack, with extents that are literals."""
    small = buffer.size * buffer.dtype.itemsize <= STACK_BYTES and not buffer.dealt
    return small and all(n <= specialize_below for n in buffer.shape)


def _lives(kernel: ir.Kernel) -> dict[str, _Life]:
    places = {id(b): b.place for b in kernel.buffers if b.role == "scratch"}
    lives: dict[str, _Life] = {}
    for time, statement in enumerate(kernel.body.statements):
        for buffer in _touched(statement):
            place = places.get(id(buffer))
            if place is None:
                continue
            life = lives.setdefault(place, _Life([], time, time))
            life.last = time
            if buffer not in life.buffers:
                life.buffers.append(buffer)
                life.nbytes = max(life.nbytes, buffer.size * buffer.dtype.itemsize)
    return lives


def _touched(statement: ir.Statement) -> list[ir.BufferDecl]:
    """The buffers that a statement uses, in order: the plan must not depend on the order of a set."""
    return list(dict.fromkeys(touch.buffer for touch in touches(ir.StatementList([statement]))))
