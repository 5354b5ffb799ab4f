"""Tapes: what a loop keeps of each iteration when nobody knows beforehand how many there will be.

Reverse mode through a ``while_loop`` needs the residuals of every iteration, last one first. They are records of one
type, one after the other in memory that grows, the *pool*. A tape is a *span* of a pool: the number of its first record
and how many there are. So a loop inside a loop appends to one pool, and the tapes of all its runs are an array of
spans: it is stacked, and read by rows, like any array of integers. A record may be a span itself (a tape of tapes, for
a loop of unknown length inside another one): its type is a `TapeAval` again, and there is one pool for each level.

In a program a tape is a value like any other: only loops make, read, stack and add them. In memory it is the array of
spans and the headers of the pools, whose memory is freed with the last header that refers to it.

The memory of a pool stands between guard words (see `core.guards`), the first of which is its size in bytes. It always
does, since one kernel may fill a pool, and another one look at it; but they are looked at in checked mode alone.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .aval import Aval
from .config import config
from .dtypes import INT64
from .guards import GUARD, fill, memory, words

_libc = ctypes.CDLL(None)
_free, _malloc, _realloc = _libc.free, _libc.malloc, _libc.realloc
_free.argtypes, _free.restype = [ctypes.c_void_p], None
_malloc.argtypes, _malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
_realloc.argtypes, _realloc.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p

#: The fewest records that a pool gets memory for.
FEWEST = 64


class TapeAval(Aval):
    """The type of an array of tapes.

    Parameters
    ----------
    item : Aval
        Of one record; a `TapeAval` for tapes of tapes.
    axes : tuple of int
        The shape of the array of tapes; ``()`` for one tape. `shape` is that of the spans, with one axis more.
    """

    __slots__ = ("item",)

    def __init__(self, item: Aval, axes: tuple[int, ...] = ()):
        super().__init__((*axes, 2), INT64)
        self.item = item.strong()

    @property
    def levels(self) -> int:
        """The number of pools."""
        return 1 + (self.item.levels if isinstance(self.item, TapeAval) else 0)

    def record_bytes(self) -> int:
        """The size of a record."""
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
    """The header of a pool, as kernels see it: address of the memory, records that it can hold, records held."""

    def __del__(self) -> None:
        if self.base is None and self[0]:
            if config.checked:
                fill(int(self[0]), size_of(self))
            _free(int(self[0]) - GUARD)

    @property
    def capacity(self) -> int:
        """How many records the memory can hold."""
        return int(self[1])


def new_pool() -> Pool:
    """An empty pool."""
    found = np.ndarray.__new__(Pool, (3,), np.int64)
    found[:] = 0
    return found


def size_of(pool: np.ndarray) -> int:
    """How many bytes of memory a pool has."""
    return ctypes.c_size_t.from_address(int(pool[0]) - GUARD).value if pool[0] else 0


def damage(pool: np.ndarray) -> str:
    """Where the memory of a pool was overrun: ``before the start``, ``past the end``; empty where it was not."""
    address = int(pool[0])
    if address and ctypes.string_at(address - GUARD + 8, GUARD - 8) != words(GUARD - 8):
        return "before the start"
    if address and ctypes.string_at(address + size_of(pool), GUARD) != words(GUARD):
        return "past the end"
    return ""


def reserve(pool: np.ndarray, records: int, record_bytes: int, limit: int) -> bool:
    """Make room for so many records; false where that needs more than `limit` bytes."""
    if records <= pool[1]:
        return True
    wanted = max(2 * int(pool[1]), records, FEWEST)
    wanted = min(wanted, limit // record_bytes)
    if wanted < records:
        return False
    size, held, address = int(wanted * record_bytes), size_of(pool), int(pool[0])
    # Guards move as they are: damage done before is seen afterwards.
    after = ctypes.string_at(address + held, GUARD) if address else words(GUARD)
    block = _grown(address - GUARD if address else 0, held + GUARD, size + 2 * GUARD)
    if not block:
        return False
    if not address:
        fill(block, GUARD)
    ctypes.c_size_t.from_address(block).value = size
    ctypes.memmove(block + GUARD + size, after, GUARD)
    pool[0], pool[1] = block + GUARD, wanted
    return True


def _grown(block: int, held: int, nbytes: int) -> int | None:
    """Memory of another size that begins with what a block holds; zero is no block."""
    if not config.checked:
        return _realloc(block or None, nbytes)
    found = _malloc(nbytes)
    if found:
        fill(found, nbytes)
        if block:
            ctypes.memmove(found, block, held)
            fill(block, held)
            _free(block)
    return found


def records(pool: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The memory of a pool as an array whose first axis counts records."""
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
        First record and number of records.
    pools : tuple of Pool
        One for each level, that of the spans first.
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

    def __len__(self) -> int:
        """How many records one tape has."""
        return int(self.spans[1])

    def __getitem__(self, i: int) -> Tape:
        """The tapes at an index of the first axis."""
        return Tape(self.spans[i], self.pools, self.aval.with_shape(self.aval.shape[1:]))

    def record(self, i: int) -> Any:
        """A record of one tape."""
        item = self.aval.item
        found = records(self.pools[0], item.shape, item.dtype)[int(self.spans[0]) + i]
        if isinstance(item, TapeAval):
            return Tape(found.copy(), self.pools[1:], item)
        return found.copy()

    def __repr__(self) -> str:
        return f"Tape({self.aval}, {self.spans.tolist()})"


class TapeWriter:
    """Writes tapes of one type by Python; what kernels do by themselves.

    Parameters
    ----------
    item : Aval
        Of a record.
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
        """The span of a new tape of these records; None where there is no room."""
        start = int(self.pool[2])
        item = self.aval.item
        if self.inner is not None:
            values = [self.inner.write([t.record(i) for i in range(len(t))]) for t in values]
        if any(v is None for v in values) or not reserve(
            self.pool, start + len(values), self.aval.record_bytes(), self.limit
        ):
            return None
        held = records(self.pool, item.shape, item.dtype)
        for i, value in enumerate(values):
            held[start + i] = value
        self.pool[2] = start + len(values)
        return np.array([start, len(values)])
