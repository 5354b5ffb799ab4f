"""One LLVM function under construction: its lines, the names of values, addresses in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.context import cached_property
from ...runtime.guards import WORD
from ...runtime.passes import VECTOR_MATHS
from ..backend import Options
from ..loops import ir, queries
from ..processor import processor
from . import ops
from .maths.choice import Maths

#: Guard words on each side of memory on the stack, and their size in bytes.
_WORDS = f"<8 x i64> <{', '.join([f'i64 {WORD}'] * 8)}>"
_GUARD = 64
#: LLVM would make a call of each loop that copies a row. The C library copies long rows by one instruction, which many
#: processors take ten times as long for where the target begins a few bytes further on its page than the source does.
_NO_MEMCPY = '"no-builtin-memcpy"'


class KernelFunction:
    """The text of a function; implements `emitter.Emitter`.

    Parameters
    ----------
    kernel : Kernel
        The kernel that it computes, without complex scalars.
    name : str
        The function is ``NAME.body``.
    options : Options
    whole : KernelFunction, optional
        The function of the kernel that this is a part of; they share module-level state.
    """

    def __init__(
        self,
        kernel: ir.Kernel,
        name: str,
        options: Options,
        whole: KernelFunction | None = None,
    ):
        self.kernel = kernel
        self.name = name
        self.options = options
        self.checked = options.checked  # put guard words around memory on the stack
        # Guard words on the stack, with the number of the declaration.
        self.guarded: list[tuple[str, int]] = []
        self.fast = "" if options.strict else "contract "
        self.converts_half = processor(options.cpu).half
        self.head: list[str] = []  # allocas and values computed once
        self.lines: list[str] = []
        self.count = 0
        self.is_entry = False  # whether parameters are read from memory
        # Module-level state, shared by the functions of a kernel in parts.
        scalar = options.strict or not options.runs(VECTOR_MATHS)
        self.math_routines: Maths = whole.math_routines if whole else Maths(scalar, processor(options.cpu))
        self.globals: dict[str, str] = {} if whole is None else whole.globals
        self.symbols: set[str] = set() if whole is None else whole.symbols
        self.loops: list[str] = [] if whole is None else whole.loops  # the hints of each loop
        self.parts: dict[str, str] = {} if whole is None else whole.parts  # function names by text
        self.functions: list[str] = [] if whole is None else whole.functions  # the text of the parts
        self.prefix: str = name if whole is None else whole.prefix
        self.label = "entry"
        # The sine or cosine of a value: its name, its value and its line.
        self.angles: dict[str, tuple[str, str, int]] = {}
        self.accumulators = 0  # variables that the innermost enclosing loop updates
        self.alone = False  # whether the operation waits for the iteration before
        self.has_vector_maths = False  # whether a loop calls mathematical functions
        self.values: dict[ir.Value, str] = {}
        self.lets: dict[Any, ir.Let] = {}  # comparisons and sums of integers
        self.locals: dict[ir.LocalVar, str] = {}
        self.storages = kernel.storages
        self.positions = {place: i for i, place in enumerate(self.storages)}
        self.bases: dict[str, str] = {place: f"%s{i}" for place, i in self.positions.items()}

    def fresh(self) -> str:
        """A new name for a value."""
        self.count += 1
        return f"%v{self.count}"

    def new(self, code: str) -> str:
        """Append ``name = code`` and return the name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {code}")
        return name

    def alloca(self, code: str) -> str:
        """A slot in the frame."""
        name = self.fresh()
        self.head.append(f"  {name} = alloca {code}")
        return name

    def maths(self, name: str, dtype: np.dtype, args: list[str]) -> str:
        """A call of a mathematical function."""
        t = ops.llvm_type(dtype)
        if name in ("sin", "cos") and t == "double" and self.label == "entry":
            return self.sine_or_cosine(name, args[0])
        alone = self.alone or self.label == "entry"
        self.has_vector_maths |= not alone
        function = self.math_routines.use(name, dtype, self.accumulators >= 2, alone)
        code = f"call {t} @{function.symbol}({', '.join(f'{t} {a}' for a in args)}){function.attributes}"
        return self.new(code)

    def sine_or_cosine(self, name: str, x: str) -> str:
        """The sine or cosine of a number outside of loops: one call computes both, if both are asked for."""
        function = self.math_routines.use(name, np.dtype(float), alone=True)
        known = self.angles.get(x)
        if known is None or known[0] == name or (both := self.math_routines.both()) is None:
            value = self.new(f"call double @{function.symbol}(double {x}){function.attributes}")
            self.angles.setdefault(x, (name, value, len(self.lines) - 1))
            return value
        pair, (other, value, line) = self.fresh(), known
        call = f"  {pair} = call {{ double, double }} @{both.symbol}(double {x}){both.attributes}"
        self.lines[line] = (
            f"{call}\n  {value} = extractvalue {{ double, double }} {pair}, {int(other == 'cos')}"
        )
        del self.angles[x]
        return self.new(f"extractvalue {{ double, double }} {pair}, {int(name == 'cos')}")

    def operand(self, x: Any) -> str:
        """The LLVM text of a statement's operand."""
        kind = type(x)
        if kind is ir.Value:
            return self.values[x]
        if kind is ir.Extent:
            return str(x.value)
        if kind is ir.Const:
            return ops.literal(x.value, x.dtype)
        return self.parameter(x)

    def parameter(self, x: ir.Param) -> str:
        """A run-time parameter of the kernel."""
        if self.is_entry:
            return self.word(x)
        if x.dtype == ir.INT64:
            return f"%i{x.slot}"
        return f"%f{x.slot}" if x.dtype == np.float64 else f"%g{x.slot}"

    def word(self, x: ir.Param) -> str:
        """A parameter read from memory where it is used: the entry of a kernel in parts may have hundreds."""
        place = self.new(f"getelementptr i64, ptr %words, i64 {self.slot_of(x)}")
        return self.new(f"load {'i64' if x.dtype == ir.INT64 else 'double'}, ptr {place}")

    def slot_of(self, x: ir.Param) -> int:
        """The number of a parameter's word: integers come first."""
        return x.slot if x.dtype == ir.INT64 else self.kernel.ints + x.slot

    def extent(self, n: Any) -> str:
        """An extent of a buffer."""
        return str(n) if isinstance(n, int) else self.operand(n)

    def address(self, buffer: ir.BufferDecl, index: tuple[Any, ...], part: int | None) -> str:
        """The address of an element.

        That of its row comes first, and then the last index: a sum of both would hide from LLVM that an iteration reads
        what the one before it wrote. So would a product with a known extent.
        """
        shape = buffer.shape
        if len(shape) < 2 or buffer.dtype.kind == "c" or buffer.role == "tape":
            return self.element(buffer, self.linear(shape, index), part)
        base = self.bases[buffer.place]
        if all(isinstance(n, int) for n in shape[1:]):
            row = ops.memory_type(buffer.dtype)
            for n in reversed(shape[1:]):
                row = f"[{n} x {row}]"
            places = ", ".join(f"i64 {self.operand(i)}" for i in index)
            return self.new(f"getelementptr inbounds {row}, ptr {base}, {places}")
        before = self.linear(shape[:-1], index[:-1])
        if before != "0":
            before = self.new(f"mul i64 {before}, {self.extent(shape[-1])}")
        base = self.element(buffer, before, base=base)
        return self.element(buffer, self.operand(index[-1]), base=base)

    def linear(self, shape: tuple[Any, ...], index: tuple[Any, ...]) -> str:
        """The number of an element."""
        linear = "0"
        for extent, i in zip(shape, index):
            here = self.operand(i)
            if linear == "0":
                linear = here
            else:
                scaled = self.new(f"mul i64 {linear}, {self.extent(extent)}")
                linear = scaled if here == "0" else self.new(f"add i64 {scaled}, {here}")
        return linear

    def element(self, buffer: ir.BufferDecl, linear: str, part: int | None = None, base: str = "") -> str:
        """The address of element number `linear`, or of a part of it."""
        base = base or self.bases[buffer.place]
        if buffer.role == "tape":
            base = self.new(f"load ptr, ptr {base}")
        if linear == "0" and not part:
            return base
        if buffer.dtype.kind != "c":
            return self.new(
                f"getelementptr inbounds {ops.memory_type(buffer.dtype)}, ptr {base}, i64 {linear}"
            )
        t = "float" if buffer.dtype.itemsize == 8 else "double"
        return self.new(f"getelementptr inbounds {{ {t}, {t} }}, ptr {base}, i64 {linear}, i32 {part or 0}")

    @cached_property
    def _stack_sizes(self) -> dict[str, int]:
        """The bytes of each memory on the stack."""
        places = {b.place for b in self.kernel.buffers if b.role == "stack"}
        sizes = dict.fromkeys(places, 0)
        for b in self.kernel.buffers:
            if b.place in places:
                sizes[b.place] = max(sizes[b.place], b.size * b.dtype.itemsize)
        return sizes

    def stack(self, b: ir.BufferDecl) -> str:
        """Memory in the frame for a small buffer."""
        size = self._stack_sizes[b.place]
        if not self.checked:
            return self.alloca(f"[{max(size, 1)} x i8], align 64")
        start = self.alloca(f"[{size + 2 * _GUARD} x i8], align 64")
        memory, end = self.fresh(), self.fresh()
        self.head += [
            f"  {memory} = getelementptr inbounds i8, ptr {start}, i64 {_GUARD}",
            f"  {end} = getelementptr inbounds i8, ptr {memory}, i64 {size}",
        ]
        number = next(i for i, x in enumerate(self.kernel.buffers) if x.place == b.place)
        for guard in (start, end):
            self.head.append(f"  store {_WORDS}, ptr {guard}, align 1")
            self.guarded.append((guard, number))
        return memory

    def leave(self) -> None:
        """Return the status, after checking the guard words."""
        status = self.new("load i64, ptr %status")
        t, expected = _WORDS.split(">", 1)
        for guard, number in self.guarded:
            held = self.new(f"load {t}>, ptr {guard}, align 1")
            bits = self.new(f"bitcast <8 x i1> {self.new(f'icmp ne {t}> {held},{expected}')} to i8")
            bad = self.new(f"icmp ne i8 {bits}, 0")
            status = self.new(f"select i1 {bad}, i64 {ir.OVERWRITTEN | number}, i64 {status}")
        self.lines.append(f"  ret i64 {status}")

    def mark(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def is_good(self) -> str:
        """Whether nothing has failed yet."""
        return self.new(f"icmp eq i64 {self.new('load i64, ptr %status')}, 0")

    def arguments(self) -> list[str]:
        """The parameters of the function that does the work."""
        return [
            *(f"ptr noalias %s{i}" for i in range(len(self.storages))),
            *(f"i64 %i{i}" for i in range(self.kernel.ints)),
            *(f"double %f{i}" for i in range(self.kernel.floats)),
        ]

    @property
    def _aligned(self) -> str:
        """Calls spill vectors, which LLVM would put wherever the stack is; two pieces of a cache line take longer."""
        bits = self.math_routines.vector_bits
        return f" alignstack({bits // 8})" if self.has_vector_maths and bits else ""

    def text(self) -> list[str]:
        """The complete function text around the lines."""
        self.leave()
        operands = [x for s in queries.walk(self.kernel.body) for x in queries.operands_of(s)]
        operands += [part for x in operands if isinstance(x, tuple) for part in x]
        narrow = {x for x in operands if type(x) is ir.Param}
        head = [f"  %g{x.slot} = fptrunc double %f{x.slot} to float" for x in narrow if x.dtype == np.float32]
        return [
            f"define internal i64 @{self.name}.body({', '.join(self.arguments())}) noinline nounwind"
            f'{self._aligned} {self.math_routines.function_attributes} "no-builtin-memcpy" {{',
            "entry:",
            "  %status = alloca i64",
            *self.head,
            "  store i64 0, ptr %status",
            *sorted(head),
            *self.lines,
            "}",
        ]
