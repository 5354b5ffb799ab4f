"""The statements of fused roots: loops, what they compute and store, and reductions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Any

from ....core.dtypes import memory_dtype, register_dtype
from ....core.ir import Atom, Eqn, Var
from ....core.kernel import Block, Reduction
from ....passes.indices.int_ranges import Facts
from ....runtime.config import config
from ...jaxpr.low_precision import reads_rounded
from .. import ir
from ..handles import Known, Memory, Place, ScalarHandle, TapeMemory, View, memory_key
from .aliasing import Schedule, home, verify_reads
from .elements import Index, NestBuilder, NestOperand, ValueElements
from .folds import Accumulator, accumulate, is_in_any_order, neutral
from .fuse import Loop
from .materialize import Root, fold_of
from .read_patterns import LONG, MOST, SHORT, interior, streamed_from

#: Nests with this many iterations can be interrupted.
HUGE = 1 << 24
#: Loops of at most so many equations are written in parts.
LIGHT = 100
#: The most additions that a cheap element takes: less than a mathematical function.
CHEAP = 20


class Nests(ValueElements):
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
        super().__init__(plan, builder, places, names, inputs)
        self.folds: dict[Root, Accumulator] = {}
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
            self.loop(item, at, rounds, not watched and is_long(item, rounds), watched)
            for fold in item.folds:
                if fold in self.folds:
                    self.keep(fold.var, self._index(fold, at), self.folds[fold].result())

    def loop(self, item: Loop, at: list[ScalarHandle], rounds: int, long: bool, watched: bool) -> None:
        """Write a loop, inside others; if it is `long`, it checks for signals."""
        # Another part of a view's storage may be read in the same loop: a carry that alternates between two buffers.
        views = any(isinstance(self.buffers.get(home(self.shared, r.var)), View) for r in item.members)
        independent = not views and self.fusion.is_independent(item, len(at))
        separate = all(self._is_separate(root, len(at)) for root in item.members)
        adds = all(self._is_separate(root, len(at)) or self._adds(root) for root in item.members)
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
                adds=adds and not outer,
            ) as i:
                inside = [*at, i + shift if shift else i]
                self.body(item.body, inside, rounds * item.extent, watched or long)

    def _is_separate(self, root: Root, depth: int) -> bool:
        """Whether the iterations of a loop inside `depth` others hand nothing of a root on, except in a variable."""
        return root.loops[depth] in root.axes or (root.kind == "fold" and not self._in_memory(root))

    def _adds(self, root: Root) -> bool:
        """Whether the iterations of a loop only add to elements of a root, in any order."""
        if root.kind != "fold" or root.eqn is None:
            return False
        return is_in_any_order(fold_of(root.eqn), root.var.aval.dtype, self.builder.reassoc)

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


def is_long(loop: Loop, rounds: int) -> bool:
    """Whether a loop that runs `rounds` times should check for signals."""
    return loop.extent > ir.SHORT and rounds * loop.rounds() >= HUGE


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
