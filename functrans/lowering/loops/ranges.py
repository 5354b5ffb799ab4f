"""Ranges of the integers of a kernel under construction, found from the bounds of its loops.

A loop from 1 to n that reads element ``i - 1`` of an array of n elements needs no test whether the index is in bounds.
Sizes are known while a kernel is built, though not in its text: kernels of other sizes for which the same tests are
decided have the same text.
"""

from __future__ import annotations

#: The smallest and the largest value, both included.
Range = tuple[int, int]

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def combined(op: str, a: Range, b: Range) -> Range | None:
    """The range of ``a op b``; None if it is unknown, or if int64 could not hold the result."""
    if op in ("add", "sub", "mul"):
        if op == "sub":
            ends = [a[0] - b[1], a[1] - b[0]]
        elif op == "add":
            ends = [a[0] + b[0], a[1] + b[1]]
        else:
            ends = [x * y for x in a for y in b]
        low, high = min(ends), max(ends)
        return (low, high) if low >= LOWEST and high <= HIGHEST else None
    if op == "min":
        return min(a[0], b[0]), min(a[1], b[1])
    if op == "max":
        return max(a[0], b[0]), max(a[1], b[1])
    if op == "irem" and b[0] > 0:
        return 0 if a[0] >= 0 else max(1 - b[1], a[0]), min(b[1] - 1, max(a[1], 0))
    if op in ("and", "or", "xor") and a[0] >= 0 and b[0] >= 0:
        return 0, (1 << max(a[1].bit_length(), b[1].bit_length())) - 1
    if op == "idiv" and a[0] >= 0 and b[0] > 0:
        return a[0] // b[1], a[1] // b[0]
    return None


def decided(op: str, a: Range, b: Range) -> bool | None:
    """The result of a comparison; None if it depends on the values."""
    if op in ("ge", "gt", "ne"):
        opposite = decided({"ge": "lt", "gt": "le", "ne": "eq"}[op], a, b)
        return None if opposite is None else not opposite
    if op == "lt":
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    if op == "le":
        return True if a[1] <= b[0] else False if a[0] > b[1] else None
    if op == "eq":
        return False if a[1] < b[0] or b[1] < a[0] else True if a[0] == a[1] == b[0] == b[1] else None
    return None


def within(a: Range) -> bool:
    """Whether counting from a number in a range takes too long to exceed int64."""
    return a[0] >= LOWEST // 2 and a[1] <= HIGHEST // 2


def either(a: Range | None, b: Range | None) -> Range | None:
    """The range of a number that is one of two."""
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))
