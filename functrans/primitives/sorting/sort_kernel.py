"""Stable sorting in kernels, for rows of any length and several operands moved alike.

The length of a row decides between three algorithms. Up to `RUN` elements, each finds its position by counting the
elements before it: n² comparisons without a branch, in vectors. Longer rows are made of such runs, and merged. Rows of
at least `RADIX` elements with one real key are radix-sorted: dealt into 256 buckets by each byte of the key, the lowest
byte first. Bytes that are equal everywhere cost nothing, so small integers take one or two passes.

The order is NumPy's: NaN last, -0.0 equal to 0.0, complex numbers by real part, then imaginary part, those with NaN
last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import INT64, BlockEmitter, Buffer, Local, Scalar, is_float
from ..structure.shape import lanes

#: Rows up to this length are sorted by counting, and longer ones begin as runs of it.
RUN = 16
#: Rows from this length on are radix-sorted.
RADIX = 128
_DIGITS = 256

# --- the order ----------------------------------------------------------------------------------------------------


def parts(k: BlockEmitter, x: Scalar) -> list[Scalar]:
    """Return the real numbers that compare `x`, in order of precedence."""
    if x.dtype.kind != "c":
        return [x]
    real, imag = k.call("real", x), k.call("imag", x)
    one, two, none = (k.const(n, INT64) for n in (1, 2, 0))
    return [k.where(real.ne(real), two, none) + k.where(imag.ne(imag), one, none), real, imag]


def _less(x: Scalar, y: Scalar) -> Scalar:
    return (x < y) | (y.ne(y) & x.eq(x)) if is_float(x.dtype) else x < y


def _same(x: Scalar, y: Scalar) -> Scalar:
    return x.eq(y) | (x.ne(x) & y.ne(y)) if is_float(x.dtype) else x.eq(y)


def before(k: BlockEmitter, xs: Sequence[Scalar], ys: Sequence[Scalar]) -> Scalar:
    """Return whether the keys `xs` come before the keys `ys`."""
    pairs = [pair for x, y in zip(xs, ys) for pair in zip(parts(k, x), parts(k, y))]
    less = _less(*pairs[-1])
    for x, y in reversed(pairs[:-1]):
        less = _less(x, y) | (_same(x, y) & less)
    return less


def _ordinal(k: BlockEmitter, x: Scalar, dtype: np.dtype) -> Scalar:
    """Map a real number to an unsigned integer of its size in memory, preserving the order."""
    if dtype.kind == "b":
        return k.cast(x, np.dtype(np.uint8))
    if dtype.kind == "u":
        return x
    info = np.iinfo(f"i{dtype.itemsize}")
    if is_float(dtype):
        bits = k.call("bits", k.narrowed(x + 0.0, dtype))  # -0.0 becomes 0.0
        # The bits of negative floats grow with their magnitude.
        bits = bits ^ ((bits >> (8 * dtype.itemsize - 1)) & k.const(info.max, bits.dtype))
        x = k.where(x.ne(x), k.const(info.max, bits.dtype), bits)
    return k.cast(x ^ k.const(info.min, x.dtype), np.dtype(f"u{dtype.itemsize}"))


# --- a row in scratch memory --------------------------------------------------------------------------------------


class _Row:
    """Two buffers for each operand of a row, between which its elements move back and forth."""

    def __init__(self, k: BlockEmitter, n: int, dtypes: Sequence[np.dtype], keys: int):
        self.k = k
        self.n = n
        self.keys = keys
        # One more element, since reads may go one past the end.
        self.places = [k.scratch((2, n + 1), d) for d in dtypes]

    def load(self, side: Any, i: Any) -> list[Scalar]:
        """Return the operands' elements at an index."""
        return [self.k.load(p, (side, i)) for p in self.places]

    def store(self, side: Any, i: Any, values: Sequence[Scalar]) -> None:
        """Store the operands' elements at an index."""
        for place, value in zip(self.places, values):
            self.k.store(place, (side, i), value)

    def before(self, xs: Sequence[Scalar], ys: Sequence[Scalar]) -> Scalar:
        """Return whether the elements `xs` come before `ys`."""
        return before(self.k, xs[: self.keys], ys[: self.keys])

    def sort_runs(self) -> None:
        """Sort each run of `RUN` elements, from side 0 to side 1."""
        k, n = self.k, self.n
        zero, one = k.const(0, INT64), k.const(1, INT64)
        with k.loop(-(-n // RUN)) as run:
            start = run * RUN
            stop = start + RUN
            stop = k.where(stop < n, stop, start * 0 + n)
            with k.loop(stop, start) as i:
                mine = self.load(0, i)
                rank = k.local(start)
                with k.loop(i, start) as j:
                    rank.set(rank.get() + k.where(self.before(mine, self.load(0, j)), zero, one))
                with k.loop(stop, i + 1) as j:
                    rank.set(rank.get() + k.where(self.before(self.load(0, j), mine), one, zero))
                self.store(1, rank.get(), mine)

    def merge(self) -> None:
        """Merge sorted runs in pairs, from one side to the other, until one is left."""
        k, n = self.k, self.n
        with k.loop(self.rounds()) as level:
            side = (level + 1) & 1
            width = k.const(RUN, INT64) << level
            with k.loop((width * 2 + (n - 1)) >> (level + (RUN.bit_length()))) as pair:
                start = pair * width * 2
                self._merge_two(side, start, width)

    def rounds(self) -> int:
        """How many rounds of merging a row needs."""
        return max(0, (-(-self.n // RUN) - 1).bit_length())

    def _merge_two(self, side: Scalar, start: Scalar, width: Scalar) -> None:
        k, n = self.k, self.n
        end = start * 0 + n
        middle, stop = start + width, start + width * 2
        middle, stop = k.where(middle < n, middle, end), k.where(stop < n, stop, end)
        left, right = k.local(start), k.local(middle)
        with k.loop(stop, start) as target:
            i, j = left.get(), right.get()
            x, y = self.load(side, i), self.load(side, j)
            # Branchless, since a branch would be mispredicted half the time.
            second = (j < stop) & ((i >= middle) | self.before(y, x))
            self.store(side ^ 1, target, [k.where(second, b, a) for a, b in zip(x, y)])
            step = k.cast(second, INT64)
            right.set(j + step)
            left.set(i + 1 - step)

    def deal(self) -> Local:
        """Radix-sort by the first operand; return the side with the result."""
        k, n = self.k, self.n
        rounds = self.places[0].dtype.itemsize
        counts = k.scratch((rounds, _DIGITS), INT64)
        with k.loop(rounds) as r, k.loop(_DIGITS) as digit:
            k.store(counts, (r, digit), k.const(0, INT64))
        with k.loop(n) as i:
            ordinal = _ordinal(k, k.load(self.places[0], (0, i)), self.places[0].dtype)
            for byte in range(rounds):
                digit = k.cast((ordinal >> (8 * byte)) & 255, INT64)
                k.store(counts, (byte, digit), k.load(counts, (byte, digit)) + 1)
        side = k.local(k.const(0, INT64))
        with k.loop(rounds) as r:
            total = k.local(k.const(0, INT64))
            largest = k.local(k.const(0, INT64))
            with k.loop(_DIGITS) as digit:
                count = k.load(counts, (r, digit))
                k.store(counts, (r, digit), total.get())
                total.set(total.get() + count)
                largest.set(k.where(count > largest.get(), count, largest.get()))
            with k.if_(largest.get() < n):
                self._deal_once(side.get(), r, counts)
                side.set(side.get() ^ 1)
        return side

    def _deal_once(self, side: Scalar, r: Scalar, counts: Buffer) -> None:
        k = self.k
        with k.loop(self.n) as i:
            values = self.load(side, i)
            ordinal = _ordinal(k, values[0], self.places[0].dtype)
            shift = k.cast(r * 8, ordinal.dtype)
            digit = k.cast((ordinal >> shift) & 255, INT64)
            place = k.load(counts, (r, digit))
            k.store(counts, (r, digit), place + 1)
            self.store(side ^ 1, place, values)


def sort_kernel(
    k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer], *, dimension: int, num_keys: int
) -> None:
    """The kernel rule of ``sort``: each operand is read once, into scratch memory."""
    shape = results[0].shape
    n = shape[dimension]
    row = _Row(k, n, [x.dtype for x in operands], num_keys)
    by_bytes = n >= RADIX and num_keys == 1 and operands[0].dtype.kind != "c"
    with lanes(k, [*shape[:dimension], *shape[dimension + 1 :]]) as outer:

        def place(i: Scalar) -> list[Any]:
            return [*outer[:dimension], i, *outer[dimension:]]

        with k.loop(n) as i:
            row.store(0, i, [k.load(x, place(i)) for x in operands])
        if by_bytes:
            side: Any = row.deal().get()
        else:
            row.sort_runs()
            row.merge()
            side = (row.rounds() + 1) % 2
        with k.loop(n) as i:
            for out, value in zip(results, row.load(side, i)):
                k.store(out, place(i), value)
