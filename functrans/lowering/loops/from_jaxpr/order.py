"""Read a value before it is overwritten: the order of equations, and the reads that are computed early.

A block such as a scatter writes its result into the memory of an operand if nothing reads the operand afterwards. A
program need not be written in that order: an equation after the scatter may read the operand, and an element read
before it may only be used, and therefore computed, after it. Here such readers move before the write, if they do not
depend on it, and reads that are smaller than the operand become separate values. `aliasing` decides afterwards
which value overwrites which, from what is read in the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from ....core import Atom, Aval, Block, Eqn, Jaxpr, Literal, Pointwise, Reduction, Reshape, TapeAval, Var
from ....runtime.config import config
from ....runtime.passes import READS_FIRST
from ....runtime.records import NamedTuple
from .read_patterns import Accesses, IndexMap, accesses, lag, streamed_from, through

#: For each input whose memory may become an output's, the outputs that may have it.
Updates = Mapping[Var, Collection[Var]]
#: An elementwise write takes a copy of reads that are this much smaller than what it overwrites; for others it is
#: cheaper to write elsewhere.
FEW = 8
#: The most iterations for which an element waits in a variable.
LATEST = 4
#: Arrays with fewer elements are not processed by several threads.
SERIAL = 1 << 14
_WAITING = [np.dtype(name) for name in ("float32", "float64", "complex64", "complex128", "int32", "int64")]


class Ordered(NamedTuple):
    """A jaxpr in an order that suits its writes.

    Attributes
    ----------
    jaxpr : Jaxpr
    early : set of Var
        Values to compute where their equations stand, not where they are read.
    accesses : dict of Eqn to Accesses
    overwritten : collection of Var
        Values that an equation may overwrite.
    """

    jaxpr: Jaxpr
    early: set[Var]
    accesses: dict[Eqn, Accesses]
    overwritten: Collection[Var]


def reads_first(jaxpr: Jaxpr, updates: Updates, spare: Collection[Var] = ()) -> Ordered:
    """The jaxpr with readers of a value before the block that may overwrite it, which may be a `spare` input."""
    return _Order(jaxpr, updates, spare).result()


def overwritten(eqn: Eqn) -> list[tuple[int, int]]:
    """The operands whose memory a block may use for a result, with the numbers of these results."""
    rule = eqn.primitive.kernel
    if not isinstance(rule, Block):
        return []
    pairs = rule.overwrites(eqn.invars, eqn.params)
    return [(i, k) for i, k in pairs if not isinstance(eqn.invars[i].aval, TapeAval)]


def in_step(eqn: Eqn, index: IndexMap) -> bool:
    """Whether a block that overwrites an operand may read it while it writes.

    `index` holds for each axis of the operand the axis of the first streamed operand along which it is read. Each
    element is read before it is overwritten if the block writes only one, or if along each of its loops it reads where
    it writes.
    """
    shape, written = _written(eqn, index)
    along = {d for d, e in zip(written, index) if d == e}
    return all(n <= 1 or d in along for d, n in enumerate(shape))


def out_of_step(eqn: Eqn, index: IndexMap) -> bool:
    """Whether a block may read what it overwrites although that is not `in_step`: what is late waits in a variable."""
    shape, written = _written(eqn, index)
    array, loops = eqn.invars[0].aval, [d for d, n in enumerate(shape) if n > 1]
    rule = eqn.primitive.kernel
    if not (isinstance(rule, Block) and rule.ascending and len(index) == array.ndim):
        return False
    return waits(array, lag(written, index, array.shape, loops))


def _written(eqn: Eqn, index: IndexMap) -> tuple[tuple[int, ...], IndexMap]:
    """The shape of what a block writes, and where it does."""
    rule = eqn.primitive.kernel
    assert isinstance(rule, Block)
    shape = eqn.invars[streamed_from(eqn)].aval.shape
    return shape, (None,) * len(index) if rule.written is None else rule.written(*eqn.invars, **eqn.params)


def waits(array: Aval, late: int | None) -> bool:
    """Whether a loop may overwrite an array and read each element so many iterations late, from a variable.

    A loop over a large array had better be divided among threads.
    """
    serial = late == 0 or array.size < SERIAL or config.num_threads == 1
    return late is not None and late <= LATEST and serial and array.dtype in _WAITING


class _Order:
    def __init__(self, jaxpr: Jaxpr, updates: Updates, spare: Collection[Var]):
        self.jaxpr = jaxpr
        self.updates = updates
        self.spare = spare
        self.inputs = {*jaxpr.invars, *jaxpr.constvars}
        self.outputs = {v for v in jaxpr.outvars if isinstance(v, Var)}
        self.eqns = list(jaxpr.eqns)
        self.early: set[Var] = set()
        self.accesses = {e: accesses(e) for e in self.eqns}
        self.producer = {v: e for e in self.eqns for v in e.outvars}

    def result(self) -> Ordered:
        writes = self.writes()
        if not writes or not config.runs(READS_FIRST):
            return Ordered(self.jaxpr, self.early, self.accesses, ())
        self.consumers: dict[Var, list[Eqn]] = {}
        for e in self.eqns:
            for v in {a for a in e.invars if isinstance(a, Var)}:
                self.consumers.setdefault(v, []).append(e)
        self.before = self._effects()
        self.at = {e: n for n, e in enumerate(self.eqns)}
        for x, write in writes.items():
            self.place(x, write)
        return Ordered(self.jaxpr.replace(eqns=self.eqns), self.early, self.accesses, writes.keys())

    def writes(self) -> dict[Var, Eqn]:
        """For each value that may be overwritten, the last equation that can do so."""
        writes: dict[Var, Eqn] = {}
        # For each value the outputs that it becomes step by step, and the equation of the first step.
        ends: dict[Var, dict[Var, Eqn]] = {}
        for e in reversed(self.eqns):
            is_block = isinstance(e.primitive.kernel, Block)
            for i, k in self._pairs(e):
                x, out = e.invars[i], e.outvars[k]
                if not isinstance(x, Var):
                    continue
                steps = {out: e} if out in self.outputs else ends.get(out, {})
                mine = ends.setdefault(x, {})
                for end, step in steps.items():
                    mine.setdefault(end, e if is_block else step)
                if isinstance(e.primitive.kernel, Reshape) or x.aval.size <= 1:
                    continue
                base = self.base(x)
                if base in self.inputs:
                    first = next((mine[end] for end in self.updates.get(base, ()) if end in mine), None)
                    if first is None and is_block and base in self.spare:
                        first = e
                    if first is not None:
                        writes.setdefault(base, first)
                elif is_block and base not in self.outputs:
                    writes.setdefault(base, e)
        return dict(reversed(writes.items()))

    def _pairs(self, e: Eqn) -> list[tuple[int, int]]:
        """The operands whose memory an equation could use for a result, with the numbers of these results."""
        rule = e.primitive.kernel
        if isinstance(rule, Block):
            return overwritten(e)
        if isinstance(rule, Reshape):
            return [(0, 0)]
        if not isinstance(rule, Pointwise) or not self.updates:
            return []
        out = e.outvars[0].aval
        return [
            (i, 0) for i, a in enumerate(e.invars) if (a.aval.shape, a.aval.dtype) == (out.shape, out.dtype)
        ]

    def base(self, v: Var) -> Var:
        """The value that a chain of reshapes starts from."""
        while v in self.producer and isinstance(self.producer[v].primitive.kernel, Reshape):
            source = self.producer[v].invars[0]
            if not isinstance(source, Var):
                break
            v = source
        return v

    def _effects(self) -> dict[Eqn, list[Eqn]]:
        """For each equation, those that must stay before it although it reads nothing of them."""
        before: dict[Eqn, list[Eqn]] = {}
        raising: list[Eqn] = []
        for e in self.eqns:
            if e.effects.ordered:
                before[e], raising = raising, [e]
            elif e.effects.may_raise:
                raising.append(e)
        return before

    # --- one write ------------------------------------------------------------------------------------------

    def place(self, x: Var, write: Eqn) -> None:
        """Have everything else that reads `x` run before `write`, if that is possible."""
        at = self.at
        is_block = isinstance(write.primitive.kernel, Block)
        # What a block reads while it writes depends on the order of its elements.
        last = at[write] + is_block
        early: set[Var] = set()
        readers: list[Eqn] = []
        for e, small in self._readers(x, write, x.aval.size if is_block else x.aval.size // FEW):
            if small is None:
                readers.append(e)
            elif self._is_used_from(last, small):
                readers.append(e)
                early.add(small)
        if is_block:
            early |= self._out_of_step(x, write, early)
        moved: set[Eqn] = set()
        for e in readers:
            if at[e] > at[write] and not self._collect(e, write, moved):
                return
        self.early |= early
        self.before[write] = [*self.before.get(write, ()), *readers]
        if moved:
            start, end = at[write], 1 + max(at[e] for e in moved)
            part = self.eqns[start:end]
            self.eqns[start:end] = [e for e in part if e in moved] + [e for e in part if e not in moved]
            at.update(zip(self.eqns[start:end], range(start, end)))

    def _readers(self, x: Var, write: Eqn, size: int) -> Iterator[tuple[Eqn, Var | None]]:
        """The equations that read a value, also through others that are computed where they are read.

        With an equation whose result has less than `size` elements, and would be computed where it is read, comes that
        result.
        """
        seen = {x}
        waiting = [x]
        while waiting:
            for e in self.consumers.get(waiting.pop(), ()):
                if e is write:
                    continue
                out = e.outvars[0]
                if not isinstance(e.primitive.kernel, Reshape) and self._stands(e):
                    yield e, None
                elif out.aval.size < size:
                    yield e, out
                elif out not in seen:
                    yield e, None
                    seen.add(out)
                    waiting.append(out)

    def _stands(self, e: Eqn) -> bool:
        """Whether an equation is certainly computed where it stands."""
        kind = isinstance(e.primitive.kernel, (Block, Reduction))
        return kind or e.effects.may_raise or e.outvars[0] in self.outputs or e.outvars[0] in self.early

    def _is_used_from(self, place: int, v: Var) -> bool:
        """Whether a value, computed where it is read, is read at a place or after it."""
        seen, waiting = {v}, [v]
        while waiting:
            for e in self.consumers.get(waiting.pop(), ()):
                if self.at[e] >= place:
                    return True
                out = e.outvars[0]
                if not self._stands(e) and out not in seen:
                    seen.add(out)
                    waiting.append(out)
        return False

    def _out_of_step(self, x: Var, write: Eqn, early: Collection[Var]) -> set[Var]:
        """The values that a block must not compute while it writes, because they read what it overwrites."""
        first = streamed_from(write)
        if first >= len(write.invars):
            return set()
        update = write.invars[first]
        found: set[Var] = set()
        seen: set[tuple[Atom, IndexMap]] = set()
        waiting: list[tuple[Atom, IndexMap, Var | None]] = [
            (a, tuple(range(a.aval.ndim)), None) for a in write.invars[first:]
        ]
        while waiting:
            v, index, reader = waiting.pop()
            if (v, index) in seen or isinstance(v, Literal):
                continue
            seen.add((v, index))
            if v is x:
                if not in_step(write, index) and not out_of_step(write, index):
                    small = reader is not None and reader.aval.size < update.aval.size
                    chosen = reader if small else update
                    # A loop over most of an array had better write to another one, to which its carry alternates.
                    if isinstance(chosen, Var) and 2 * chosen.aval.size <= x.aval.size:
                        found.add(chosen)
                continue
            e = self.producer.get(v)
            if e is None or v in early or self._stands(e):
                continue
            for i, where in self.accesses[e].reads:
                waiting.append((e.invars[i], tuple([through(d, index) for d in where]), v))
        return found

    def _collect(self, e: Eqn, write: Eqn, moved: set[Eqn]) -> bool:
        """Add an equation after `write` to those that move before it, with all that must come before it.

        Returns whether that is possible: nothing of these depends on `write`.
        """
        waiting = [e]
        while waiting:
            e = waiting.pop()
            if e is write:
                return False
            if e in moved or self.at[e] < self.at[write]:
                continue
            moved.add(e)
            waiting += [self.producer[a] for a in e.invars if isinstance(a, Var) and a in self.producer]
            waiting += self.before.get(e, ())
        return True
