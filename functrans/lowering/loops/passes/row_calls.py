"""BLAS's products with tall matrices: which of their extents counts rows, and the same product for some rows.

A product with a long extent is one of two kinds. A *map* has a row of its result for each row of an operand
(``X @ w``); a *fold* adds up something of each row (``r @ X``). Where two extents are long, as those of the scores
``q @ k.T``, either may count rows: what shares rows with the product decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ....runtime.records import NamedTuple, dataclass
from .. import ir
from ..builder import StatementBuilder
from ..handles import Memory, ScalarHandle
from .places import START, MatrixPlaces, extents_of, has_literals

#: Matrices besides the tall one have at most as many elements: with larger ones a product computes more than it reads.
LARGEST = 64 * 64
#: A vector besides the tall matrix has at most as many elements: it stays in the cache from row to row.
LONGEST = 2048
#: A *wide* product has two long extents, and a third up to this one: BLAS packs the other operand again for each block,
#: of which the rows are about as many.
NARROW = 256
#: Rows of a wide product are at least as many.
MANY = 256
#: Rows that a product of ours takes at a time, so that they share what is read of the vector.
TOGETHER = 4
#: A matrix of so many bytes comes from memory, at least in part, and is read faster in one stream than in several: rows
#: of so many bytes are then taken one by one. On AMD's Zen 4 the sum of ``(X @ w)**2`` takes 0.75 of the time with 40
#: columns, 0.4 with 64 and 100.
STREAMED, LONG = 16 << 20, 256


class RowCall(NamedTuple):
    """How a product uses rows.

    Attributes
    ----------
    call : Call
    extent : int
        The argument that is the number of rows.
    moving : dict of int to int
        The arguments that have rows, each with the elements from one row to the next.
    result : int
        The argument that is the result.
    scale : int
        The argument by which BLAS multiplies what the result holds before.
    wide : BufferDecl, optional
        The temporary memory of the longest rows, if others are not short.
    """

    call: ir.Call
    extent: int
    moving: dict[int, int]
    result: int
    scale: int
    wide: ir.BufferDecl | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.call.args[self.extent].value

    @property
    def folds(self) -> bool:
        """Whether it adds up the rows."""
        return self.result not in self.moving

    @property
    def tall(self) -> set[str]:
        """The memory of which it reads rows."""
        return {self.call.args[i].buffer.place for i in self.moving if i != self.result}

    @property
    def inside(self) -> set[str]:
        """The memory of which it has a part that does not begin at the start."""
        return {a.buffer.place for a in self.call.args if type(a) is ir.Address and a.offset != START}

    @property
    def target(self) -> ir.BufferDecl:
        """The memory of the result."""
        return self.call.args[self.result].buffer


def row_calls(s: ir.Statement, places: MatrixPlaces) -> list[RowCall]:
    """The ways in which a product uses rows; first that with an extent longer than the others, and these small."""
    if type(s) is not ir.Call or s.routine not in ("gemv", "gemm") or not has_literals(s):
        return []
    found = _gemv(s) if s.routine == "gemv" else _gemm(s)
    usable = [p for p in found if not (p.folds and s.args[p.scale].value != 0.0)]
    usable = [
        p
        for p in usable
        if all(_is_placed(p, i, places) for i, a in enumerate(s.args) if type(a) is ir.Address)
    ]
    return sorted(usable, key=lambda p: p.wide is not None)


def _is_placed(product: RowCall, arg: int, places: MatrixPlaces) -> bool:
    """Whether rows of an argument are those of its buffer, which has room for a sum at the argument's place."""
    call = product.call
    offset, step = call.args[arg].offset, product.moving.get(arg)
    if offset == START:
        return True
    inner, outer, distance = extents_of(call, arg)
    if step is not None:
        return places.in_rows(offset, inner if step == distance else 1, product.rows, step, None)
    if arg != product.result:
        return True
    size = inner * outer
    numbers = [call.args[arg].buffer.size, *places.terms(offset).values()]
    return distance == inner and all(n % size == 0 for n in numbers)


def _gemv(s: ir.Call) -> Iterator[RowCall]:
    # trans, m, n, alpha, a, lda, x, incx, beta, y, incy; `a` is an m times n matrix, column by column
    turned, m, n = s.args[0] != "N", s.args[1].value, s.args[2].value
    for extent, rows, columns in ((1, m, n), (2, n, m)):
        vector = 9 if (extent == 1) != turned else 6
        step = {4: 1 if extent == 1 else s.args[5].value, vector: s.args[vector + 1].value}
        if rows > columns and columns <= LONGEST:
            yield RowCall(s, extent, step, 9, 8)
        elif rows >= MANY and s.args[4].buffer.role == "scratch":
            yield RowCall(s, extent, step, 9, 8, s.args[4].buffer)


def _gemm(s: ir.Call) -> Iterator[RowCall]:
    # transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc; column by column
    a_turned, b_turned = s.args[0] != "N", s.args[1] != "N"
    m, n, k = extents = [a.value for a in s.args[2:5]]
    lda, ldb, ldc = (s.args[i].value for i in (7, 9, 12))
    # For each extent, the arguments that have it, with the other extents of these.
    steps = (
        {6: lda if a_turned else 1, 11: 1},
        {8: 1 if b_turned else ldb, 11: ldc},
        {6: 1 if a_turned else lda, 8: ldb if b_turned else 1},
    )
    lengths = ({6: k, 11: n}, {8: k, 11: m}, {6: m, 8: n})
    longest = max(extents)
    small = extents.count(longest) == 1 and m * n * k <= LARGEST * longest
    for i, (rows, moving, columns) in enumerate(zip(extents, steps, lengths)):
        if small and rows == longest:
            yield RowCall(s, 2 + i, moving, 11, 10)
            continue
        widest = max(columns, key=lambda arg: columns[arg])
        buffer = s.args[widest].buffer
        if rows >= MANY and min(columns.values()) <= NARROW and buffer.role == "scratch":
            yield RowCall(s, 2 + i, moving, 11, 10, buffer)


@dataclass(frozen=True)
class RowBlock:
    """Some rows: the numbers of the first one and of the one after the last, how many they are, and may be at most.

    `parts` has the memory with room for these rows alone, by the declarations that it replaces.
    """

    start: ScalarHandle
    stop: ScalarHandle
    count: ScalarHandle
    most: int
    parts: Mapping[ir.BufferDecl, ir.BufferDecl]


def write_product(
    b: StatementBuilder, product: RowCall, rows: RowBlock, target: Memory | None, first: bool
) -> None:
    """Write a product for some rows; a fold adds to `target`. `first`: nothing has read these rows before."""
    own = _Gemv.of(product, rows, first)
    if own is None:
        _write_call(b, product, rows, target)
    elif target is None:
        own.write_map(b)
    else:
        own.write_fold(b, target)


def in_shape(b: StatementBuilder, buffer: ir.BufferDecl, shape: tuple[int, ...]) -> ir.BufferDecl:
    """The same memory in another shape."""
    if buffer.shape == shape:
        return buffer
    return b.buffer(buffer.name, buffer.dtype, shape, buffer.role, buffer.place)


def memory_of_sum(b: StatementBuilder, product: RowCall) -> Memory:
    """Where a fold adds up, as an axis of elements."""
    address = product.call.args[product.result]
    if address.offset == START:
        return in_shape(b, address.buffer, (address.buffer.size,))
    inner, outer, _ = extents_of(product.call, product.result)
    size = inner * outer
    parts = in_shape(b, address.buffer, (address.buffer.size // size, size))
    return b.row(parts, b.binary("idiv", ScalarHandle(b, address.offset), b.extent(size)))


def _write_call(b: StatementBuilder, product: RowCall, rows: RowBlock, target: Memory | None) -> None:
    """The call of BLAS."""
    args: list[Any] = []
    for i, a in enumerate(product.call.args):
        if type(a) is ir.Address:
            part = rows.parts.get(a.buffer)
            skipped = rows.start * product.moving[i] if i in product.moving and part is None else b.extent(0)
            offset = skipped if a.offset == START else skipped + ScalarHandle(b, a.offset)
            args.append((part or a.buffer, offset))
        else:
            args.append(a if isinstance(a, str) else ScalarHandle(b, a))
    for i, step in product.moving.items():
        part = rows.parts.get(product.call.args[i].buffer)
        # A matrix whose rows lie side by side; of a vector, this argument is the distance of its elements.
        if part is not None and step == 1 and product.call.args[i + 1].value == product.rows:
            args[i + 1] = b.extent(rows.most)
    args[product.extent] = rows.count
    if target is not None:
        args[product.result] = target
        args[product.scale] = b.const(1.0, target.dtype)
    b.extern(product.call.routine, *args)


def _columns(product: RowCall) -> int | None:
    """The length of a row; None if the matrix is not row by row in memory, or a vector has gaps."""
    args = product.call.args
    if product.call.routine != "gemv" or product.call.letter not in ("s", "d") or product.inside:
        return None
    columns: int = args[3 - product.extent].value
    matrix, vector, result = (args[i].buffer.size for i in (4, 6, 9))
    if product.moving[4] != columns or matrix != columns * product.rows:
        return None
    if {vector, result} != {columns, product.rows} or (args[7].value, args[10].value) != (1, 1):
        return None
    return columns if args[3].value == 1.0 and args[8].value == 0.0 else None


def is_streamed(product: RowCall) -> bool:
    """Whether a product takes one row of a large matrix after the other, where nothing has read them before."""
    columns = _columns(product)
    if columns is None:
        return False
    row_bytes = columns * product.call.args[4].buffer.dtype.itemsize
    return row_bytes >= LONG and product.rows * row_bytes >= STREAMED


class _Gemv(NamedTuple):
    """A product of a matrix and a vector of real numbers, in loops that take a few rows at a time.

    A block is too small for BLAS's threads, and for its packing.
    """

    product: RowCall
    rows: RowBlock
    columns: int
    together: int

    @classmethod
    def of(cls, product: RowCall, rows: RowBlock, first: bool) -> _Gemv | None:
        """The product in this form; None if it has another."""
        columns = _columns(product)
        if columns is None:
            return None
        return cls(product, rows, columns, 1 if first and is_streamed(product) else TOGETHER)

    def write_map(self, b: StatementBuilder) -> None:
        """An element of the result for each row."""
        vector = in_shape(b, self.product.call.args[6].buffer, (self.columns,))
        matrix, result = self.memory(b, 4, (self.columns,)), self.memory(b, 9, ())

        def write(numbers: Sequence[ScalarHandle]) -> None:
            sums = [b.local(b.const(0.0, matrix.dtype)) for _ in numbers]
            with b.loop(self.columns) as j:
                x = b.load(vector, (j,))
                for i, total in zip(numbers, sums):
                    product = b.load(matrix, (self.place(4, i), j)) * x
                    total.set(b.binary("add", total.get(), product, reassoc=True))
            for i, total in zip(numbers, sums):
                b.store(result, (self.place(9, i),), total.get())

        self.by_rows(b, write)

    def write_fold(self, b: StatementBuilder, target: Memory) -> None:
        """The sum of the matrix's rows, each multiplied by an element of the vector."""
        matrix, vector = self.memory(b, 4, (self.columns,)), self.memory(b, 6, ())
        sums = b.scratch(
            (self.columns,), matrix.dtype
        )  # of the block: a total of all rows would lose more digits

        def write(numbers: Sequence[ScalarHandle]) -> None:
            factors = [b.load(vector, (self.place(6, i),)) for i in numbers]
            with b.loop(self.columns, independent=True) as j:
                total = b.load(sums, (j,))
                for i, factor in zip(numbers, factors):
                    product = b.load(matrix, (self.place(4, i), j)) * factor
                    total = b.binary("add", total, product, reassoc=True)
                b.store(sums, (j,), total)

        with b.loop(self.columns, independent=True) as j:
            b.store(sums, (j,), b.const(0.0, sums.dtype))
        self.by_rows(b, write)
        with b.loop(self.columns, independent=True) as j:
            b.store(target, (j,), b.load(target, (j,)) + b.load(sums, (j,)))

    def by_rows(self, b: StatementBuilder, write: Callable[[Sequence[ScalarHandle]], None]) -> None:
        """Write the loops over the numbers of rows in the block: several at a time, and the rest."""
        done: ScalarHandle | int = 0
        if self.together > 1:
            several = b.binary("idiv", self.rows.count, b.extent(self.together))
            with b.loop(several) as number:
                write([number * self.together + t for t in range(self.together)])
            done = several * self.together
        with b.loop(self.rows.count, done) as number:
            write([number])

    def memory(self, b: StatementBuilder, arg: int, of_row: tuple[int, ...]) -> ir.BufferDecl:
        """What holds an argument with rows, a row in each place of its first axis."""
        buffer = self.product.call.args[arg].buffer
        part = self.rows.parts.get(buffer)
        if part is None:
            return in_shape(b, buffer, (self.product.rows, *of_row))
        return in_shape(b, part, (part.shape[0], *of_row))

    def place(self, arg: int, number: ScalarHandle) -> ScalarHandle:
        """The place of a row there."""
        alone = self.product.call.args[arg].buffer in self.rows.parts
        return number if alone else self.rows.start + number
