"""Loop IR to LLVM text.

A kernel becomes two functions. ``NAME`` is the entry, ``i64 (i64 arrays, i64 numbers)``: `arrays` is the address of a
Python tuple of ndarrays, whose data pointers it reads, and `numbers` the address of the parameter words. It calls
``NAME.body``, whose pointers do not alias, and which is not inlined (an inlined copy would be optimised twice and lose
its vector width).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...core.dtypes import FLOAT64
from ...core.values import ArrayLike
from ...runtime.passes import PARTS, VECTOR_MATHS
from ...runtime.private.python_names import blake2b
from ...runtime.records import dataclass
from ..backend import DEFAULT_OPTIONS, Options
from ..blas import C_PREFIX
from ..loops import ir, queries
from ..loops.check import verified
from ..loops.passes.split_complex import has_complex, split_complex
from ..loops.passes.split_functions import PartCall, split
from .c.native_call import ARRAY_DATA, TUPLE_ITEMS
from .function import KernelFunction
from .maths.choice import LIBM
from .statements import Statements


@dataclass(frozen=True)
class LLVMKernel:
    """The text of a module, the name of its entry, and the BLAS and special-function symbols that it needs."""

    text: str
    entry: str
    symbols: frozenset[str]


#: The name of a module's functions until its text is complete.
_NAME = "functrans_kernel"


def emit_llvm(kernel: ir.Kernel, options: Options = DEFAULT_OPTIONS) -> LLVMKernel:
    """The LLVM module of an outlined kernel.

    Parameters
    ----------
    kernel : Kernel
    options : Options
        `strict` kernels use no contraction, and the C library's scalar functions everywhere. `checked` kernels put
        guard words around memory on the stack, and move the memory of tapes each time it grows.

    Notes
    -----
    The entry's name ends in a hash of the text: equal kernels have equal symbols, in every process and in any order of
    compilation, and different kernels different ones.
    """
    if has_complex(kernel):
        kernel = verified(split_complex(kernel))
    writer = _Module(kernel, _NAME, options)
    text = writer.module()
    name = f"{_NAME}_{blake2b(text.encode(), digest_size=16).hexdigest()}"
    symbols = frozenset(writer.symbols | writer.math_routines.symbols)
    return LLVMKernel(text.replace(f"@{_NAME}", f"@{name}"), name, symbols)


#: A kernel of up to this many statements may be a part of its caller.
_FEW = 200


def emit_inlined(kernel: ir.Kernel, options: Options) -> LLVMKernel | None:
    """The module of a kernel's body alone, for code that inlines it; None if that is long, or has more than arithmetic.

    The body's parameters are the addresses of the storages, the integers and the floating-point numbers. It always
    returns zero. It calls no functions but those of the C library with numbers, by their own names, as LLVM knows them:
    code around it becomes what it would be if the same arithmetic had been written there.
    """
    statements = list(queries.walk(kernel.body))
    if options.checked or options.timed or len(statements) > _FEW or has_complex(kernel):
        return None
    if any(type(s) not in (ir.Let, ir.Load, ir.Store) for s in statements):
        return None
    if any(b.role == "stack" for b in kernel.buffers):
        return None
    writer = _Module(kernel, _NAME, replace(options, without=options.without | {VECTOR_MATHS.name}))
    first, *rest = writer.function()
    if writer.symbols or not writer.math_routines.symbols <= {f"{C_PREFIX}{name}" for name in LIBM.values()}:
        return None
    first = first.replace("define internal ", "define ").replace(" noinline ", " alwaysinline ")
    text = "\n".join([*writer.math_routines.declarations(), *writer.functions, first, *rest])
    text = text.replace(f"@{C_PREFIX}", "@")
    name = f"{_NAME}_{blake2b(text.encode(), digest_size=16).hexdigest()}"
    return LLVMKernel(text.replace(f"@{_NAME}", f"@{name}"), f"{name}.body", frozenset())


class _Module(Statements):
    """The kernel's function, and the module around it."""

    def __init__(self, kernel: ir.Kernel, name: str, options: Options):
        super().__init__(kernel, name, options)
        self.rows: list[int] = []  # the locations of the parts' arguments
        self.slots: dict[ir.Value, int] = {}  # the words that hold values which parts pass to others

    def module(self) -> str:
        """The whole module."""
        calls = split(self.kernel) if self.options.runs(PARTS) else None
        functions = [*self.function(), *self.entry()] if calls is None else self.in_parts(calls)
        body = [
            *(self.globals[k] for k in sorted(self.globals)),
            *self.math_routines.declarations(),
            *self.functions,
            *functions,
            '!0 = !{!"llvm.loop.unroll.disable"}',
            '!1 = !{!"llvm.loop.interleave.count", i32 4}',
            *(f"!{i} = distinct !{{!{i}, {hints}}}" for i, hints in enumerate(self.loops, 2)),
        ]
        return "\n".join(body) + "\n"

    def in_parts(self, calls: list[PartCall]) -> list[str]:
        """The functions of the parts, and an entry that calls them."""
        by_row: set[str] = set()
        self.is_entry = True
        for call in calls:
            name, row = self.part(call), self.row_of(call)
            if row is None:
                self.in_entry(call, f"{name}.body", self.arguments_of(call))
                continue
            # A part may pass a number to other parts through a word, and also write it to an output.
            given = len(call.results)
            unpacking = f"{name}.row{given}"
            if unpacking not in by_row:
                by_row.add(unpacking)
                self.functions += self.unpacking(call.part, given, name)
            place = f"ptr getelementptr inbounds (i32, ptr @{self.name}.rows, i64 {len(self.rows)})"
            self.rows += row
            self.in_entry(call, unpacking, ["ptr %tuple", "ptr %frame", place])
        if by_row:  # also where no part has arguments
            table = ", ".join(f"i32 {n}" for n in self.rows)
            self.globals[f"{self.name}.rows"] = (
                f"@{self.name}.rows = private constant [{len(self.rows)} x i32] [{table}]"
            )
        self.leave()
        return [*self.entry_head(), *self.frame(), *self.lines, "}"]

    def frame(self) -> list[str]:
        """The status, and one row of words for the parameters and for values passed between parts."""
        count = self.kernel.ints + self.kernel.floats
        return [
            "  %status = alloca i64",
            f"  %frame = alloca [{count + len(self.slots) or 1} x i64]",
            *self.head,
            "  store i64 0, ptr %status",
            f"  call void @llvm.memcpy.p0.p0.i64(ptr %frame, ptr %words, i64 {8 * count}, i1 false)",
        ]

    def row_of(self, call: PartCall) -> list[int] | None:
        """The locations of a part's arguments, as byte offsets; None if some cannot be addressed this way."""
        numbers = [*call.results, *call.ints, *call.floats]
        if any(x.dtype not in (np.int64, np.float64) for x in numbers if type(x) is not ir.Param):
            return None
        if any(place not in self.positions for place in call.places):
            return None
        storages = [TUPLE_ITEMS + 8 * self.positions[place] for place in call.places]
        return [*storages, *(8 * self.slot_of(x) for x in numbers)]

    def slot_of(self, x: Any) -> int:
        """The number of the word that holds a parameter, or a value computed by a part."""
        if type(x) is ir.Param:
            return super().slot_of(x)
        first = self.kernel.ints + self.kernel.floats
        return self.slots.setdefault(x, first + len(self.slots))

    def unpacking(self, part: ir.Kernel, given: int, name: str) -> list[str]:
        """The function that calls a part with the arguments in a table row; the last `given` storages are results.

        A program of a thousand arrays makes a thousand calls of few parts. A single instruction per call compiles much
        faster than the instructions that fetch all arguments.
        """
        fetch = KernelFunction(part, name, self.options, self)

        def offset(i: int) -> str:
            return fetch.new(f"load i32, ptr {fetch.new(f'getelementptr i32, ptr %row, i64 {i}')}")

        def word(i: int) -> str:
            return fetch.new(f"getelementptr i8, ptr %frame, i32 {offset(i)}")

        places, results = len(part.storages) - given, len(part.storages)
        arguments = [f"ptr {fetch_storage(fetch, offset(i))}" for i in range(places)]
        arguments += [f"ptr {word(i)}" for i in range(places, results)]
        for i in range(results, results + part.ints + part.floats):
            t = "i64" if i < results + part.ints else "double"
            arguments.append(f"{t} {fetch.new(f'load {t}, ptr {word(i)}')}")
        return [
            f"define internal i64 @{name}.row{given}(ptr %tuple, ptr %frame, ptr %row) noinline nounwind {{",
            *fetch.lines,
            f"  %r = call i64 @{name}.body({', '.join(arguments)})",
            "  ret i64 %r",
            "}",
        ]

    def arguments_of(self, call: PartCall) -> list[str]:
        """The arguments of a part, fetched at each call: long-lived values would take LLVM quadratic time."""
        places = [self.base(place) for place in call.places]
        return [
            *(f"ptr {place}" for place in (*places, *map(self.slot, call.results))),
            *(f"i64 {self.number(x, 'i64')}" for x in call.ints),
            *(f"double {self.number(x, 'double')}" for x in call.floats),
        ]

    def slot(self, x: ir.Param | ir.Value) -> str:
        """The address of the word of a number."""
        return self.new(f"getelementptr i64, ptr %frame, i64 {self.slot_of(x)}")

    def number(self, x: ArrayLike, t: str) -> str:
        """An argument of a part."""
        if type(x) is ir.Value and x.dtype == np.float32:
            return self.new(f"fpext float {self.new(f'load float, ptr {self.slot(x)}')} to double")
        return self.new(f"load {t}, ptr {self.slot(x)}")

    def base(self, place: str) -> str:
        """The address of a storage, or of memory in the entry's frame."""
        if place in self.positions:
            return fetch_storage(self, str(TUPLE_ITEMS + 8 * self.positions[place]))
        if place not in self.bases:
            self.bases[place] = self.stack(next(b for b in self.kernel.buffers if b.place == place))
        return self.bases[place]

    def in_entry(self, call: PartCall, name: str, arguments: list[str]) -> None:
        """Call a part; return if it ran out of memory, or if an exception is pending."""
        part_status, status = self.call_part(name, arguments)
        self.leave_if_overwritten(call, part_status)
        if any(type(s) is ir.Reserve for s in queries.walk(call.part.body)):
            self.leave_if_full(status)
        if any(
            type(s) is ir.HostCall or queries.is_long(s) or queries.is_shared(s)
            for s in queries.walk(call.part.body)
        ):
            self.leave_if(self.new(f"icmp ne i64 {status}, 0"), status)

    def leave_if_full(self, status: str) -> None:
        """Return if a part had no room for a tape."""
        full = self.new(f"icmp ne i64 {self.new(f'and i64 {status}, {ir.TAPE_FULL}')}, 0")
        self.leave_if(full, status)

    def entry_head(self) -> list[str]:
        """The beginning of the entry."""
        return [
            f"define i64 @{self.name}(i64 %arrays, i64 %numbers) nounwind {{",
            "  %tuple = inttoptr i64 %arrays to ptr",
            "  %words = inttoptr i64 %numbers to ptr",
        ]

    def entry(self) -> list[str]:
        """The function that fetches the arguments and passes them on."""
        kernel = self.kernel
        self.is_entry, self.lines = True, []
        places = [f"ptr {self.base(place)}" for place in self.storages]
        ints = [f"i64 {self.word(ir.Param(i, ir.INT64))}" for i in range(kernel.ints)]
        floats = [f"double {self.word(ir.Param(i, FLOAT64))}" for i in range(kernel.floats)]
        call = f"  %r = call i64 @{self.name}.body({', '.join([*places, *ints, *floats])})"
        return [*self.entry_head(), *self.lines, call, "  ret i64 %r", "}"]


def fetch_storage(fn: KernelFunction, offset: str) -> str:
    """Code that fetches the address of a storage, whose array is at `offset` bytes in the tuple."""
    item = fn.new(f"getelementptr i8, ptr %tuple, i32 {offset}")
    field = fn.new(f"getelementptr i8, ptr {fn.new(f'load ptr, ptr {item}')}, i64 {ARRAY_DATA}")
    return fn.new(f"load ptr, ptr {field}")
