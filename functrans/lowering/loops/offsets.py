"""By which literal an integer of a kernel exceeds another one: what tells apart the places of two accesses."""

from __future__ import annotations

from . import ir

#: An operand and a number that is added to it; a literal has no operand.
Sum = tuple[ir.Operand | None, int]


class Offsets:
    """The integers of a kernel, each as the sum of another one and a literal.

    Statements are noted in their order; the kernel must not be outlined yet.
    """

    def __init__(self) -> None:
        self.known: dict[ir.Operand, Sum] = {}

    def note(self, s: ir.Statement) -> None:
        """Note the result of a statement, if that is an addition or a subtraction of a literal."""
        if type(s) is not ir.Let or s.op not in ("add", "sub") or s.value.dtype != ir.INT64:
            return
        (x, a), (y, b) = map(self.of, s.args)
        if y is None:
            self.known[s.value] = x, a + (b if s.op == "add" else -b)
        elif x is None and s.op == "add":
            self.known[s.value] = y, a + b

    def of(self, x: ir.Operand) -> Sum:
        """An integer as a sum."""
        if isinstance(x, ir.Const | ir.Extent):
            return None, int(x.value)
        return self.known.get(x, (x, 0))

    def differ(self, x: ir.Operand, y: ir.Operand) -> bool:
        """Whether two integers are certainly different."""
        (a, m), (b, n) = self.of(x), self.of(y)
        return a == b and m != n
