"""Mathematical functions written out in LLVM: what the C library lacks.

Each is a function definition that the kernel's module carries and LLVM inlines.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from .blas import symbol


@dataclass(frozen=True)
class Definition:
    """A function's symbol, the texts (by symbol) that define it, and the outside symbols it needs."""

    symbol: str
    texts: Mapping[str, str]
    symbols: frozenset[str] = frozenset()


def inlined(name: str, t: str) -> bool:
    """Whether own code replaces the C library's function."""
    return False


@functools.cache
def definition_of(name: str, t: str, kind: str) -> Definition:
    """The definition of a function of LLVM type `t`; `kind` tells signed from unsigned integers."""
    if t == "float":
        double = definition_of(name, "double", kind)
        return _narrowed(name, double)
    if kind in "iu":
        return _integer_power(t)
    return {"digamma": _digamma, "trigamma": _trigamma}[name]()


def _define(name: str, text: str, symbols: frozenset[str] = frozenset(), **texts: str) -> Definition:
    return Definition(name, {**texts, name: text}, symbols)


def _narrowed(name: str, double: Definition) -> Definition:
    """A float32 function by the double one."""
    own = f"functrans.{name}.f32"
    text = f"""define internal float @{own}(float %x) alwaysinline nounwind {{
  %w = fpext float %x to double
  %r = call double @{double.symbol}(double %w)
  %n = fptrunc double %r to float
  ret float %n
}}"""
    return Definition(own, {**double.texts, own: text}, double.symbols)


def _digamma() -> Definition:
    own, psi = "functrans.digamma.f64", symbol("psi")
    text = f"""declare double @{psi}(double, i32)
define internal double @{own}(double %x) alwaysinline nounwind {{
  %r = call double @{psi}(double %x, i32 0) nounwind willreturn memory(none)
  ret double %r
}}"""
    return _define(own, text, frozenset({psi}))


def _integer_power(t: str) -> Definition:
    """Square and multiply; a negative exponent gives 0, 1 or -1 as the exact quotient truncates."""
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


def _trigamma() -> Definition:
    raise NotImplementedError
