"""Mathematical functions as LLVM definitions: those that the C library lacks, those inlined into loops, and `formulas`.

Each is a function definition that is part of the kernel's module, for LLVM to inline.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ....passes import scalar_functions
from ....primitives.special.formulas import FORMULAS
from ....runtime.records import dataclass
from ...blas import symbol
from . import bessel, hyperbolic, inline_maths, inverse_erf, polygamma, powers, trigonometry
from .expr import Expr, FunctionText, vector

#: Those that stand for functions of the C library, by their names in the kernel vocabulary.
ELEMENTARY: dict[str, Callable[..., Expr]] = {
    **inline_maths.FUNCTIONS,
    **trigonometry.FUNCTIONS,
    **powers.FUNCTIONS,
    **hyperbolic.FUNCTIONS,
}
FUNCTIONS: dict[str, Callable[..., Expr]] = {
    **ELEMENTARY,
    **inverse_erf.FUNCTIONS,
    **bessel.FUNCTIONS,
    **polygamma.FUNCTIONS,
}
#: Those with separate code for float32; the others are computed as doubles.
SINGLE = {"quick_erfinv": inverse_erf.single}
#: Those of doubles that float32 has for itself: some have fewer digits, and loops of the others have more elements in a
#: vector.
FOR_SINGLE = {
    **powers.OF_FLOATS,
    **trigonometry.WITH_BRANCH,
    **inverse_erf.OF_FLOATS,
    **bessel.OF_FLOATS,
}


@dataclass(frozen=True)
class FunctionDefinition:
    """A function's symbol, the texts (by symbol) that define it, and the external symbols that it needs.

    Those of `kept` are called by what LLVM makes of its calls.
    """

    symbol: str
    texts: Mapping[str, str]
    symbols: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Target:
    """What definitions depend on: see `FunctionText`."""

    fused: bool = True
    lanes: int = 2
    convention: str = ""
    width: int = 1

    @property
    def suffix(self) -> str:
        """How the names of functions end."""
        return "" if self.width == 1 else f".v{self.width}"


_USUAL = Target()


@functools.cache
def definition_of(name: str, t: str, kind: str, target: Target = _USUAL) -> FunctionDefinition:
    """The definition of a function of LLVM type `t`; `kind` distinguishes signed from unsigned integers."""
    if t == "float" and name in SINGLE:
        return _define_text(name, SINGLE[name], "float", "f32", target)
    if t == "float":
        if name in FOR_SINGLE:
            wider = replace(target, lanes=2 * target.lanes)
            double = _define_text(name, FOR_SINGLE[name], "double", "for.f32", wider)
        else:
            double = definition_of(name, "double", kind, target)
        return _narrowed(name, double, target)
    if kind in "iu":
        return _opaque(t) if name == "opaque" else _integer_power(t)
    if name in FUNCTIONS:
        return _define_text(name, FUNCTIONS[name], "double", "f64", target)
    if name in FORMULAS:
        return _formula(name)
    f = scalar_functions.FUNCTIONS[name]
    return _scipy(name, f.scipy, _arguments(name)) if f.part is None else _scipy_part(name, f.scipy, f.part)


def _define_text(
    name: str, write: Callable[..., Expr], t: str, suffix: str, target: Target
) -> FunctionDefinition:
    f = FunctionText(
        f"functrans.{name}.{suffix}{target.suffix}",
        t,
        scalar_functions.FUNCTIONS[name].operands,
        target.fused,
        target.lanes,
        target.convention,
        target.width,
    )
    text = f.finish(write(f, *f.arguments))
    return FunctionDefinition(f.name, {**f.globals, f.name: text}, frozenset(f.symbols), frozenset(f.kept))


def _arguments(name: str) -> list[str]:
    return ["%x", "%y", "%z", "%w"][: scalar_functions.FUNCTIONS[name].operands]


def _define(name: str, text: str, symbols: frozenset[str] = frozenset(), **texts: str) -> FunctionDefinition:
    return FunctionDefinition(name, {**texts, name: text}, symbols)


def _narrowed(name: str, double: FunctionDefinition, target: Target) -> FunctionDefinition:
    """A float32 function computed by the double one."""
    own = f"functrans.{name}.f32{target.suffix}"
    wide, narrow, arguments = vector("double", target.width), vector("float", target.width), _arguments(name)
    widened = "\n".join(f"  {a}.w = fpext {narrow} {a} to {wide}" for a in arguments)
    listed = ", ".join(f"{narrow} {a}" for a in arguments)
    text = f"""define internal {narrow} @{own}({listed}) alwaysinline nounwind {{
{widened}
  %r = call {wide} @{double.symbol}({", ".join(f"{wide} {a}.w" for a in arguments)})
  %n = fptrunc {wide} %r to {narrow}
  ret {narrow} %n
}}"""
    return FunctionDefinition(own, {**double.texts, own: text}, double.symbols, double.kept)


def _scipy(name: str, routine: str, arguments: list[str]) -> FunctionDefinition:
    """A special function of SciPy, whose Cython form has an additional unused integer argument."""
    own, target = f"functrans.{name}.f64", symbol(routine)
    listed = ", ".join(f"double {a}" for a in arguments)
    text = f"""declare double @{target}({"double, " * len(arguments)}i32)
define internal double @{own}({listed}) alwaysinline nounwind {{
  %r = call double @{target}({listed}, i32 0) nounwind willreturn memory(none)
  ret double %r
}}"""
    return _define(own, text, frozenset({target}))


def _scipy_part(name: str, routine: str, part: int) -> FunctionDefinition:
    """One result of a special function of SciPy that writes two."""
    own, target = f"functrans.{name}.f64", symbol(routine)
    declaration = f"declare void @{target}(double, ptr, ptr)"  # shared with the other parts
    text = f"""define internal double @{own}(double %x) noinline nounwind memory(none) {{
  %both = alloca [2 x double]
  %second = getelementptr double, ptr %both, i64 1
  call void @{target}(double %x, ptr %both, ptr %second) nounwind willreturn memory(argmem: write)
  %wanted = getelementptr double, ptr %both, i64 {part}
  %r = load double, ptr %wanted
  ret double %r
}}"""
    return _define(own, text, frozenset({target}), **{target: declaration})


class _Formula(FunctionText):
    """A formula's function (`formulas.FormulaArithmetic`), with the definitions that it needs."""

    def __init__(self, name: str):
        super().__init__(f"functrans.{name}.f64", "double", scalar_functions.FUNCTIONS[name].operands)

    def where(self, condition: Expr, x: Any, y: Any) -> Expr:
        """`x` where the condition holds, else `y`."""
        return self.select(condition, x, y)

    def equal(self, x: Expr, y: Any) -> Expr:
        """Whether two floats are equal."""
        return x.eq(y)

    def call(self, name: str, *args: Expr) -> Expr:
        """A mathematical function."""
        if name == "sqrt":
            return self.intrinsic(name, *args)
        if name in FUNCTIONS:
            return FUNCTIONS[name](self, *args)
        definition = definition_of(name, "double", "f")
        self.globals.update(definition.texts)
        self.symbols |= definition.symbols
        listed = ", ".join(f"double {a.text}" for a in args)
        return self.new(f"call double @{definition.symbol}({listed})", "double")


def _formula(name: str) -> FunctionDefinition:
    """A function of `primitives.special.formulas`."""
    f = _Formula(name)
    text = f.finish(FORMULAS[name](f, *f.arguments))
    return _define(f.name, text, frozenset(f.symbols), **f.globals)


def _opaque(t: str) -> FunctionDefinition:
    """The integer itself, combined with a zero in memory, which to LLVM may be any number.

    LLVM tries to replace what a loop computes from its index by variables that it adds to in each iteration. A sum of
    the index and many other numbers, as in a hash, gives it so many ways to choose from that it takes half a second.
    """
    own, zero = f"functrans.opaque.{t}", "functrans.zero"
    text = f"""define internal {t} @{own}({t} %x) alwaysinline nounwind {{
  %z = load {t}, ptr @{zero}, !invariant.load !{{}}
  %r = xor {t} %x, %z
  ret {t} %r
}}"""
    return FunctionDefinition(own, {zero: f"@{zero} = dso_local global i64 0", own: text})


def _integer_power(t: str) -> FunctionDefinition:
    """Exponentiation by squaring; the exponent must not be negative."""
    own = f"functrans.pow.{t}"
    text = f"""define internal {t} @{own}({t} %x, {t} %n) nounwind {{
entry:
  br label %loop
loop:
  %r = phi {t} [ 1, %entry ], [ %r1, %loop ]
  %b = phi {t} [ %x, %entry ], [ %b1, %loop ]
  %k = phi {t} [ %n, %entry ], [ %k1, %loop ]
  %odd = trunc {t} %k to i1
  %rb = mul {t} %r, %b
  %r1 = select i1 %odd, {t} %rb, {t} %r
  %b1 = mul {t} %b, %b
  %k1 = lshr {t} %k, 1
  %done = icmp eq {t} %k1, 0
  br i1 %done, label %end, label %loop
end:
  ret {t} %r1
}}"""
    return _define(own, text)
