"""The elements of values, where loops read them: loaded, or computed from the elements of other values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Literal as Choice

from ....core.dtypes import memory_dtype
from ....core.ir import Atom, Eqn, Jaxpr, Literal, Var
from ....core.kernel import Block, Indexed, Pointwise, Reshape
from ....core.tape import TapeAval
from ....passes.indices.int_ranges import UNKNOWN, Facts, Range, ranges_of
from ...jaxpr.low_precision import reads_rounded
from ...jaxpr.reshapes import reshape_index
from ...steps import COUNTERS
from .. import ir
from ..builder import StatementBuilder
from ..handles import Known, Memory, Place, ScalarHandle, TapeMemory, View, memory_key
from ..passes.outline import Literals
from .aliasing import Schedule
from .sites import Sites

Index = tuple[ScalarHandle, ...]


class NestBuilder(StatementBuilder):
    """A builder whose float literals are parameters of the kernel.

    Parameters
    ----------
    name : str
    reassoc : bool
        Whether sums may be reordered.
    sites : Sites, optional
        If the kernel is timed.
    """

    def __init__(self, name: str, reassoc: bool, sites: Sites | None = None):
        super().__init__(name)
        self.sites = sites
        if sites is not None:  # before other buffers, so that no other has its name
            self.counters = self.buffer(COUNTERS, ir.INT64, (0,), "update")
        self.reassoc = reassoc
        self.in_order = not reassoc
        self.literals = Literals()

    def mark(self, site: int, place: Choice["first", "next", "last"] = "next") -> None:
        """The time from here on is that of a site."""
        self.append(ir.Mark(self.counters, ir.Extent(site, outlined=True), place))

    def finish(self) -> ir.Kernel:
        """The kernel; if it is timed, its first statement and its last one are marks."""
        kernel = super().finish()
        if self.sites is not None:
            self.mark(0, "last")
            first = ir.Mark(self.counters, ir.Extent(0, outlined=True), "first")
            kernel.body.statements.insert(0, first)
            self.counters.shape = (self.sites.words,)
        return kernel

    def host_call(self, equation: Any, memory: Sequence[Memory], reads: int, native: bool = False) -> None:
        """As `Builder.host_call`."""
        if self.sites is not None and not native:
            self.sites.note_host(equation)
        super().host_call(equation, memory, reads, native)

    def load(self, buffer: Any, index: Sequence[ScalarHandle | int]) -> ScalarHandle:
        """One element of a buffer, or of a value that is computed where it is read."""
        return buffer[index] if type(buffer) is NestOperand else super().load(buffer, index)


class NestOperand:
    """An operand of an indexed rule, or a streamed operand of a block."""

    __slots__ = ("atom", "aval", "dtype", "elements", "rounded", "shape")

    def __init__(self, elements: ValueElements, atom: Atom, rounded: bool):
        self.elements = elements
        self.atom = atom
        self.aval = atom.aval
        self.shape = atom.aval.shape
        self.dtype = memory_dtype(atom.aval.dtype)
        self.rounded = rounded

    def __getitem__(self, index: Sequence[ScalarHandle | int]) -> ScalarHandle:
        b = self.elements.builder
        read = self.elements.rounded if self.rounded else self.elements.read
        return read(self.atom, tuple([b.place(b.scalar(i)) for i in index]))


class ValueElements:
    """The elements of the values of a jaxpr: in memory, in registers, or computed where they are read.

    Parameters
    ----------
    plan : Schedule
    builder : NestBuilder
    places : dict of Var to memory
        The memory of the inputs and outputs.
    names : dict of Var to str
        Names for the buffers of intermediate values.
    inputs : sequence of Facts, optional
        What is known of the inputs.
    """

    def __init__(
        self,
        plan: Schedule,
        builder: NestBuilder,
        places: dict[Var, Place],
        names: dict[Var, str],
        inputs: Sequence[Facts] = (),
    ):
        self.builder = builder
        self.numbers = _numbers_in_memory(plan.roots.jaxpr, inputs)
        self.roots, self.fusion, self.shared, self.late = plan
        self.outputs = set(plan.roots.jaxpr.outvars)
        self.given = frozenset(places)
        self.buffers: dict[Var, Place] = dict(places)
        self.originals: dict[Var, Place] = {}
        self.registers: dict[Var, ScalarHandle] = {}
        self.zero = builder.extent(0)
        self.names = names

    # --- buffers --------------------------------------------------------------------------------------------

    def buffer(self, v: Var) -> Place:
        """The memory of a stored value (or of a reshape of one)."""
        place = self.buffers.get(v)
        if place is None:
            place = self.buffers[v] = self._declare(v)
        return place

    def memory(self, v: Var) -> Memory:
        """The memory of a value that is not a tape."""
        place = self.buffer(v)
        assert not isinstance(place, TapeMemory | Known)
        return place

    def _declare(self, v: Var) -> Place:
        owner = self.shared.get(v)
        name = self.names.get(v, "literal")
        axes = self.fusion.stored_axes.get(v)
        shape = v.aval.shape if axes is None else tuple([v.aval.shape[a] for a in axes])
        if owner is None:
            buffer = self.builder.buffer(name, v.aval.dtype, shape, "scratch")
            if isinstance(v.aval, TapeAval):
                pools = [
                    self.builder.buffer(f"{name}_pool", ir.INT64, (3,), "pool") for _ in range(v.aval.levels)
                ]
                return TapeMemory(buffer, tuple(pools), v.aval)
            return buffer
        return self._of_shape(self.buffer(owner), name, shape)

    def _of_shape(self, memory: Place, name: str, shape: tuple[int, ...]) -> Place:
        """Another declaration of the same memory."""
        if isinstance(memory, TapeMemory):  # of a tape behind a barrier
            return memory
        if isinstance(memory, Known):
            return Known(memory.value, shape, memory.dtype)
        b = self.builder
        if isinstance(memory, View):
            whole = memory.buffer
            shape = (*whole.shape[: len(memory.prefix)], *shape)
            return View(b.buffer(name, whole.dtype, shape, whole.role, whole.place), memory.prefix)
        return b.buffer(name, memory.dtype, shape, memory.role, memory.place)

    def source(self, v: Var) -> Place:
        """The memory from which to read a value: for an output that copies a reshape, the original's."""
        place = self.buffer(v)
        if v not in self.roots.views or v not in self.outputs:
            return place
        base = self.buffer(self.roots.base(v))
        if memory_key(base) == memory_key(place):
            return place
        if v not in self.originals:
            self.originals[v] = self._of_shape(base, self.names.get(v, "literal"), v.aval.shape)
        return self.originals[v]

    def load(self, v: Var, index: Index) -> ScalarHandle:
        """An element of a stored value."""
        axes = self.fusion.stored_axes.get(v)
        place = index if axes is None else [index[a] for a in axes]
        number = self.builder.load(self.source(v), place)
        return self.builder.ranged(number, self.numbers[v]) if v in self.numbers else number

    def keep(self, v: Var, index: Index, value: ScalarHandle) -> None:
        """Record where a finished root's value is: in memory or in a register."""
        axes = self.fusion.stored_axes[v]
        if axes is None:
            self.registers[v] = value
            return
        self.builder.store(self.memory(v), [index[a] for a in axes], value)
        self.builder.note(self._key(v, index), value)

    # --- values ---------------------------------------------------------------------------------------------

    def _key(self, v: Atom, index: Index) -> Any:
        # A jaxpr may be written twice into one block, and its variables then have other values each time.
        return (self, v, *[i.operand for i in index])

    def read(self, atom: Atom, index: Index) -> ScalarHandle:
        """The element of a value at an index."""
        element = self._leaf(atom, index)
        if element is not None:
            return element
        # An explicit stack: chains of elementwise operations may be longer than Python's stack allows.
        waiting = [(atom, index)]
        while waiting:
            v, where = waiting[-1]
            assert isinstance(v, Var)
            if self.builder.known(self._key(v, where)) is not None:
                waiting.pop()
                continue
            missing = self._missing(self.roots.producer[v], where)
            if missing:
                waiting += missing
                continue
            self.builder.note(self._key(v, where), self._evaluate(self.roots.producer[v], where))
            waiting.pop()
        element = self.builder.known(self._key(atom, index))
        assert element is not None
        return element

    def rounded(self, atom: Atom, index: Index) -> ScalarHandle:
        """The element of a value at an index, as memory would give it back."""
        element = self.read(atom, index)
        return element if isinstance(atom, Literal) else self.builder.rounded(element, atom.aval.dtype)

    def _leaf(self, atom: Atom, index: Index) -> ScalarHandle | None:
        """The element, if it is available without evaluating an equation."""
        if isinstance(atom, Literal):
            return self.literal(atom)
        element = self.registers.get(atom)
        if element is not None:
            return element
        key = self._key(atom, index)
        element = self.builder.known(key)
        if element is not None:
            return element
        roots = self.roots
        if atom in roots.stored or atom in roots.inputs or atom in roots.views:
            return self.builder.note(key, self.load(atom, index))
        return None

    def literal(self, atom: Literal) -> ScalarHandle:
        """A literal of the jaxpr: a parameter, or a constant in the code."""
        dtype = atom.aval.dtype
        param = self.builder.literals.operand(atom)
        if param is not None:
            return self.builder.parameter(param.slot, param.dtype)
        if dtype == ir.INT64 and abs(int(atom.value)) < 1 << 31:
            # Often a bound that follows from a shape; it is outlined like an extent in any case. (Extents fold without
            # wrapping, so larger numbers stay data.)
            return self.builder.extent(int(atom.value))
        return self.builder.const(atom.value, dtype)

    def _missing(self, eqn: Eqn, index: Index) -> list[tuple[Atom, Index]]:
        """The operands to evaluate first, for rules that determine the index in advance."""
        rule = eqn.primitive.kernel
        if isinstance(rule, Indexed):
            return []
        places = [(a, self._operand_index(eqn, a, index)) for a in eqn.invars]
        return [(a, i) for a, i in places if self._leaf(a, i) is None]

    def _operand_index(self, eqn: Eqn, a: Atom, index: Index) -> Index:
        shape = a.aval.shape
        if isinstance(eqn.primitive.kernel, Reshape):
            place = reshape_index(shape, eqn.outvars[0].aval.shape, index)
            return tuple([self.builder.scalar(i) for i in place])
        if len(shape) == len(index) and 1 not in shape:
            return index
        shift = len(index) - len(shape)
        return tuple([self.zero if n == 1 else index[d + shift] for d, n in enumerate(shape)])

    def _evaluate(self, eqn: Eqn, index: Index) -> ScalarHandle:
        """Apply an equation's rule at an index of its output."""
        b, rule, dtype = self.builder, eqn.primitive.kernel, eqn.outvars[0].aval.dtype
        rounded = reads_rounded(eqn)
        if isinstance(rule, Indexed):
            sources = [NestOperand(self, a, rounded) for a in eqn.invars]
            value: Any = rule.emit(b, index, *sources, out=eqn.outvars[0].aval, **eqn.params)
        else:
            read = self.rounded if rounded else self.read
            args = [read(a, self._operand_index(eqn, a, index)) for a in eqn.invars]
            value = rule.emit(b, *args, **eqn.params) if isinstance(rule, Pointwise) else args[0]
        return b.rounded(value, dtype) if b.in_order else value


def _numbers_in_memory(jaxpr: Jaxpr, inputs: Sequence[Facts]) -> dict[Atom, Range]:
    """The ranges of the integers that loops and branches leave in memory."""
    blocks = [e for e in jaxpr.eqns if isinstance(e.primitive.kernel, Block) and e.primitive.kernel.ranges]
    results = {v for e in blocks for v in e.outvars if v.aval.dtype == ir.INT64 and not v.aval.shape}
    if not results:
        return {}
    found = ranges_of(jaxpr, inputs or [Facts()] * len(jaxpr.invars))
    known = {v: found[v].range for v in results if v in found}
    return {v: r for v, r in known.items() if r != UNKNOWN}
