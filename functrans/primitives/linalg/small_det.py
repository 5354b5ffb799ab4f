"""Explicit formulas for determinants and cofactors of matrices with at most four rows.

The formulas work for anything with ``+ - *``: scalars of a kernel, arrays, traced values. The cofactors of a matrix
with four rows are sums of products with the six minors of its upper and of its lower two rows (Laplace expansion).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.kernel import BlockEmitter, Buffer

#: The largest size with explicit formulas: beyond it a factorization needs fewer operations.
LARGEST = 4

Rows = Sequence[Sequence[Any]]


def small_cofactors(a: Rows, one: Any) -> list[list[Any]]:
    """Return the cofactors of a matrix given by its elements; `one` is the cofactor of a 1 x 1 matrix."""
    n = len(a)
    if n == 1:
        return [[one]]
    if n == 2:
        (p, q), (r, s) = a
        return [[s, -r], [-q, p]]
    if n == 3:
        # With indices modulo 3, the signs are right.
        return [
            [_minor(a[(i + 1) % 3], a[(i + 2) % 3], (j + 1) % 3, (j + 2) % 3) for j in range(3)]
            for i in range(3)
        ]
    upper, lower = _minors(a[0], a[1]), _minors(a[2], a[3])
    return [_row(a[1], lower, 1), _row(a[0], lower, -1), _row(a[3], upper, 1), _row(a[2], upper, -1)]


def small_determinant(a: Rows, one: Any) -> Any:
    """Return the determinant of a matrix given by its elements, expanded along its first row."""
    if len(a) == 1:
        return a[0][0]
    if len(a) == LARGEST:
        upper, lower = _minors(a[0], a[1]), _minors(a[2], a[3])
        first = upper[0, 1] * lower[2, 3] - upper[0, 2] * lower[1, 3] + upper[0, 3] * lower[1, 2]
        return first + (upper[1, 2] * lower[0, 3] - upper[1, 3] * lower[0, 2] + upper[2, 3] * lower[0, 1])
    row, cofactors = a[0], small_cofactors(a, one)[0]
    total = row[0] * cofactors[0]
    for x, c in zip(row[1:], cofactors[1:]):
        total = total + x * c
    return total


def _minor(first: Sequence[Any], second: Sequence[Any], i: int, j: int) -> Any:
    return first[i] * second[j] - first[j] * second[i]


def _minors(first: Sequence[Any], second: Sequence[Any]) -> dict[tuple[int, int], Any]:
    return {(i, j): _minor(first, second, i, j) for i in range(4) for j in range(i + 1, 4)}


def _row(x: Sequence[Any], minors: dict[tuple[int, int], Any], sign: int) -> list[Any]:
    """Return the cofactors of a row of four, given the other row `x` of its pair, and the minors of the other pair."""
    row = []
    for j in range(4):
        p, q, r = (i for i in range(4) if i != j)
        value = x[p] * minors[q, r] - x[q] * minors[p, r] + x[r] * minors[p, q]
        row.append(-value if (sign < 0) != (j % 2 == 1) else value)
    return row


def elements(k: BlockEmitter, a: Buffer, batch: Sequence[Any]) -> list[list[Any]]:
    """Load the elements of the matrix at a batch index."""
    m, n = a.shape[-2:]
    return [[k.load(a, [*batch, i, j]) for j in range(n)] for i in range(m)]
