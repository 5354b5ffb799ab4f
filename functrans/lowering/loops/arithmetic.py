"""The scalars of a kernel under construction: literals, and operations without effects.

Equal operations inside a block are shared. Only integers are folded, and little, so that a kernel's structure does not
depend on sizes: extents combine to extents, zeros and ones disappear, and comparisons that the range of a variable
decides (see `passes.indices.int_ranges`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np

from ...arrays.casts import cast
from ...core.dtypes import FLOAT16, FLOAT32, FLOAT64, KEY, is_low, memory_dtype, real_dtype
from ...core.values import ArrayLike
from ...passes.indices.int_ranges import (
    HIGHEST,
    LOWEST,
    UNKNOWN,
    Range,
    combined,
    common,
    decided,
    extreme,
    hull,
    narrowed,
)
from ...passes.scalar_functions import COMPARISONS, result_dtype
from ...runtime.config import config
from ...runtime.context import run_quietly
from ...runtime.passes import RANGES
from ...runtime.records import dataclass
from . import ir
from .handles import Known, ScalarHandle
from .ir import BOOL, INT64

#: Operations that `binary` folds.
_OPERATORS = (*COMPARISONS, "add", "sub", "mul", "and", "or", "xor", "shl", "shr")


def make_const(value: ArrayLike, dtype: np.dtype) -> ir.Const:
    """A literal, rounded to `dtype`, with the dtype of registers.

    Raises
    ------
    OverflowError
        If an integer does not fit.
    """
    if dtype == KEY:
        (value,), dtype = value.item(), memory_dtype(dtype)
    if is_low(dtype):
        value, dtype = run_quietly(np.asarray(value).astype, dtype).astype(FLOAT32), FLOAT32
    return ir.Const(np.asarray(value, dtype).item() if dtype.kind in "fcb" else int(dtype.type(value)), dtype)


@dataclass(frozen=True)
class IndexFacts:
    """What is known of the int64 numbers of a kernel.

    Attributes
    ----------
    ranges : dict of Operand to Range
    wrapped : dict of Operand to Operand
        Indices that are counted from the start, by these with those of which some were counted from the end.
    """

    ranges: dict[ir.Operand, Range] = field(default_factory=dict)
    wrapped: dict[ir.Operand, ir.Operand] = field(default_factory=dict)


class Arithmetic:
    """Adds operations to the current block.

    Parameters
    ----------
    name : str
        The kernel's name.
    """

    def __init__(self, name: str):
        self.kernel = ir.Kernel(name, [], ir.StatementList())
        self.facts = IndexFacts()
        self._blocks = [self.kernel.body]
        self._known: list[dict[Any, ScalarHandle]] = [{}]
        self._ranging = config.runs(RANGES)
        self._differences: dict[ir.Operand, tuple[ScalarHandle, ScalarHandle]] = {}
        self._sums: dict[ir.Operand, tuple[ScalarHandle, ScalarHandle]] = {}
        self._shifted: dict[ir.Operand, tuple[ScalarHandle, int]] = {}  # sums of a scalar and a literal
        self._negative: dict[ir.Operand, ScalarHandle] = {}
        self._in_memory: dict[ir.Operand, ScalarHandle] = {}  # float16 and bfloat16 numbers, by the wide form

    def append(self, statement: ir.Statement) -> None:
        """Add a statement at the current position."""
        self._blocks[-1].statements.append(statement)

    @property
    def statements(self) -> list[ir.Statement]:
        """The statements of the block under construction."""
        return self._blocks[-1].statements

    @contextmanager
    def inside(self, body: ir.StatementList) -> Iterator[None]:
        """Build in `body` within a ``with`` block."""
        self._blocks.append(body)
        self._known.append({})
        try:
            yield
        finally:
            self._blocks.pop()
            self._known.pop()

    def scalar(self, x: Any, dtype: np.dtype = INT64) -> ScalarHandle:
        """`x` itself, or a Python number as a scalar of `dtype`; ints for int64 count as extents."""
        if isinstance(x, ScalarHandle):
            return x
        if dtype == INT64 and type(x) is int:
            return ScalarHandle(self, ir.Extent(x))
        return self.const(x, dtype)

    def const(self, value: ArrayLike, dtype: np.dtype) -> ScalarHandle:
        """A data literal."""
        return ScalarHandle(self, make_const(value, np.dtype(dtype)))

    def extent(self, n: int) -> ScalarHandle:
        """A number that follows from shapes, and may become a run-time parameter."""
        return ScalarHandle(self, ir.Extent(n))

    def parameter(self, slot: int, dtype: np.dtype) -> ScalarHandle:
        """A run-time parameter; the caller must set the kernel's `ints` and `floats`."""
        return ScalarHandle(self, ir.Param(slot, dtype))

    def known(self, key: Any) -> ScalarHandle | None:
        """The scalar cached under a key in this block or an enclosing one."""
        for known in reversed(self._known):
            scalar = known.get(key)
            if scalar is not None:
                return scalar
        return None

    def note(self, key: Any, value: ScalarHandle) -> ScalarHandle:
        """Cache a scalar until the end of the block."""
        self._known[-1][key] = value
        return value

    def remember(self, key: Any, make: Callable[[], ScalarHandle]) -> ScalarHandle:
        """The scalar cached under a key, created if missing."""
        scalar = self.known(key)
        return scalar if scalar is not None else self.note(key, make())

    def range_of(self, x: ScalarHandle | Any) -> Range:
        """What is known of an int64 scalar, or of a number that stands for memory."""
        x = x.value if isinstance(x, Known) else x
        if not isinstance(x, ScalarHandle) or x.dtype != INT64:
            return UNKNOWN
        number = _integer(x.operand)
        return self.facts.ranges.get(x.operand, UNKNOWN) if number is None else (number, number)

    def ranged(self, x: ScalarHandle, known: Range | None) -> ScalarHandle:
        """The scalar itself, with what is known of it."""
        if known is not None and self._ranging and type(x.operand) is ir.Value:
            self.facts.ranges[x.operand] = common(known, self.facts.ranges.get(x.operand, UNKNOWN))
        return x

    @contextmanager
    def forgetting_ranges(self) -> Iterator[None]:
        """What becomes known within a ``with`` block is not known after it."""
        before = self.facts
        self.facts = replace(before, ranges=dict(before.ranges))
        try:
            yield
        finally:
            self.facts = before

    def let(
        self, op: str, args: tuple[ScalarHandle, ...], dtype: np.dtype | None = None, reassoc: bool = False
    ) -> ScalarHandle:
        """The operation `op` of `ir.OPERATIONS`, without folding."""
        operands = tuple(a.operand for a in args)
        to = result_dtype(op, tuple(a.dtype for a in operands)) if dtype is None else dtype

        def make() -> ScalarHandle:
            value = ir.Value(to)
            self.append(ir.Let(value, op, operands, reassoc))
            return ScalarHandle(self, value)

        return self.remember((op, operands, to, reassoc), make)

    def unary(self, op: str, x: ScalarHandle) -> ScalarHandle:
        """``neg`` or ``not``."""
        a = x.operand
        if op == "neg" and type(a) is ir.Extent:
            return self.extent(-a.value)
        if op == "neg" and type(a) is ir.Const and a.dtype.kind in "fc":
            return self.const(-a.value, a.dtype)
        if op == "not" and type(a) is ir.Const and a.dtype == BOOL:
            return self.const(not a.value, BOOL)
        result = self.let(op, (x,))
        return self.ranged(result, combined("sub", (0, 0), self.range_of(x))) if op == "neg" else result

    def binary(self, op: str, x: ScalarHandle, other: Any, *, reassoc: bool = False) -> ScalarHandle:
        """A binary operator on scalars of one dtype; `reassoc` allows reordering (in reductions).

        Raises
        ------
        TypeError
            If the dtypes differ, or the operator does not support them.
        """
        shift = op in ("shl", "shr")
        y = (
            other
            if isinstance(other, ScalarHandle)
            else self.const(other, x.dtype)
            if shift
            else self.scalar(other, x.dtype)
        )
        kind = x.dtype.kind
        if x.dtype != y.dtype or (op == "div" and kind not in "fc") or (shift and kind not in "iu"):
            raise TypeError(f"kernel rule: {op} of {x.dtype} and {y.dtype}")
        if kind == "b":
            op = {"add": "or", "mul": "and"}.get(op, op)
            if op == "sub":
                raise TypeError("kernel rule: sub of booleans")
            folded = _fold_booleans(op, x, y)
            if folded is not None:
                return folded
        elif kind in "iu":
            folded = _fold_integers(op, x, y)
            if folded is not None:
                return folded
            if x.dtype == INT64:
                return self._of_integers(op, x, y)
        return self.let(op, (x, y), reassoc=reassoc and kind in "fc")

    def _of_integers(self, op: str, x: ScalarHandle, y: ScalarHandle) -> ScalarHandle:
        """An operation on int64 scalars, of which the range or the result may be known."""
        whole = self._cancelled(op, x, y)
        if whole is not None:
            return whole
        a, b = self.range_of(x), self.range_of(y)
        answer = decided(op, a, b)
        if answer is not None:
            return self.const(answer, BOOL)
        chosen = extreme(op, a, b) if op in ("min", "max") else None
        if chosen is not None:
            return (x, y)[chosen]
        result = self.let(op, (x, y))
        self._relate(result.operand, op, x, y)
        return self.ranged(result, combined(op, a, b))

    def _relate(self, result: ir.Operand, op: str, x: ScalarHandle, y: ScalarHandle) -> None:
        """Note what an int64 number is made of."""
        if op in ("add", "sub") and type(y.operand) is ir.Extent:
            term, number = self._shifted.get(x.operand, (x, 0))
            self._shifted[result] = term, number + (y.operand.value if op == "add" else -y.operand.value)
        if op == "sub":
            self._differences[result] = x, y
        elif op == "add":
            self._sums[result] = x, y
        elif op == "lt" and self.range_of(y) == (0, 0):
            self._negative[result] = x

    def adopt(self, s: ir.Let) -> None:
        """Add a statement that exists already, so that it can be shared."""
        self.append(s)
        self.note((s.op, s.args, s.value.dtype, s.reassoc), ScalarHandle(self, s.value))
        if len(s.args) == 2 and s.args[0].dtype == INT64:
            x, y = s.args
            self._relate(s.value, s.op, ScalarHandle(self, x), ScalarHandle(self, y))

    def place(self, x: ScalarHandle) -> ScalarHandle:
        """An index that was shifted several times, shifted once."""
        term, number = self._shifted.get(x.operand, (x, 0))
        return term + number if number >= 0 else term - -number

    def _cancelled(self, op: str, x: ScalarHandle, y: ScalarHandle) -> ScalarHandle | None:
        """What is left of a sum or a difference if one number takes away what the other one adds."""
        if op == "add":
            for difference, term in ((x, y), (y, x)):
                minuend, subtrahend = self._differences.get(difference.operand, (None, None))
                if subtrahend is not None and subtrahend.operand == term.operand:
                    return minuend
        if op == "sub":
            if x.operand == y.operand:
                return self.extent(0)
            minuend, subtrahend = self._differences.get(y.operand, (None, None))
            if minuend is not None and minuend.operand == x.operand:
                return subtrahend
            one, other = self._sums.get(x.operand, (None, None))
            for addend, rest in ((one, other), (other, one)):
                if addend is not None and addend.operand == y.operand:
                    return rest
        return None

    def again(self, s: ir.Let, args: Sequence[ScalarHandle]) -> ScalarHandle:
        """The operation of a statement, on operands of which more may be known."""
        if s.op == "select":
            return self.where(*args)
        if s.op in ("neg", "not"):
            return self.unary(s.op, *args)
        if len(args) == 2 and args[0].dtype == INT64 and s.op in ("min", "max", "idiv", "irem"):
            return self._of_integers(s.op, *args)
        if s.op in _OPERATORS and args[0].dtype in (INT64, BOOL):
            return self.binary(s.op, *args)
        return self.let(s.op, tuple(args), s.value.dtype, s.reassoc)

    def call(self, name: str, *args: ScalarHandle) -> ScalarHandle:
        """A function of `scalar_functions.FUNCTIONS`."""
        kind = args[0].dtype.kind
        if kind == "b" and name in ("min", "max"):
            return self.binary("and" if name == "min" else "or", *args)
        if kind != "c" and name in ("real", "conj"):
            return args[0]
        if kind in "biu" and name in ("floor", "ceil", "trunc", "rint"):
            return args[0]
        if kind in "bu" and name == "abs":
            return args[0]
        if kind != "c" and name == "imag":
            return self.const(0, args[0].dtype)
        if name == "pow" and kind == "f":
            power = _simple_power(self, *args)
            if power is not None:
                return power
        if name in ("idiv", "irem") and all(type(a.operand) is ir.Extent for a in args):
            a, b = _integer(args[0].operand), _integer(args[1].operand)
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return self.extent(quotient if name == "idiv" else a - quotient * b)
        if len(args) == 2 and args[0].dtype == INT64:
            return self._of_integers(name, *args)
        return self.let(name, args)

    def widened(self, x: ScalarHandle) -> ScalarHandle:
        """A number from memory in the dtype of registers."""
        if not is_low(x.dtype):
            return x
        wide = self.let("cast", (x,), FLOAT32)
        self._in_memory[wide.operand] = x
        return wide

    def narrowed(self, x: ScalarHandle, dtype: np.dtype) -> ScalarHandle:
        """A number as memory of a dtype holds it: rounded to float16 or bfloat16."""
        if not is_low(dtype):
            return x
        known = self._in_memory.get(x.operand)
        return known if known is not None and known.dtype == dtype else self.let("cast", (x,), dtype)

    def rounded(self, x: ScalarHandle, dtype: np.dtype) -> ScalarHandle:
        """A number in a register as memory of a dtype would give it back."""
        return self.widened(self.narrowed(x, dtype))

    def cast(self, x: ScalarHandle, dtype: np.dtype) -> ScalarHandle:
        """NumPy's ``astype``; for float16 and bfloat16 the number is rounded, and stays a float32."""
        dtype = np.dtype(dtype)
        if is_low(dtype):
            return self._low(x, dtype)
        if x.dtype == dtype:
            return x
        if type(x.operand) is ir.Const:
            a = np.asarray(x.operand.value, x.dtype)
            a = a.real if x.dtype.kind == "c" and dtype.kind not in "cb" else a
            if dtype.kind in "biuc" or a.dtype.kind != "f" or np.isfinite(a):
                return self.const(run_quietly(cast, a, dtype)[()], dtype)
        result = self.let("cast", (x,), dtype)
        if dtype == INT64 and x.dtype.kind in "biu" and x.dtype.itemsize < INT64.itemsize:
            limits = (0, 1) if x.dtype == BOOL else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
            return self.ranged(result, (int(limits[0]), int(limits[1])))
        return result

    def _low(self, x: ScalarHandle, dtype: np.dtype) -> ScalarHandle:
        """``astype`` to float16 or bfloat16: once from float64 to float16, else by way of float32, as in NumPy."""
        if x.dtype.kind == "c":
            x = self.cast(x, real_dtype(x.dtype))
        if x.dtype != FLOAT64 or dtype != FLOAT16:
            x = self.cast(x, FLOAT32)
        if type(x.operand) is ir.Const and np.isfinite(x.operand.value):
            return self.const(x.operand.value, dtype)
        return self.rounded(x, dtype)

    def where(self, condition: ScalarHandle, x: ScalarHandle, y: ScalarHandle) -> ScalarHandle:
        """`x` if the condition holds, else `y`."""
        y = self.scalar(y, x.dtype)
        if x.dtype != y.dtype or condition.dtype != BOOL:
            raise TypeError(f"kernel rule: where of {condition.dtype}, {x.dtype} and {y.dtype}")
        c = condition.operand
        if x.operand == y.operand:
            return x
        if type(c) is ir.Const:
            return x if c.value else y
        known = hull(self._range_if(x, condition, (LOWEST, -1)), self._range_if(y, condition, (0, HIGHEST)))
        result = self.let("select", (condition, x, y))
        number, terms = self._negative.get(c), self._sums.get(x.operand)
        if number is not None and terms is not None and number.operand == y.operand == terms[0].operand:
            self.facts.wrapped[result.operand] = y.operand
        return self.ranged(result, known)

    def _range_if(self, x: ScalarHandle, condition: ScalarHandle, limit: Range) -> Range:
        """The range of a number where that of which a condition asks whether it is negative is in a limit."""
        known, number = self.range_of(x), self._negative.get(condition.operand)
        if number is None:
            return known
        term, shift = self._sums.get(x.operand, (x, self.extent(0)))
        if term.operand != number.operand:
            return known
        ends = narrowed([self.range_of(number)], [limit])[0]
        return common(known, combined("add", ends, self.range_of(shift)) or UNKNOWN)


def _simple_power(b: Arithmetic, x: ScalarHandle, y: ScalarHandle) -> ScalarHandle | None:
    """Powers that need no general function, correctly rounded."""
    if type(x.operand) is ir.Const and x.operand.value == 2.0:
        return b.let("exp2", (y,))
    if type(y.operand) is not ir.Const:
        return None
    if y.operand.value == 2.0:
        return x * x
    if y.operand.value == 1.0:
        return x
    return 1.0 / x if y.operand.value == -1.0 else None


def _integer(x: ir.Operand) -> Any:
    """The number of a literal or an extent, else None."""
    return x.value if isinstance(x, (ir.Extent, ir.Const)) else None


def _fold_booleans(op: str, x: ScalarHandle, y: ScalarHandle) -> ScalarHandle | None:
    if op in ("and", "or"):
        for a, b in ((x, y), (y, x)):
            if type(a.operand) is ir.Const:
                return b if a.operand.value == (op == "and") else a
    return None


def _fold_integers(op: str, x: ScalarHandle, y: ScalarHandle) -> ScalarHandle | None:
    a, b = x.operand, y.operand
    if type(a) is ir.Extent and type(b) is ir.Extent and op in ("add", "sub", "mul"):
        n = a.value + b.value if op == "add" else a.value - b.value if op == "sub" else a.value * b.value
        return x.builder.extent((n + 2**63) % 2**64 - 2**63)  # wraps like int64
    known_a, known_b = _integer(a), _integer(b)
    if op == "add" and known_a == 0:
        return y
    if op in ("add", "sub") and known_b == 0:
        return x
    if op == "mul":
        if known_a == 1 or known_b == 0:
            return y
        if known_b == 1 or known_a == 0:
            return x
    return None
