"""Our own functions out of line: kernels call them as they call libmvec's, and each is compiled once per machine.

The code of a function in every loop that calls it would take milliseconds to compile each time; a call of a vector
takes little longer than that code. A function has a form for one number, and one for each length of a vector.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import replace

from ....passes import scalar_functions
from ....runtime.context import new_lock
from ....runtime.libraries import llvm
from ....runtime.records import dataclass
from ...blas import MATHS_PREFIX
from ...processor import Processor, processor
from ..objects import LoadedCode, ObjectCode, compile_object, keep_for_ever
from ..store import obtain
from .expr import vector
from .own_maths import ELEMENTARY, FORMULAS, Target, definition_of

_TYPES = {"f64": "double", "f32": "float"}
_loading = new_lock()


@functools.cache
def conventions() -> dict[str, str]:
    """The calling convention of each kind. ARM's vector functions preserve more registers than others, so that nothing
    is spilled around a call; older releases of LLVM lose the convention where they make a loop's call one of vectors.
    """
    return dict.fromkeys("edb", "") | {"n": "aarch64_vector_pcs " if llvm.llvm_version_info[0] >= 22 else ""}


def target_of(cpu: Processor) -> Target:
    """What our functions depend on."""
    if "avx512f" in cpu.features:
        return Target(cpu.fma, 8)
    if "avx" in cpu.features or "avx2" in cpu.features:
        return Target(cpu.fma, 4)
    return Target(cpu.fma, 2, conventions()["n"] if "neon" in cpu.features else "")


@dataclass(frozen=True)
class MathForm:
    """A form of a function: its symbol, the type of what it takes and returns, and the length of that (1: a number).

    The symbol is the name of the function, its type and the length, after `MATHS_PREFIX`.
    """

    symbol: str
    type: str
    lanes: int


def forms_of(name: str, t: str, target: Target) -> list[MathForm]:
    """The forms of a function of LLVM type `t`, that of one number first."""
    suffix = "f64" if t == "double" else "f32"
    # Loops over 32-bit integers, as in random numbers, use twice as many lanes; they call no elementary functions.
    widest = target.lanes * (1 if t == "double" and name in ELEMENTARY else 2)
    lengths = [1] if name in FORMULAS else [n for n in (1, 2, 4, 8, 16) if n <= widest]
    return [MathForm(f"{MATHS_PREFIX}{name}.{suffix}.{n}", vector(t, n), n) for n in lengths]


def declaration(form: MathForm, name: str, target: Target) -> str:
    """The declaration of a form."""
    listed = ", ".join([form.type] * scalar_functions.FUNCTIONS[name].operands)
    return f"declare {_convention(form, target)}{form.type} @{form.symbol}({listed})"


def variants(forms: list[MathForm], name: str) -> str:
    """The attribute of a call of the form of a number, which names the others."""
    letters = "v" * scalar_functions.FUNCTIONS[name].operands
    one, *others = forms
    listed = ",".join(f"_ZGV_LLVM_N{f.lanes}{letters}_{one.symbol}({f.symbol})" for f in others)
    return f' "vector-function-abi-variant"="{listed}"' if others else ""


def own_function(symbol: str, load: Callable[[ObjectCode], LoadedCode]) -> int:
    """The address of a form on this processor."""
    target = target_of(processor())
    name, suffix, lanes = symbol.removeprefix(MATHS_PREFIX).split(".")
    with _loading:
        return _addresses(name, _TYPES[suffix], target, load)[int(lanes)]


@functools.cache
def _addresses(name: str, t: str, target: Target, load: Callable[[ObjectCode], LoadedCode]) -> dict[int, int]:
    cpu = processor()
    text, entry = library_text(name, t, cpu, target)
    about = f"{name} of vectors"
    code, _ = obtain(text, cpu, about, lambda: compile_object(text, entry, cpu), load, lasting=f"{entry}.")
    keep_for_ever(code)
    forms = forms_of(name, t, target)
    table = (ctypes.c_size_t * len(forms)).from_address(ctypes.CFUNCTYPE(ctypes.c_size_t)(code.address)())
    return {form.lanes: address for form, address in zip(forms, table, strict=True)}


def library_text(name: str, t: str, cpu: Processor, target: Target) -> tuple[str, str]:
    """A module with all forms of a function, and its entry, which returns the address of a table of their addresses."""
    forms = forms_of(name, t, target)
    entry = forms[0].symbol.rpartition(".")[0]
    definitions = [definition_of(name, t, "f", replace(target, width=form.lanes)) for form in forms]
    texts = {symbol: text for d in definitions for symbol, text in d.texts.items()}
    width = cpu.vector_bits or 64 * target.lanes
    lines = [
        *(texts[symbol] for symbol in sorted(texts)),
        *(_form_text(form, name, d.symbol, target) for form, d in zip(forms, definitions, strict=True)),
        f"@table = private constant [{len(forms)} x ptr] [{', '.join(f'ptr @{form.symbol}' for form in forms)}]",
        f"define ptr @{entry}() {{\n  ret ptr @table\n}}",
        f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" }}',
    ]
    return "\n".join(lines) + "\n", entry


def _form_text(form: MathForm, name: str, definition: str, target: Target) -> str:
    v = form.type
    arguments = ", ".join(f"{v} %x{i}" for i in range(scalar_functions.FUNCTIONS[name].operands))
    return f"""define {_convention(form, target)}{v} @{form.symbol}({arguments}) #0 {{
  %r = call {v} @{definition}({arguments})
  ret {v} %r
}}"""


def _convention(form: MathForm, target: Target) -> str:
    return target.convention if form.lanes > 1 else ""
