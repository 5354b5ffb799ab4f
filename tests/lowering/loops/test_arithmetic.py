"""What a builder makes of scalars: folded, shared or cancelled, an expression is the number that it was."""

import operator
import random

import numpy as np
import pytest

from functrans.lowering.loops import ir, queries
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.check import verify

I8, BOOL = ir.INT64, ir.BOOL


def truncated(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


NUMBERS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "min": min, "max": max,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "shl": operator.lshift, "shr": operator.rshift,
    "idiv": truncated, "irem": lambda a, b: a - truncated(a, b) * b,
}  # fmt: skip
TESTS = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
CHOICES = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
UNARY = {"neg": operator.neg, "not": lambda x: not x if type(x) is bool else ~x}
ALL = {**NUMBERS, **TESTS, **UNARY, "select": lambda c, x, y: x if c else y}


class Expressions:
    """Random expressions of the numbers of two loops, each with a function of these numbers."""

    def __init__(self, b, i, j, seed):
        self.b, self.random = b, random.Random(seed)
        self.numbers = [(i, lambda i, j: i), (j, lambda i, j: j)]
        for n in (0, 1, 2, -1, 7):
            self.numbers += [(b.extent(n), lambda i, j, n=n: n), (b.const(n, I8), lambda i, j, n=n: n)]
        self.choices = [(b.const(c, BOOL), lambda i, j, c=c: c) for c in (False, True)]

    def step(self):
        kind = self.random.choice(
            ["number"] * 6 + ["known", "test", "choice", "not", "where", "where", "wrapped"]
        )
        (x, f), (y, g) = (self.random.choice(self.numbers[-9:] + self.numbers[:2]) for _ in range(2))
        (c, p), (d, q) = (self.random.choice(self.choices[-4:]) for _ in range(2))
        b = self.b
        if kind == "number":
            op = self.random.choice(["add", "sub", "mul", "add", "sub", "min", "max", "and", "or", "xor"])
            new = b.call(op, x, y) if op in ("min", "max") else b.binary(op, x, y)
            self.numbers.append((new, lambda i, j, h=NUMBERS[op]: h(f(i, j), g(i, j))))
        elif kind == "known":
            op, n = self.random.choice(["idiv", "irem", "shl", "shr"]), self.random.choice([1, 2, 3])
            new = b.call(op, x, b.extent(n)) if op[0] == "i" else b.binary(op, x, b.const(n, I8))
            self.numbers.append((new, lambda i, j, h=NUMBERS[op]: h(f(i, j), n)))
        elif kind == "test":
            op = self.random.choice(list(TESTS))
            self.choices.append((b.binary(op, x, y), lambda i, j, h=TESTS[op]: h(f(i, j), g(i, j))))
        elif kind == "choice":
            op = self.random.choice(list(CHOICES))
            self.choices.append((b.binary(op, c, d), lambda i, j, h=CHOICES[op]: h(p(i, j), q(i, j))))
        elif kind == "not":
            self.choices.append((b.unary("not", c), lambda i, j: not p(i, j)))
            self.numbers.append((b.unary("neg", x), lambda i, j: -f(i, j)))
        elif kind == "where":
            new = b.where(c, x, y)
            self.numbers.append((new, lambda i, j: f(i, j) if p(i, j) else g(i, j)))
        else:  # an index that may be counted from the end
            new = b.where(b.binary("lt", x, 0), b.binary("add", x, 5), x)
            self.numbers.append((new, lambda i, j: f(i, j) + 5 if f(i, j) < 0 else f(i, j)))
            self.numbers.append((b.place(x), f))


def wraps(x):
    return x if type(x) is bool else (x + 2**63) % 2**64 - 2**63


def run(statements, known):
    """The numbers that statements compute."""

    def value(x):
        return known[x] if type(x) is ir.Value else x.value

    for s in statements:
        known[s.value] = wraps(ALL[s.op](*map(value, s.args)))
    return value


@pytest.mark.parametrize("seed", range(40))
def test_expressions_are_the_numbers_that_they_were(seed):
    b = StatementBuilder("k")
    with b.loop(4, -3) as i, b.loop(6, 1) as j:
        new = Expressions(b, i, j, seed)
        for _ in range(60):
            new.step()
        inner = [s for s in b.statements if type(s) is ir.Let]
        copies = [(s, b.again(s, [_handle(b, a) for a in s.args])) for s in inner]
    verify(b.finish())
    loops = [s for s in queries.walk(b.kernel.body) if type(s) is ir.For]
    lets = [s for s in queries.walk(b.kernel.body) if type(s) is ir.Let]
    for at in np.ndindex(7, 5):
        place = at[0] - 3, at[1] + 1
        value = run(lets, dict(zip([loop.var for loop in loops], place)))
        for handle, f in (*new.numbers, *new.choices):
            assert value(handle.operand) == wraps(f(*place)), (seed, place)
            low, high = b.range_of(handle)
            assert handle.dtype == BOOL or low <= value(handle.operand) <= high
        for s, copy in copies:
            assert value(copy.operand) == value(s.value)


def test_what_an_index_was_counted_from_is_known():
    b = StatementBuilder("k")
    with b.loop(4, -3) as i:
        index = b.where(i < 0, i + 5, i)
        assert b.facts.wrapped == {index.operand: i.operand}
        assert b.range_of(index) == (0, 4)
        other = b.where(i < 1, i + 5, i)
        assert other.operand not in b.facts.wrapped
        assert b.range_of(other) == (-3, 8)


def _handle(b, operand):
    return type(b.extent(0))(b, operand)


DTYPES = [np.dtype(t) for t in ("?", "i1", "i4", "i8", "u2", "u8", "f4", "f8", "c8", "c16")]


@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_casts_of_literals_are_numpys(target):
    b = StatementBuilder("k")
    for source in DTYPES:
        for number in (0, 1, 100, 2.75, -3.5, 1j, 2 - 1j):
            if (type(number) is complex and source.kind != "c") or (
                source.kind in "bu" and np.real(number) < 0
            ):
                continue
            x = np.asarray(number).astype(source)
            if target.kind == "u" and x.real < 0:
                continue
            real = x.real if target.kind not in "cb" else x
            result = b.cast(b.const(x[()], source), target)
            assert result.dtype == target
            assert type(result.operand) is ir.Const
            assert result.operand.value == real.astype(target)[()]
    assert b.statements == []


def test_numbers_of_any_dtype_are_combined_only_if_they_are_literals():
    """Floats are left alone: rounding, signed zeros and NaN are the processor's."""
    b = StatementBuilder("k")
    for dtype in DTYPES[6:]:
        x = b.parameter(0, dtype)
        before = len(b.statements)
        for y in (0.0, 1.0):
            for op in ("add", "sub", "mul"):
                b.binary(op, x, y)
        assert len(b.statements) - before == 6
        assert b.call("conj", x).operand is x.operand or dtype.kind == "c"
        assert b.call("real", x).dtype == np.zeros(1, dtype).real.dtype
    for name in ("floor", "ceil", "trunc", "rint", "real", "conj"):
        n = b.parameter(0, I8)
        assert b.call(name, n).operand is n.operand
    assert b.call("imag", b.parameter(0, I8)).operand == ir.Const(0, I8)
    c, d = (b.cast(b.parameter(k, I8), BOOL) for k in range(2))
    for name, op in (("min", "and"), ("max", "or")):
        b.call(name, c, d)
        assert b.statements[-1].op == op
    assert b.call("abs", c).operand is c.operand
