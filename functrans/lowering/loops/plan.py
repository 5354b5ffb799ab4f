"""Plan the memory of scratch buffers: small ones on the stack, the others sharing memory according to liveness.

Storages never overlap, so their pointers may be marked ``noalias``. Two buffers that are not needed at the same time
share the same storage (not just the same bytes), which preserves this.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.config import config
from ...core.passes import SCRATCH
from . import ir
from .check import verify_plan

#: The largest buffer on the stack, in bytes; its extents must also be literals.
STACK_BYTES = 2048


@dataclass(slots=True)
class _Life:
    """A scratch storage: its declarations, and the first and last statement of the kernel that use them."""

    buffers: list[ir.BufferDecl]
    first: int
    last: int

    @property
    def nbytes(self) -> int:
        return max(b.size * b.dtype.itemsize for b in self.buffers)


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
    starts: dict[int, list[int]] = {}
    for life in lives.values():
        starts.setdefault(life.nbytes, []).append(life.first)
    slots: list[_Life] = []
    for life in sorted(lives.values(), key=lambda life: life.first):
        if _on_stack(life, specialize_below):
            life.buffers[0].role = "stack"
            continue
        free = [s for s in slots if s.last < life.first]
        # A small buffer in a large slot must not live on when the next large one needs a slot.
        free = [s for s in free if s.nbytes == life.nbytes] or [
            s for s in free if not any(life.first < start <= life.last for start in starts[s.nbytes])
        ]
        if not free:
            slots.append(_Life(life.buffers, life.first, life.last))
            continue
        # The most recently used one is warm in the cache. Which size is larger must not decide: each batch size would
        # be a new kernel.
        slot = max(free, key=lambda s: s.last)
        for b in life.buffers:
            b.storage = slot.buffers[0].place
        slot.buffers = slot.buffers + life.buffers
        slot.last = life.last
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
            if any(isinstance(inner, _FAILING) for inner in ir.walk(ir.StatementList([s]))):
                lost |= written


_FAILING = (ir.Fail, ir.HostCall, ir.Reserve)


def _written(statement: ir.Statement) -> set[str]:
    """The storages that a statement, and those in its blocks, write to."""
    places = set()
    for s in ir.walk(ir.StatementList([statement])):
        if not (isinstance(s, ir.Copy) and s.target.place == s.source.place):
            places |= {touch.buffer.place for touch in ir.touches_of(s) if touch.writes}
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
    return lives


def _touched(statement: ir.Statement) -> list[ir.BufferDecl]:
    """The buffers that a statement uses, in order: the plan must not depend on the order of a set."""
    return list(dict.fromkeys(touch.buffer for touch in ir.touches(ir.StatementList([statement]))))
