"""Loop IR to LLVM text.

A kernel becomes two functions. ``NAME`` is the entry, ``i64 (i64 arrays, i64 numbers)``: `arrays` is the
address of a Python tuple of ndarrays, whose data pointers it reads, and `numbers` that of the parameter
words. It calls ``NAME.body``, which is not inlined (an inlined copy would be optimised twice and lose its
vector width) and whose pointers do not alias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.config import config
from . import llvm_ops as ops
from . import loopir as ir
from .complex_parts import has_complex, split_complex
from .llvm_statements import Statements
from .loopcheck import verify_parts
from .parts import PartCall, split
from .polling import is_long

#: Where CPython keeps the items of a tuple and NumPy the data pointer of an array (`entry` checks it).
TUPLE_ITEMS = tuple.__basicsize__
ARRAY_DATA = object.__basicsize__


@dataclass(frozen=True)
class LLVMKernel:
    """Text of a module, its entry's name, and the BLAS and special-function symbols that it needs."""

    text: str
    entry: str
    symbols: frozenset[str]


def emit_llvm(kernel: ir.Kernel, name: str, *, strict: bool = False) -> LLVMKernel:
    """The LLVM module of an outlined kernel.

    Parameters
    ----------
    kernel : Kernel
    name : str
        The symbol of the entry, unique in the process.
    strict : bool
        No contraction, and the C library's scalar functions everywhere.
    """
    if has_complex(kernel):
        kernel = split_complex(kernel)
    return _Module(kernel, name, strict).module()


class _Module(Statements):
    """The kernel's own function, and what stands around it."""

    def module(self) -> LLVMKernel:
        """The text of everything."""
        calls = split(self.kernel)
        if calls is not None and config.verify:
            verify_parts(self.kernel, calls)
        functions = [*self.function(), *self.entry()] if calls is None else self.in_parts(calls)
        body = [
            *(self.globals[k] for k in sorted(self.globals)),
            *self.library.declarations(),
            *functions,
            '!0 = !{!"llvm.loop.unroll.disable"}',
            '!1 = !{!"llvm.loop.interleave.count", i32 4}',
            *(f"!{i} = distinct !{{!{i}, {hints}}}" for i, hints in enumerate(self.loops, 2)),
        ]
        return LLVMKernel("\n".join(body) + "\n", self.name, frozenset(self.symbols | self.library.symbols))

    def in_parts(self, calls: list[PartCall]) -> list[str]:
        """The functions of the parts, and an entry that calls them."""
        lines: list[str] = []
        names: dict[int, str] = {}
        self.is_entry = True
        for call in calls:
            name = names.get(id(call.part))
            if name is None:
                name = names[id(call.part)] = f"{self.name}.part{len(names)}"
                lines += Statements(call.part, name, self.strict, self).function()
            self.part_call(f"{name}.body", call)
        result = ["  %result = load i64, ptr %status", "  ret i64 %result", "}"]
        head = ["  %status = alloca i64", *self.head, "  store i64 0, ptr %status"]
        return [*lines, *self.entry_head(), *head, *self.lines, *result]

    def part_call(self, name: str, call: PartCall) -> None:
        """Call a part; leave where it found no room, or an exception is pending."""
        for b in self.kernel.buffers:
            if b.place in call.places and b.place not in self.bases:
                self.bases[b.place] = self.stack(b)
        slots = [self.alloca(ops.memory_type(v.dtype)) for v in call.results]
        arguments = [f"ptr {self.bases[place]}" for place in call.places] + [f"ptr {slot}" for slot in slots]
        arguments += [f"i64 {self.operand(x)}" for x in call.ints]
        arguments += [f"double {self.as_double(x)}" for x in call.floats]
        old = self.new("load i64, ptr %status")
        found = self.new(f"call i64 @{name}({', '.join(arguments)})")
        status = self.new(f"or i64 {old}, {found}")
        self.lines.append(f"  store i64 {status}, ptr %status")
        if any(type(s) is ir.Reserve for s in ir.walk(call.part.body)):
            self.leave_if_full(status)
        if any(type(s) is ir.HostCall or is_long(s) for s in ir.walk(call.part.body)):
            self.leave_if(self.new(f"icmp ne i64 {status}, 0"), status)
        for v, slot in zip(call.results, slots):
            self.values[v] = self.new(f"load {ops.memory_type(v.dtype)}, ptr {slot}")

    def leave_if_full(self, status: str) -> None:
        """Return where a part found no room for a tape."""
        full = self.new(f"icmp ne i64 {self.new(f'and i64 {status}, {ir.TAPE_FULL}')}, 0")
        self.leave_if(full, status)

    def leave_if(self, condition: str, status: str) -> None:
        """Return the status where a condition holds."""
        self.count += 1
        n = self.count
        self.lines.append(f"  br i1 {condition}, label %leave{n}, label %stay{n}")
        self.mark(f"leave{n}")
        self.lines.append(f"  ret i64 {status}")
        self.mark(f"stay{n}")

    def as_double(self, x: Any) -> str:
        """A floating-point operand as parameters are passed."""
        if type(x) is ir.Param:
            return self.word(x)
        return (
            self.operand(x) if x.dtype == np.float64 else self.new(f"fpext float {self.operand(x)} to double")
        )

    def entry_head(self) -> list[str]:
        """The beginning of the entry: fetches the storages."""
        lines = [
            f"define i64 @{self.name}(i64 %arrays, i64 %numbers) nounwind {{",
            "  %tuple = inttoptr i64 %arrays to ptr",
            "  %words = inttoptr i64 %numbers to ptr",
        ]
        for i in range(len(self.storages)):
            lines += [
                f"  %item{i} = getelementptr i8, ptr %tuple, i64 {TUPLE_ITEMS + 8 * i}",
                f"  %array{i} = load ptr, ptr %item{i}",
                f"  %field{i} = getelementptr i8, ptr %array{i}, i64 {ARRAY_DATA}",
                f"  %s{i} = load ptr, ptr %field{i}",
            ]
        return lines

    def entry(self) -> list[str]:
        """The function that fetches the arguments and passes them on."""
        kernel = self.kernel
        words = [(f"%i{i}", "i64") for i in range(kernel.ints)]
        words += [(f"%f{i}", "double") for i in range(kernel.floats)]
        lines = self.entry_head()
        for i, (name, t) in enumerate(words):
            lines += [
                f"  %word{i} = getelementptr i64, ptr %words, i64 {i}",
                f"  {name} = load {t}, ptr %word{i}",
            ]
        call = ", ".join(a.replace(" noalias", "") for a in self.arguments())
        return [*lines, f"  %r = call i64 @{self.name}.body({call})", "  ret i64 %r", "}"]
