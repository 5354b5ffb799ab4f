"""Mathematical functions in kernels: which symbol computes what, and how loops with calls stay vectorized.

In order of preference:

1. our own code (`own_maths.ELEMENTARY`), inlined and vectorized with the enclosing loop, of a few functions if the loop
   keeps several accumulators: a call would spill them all, and take twice the time;
2. our own code apart (`library`), where it takes less time than libmvec's;
3. glibc's libmvec: a call of the scalar function has the attribute ``vector-function-abi-variant``, which names the
   vector variants that the loaded library has (calling a missing one would jump to an invalid address);
4. our own code apart, if libmvec is missing, in a loop that may become one of vectors;
5. the C library's scalar function.

What the C library lacks is our own code apart, or SciPy's. Kernels for another processor have what is apart inlined.
Strict kernels use only 5.
"""

from __future__ import annotations

import numpy as np

from ....passes import scalar_functions
from ....runtime.records import dataclass
from ...blas import C_PREFIX
from ...processor import Processor, processor
from ..ops import llvm_type
from ..symbols import has_libmvec, is_in_process
from . import library
from .inline_maths import FASTER
from .own_maths import ELEMENTARY, FORMULAS, FUNCTIONS, definition_of

#: The C library's names of its functions.
LIBM = {name: f.libm for name, f in scalar_functions.FUNCTIONS.items() if f.libm}
#: Those of doubles whose own code takes less time than libmvec's: 0.65 of it (`tanh`), and 0.75 with AVX-512.
BETTER = frozenset(("tanh", "arcsin", "arccos"))
#: Attributes of a call that neither reads nor writes memory of the kernel (nothing reads errno).
PURE = " nounwind willreturn memory(none)"


@dataclass(frozen=True)
class MathFunction:
    """A symbol, and the attributes of calls of it."""

    symbol: str
    attributes: str


class Maths:
    """The functions that one kernel uses.

    Parameters
    ----------
    strict : bool
        The C library's scalar functions only.
    cpu : Processor
    """

    def __init__(self, strict: bool, cpu: Processor):
        self.strict = strict
        self._cpu = cpu
        self.symbols: set[str] = set()
        self._used: dict[tuple[str, str, bool, bool], MathFunction] = {}
        self._declarations: dict[str, str] = {}
        self._vector: set[str] = set()
        self._apart = not strict and cpu == processor()
        self.vector_bits = cpu.vector_bits
        width = self.vector_bits
        self.function_attributes = f'"prefer-vector-width"="{width}"' if width else ""

    def use(self, name: str, dtype: np.dtype, inline: bool = False, alone: bool = False) -> MathFunction:
        """The function for operands of `dtype`.

        `inline` if a call would be expensive; `alone` if it computes one number at a time, so that no vector makes up
        for the long chain of operations in ours: the C library's takes two thirds of the time, its logarithm a quarter.
        """
        key = (name, dtype.name, inline, alone)
        if key not in self._used:
            self._used[key] = self._find(name, dtype, inline, alone)
        return self._used[key]

    def both(self) -> MathFunction | None:
        """The function that returns the sine and the cosine of a number, if the C library has one."""
        if self.strict or not is_in_process("sincos"):
            return None
        symbol = f"{C_PREFIX}sincos"
        self.symbols.add(symbol)
        self._declarations[symbol] = f"declare void @{symbol}(double, ptr, ptr)"
        self._declarations[_BOTH.symbol] = _BOTH_TEXT.format(c=symbol, own=_BOTH.symbol)
        return _BOTH

    def declarations(self) -> list[str]:
        """Declarations and definitions for the module, in a fixed order."""
        lines = [self._declarations[k] for k in sorted(self._declarations)]
        if self._vector:
            listed = ", ".join(f"ptr @{v}" for v in sorted(self._vector))
            array = f"[{len(self._vector)} x ptr] [{listed}]"
            lines.append(f'@llvm.compiler.used = appending global {array}, section "llvm.metadata"')
        return lines

    def _find(self, name: str, dtype: np.dtype, inline: bool, alone: bool) -> MathFunction:
        t = llvm_type(dtype)
        if name not in LIBM or dtype.kind in "iu":
            ours_too = name in FUNCTIONS or name in FORMULAS
            return self._own(name, t) if ours_too and dtype.kind == "f" else self._define(name, t, dtype.kind)
        symbol = LIBM[name] + ("f" if t == "float" else "")
        arity = scalar_functions.FUNCTIONS[name].operands
        variants = ""
        if not self.strict:
            own = name in ELEMENTARY and (self._cpu.fma or name not in _SLOW_WITHOUT_FMA[t])
            if own and self._cpu.fma and inline and name in FASTER and t == "double":
                return self._define(name, t, dtype.kind)
            better = name in BETTER and self._cpu.fma and t == "double" and self._apart
            variants = "" if better else self._variants(symbol, t, arity)
            if own and not variants and not alone:
                return self._own(name, t)
        # Under another name: if LLVM knows the C function, it rewrites cos(-x) as a new call of cos,
        # which has lost its vector variants.
        ours = C_PREFIX + symbol
        self.symbols.add(ours)
        self._declarations[ours] = f"declare {t} @{ours}({', '.join([t] * arity)})"
        return MathFunction(ours, PURE + variants)

    def _variants(self, symbol: str, t: str, arity: int) -> str:
        """The attribute that lists the vector variants of a C function; also declares them."""
        variants = []
        for isa, bits in _variant_kinds(self._cpu):
            lanes = bits // (64 if t == "double" else 32)
            variant = f"_ZGV{isa}N{lanes}{'v' * arity}_{symbol}"
            if is_in_process(variant):
                v = f"<{lanes} x {t}>"
                convention = library.conventions()[isa]
                self._declarations[variant] = f"declare {convention}{v} @{variant}({', '.join([v] * arity)})"
                self._vector.add(variant)
                variants.append(f"_ZGV{isa}N{lanes}{'v' * arity}_{C_PREFIX}{symbol}({variant})")
        return f' "vector-function-abi-variant"="{",".join(variants)}"' if variants else ""

    def _own(self, name: str, t: str) -> MathFunction:
        """One of our functions of floating-point numbers, compiled apart if it may be."""
        if not self._apart:
            return self._define(name, t, "f")
        target = library.target_of(self._cpu)
        forms = library.forms_of(name, t, target)
        for form in forms:
            self._declarations[form.symbol] = library.declaration(form, name, target)
            self.symbols.add(form.symbol)
        self._vector |= {form.symbol for form in forms[1:]}
        return MathFunction(forms[0].symbol, PURE + library.variants(forms, name))

    def _define(self, name: str, t: str, kind: str) -> MathFunction:
        """One of our functions, with the functions that it calls."""
        definition = definition_of(name, t, kind, library.target_of(self._cpu))
        self._declarations.update(definition.texts)
        self.symbols |= definition.symbols
        self._vector |= definition.kept
        return MathFunction(definition.symbol, PURE)


def scalar_functions_of(cpu: Processor) -> list[str]:
    """The functions of doubles that loops on a processor call number by number, since there is none of vectors."""
    maths, double = Maths(False, cpu), np.dtype(np.float64)
    used = {name: maths.use(name, double) for name in LIBM}
    calls = {name for name, f in used.items() if f.symbol.startswith(C_PREFIX)}
    return sorted(name for name in calls if "vector-function-abi-variant" not in used[name].attributes)


_BOTH = MathFunction("functrans.sincos.f64", PURE)
_BOTH_TEXT = """define internal {{ double, double }} @{own}(double %x) alwaysinline nounwind {{
  %sine = alloca double
  %cosine = alloca double
  call void @{c}(double %x, ptr %sine, ptr %cosine) nounwind willreturn
  %s = load double, ptr %sine
  %c = load double, ptr %cosine
  %first = insertvalue {{ double, double }} poison, double %s, 0
  %both = insertvalue {{ double, double }} %first, double %c, 1
  ret {{ double, double }} %both
}}"""
#: Those whose own code takes longer than the C library's, number by number, on a processor without fused multiply-add.
_SLOW_WITHOUT_FMA = {
    "double": frozenset(("exp", "exp2", "erf", "pow", "arcsinh", "arccosh")),
    "float": frozenset(("sin", "cos", "erf", "pow", "arcsin", "arccosh")),
}
#: libmvec's letter and bits for each vector instruction set, the widest first.
_KINDS = {"avx512f": ("e", 512), "avx2": ("d", 256), "sse4.2": ("b", 128), "neon": ("n", 128)}


def _variant_kinds(cpu: Processor) -> list[tuple[str, int]]:
    """The kinds of vector variants that a processor can run."""
    return [kind for feature, kind in _KINDS.items() if feature in cpu.features] if has_libmvec() else []
