"""Tapes: the residuals of a loop whose trip count is unknown in advance.

Reverse mode through a ``while_loop`` needs the residuals of every iteration, the last one first. They are records of
one type, stored consecutively in growable memory, the *pool*. A tape is a *span* of a pool: the number of its first
record and its record count. So a loop inside a loop appends to one pool, and the tapes of all its runs form an array of
spans, which can be stacked and read by rows like any array of integers. A record may itself be a span (a tape of tapes,
for a loop of unknown length inside another one): its type is then a `TapeAval`, and each level has a pool.

In a program a tape is a value like any other: only loops make, read, stack and add them. In memory it is the array of
spans and the headers of the pools; a pool's memory is freed with the last header that refers to it.

Guard words (see `runtime.guards`) surround the memory of a pool; the first of them holds its size in bytes. They are
always present, since one kernel may fill a pool and another one inspect it, but only checked mode inspects them.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..runtime.config import config
from ..runtime.guards import GUARD, fill, memory, words
from ..runtime.libraries import c_libraries
from .aval import Aval
from .dtypes import INT64
from .values import DTypeLike

_libc = c_libraries()[0]
_free, _malloc, _realloc = _libc.free, _libc.malloc, _libc.realloc
_free.argtypes, _free.restype = [ctypes.c_void_p], None
_malloc.argtypes, _malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
_realloc.argtypes, _realloc.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p

#: The minimum number of records that a pool allocates.
FEWEST = 64


class TapeAval(Aval):
    """The type of an array of tapes.

    Parameters
    ----------
    item : Aval
        The type of one record; a `TapeAval` for tapes of tapes.
    axes : tuple of int
        The shape of the array of tapes; ``()`` for one tape. `shape`, that of the spans, has one more axis.
    """

    __slots__ = ("item",)

    def __init__(self, item: Aval, axes: tuple[int, ...] = ()):
        super().__init__((*axes, 2), INT64)
        self.item = item.strong().over(frozenset())

    @property
    def levels(self) -> int:
        """The number of pools."""
        return 1 + (self.item.levels if isinstance(self.item, TapeAval) else 0)

    def record_bytes(self) -> int:
        """The size of a record in bytes."""
        return max(self.item.size * self.item.dtype.itemsize, 1)

    def strong(self) -> TapeAval:
        """Itself."""
        return self

    def with_shape(self, shape: tuple[int, ...]) -> TapeAval:
        """Tapes of the same records, with spans of another shape."""
        return TapeAval(self.item, shape[:-1])

    def __eq__(self, other: object) -> bool:
        return type(other) is TapeAval and self.shape == other.shape and self.item == other.item

    def __hash__(self) -> int:
        return hash((self.shape, self.item))

    def __str__(self) -> str:
        return f"tape[{','.join(map(str, self.shape[:-1]))}]<{self.item}>"


class Pool(np.ndarray):
    """The header of a pool, as kernels see it: address of the memory, capacity in records, number of records."""

    def __del__(self) -> None:
        if self.base is None and self[0]:
            if config.checked:
                fill(int(self[0]), size_of(self))
            _free(int(self[0]) - GUARD)

    @property
    def capacity(self) -> int:
        """How many records fit in the memory."""
        return int(self[1])


def new_pool() -> Pool:
    """An empty pool."""
    pool = np.ndarray.__new__(Pool, (3,), np.int64)
    pool[:] = 0
    return pool


def size_of(pool: np.ndarray) -> int:
    """The size of a pool's memory in bytes."""
    return ctypes.c_size_t.from_address(int(pool[0]) - GUARD).value if pool[0] else 0


def damage(pool: np.ndarray) -> str:
    """Where the memory of a pool was overrun: ``before the start``, ``past the end``; empty if it was not."""
    address = int(pool[0])
    if address and ctypes.string_at(address - GUARD + 8, GUARD - 8) != words(GUARD - 8):
        return "before the start"
    if address and ctypes.string_at(address + size_of(pool), GUARD) != words(GUARD):
        return "past the end"
    return ""


def reserve(pool: np.ndarray, records: int, record_bytes: int, limit: int) -> bool:
    """Make room for `count` more records; False if that needs more than `limit` bytes."""
    if records <= pool[1]:
        return True
    capacity = max(2 * int(pool[1]), records, FEWEST)
    capacity = min(capacity, limit // record_bytes)
    if capacity < records:
        return False
    size, old_size, address = int(capacity * record_bytes), size_of(pool), int(pool[0])
    # Guards move unchanged, so that earlier damage is still detected later.
    after = ctypes.string_at(address + old_size, GUARD) if address else words(GUARD)
    block = _grown(address - GUARD if address else 0, old_size + GUARD, size + 2 * GUARD)
    if not block:
        return False
    if not address:
        fill(block, GUARD)
    ctypes.c_size_t.from_address(block).value = size
    ctypes.memmove(block + GUARD + size, after, GUARD)
    pool[0], pool[1] = block + GUARD, capacity
    return True


def _grown(block: int, old_size: int, nbytes: int) -> int | None:
    """Resize a block of memory, keeping its contents; block 0 means a new one."""
    if not config.checked:
        return _realloc(block or None, nbytes)
    grown = _malloc(nbytes)
    if grown:
        fill(grown, nbytes)
        if block:
            ctypes.memmove(grown, block, old_size)
            fill(block, old_size)
            _free(block)
    return grown


def records(pool: np.ndarray, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """A pool's memory as an array whose first axis counts records."""
    dtype = np.dtype(dtype)
    capacity = int(pool[1])
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not capacity or not size:
        return np.empty((capacity, *shape), dtype)
    return memory(int(pool[0]), capacity * size).view(dtype).reshape((capacity, *shape))


class Tape:
    """An array of tapes as a value.

    Parameters
    ----------
    spans : ndarray of int64, shape (..., 2)
        First record and number of records of each tape.
    pools : tuple of Pool
        One per level; that of the spans comes first.
    aval : TapeAval
    """

    __slots__ = ("aval", "pools", "spans")

    def __init__(self, spans: np.ndarray, pools: tuple[np.ndarray, ...], aval: TapeAval):
        self.spans = spans
        self.pools = pools
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the spans."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the spans."""
        return INT64

    @property
    def nbytes(self) -> int:
        """The memory of the spans and of the pools, which have room for more records."""
        total, item = self.spans.nbytes, self.aval.item
        for pool in self.pools:
            total += int(pool[1]) * item.size * item.dtype.itemsize
            item = item.item if isinstance(item, TapeAval) else item
        return total

    def __len__(self) -> int:
        """The number of records of a single tape."""
        return int(self.spans[1])

    def __getitem__(self, i: int) -> Tape:
        """The tapes at an index of the first axis."""
        return Tape(self.spans[i], self.pools, self.aval.with_shape(self.aval.shape[1:]))

    def record(self, i: int) -> Any:
        """One record of a single tape."""
        item = self.aval.item
        record = records(self.pools[0], item.shape, item.dtype)[int(self.spans[0]) + i]
        if isinstance(item, TapeAval):
            return Tape(record.copy(), self.pools[1:], item)
        return record.copy()

    def __repr__(self) -> str:
        return f"Tape({self.aval}, {self.spans.tolist()})"


class TapeWriter:
    """Write tapes of one type from Python; kernels contain code for it.

    Parameters
    ----------
    item : Aval
        The type of a record.
    limit : int
        The most bytes for one pool.
    """

    def __init__(self, item: Aval, limit: int):
        self.aval = TapeAval(item)
        self.limit = limit
        self.pool = new_pool()
        self.inner = TapeWriter(item.item, limit) if isinstance(item, TapeAval) else None

    @property
    def pools(self) -> tuple[np.ndarray, ...]:
        """The pools, outermost first."""
        return (self.pool, *(() if self.inner is None else self.inner.pools))

    def write(self, values: Any) -> np.ndarray | None:
        """The span of a new tape of these records; None if they exceed the limit."""
        start = int(self.pool[2])
        item = self.aval.item
        if self.inner is not None:
            values = [self.inner.write([t.record(i) for i in range(len(t))]) for t in values]
        if any(v is None for v in values) or not reserve(
            self.pool, start + len(values), self.aval.record_bytes(), self.limit
        ):
            return None
        written = records(self.pool, item.shape, item.dtype)
        for i, value in enumerate(values):
            written[start + i] = value
        self.pool[2] = start + len(values)
        return np.array([start, len(values)])
