"""The statements of fused roots: each value is evaluated where it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Any
from typing import Literal as Choice

from ...core.dtypes import memory_dtype, register_dtype
from ...core.ir import Atom, Eqn, Jaxpr, Literal, Var
from ...core.kernel import Block, Indexed, Pointwise, Reduction, Reshape
from ...core.tape import TapeAval
from ...passes.int_ranges import UNKNOWN, Facts, Range, ranges_of
from ...runtime.config import config
from ..jaxpr.low_precision import reads_rounded
from ..jaxpr.reshapes import reshape_index
from . import ir
from .aliasing import Schedule, home, verify_reads
from .builder import StatementBuilder
from .folds import Accumulator, accumulate, neutral
from .fuse import Loop
from .handles import Known, Memory, Place, ScalarHandle, TapeMemory, View, memory_key
from .materialize import Root, fold_of
from .outline import Literals
from .read_patterns import LONG, MOST, SHORT, interior, streamed_from
from .sites import COUNTERS, Sites

Index = tuple[ScalarHandle, ...]

#: Nests with this many iterations can be interrupted.
HUGE = 1 << 24
#: Loops of at most so many equations are written in parts.
LIGHT = 100
#: The most additions that a cheap element takes: less than a mathematical function.
CHEAP = 20


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

    __slots__ = ("atom", "aval", "dtype", "nests", "rounded", "shape")

    def __init__(self, nests: Nests, atom: Atom, rounded: bool):
        self.nests = nests
        self.atom = atom
        self.aval = atom.aval
        self.shape = atom.aval.shape
        self.dtype = memory_dtype(atom.aval.dtype)
        self.rounded = rounded

    def __getitem__(self, index: Sequence[ScalarHandle | int]) -> ScalarHandle:
        b = self.nests.builder
        read = self.nests.rounded if self.rounded else self.nests.read
        return read(self.atom, tuple([b.place(b.scalar(i)) for i in index]))


class Nests:
    """Writes the statements of a jaxpr at the builder's current position.

    Parameters
    ----------
    plan : Schedule
    builder : NestBuilder
    places : dict of Var to memory
        The memory of the inputs and outputs.
    names : dict of Var to str
        Names for the buffers of intermediate values.
    updates : mapping, optional
        Inputs whose memory an output shares: the output that overwrites each.
    inputs : sequence of Facts, optional
        What is known of the inputs.
    """

    def __init__(
        self,
        plan: Schedule,
        builder: NestBuilder,
        places: dict[Var, Place],
        names: dict[Var, str],
        updates: Mapping[Var, Var] = MappingProxyType({}),
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
        self.folds: dict[Root, Accumulator] = {}
        self.zero = builder.extent(0)
        self.names = names
        self.moves: list[tuple[Place, Place]] = []
        for old, new in updates.items():
            if home(self.shared, old) is not new:
                target = self.buffers[new]
                if isinstance(target, TapeMemory):
                    self.given -= {new}
                    self.buffers.pop(new)
                    self.moves.append((target, self.buffer(new)))
                    continue
                self.buffers[new] = builder.buffer("next", target.dtype, tuple(target.shape), "scratch")
                self.moves.append((target, self.buffers[new]))

    def write(self) -> None:
        """Write everything."""
        sites = self.builder.sites
        numbers = repeat(None) if sites is None else sites.planned(self.roots, self.fusion.body)
        for item, number in zip(self.fusion.body, numbers):
            if number is not None:
                self.builder.mark(number)
            before = len(self.builder.statements)
            late = [v for _, v in self.late.get(item, ())]
            places = [self.memory(v) for v in late]
            for v, place in zip(late, places):
                self.buffers[v] = self._working_copy(place)
            self.body([item], [])
            if config.verify:
                verify_reads(item, self.builder.statements[before:], self.buffers)
            for v, place in zip(late, places):
                self.builder.copy(place, self.buffers[v])
                self.buffers[v] = place
        for target, source in self.moves:
            self.builder.copy(target, source)

    def _working_copy(self, place: Memory) -> Memory:
        """Memory to write instead, until nothing reads the old elements; `late_reads` does without."""
        whole, prefix = (place.buffer, place.prefix) if isinstance(place, View) else (place, ())
        copy = self.builder.buffer("working", whole.dtype, whole.shape, "scratch")
        indices = tuple([i.operand for i in prefix])
        self.builder.kernel.copies.append(ir.WorkingCopy(copy, whole, indices))
        return View(copy, prefix) if isinstance(place, View) else copy

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

    # --- loops ----------------------------------------------------------------------------------------------

    def body(
        self, items: Iterable[Loop | Root], at: list[ScalarHandle], rounds: int = 1, watched: bool = False
    ) -> None:
        """Write the items of a body, inside loops with the indices `at`.

        The body runs `rounds` times; `watched` tells whether an enclosing loop checks for signals.
        """
        for item in items:
            if isinstance(item, Root):
                self.root(item, at)
                continue
            for fold in item.folds:
                self.begin(fold, at)
            long = not watched and item.extent > ir.SHORT and rounds * item.rounds() >= HUGE
            # Another part of a view's storage may be read in the same loop: a carry that alternates between two
            # buffers.
            views = any(isinstance(self.buffers.get(home(self.shared, r.var)), View) for r in item.members)
            independent = not views and self.fusion.is_independent(item, len(at))
            separate = all(self._is_separate(root, len(at)) for root in item.members)
            for first, end in _pieces(item, len(at)):
                # The few iterations at an end count from zero, so that LLVM knows their number.
                outer = end - first < item.extent // 2
                shift = first if outer else 0
                with self.builder.loop(
                    end - shift,
                    first - shift,
                    interruptible=long,
                    independent=independent and not outer,
                    separate=separate and not outer,
                ) as i:
                    inside = [*at, i + shift if shift else i]
                    self.body(item.body, inside, rounds * item.extent, watched or long)
            for fold in item.folds:
                if fold in self.folds:
                    self.keep(fold.var, self._index(fold, at), self.folds[fold].result())

    def _is_separate(self, root: Root, depth: int) -> bool:
        """Whether the iterations of a loop inside `depth` others hand nothing of a root on, except in a variable."""
        return root.loops[depth] in root.axes or (root.kind == "fold" and not self._in_memory(root))

    def _space(self, root: Root, at: Sequence[ScalarHandle]) -> Index:
        """The index into a root's space; zero along loops that are not entered yet."""
        index = [self.zero] * len(root.space)
        for axis, i in zip(root.loops, at):
            index[axis] = i
        return tuple(index)

    def _index(self, root: Root, at: Sequence[ScalarHandle]) -> Index:
        space = self._space(root, at)
        return tuple([space[a] for a in root.axes])

    def root(self, root: Root, at: list[ScalarHandle]) -> None:
        """Evaluate a root inside the innermost of its loops."""
        eqn, v = root.eqn, root.var
        if root.kind == "block":
            assert eqn is not None
            self.block(eqn)
        elif root.kind == "copy":
            base = self.buffer(self.roots.base(v))
            if memory_key(self.buffer(v)) != memory_key(base):
                self.builder.copy(self.buffer(v), self.source(v))
        elif eqn is None:
            atom = next(a for a, w in self.roots.literals.items() if w is v)
            self.keep(v, (), self.literal(atom))
        elif v in self.roots.checked:
            self.read(v, self._index(root, at))
        elif not isinstance(eqn.primitive.kernel, Reduction):
            index = self._index(root, at)
            for a, i in self._missing(eqn, index):
                self.read(a, i)
            self.keep(v, index, self._evaluate(eqn, index))
        else:
            read = self.rounded if reads_rounded(eqn) else self.read
            x = read(eqn.invars[0], self._space(root, at))
            if root.kind == "map":
                self.keep(v, self._index(root, at), self.builder.cast(x, register_dtype(v.aval.dtype)))
            else:
                self.take(root, x, at)

    def block(self, eqn: Eqn) -> None:
        """The statements of a block rule."""
        rule = eqn.primitive.kernel
        assert isinstance(rule, Block)
        first = streamed_from(eqn)
        operands: list[Any] = [self.operand(a) for a in eqn.invars[:first]]
        operands += [NestOperand(self, a, True) for a in eqn.invars[first:]]
        results = [self.buffer(v) for v in eqn.outvars]
        for v, memory in zip(eqn.outvars, results):
            if isinstance(memory, TapeMemory) and v not in self.given:
                for pool in memory.pools:  # discard the records of the enclosing loop's last iteration
                    self.builder.store(pool, (2,), 0)
        rule.emit(self.builder, operands, results, **eqn.params)

    def operand(self, a: Atom) -> Place:
        """What a block reads as an operand that must be in memory; numbers need not be."""
        v = a if isinstance(a, Var) else self.roots.literals[a]
        number = self.registers.get(self.roots.base(v))
        if v in self.numbers:
            number = self.load(v, ())
        if number is None:
            return self.source(v)
        dtype = memory_dtype(v.aval.dtype)
        return Known(self.builder.rounded(number, dtype), v.aval.shape, dtype)

    # --- reductions -----------------------------------------------------------------------------------------

    def _in_memory(self, root: Root) -> list[int]:
        """The axes of a fold's value that run inside the reduction; if there are any, it is summed in memory."""
        inner = root.loops[root.depth :]
        return [a for a, axis in enumerate(root.axes) if axis in inner]

    def begin(self, root: Root, at: list[ScalarHandle]) -> None:
        """The statements before a fold's outermost reduced loop."""
        eqn, v = root.eqn, root.var
        assert eqn is not None
        fold = fold_of(eqn)
        axes, dtype = self._in_memory(root), register_dtype(v.aval.dtype)
        if not axes:
            self.folds[root] = Accumulator(self.builder, fold, dtype, self.builder.reassoc)
            return
        # Sums of columns: the loops follow the rows, as memory does, and store a row of sums instead of one sum at a
        # time.
        zero = self.builder.const(neutral(fold, dtype), dtype)
        self._fill(v, list(self._index(root, at)), axes, zero)

    def _fill(self, v: Var, index: list[ScalarHandle], axes: list[int], value: ScalarHandle) -> None:
        if not axes:
            stored_axes = self.fusion.stored_axes[v]
            assert stored_axes is not None
            self.builder.store(self.memory(v), [index[a] for a in stored_axes], value)
            return
        with self.builder.loop(v.aval.shape[axes[0]], independent=True, separate=True) as i:
            index[axes[0]] = i
            self._fill(v, index, axes[1:], value)

    def take(self, root: Root, x: ScalarHandle, at: list[ScalarHandle]) -> None:
        """One element of a fold."""
        eqn, v = root.eqn, root.var
        assert eqn is not None
        if root in self.folds:
            self.folds[root].take(x)
            return
        axes = self.fusion.stored_axes[v]
        assert axes is not None
        index = self._index(root, at)
        fold = fold_of(eqn)
        accumulate(self.builder, fold, self.memory(v), [index[a] for a in axes], x, self.builder.reassoc)


def _pieces(loop: Loop, depth: int) -> list[tuple[int, int]]:
    """The parts of a loop, inside `depth` others: most iterations, and those before and after them.

    In most iterations, conditions on the index are known then: whether a padded array is read inside or outside.
    """
    cuts = {c for root in loop.members for c in root.cuts.get(root.loops[depth], ())}
    axes = max([sum(len(c) > 0 for c in root.cuts.values()) for root in loop.members], default=0)
    least = LONG if any(root.cost > CHEAP for root in loop.members) else SHORT
    inside = interior(loop.extent, cuts, least) if cuts and loop.weight <= LIGHT and axes <= MOST else None
    if inside is None:
        return [(0, loop.extent)]
    first, end = inside
    return [(a, b) for a, b in ((0, first), (first, end), (end, loop.extent)) if a < b]


def _numbers_in_memory(jaxpr: Jaxpr, inputs: Sequence[Facts]) -> dict[Atom, Range]:
    """The ranges of the integers that loops and branches leave in memory."""
    blocks = [e for e in jaxpr.eqns if isinstance(e.primitive.kernel, Block) and e.primitive.kernel.ranges]
    results = {v for e in blocks for v in e.outvars if v.aval.dtype == ir.INT64 and not v.aval.shape}
    if not results:
        return {}
    found = ranges_of(jaxpr, inputs or [Facts()] * len(jaxpr.invars))
    known = {v: found[v].range for v in results if v in found}
    return {v: r for v, r in known.items() if r != UNKNOWN}
