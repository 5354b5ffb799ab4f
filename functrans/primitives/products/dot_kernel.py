"""The kernel of dot_general: BLAS for large products of floats and complex numbers, loops for all others.
BLAS takes matrices with stride 1 along one axis, transposed or not. So most products need no copies: batch axes may be
anywhere, since they only shift the start. Operands whose axes cannot be merged without a copy are packed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from ...core import is_inexact
from ...core.kernel import BlockEmitter, Buffer, Scalar
from ...core.values import Value
from ...runtime.records import NamedTuple
from ..structure.shape import lanes, loops

Axes = tuple[int, ...]

_GEMM_FROM, _GEMV_FROM, _DOT_FROM = 200, 64, 16
"""BLAS is faster than loops from this many multiplications per product on: of matrices (a call costs about 40 ns), of a
matrix and a vector, and of vectors (where a loop adds sequentially, and a call costs 5 ns).
"""
_SMALL_GEMV_FROM = 200
"""The same of a matrix and a vector whose extents are all below `_LONG`: LLVM knows them, and unrolls."""
_LONG = 16
"""Larger extents count as this one there: a kernel serves all sizes, so its form must not depend on a batch size."""


def dot_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, dimension_numbers: Any) -> None:
    """The `Block` rule of dot_general."""
    x, y = operands
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    left = _DotOperand(x, x_batch, _free(x, x_contract, x_batch), x_contract)
    right = _DotOperand(y, y_batch, _free(y, y_contract, y_batch), y_contract)
    rows, columns, depth = prod(left.extents(left.free)), prod(right.extents(right.free)), left.depth
    vectors = (rows == 1) + (columns == 1)
    work = min(rows, _LONG) * min(columns, _LONG) * min(depth, _LONG)
    gemv_from = _SMALL_GEMV_FROM if max(rows, columns, depth) < _LONG else _GEMV_FROM
    if is_inexact(x.dtype) and work >= (_GEMM_FROM, gemv_from, _DOT_FROM)[vectors]:
        _by_blas(k, left, right, results[0], rows, columns)
    else:
        _by_loops(k, left, right, results[0])


def _free(a: Buffer, contract: Axes, batch: Axes) -> Axes:
    return tuple(d for d in range(len(a.shape)) if d not in contract and d not in batch)


class _DotOperand(NamedTuple):
    """An operand, and the roles of its axes."""

    buffer: Buffer
    batch: Axes
    free: Axes
    contract: Axes

    def extents(self, axes: Axes) -> list[int]:
        """Return the extents of some axes."""
        return [self.buffer.shape[d] for d in axes]

    @property
    def depth(self) -> int:
        """How many products each element sums."""
        return prod(self.extents(self.contract))

    def at(self, batch: Sequence[Any], free: Sequence[Any], contract: Sequence[Any]) -> list[Any]:
        """Return the index of an element, from the indices along each kind of axis."""
        index: list[Any] = [0] * len(self.buffer.shape)
        for axes, values in ((self.batch, batch), (self.free, free), (self.contract, contract)):
            for d, i in zip(axes, values):
                index[d] = i
        return index


# --- loops --------------------------------------------------------------------------------------------------


def _by_loops(k: BlockEmitter, left: _DotOperand, right: _DotOperand, out: Buffer) -> None:
    batch, rows = left.extents(left.batch), left.extents(left.free)
    columns, depth = right.extents(right.free), left.extents(left.contract)
    zero = k.const(0, out.dtype)
    x, y = left.buffer, right.buffer
    with lanes(k, batch) as b, lanes(k, rows) as i:
        if right.free and right.free[-1] == len(y.shape) - 1:
            # Rows of the right operand are contiguous: add multiples of them, a loop that vectorises.
            with loops(k, columns) as j:
                k.store(out, [*b, *i, *j], zero)
            with loops(k, depth) as d:
                factor = k.load(x, left.at(b, i, d))
                with loops(k, columns) as j:
                    total = k.load(out, [*b, *i, *j]) + factor * k.load(y, right.at(b, j, d))
                    k.store(out, [*b, *i, *j], total)
            return
        with loops(k, columns) as j:
            accumulator = k.local(zero)
            with loops(k, depth) as d:
                term = k.load(x, left.at(b, i, d)) * k.load(y, right.at(b, j, d))
                accumulator.set(accumulator.get() + term)
            k.store(out, [*b, *i, *j], accumulator.get())


# --- BLAS ---------------------------------------------------------------------------------------------------


class _Matrix(NamedTuple):
    """A matrix in a buffer: strides, in elements, of the batch axes and of the merged free and contracted axes."""

    buffer: Buffer
    batch: list[int]
    free: int
    contract: int

    def start(self, index: Sequence[Scalar]) -> tuple[Buffer, Any]:
        """Return where the matrix of one batch index begins."""
        return self.buffer, _offset(index, self.batch)

    def layout(self, extent: int, depth: int) -> tuple[bool, int]:
        """Return whether the contracted axis is contiguous, and the leading dimension."""
        return (True, max(self.free, depth)) if self.contract == 1 else (False, max(self.contract, extent))


def _offset(index: Sequence[Scalar], strides: Sequence[int]) -> Value:
    total: Any = 0
    for i, s in zip(index, strides):
        total = i * s + total
    return total


def _strides(shape: Sequence[int]) -> list[int]:
    """Return the strides of a C-contiguous array, in elements."""
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return strides


def _merged_stride(shape: Sequence[int], strides: Sequence[int], axes: Axes) -> int | None:
    """Return the stride of several axes merged into one; None if they are not equally spaced."""
    live = [(shape[d], strides[d]) for d in axes if shape[d] != 1]
    if any(s != n * t for (_, s), (n, t) in pairwise(live)):
        return None
    return live[-1][1] if live else 1


def _as_matrix(k: BlockEmitter, side: _DotOperand, vector: bool) -> _Matrix:
    """Return the operand in a form that BLAS takes (vectors with any stride), packed if necessary."""
    shape = side.buffer.shape
    strides = _strides(shape)
    free = _merged_stride(shape, strides, side.free)
    contract = _merged_stride(shape, strides, side.contract)
    if free is not None and contract is not None and (vector or 1 in (free, contract)):
        return _Matrix(side.buffer, [strides[d] for d in side.batch], free, contract)
    order = side.batch + side.free + side.contract
    packed = k.scratch(tuple([shape[d] for d in order]), side.buffer.dtype)
    with lanes(k, packed.shape) as index:
        source = side.at(
            index[: len(side.batch)],
            index[len(side.batch) : len(side.batch) + len(side.free)],
            index[len(side.batch) + len(side.free) :],
        )
        k.store(packed, index, k.load(side.buffer, source))
    return _Matrix(packed, _strides(packed.shape)[: len(side.batch)], side.depth, 1)


def _by_blas(
    k: BlockEmitter, left: _DotOperand, right: _DotOperand, out: Buffer, rows: int, columns: int
) -> None:
    depth = left.depth
    order = sorted(range(len(left.contract)), key=left.contract.__getitem__)
    x = _as_matrix(k, left._replace(contract=tuple(left.contract[i] for i in order)), rows == 1)
    y = _as_matrix(k, right._replace(contract=tuple(right.contract[i] for i in order)), columns == 1)
    batch = left.extents(left.batch)
    strides = _strides(out.shape)[: len(batch)]
    with lanes(k, batch) as b:
        target = (out, _offset(b, strides))
        if rows == columns == 1:
            name = "dotu" if out.dtype.kind == "c" else "dot"
            total = k.extern(name, depth, x.start(b), x.contract, y.start(b), y.contract)
            assert total is not None
            k.store(out, [*b, *[0] * (len(out.shape) - len(b))], total)
        elif rows == 1:
            _gemv(k, y, x, target, b, columns, depth)
        elif columns == 1:
            _gemv(k, x, y, target, b, rows, depth)
        else:
            # BLAS is column-major: it computes the transposed product, y.T @ x.T.
            x_flat, x_lead = x.layout(rows, depth)
            y_flat, y_lead = y.layout(columns, depth)
            # fmt: off
            k.extern(
                "gemm", "T" if y_flat else "N", "N" if x_flat else "T", columns, rows, depth,
                1.0, y.start(b), y_lead, x.start(b), x_lead, 0.0, target, columns,
            )
            # fmt: on


def _gemv(
    k: BlockEmitter, matrix: _Matrix, vector: _Matrix, target: Any, b: Sequence[Scalar], rows: int, depth: int
) -> None:
    flat, lead = matrix.layout(rows, depth)
    trans, shape = ("T", (depth, rows)) if flat else ("N", (rows, depth))
    # fmt: off
    k.extern(
        "gemv", trans, *shape, 1.0, matrix.start(b), lead, vector.start(b), vector.contract, 0.0, target, 1,
    )
    # fmt: on
