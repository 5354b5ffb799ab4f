"""Where products find their matrices: offsets as sums of multiples, beside the rows of a buffer."""

from __future__ import annotations

from .. import ir, queries

#: The offset of the first element.
START = ir.Extent(0)
#: A sum of multiples of operands; None stands for one.
Terms = dict[ir.Operand | None, int]


class MatrixPlaces:
    """The offsets of a kernel's matrices; it must not be outlined yet."""

    def __init__(self, body: ir.StatementList):
        self.lets: dict[ir.Operand, ir.Let] = {}
        self.trips: dict[ir.Operand | None, int] = {None: 2}
        self.note(body)

    def note(self, body: ir.StatementList) -> None:
        """Note how the numbers in a block are computed, and how often its loops run."""
        for s in queries.walk(body):
            if type(s) is ir.Let and s.op in ("add", "mul") and s.value.dtype == ir.INT64:
                self.lets[s.value] = s
            elif type(s) is ir.For and s.start == ir.Extent(0) and type(s.stop) is ir.Extent:
                self.trips[s.var] = s.stop.value

    def terms(self, x: ir.Operand) -> Terms:
        """A number as a sum."""
        if isinstance(x, ir.Const | ir.Extent):
            return {None: int(x.value)}
        let = self.lets.get(x)
        if let is not None:
            a, b = map(self.terms, let.args)
            if let.op == "add":
                return {v: a.get(v, 0) + b.get(v, 0) for v in a | b}
            for factor, other in ((a, b), (b, a)):
                if factor.keys() == {None}:
                    return {v: factor[None] * n for v, n in other.items()}
        return {x: 1}

    def in_rows(self, offset: ir.Operand, width: int, rows: int, step: int, row: ir.Value | None) -> bool:
        """Whether so many elements from an offset on are in one row of a buffer with rows of `step` elements.

        It is the row of number `row`, or the first one.
        """
        last = width - 1
        for v, n in self.terms(offset).items():
            if n % (rows * step) and (v is None or v is not row):
                most = self.trips.get(v, 0) - 1
                if n < 0 or most < 0:
                    return False
                last += n * most
        return last < step


def has_literals(call: ir.Call) -> bool:
    """Whether the extents and factors of a product are literals; those of the last part of a sum may not be."""
    numbers = [a for a in call.args if not isinstance(a, str | ir.Address)]
    return all(isinstance(a, ir.Extent | ir.Const) for a in numbers)


def extents_of(call: ir.Call, arg: int) -> tuple[int, int, int]:
    """How many elements of a product's argument lie side by side, how often, and how far from each other."""
    args = call.args
    distance = args[arg + 1].value
    if call.routine == "gemv":
        # trans, m, n, alpha, a, lda, x, incx, beta, y, incy
        m, n = args[1].value, args[2].value
        if arg == 4:
            return m, n, distance
        return 1, m if (arg == 9) == (args[0] == "N") else n, distance
    # transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc
    m, n, k = (a.value for a in args[2:5])
    if arg == 6:
        return (m, k, distance) if args[0] == "N" else (k, m, distance)
    if arg == 8:
        return (k, n, distance) if args[1] == "N" else (n, k, distance)
    return m, n, distance
