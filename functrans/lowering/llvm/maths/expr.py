"""A small language for writing LLVM functions of numbers in Python, without branches other than sums over tables.

The functions are meant to be inlined into loops and vectorized with them, so they use `FunctionText.select` instead of
branches. Every operation rounds once: a fused multiply-add must be written explicitly.

>>> f = FunctionText("square", "double")
>>> x = f.arguments[0]
>>> print(f.finish(x * x))
define internal double @square(double %x0) alwaysinline nounwind {
  %v1 = fmul double %x0, %x0
  ret double %v1
}
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from ....runtime.private.python_names import blake2b

_SUFFIX = {"double": "f64", "float": "f32"}
_WORD = {"double": "i64", "float": "i32"}


def vector(element: str, width: int) -> str:
    """The type of `width` elements: that of one if it is 1."""
    return element if width == 1 else f"<{width} x {element}>"


def element_of(type_: str) -> str:
    """The type of an element of a vector, or of a number."""
    return type_.strip("<>").split()[-1]


#: A function of a vector: that of a number for each element if a condition holds for one, else the vector itself.
_ONE_BY_ONE = """define internal {convention}{v} @{many}({v} %x, <{lanes} x i1> %where)
    noinline nounwind willreturn memory(none) {{
entry:
  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> %where)
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %so.far = phi {v} [ %x, %entry ], [ %more, %loop ]
  %a = extractelement {v} %x, i64 %i
  %b = call {t} @{one}({t} %a) nounwind willreturn memory(none)
  %more = insertelement {v} %so.far, {t} %b, i64 %i
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, {lanes}
  br i1 %again, label %loop, label %done
done:
  %r = phi {v} [ %x, %entry ], [ %more, %loop ]
  ret {v} %r
}}"""


class Expr:
    """A value in such a function: combine with operators; Python numbers become literals of the same type."""

    __slots__ = ("function", "text", "type")

    def __init__(self, function: FunctionText, text: str, type_: str):
        self.function = function
        self.text = text
        self.type = type_

    def _combine(self, op: str, other: Any, result: str = "") -> Expr:
        f = self.function
        result = vector(result, f.width) if result else self.type
        return f.new(f"{op} {self.type} {self.text}, {f.number(other, self.type).text}", result)

    @property
    def _floating(self) -> bool:
        return element_of(self.type) in _SUFFIX

    def _arithmetic(self, op: str, other: Any) -> Expr:
        return self._combine(("f" if self._floating else "") + op, other)

    def _compare(self, op: str, other: Any) -> Expr:
        return self._combine(f"fcmp o{op}" if self._floating else f"icmp s{op}", other, "i1")

    def __add__(self, other: Any) -> Expr:
        return self._arithmetic("add", other)

    def __sub__(self, other: Any) -> Expr:
        return self._arithmetic("sub", other)

    def __mul__(self, other: Any) -> Expr:
        return self._arithmetic("mul", other)

    def __truediv__(self, other: Any) -> Expr:
        return self._combine("fdiv", other)

    def __radd__(self, other: Any) -> Expr:
        return self.function.number(other, self.type) + self

    def __rsub__(self, other: Any) -> Expr:
        return self.function.number(other, self.type) - self

    def __rmul__(self, other: Any) -> Expr:
        return self.function.number(other, self.type) * self

    def __rtruediv__(self, other: Any) -> Expr:
        return self.function.number(other, self.type) / self

    def __neg__(self) -> Expr:
        return self.function.new(f"fneg {self.type} {self.text}", self.type)

    def __lt__(self, other: Any) -> Expr:
        return self._compare("lt", other)

    def __le__(self, other: Any) -> Expr:
        return self._compare("le", other)

    def __gt__(self, other: Any) -> Expr:
        return self._compare("gt", other)

    def __ge__(self, other: Any) -> Expr:
        return self._compare("ge", other)

    def eq(self, other: Any) -> Expr:
        """Equality."""
        return self._combine("fcmp oeq" if self._floating else "icmp eq", other, "i1")

    def __and__(self, other: Any) -> Expr:
        return self._combine("and", other)

    def __or__(self, other: Any) -> Expr:
        return self._combine("or", other)

    def __xor__(self, other: Any) -> Expr:
        return self._combine("xor", other)

    def __lshift__(self, other: int) -> Expr:
        return self._combine("shl", other)

    def __rshift__(self, other: int) -> Expr:
        return self._combine("ashr", other)


class FunctionText:
    """A function under construction.

    Parameters
    ----------
    name : str
    type_ : {'double', 'float'}
        The type of the elements of the arguments and the result.
    arity : int
    fused : bool
        Whether the processor has fused multiply-add. Without it `fma` rounds twice, which is enough for polynomials;
        the exact error of a product is that of `product`.
    lanes : int
        The elements of a vector in the loops that the function is inlined into.
    convention : str
        How functions of vectors are called.
    width : int
        The elements of the arguments: more than one for a function of vectors.
    """

    def __init__(
        self,
        name: str,
        type_: str,
        arity: int = 1,
        fused: bool = True,
        lanes: int = 2,
        convention: str = "",
        width: int = 1,
    ):
        self.name = name
        self.element = type_
        self.type = vector(type_, width)
        self.width = width
        self.fused = fused
        self.lanes = lanes
        self.convention = convention
        self.arguments = [Expr(self, f"%x{i}", self.type) for i in range(arity)]
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"
        self.globals: dict[str, str] = {}
        self.symbols: set[str] = set()
        self.kept: set[str] = set()

    def new(self, code: str, type_: str) -> Expr:
        """Append an instruction."""
        self._count += 1
        text = f"%v{self._count}"
        self._lines.append(f"  {text} = {code}")
        return Expr(self, text, type_)

    def number(self, x: Any, type_: str = "") -> Expr:
        """`x`, or a literal of the type."""
        if isinstance(x, Expr):
            return x
        type_ = type_ or self.type
        element = element_of(type_)
        if element == "float":
            x = struct.unpack("f", struct.pack("f", x))[0]
        text = "0x" + struct.pack(">d", x).hex().upper() if element in _SUFFIX else str(x)
        if type_ != element:
            text = f"<{', '.join([f'{element} {text}'] * self.width)}>"
        return Expr(self, text, type_)

    def _suffix(self, type_: str) -> str:
        return ("" if self.width == 1 else f"v{self.width}") + _SUFFIX[element_of(type_)]

    def fma(self, a: Expr, b: Any, c: Any) -> Expr:
        """``a * b + c``, rounded once if the processor can."""
        if not self.fused:
            return a * b + c
        t = a.type
        args = ", ".join(f"{t} {self.number(v, t).text}" for v in (a, b, c))
        return self.new(f"call {t} @llvm.fma.{self._suffix(t)}({args})", t)

    def intrinsic(self, name: str, *args: Expr) -> Expr:
        """LLVM's function of floats: ``rint``, ``fabs``, ``sqrt``, ``copysign``, ``floor``."""
        t = args[0].type
        listed = ", ".join(f"{t} {a.text}" for a in args)
        return self.new(f"call {t} @llvm.{name}.{self._suffix(t)}({listed})", t)

    def select(self, condition: Expr, x: Any, y: Any) -> Expr:
        """`x` where the condition holds, else `y`."""
        t = x.type if isinstance(x, Expr) else y.type if isinstance(y, Expr) else self.type
        yes, no = self.number(x, t), self.number(y, t)
        return self.new(f"select {condition.type} {condition.text}, {t} {yes.text}, {t} {no.text}", t)

    def bits(self, x: Expr) -> Expr:
        """A float's bits as an integer."""
        word = vector(_WORD[element_of(x.type)], self.width)
        return self.new(f"bitcast {x.type} {x.text} to {word}", word)

    def from_bits(self, x: Expr) -> Expr:
        """The float with these bits."""
        return self.new(f"bitcast {x.type} {x.text} to {self.type}", self.type)

    def to_float(self, x: Expr) -> Expr:
        """An integer's value as a float."""
        return self.new(f"sitofp {x.type} {x.text} to {self.type}", self.type)

    def shift_right(self, x: Expr, count: int) -> Expr:
        """A logical shift of an integer."""
        return self.new(f"lshr {x.type} {x.text}, {self.number(count, x.type).text}", x.type)

    def polynomial(self, x: Expr, coefficients: Sequence[float]) -> Expr:
        """``c[0] + c[1] x + ...`` by Horner's rule."""
        *rest, last = coefficients
        result = self.number(last, x.type)
        for c in reversed(rest):
            result = self.fma(result, x, c)
        return result

    def polynomial_in_halves(self, x: Expr, square: Expr, coefficients: Sequence[float]) -> Expr:
        """``c[0] + c[1] x + ...``, even and odd powers apart: as many operations, half of them wait for one another."""
        odd = self.polynomial(square, coefficients[1::2])
        return self.fma(odd, x, self.polynomial(square, coefficients[::2]))

    def product(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        """The rounded product of doubles, and its error; exact unless a part overflows or is denormal."""
        p = a * b
        if self.fused:
            return p, self.fma(a, b, -p)
        (a1, a2), (b1, b2) = self._halves(a), self._halves(b)
        return p, a1 * b1 - p + a1 * b2 + a2 * b1 + a2 * b2

    def _halves(self, x: Expr) -> tuple[Expr, Expr]:
        """Two numbers of 26 bits with this sum (Veltkamp)."""
        c = x * (2.0**27 + 1)
        high = c - (c - x)
        return high, x - high

    def rarely(self, condition: Expr, symbol: str, usual: Expr) -> Expr:
        """`usual`, but an external function of the argument where the condition holds, which is rare.

        It is the one branch of a function. In a loop LLVM makes it a call of a function that computes for so many
        elements as a vector has, and returns at once if the condition holds for none.
        """
        k, before, t, many = len(self._lines), self._block, self.element, f"{self.name}.far"
        lanes = self.lanes if self.width == 1 else self.width
        v = vector(t, lanes)
        self.globals[symbol] = f"declare {t} @{symbol}({t})"
        self.symbols.add(symbol)
        self.globals[many] = _ONE_BY_ONE.format(
            many=many, one=symbol, lanes=lanes, convention=self.convention, v=v, t=t
        )
        if self.width > 1:
            x, where = self.arguments[0].text, condition.text
            far = self.new(f"call {self.convention}{v} @{many}({v} {x}, {condition.type} {where})", v)
            return self.select(condition, far, usual)
        self.kept.add(many)
        variant = f'"vector-function-abi-variant"="_ZGV_LLVM_M{lanes}v_{symbol}({many})"'
        call = f"call {t} @{symbol}({t} {self.arguments[0].text})"
        self._lines += [
            f"  br i1 {condition.text}, label %rare{k}, label %done{k}",
            f"rare{k}:",
            f"  %r{k} = {call} cold nounwind willreturn memory(none) {variant}",
            f"  br label %done{k}",
            f"done{k}:",
        ]
        self._block = f"done{k}"
        return self.new(f"phi {t} [ {usual.text}, %{before} ], [ %r{k}, %rare{k} ]", t)

    def sums(
        self, tables: Sequence[Sequence[float]], terms: Callable[..., Sequence[Expr]], when: Expr
    ) -> list[Expr]:
        """The sums of ``terms(*row)`` over the rows of tables, in a loop that vectorizes; 0 if `when` does not hold."""
        k = len(self._lines)
        size, before, loop, done = len(tables[0]), self._block, f"loop{k}", f"done{k}"
        self._lines += [f"  br i1 {when.text}, label %{loop}, label %{done}", f"{loop}:"]
        start = len(self._lines)
        row = [self._entry(table, f"%i{k}") for table in tables]
        parts = terms(*row)
        t = self.type
        heads = [f"  %i{k} = phi i64 [ 0, %{before} ], [ %n{k}, %{loop} ]"]
        tails, results = [], []
        for j, part in enumerate(parts):
            now, after, result = [f"%{name}{k}.{j}" for name in ("t", "a", "s")]
            heads.append(f"  {now} = phi {t} [ 0.0, %{before} ], [ {after}, %{loop} ]")
            tails.append(f"  {after} = fadd reassoc {t} {now}, {part.text}")
            results.append((result, f"  {result} = phi {t} [ 0.0, %{before} ], [ {after}, %{loop} ]"))
        self._lines[start:start] = heads
        self._lines += [
            *tails,
            f"  %n{k} = add i64 %i{k}, 1",
            f"  %m{k} = icmp ult i64 %n{k}, {size}",
            f"  br i1 %m{k}, label %{loop}, label %{done}",
            f"{done}:",
            *[line for _, line in results],
        ]
        self._block = done
        return [Expr(self, result, t) for result, _ in results]

    def _entry(self, table: Sequence[float], index: str) -> Expr:
        """An entry of a table of constants."""
        kind = f"[{len(table)} x {self.type}]"
        items = ", ".join(f"{self.type} {self.number(x).text}" for x in table)
        name = f"@functrans.table.{blake2b(items.encode(), digest_size=6).hexdigest()}"
        self.globals[name[1:]] = f"{name} = private constant {kind} [{items}], align 64"
        place = self.new(f"getelementptr {kind}, ptr {name}, i64 0, i64 {index}", "ptr")
        return self.new(f"load {self.type}, ptr {place.text}", self.type)

    def finish(self, result: Expr) -> str:
        """The function's text."""
        arguments = ", ".join(f"{self.type} {a.text}" for a in self.arguments)
        head = f"define internal {self.type} @{self.name}({arguments}) alwaysinline nounwind {{"
        if self.globals:
            head += "\nentry:"
        return "\n".join([head, *self._lines, f"  ret {self.type} {result.text}", "}"])
