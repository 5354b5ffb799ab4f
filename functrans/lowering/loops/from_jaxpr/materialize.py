"""Decide which values of a kernel to compute once and store, and how to iterate over each.

Every equation that fuses can be evaluated at an index by evaluating its operands, so a value need not exist in memory.
The values that are computed once and stored are the *roots*: outputs, reductions, operands and results of blocks (BLAS,
LAPACK, scatters), equations that may raise, and values that are read more than once and are too expensive to recompute.
All others are inlined into the roots that read them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import field
from math import prod

from ....core import Atom, Block, Eqn, Indexed, Literal, Reduction, Reshape, Var
from ....core.dtypes import is_inexact
from ....primitives.elementwise.identities import barrier_p
from ....runtime.records import dataclass
from ...jaxpr.reshapes import reshape_inlines
from .order import Ordered
from .read_patterns import IndexMap, split, streamed_from, through

#: A value with at most this cost (in additions, including loads) is recomputed rather than stored.
CHEAP = 8
#: The same if it would be computed `MANY` times per element (a row added to a matrix).
TRIVIAL = 2
MANY = 4
#: The most equations inlined into one root, and roughly the most in one loop body.
LARGEST = 1000
#: The most arrays that one loop reads or writes: with more than 250, LLVM takes them for one piece of memory, and
#: computes no vectors.
MOST_ARRAYS = 200
#: A leading reduced axis up to this extent becomes the innermost loop, unrolled, instead of several passes over memory.
SHORT = 8
#: Rows of at least this extent are looked up again rather than stored: shorter ones do not outweigh the check.
ROW = 16


@dataclass(eq=False)
class Root:
    """A value that is computed once and stored.

    Attributes
    ----------
    var : Var
        The value; the first result of a block.
    eqn : Eqn or None
        None for a literal, or a reshape of another root, that needs a separate buffer.
    kind : {'map', 'fold', 'block', 'copy'}
        Elementwise in some index space, a reduction of one, the statements of a block, or a copy of a buffer.
    space : tuple of int
        The extents iterated over: the shape of the value, or of a fold's operand.
    loops : tuple of int
        The axes of `space` in loop order, outermost first, without axes of extent 1.
    depth : int
        The number of loops that contain the finished value: all for a map, those outside the reduction for a fold.
    axes : tuple of int
        For each axis of the value, the axis of `space` along it.
    reads : list of (Var, IndexMap)
        The stored values and inputs that it reads, and the axes of `space` that index them.
    weight : int
        The number of equations evaluated in the innermost loop.
    cost : int
        What they cost, in additions.
    cuts : dict of int to set of int
        For each axis of `space` the places where a condition on its index changes.
    in_memory : int
        How many of the reads of a block are whole buffers; they come first.
    number : int
        The number of the root's equation.
    after : int
        The number of the last barrier that the value depends on: it must be computed after it.
    """

    var: Var
    eqn: Eqn | None
    kind: str
    space: tuple[int, ...] = ()
    loops: tuple[int, ...] = ()
    depth: int = 0
    axes: tuple[int, ...] = ()
    reads: list[tuple[Var, IndexMap]] = field(default_factory=list)
    weight: int = 1
    cost: int = 0
    cuts: dict[int, set[int]] = field(default_factory=dict)
    in_memory: int = 0
    number: int = -1
    after: int = -1

    def axis_of_loop(self, depth: int) -> int | None:
        """The axis of the value along the loop at `depth`; None for a reduced one."""
        axis = self.loops[depth]
        return self.axes.index(axis) if axis in self.axes else None


class Roots:
    """The decisions for one kernel.

    Parameters
    ----------
    ordered : Ordered
        Of a jaxpr whose equations all have kernel rules; its outputs are distinct variables defined by its equations.

    Attributes
    ----------
    jaxpr : Jaxpr
    roots : list of Root
        In an order in which they can be computed.
    pinned : set of Var
        Values that must be in memory as a whole.
    checked : set of Var
        Parts of another value at indices that may be out of bounds: evaluated once for the check, but not stored.
    views : dict of Var to Var
        Reshapes that are other declarations of a buffer, and the value of that buffer.
    literals : dict of Literal to Var
        Literals that a block reads from memory.
    producer : dict of Var to Eqn
    """

    def __init__(self, ordered: Ordered):
        self.jaxpr, self.early, self.accesses, self.overwritten = ordered
        jaxpr = self.jaxpr
        self.inputs = {*jaxpr.invars, *jaxpr.constvars}
        self.producer = {v: e for e in jaxpr.eqns for v in e.outvars}
        self.views: dict[Var, Var] = {}
        self.literals: dict[Literal, Var] = {}
        self.pinned: set[Atom] = set(jaxpr.outvars)
        self.stored: set[Var] = set()
        self.checked: set[Var] = set()
        self._pin()
        self._choose()
        self.roots = [Root(v, None, "map") for v in self.literals.values()]
        self.roots += [r for e in jaxpr.eqns for r in self._roots_of(e)]
        self._number()

    # --- which values are kept ------------------------------------------------------------------------------

    def _pin(self) -> None:
        for e in reversed(self.jaxpr.eqns):
            rule = e.primitive.kernel
            if isinstance(rule, Block):
                self.pinned.update(e.outvars)
                for a in e.invars[: streamed_from(e)]:
                    v = a if isinstance(a, Var) else self._literal(a)
                    # A block reads a number from a register as well as from memory.
                    (self.pinned if v.aval.shape else self.early).add(v)
            elif isinstance(rule, Reshape) and isinstance(e.invars[0], Var):
                out = e.outvars[0]
                whole = not reshape_inlines(e.invars[0].aval.shape, out.aval.shape)
                # An inlined reshape is free too, but a block needs the buffer itself.
                if whole or out in self.pinned:
                    self.views[out] = e.invars[0]
                    self.pinned.add(e.invars[0])

    def _literal(self, a: Literal) -> Var:
        var = self.literals.get(a)
        if var is None:
            var = self.literals[a] = Var(a.aval)
        return var

    def _choose(self) -> None:
        spread, enlarged = self._spread_values()
        exact = self._compared_values()
        cost: dict[Atom, int] = {}
        weight: dict[Atom, int] = {}
        arrays: dict[Atom, int] = {}  # how many an inlined value reads at most
        for e in self.jaxpr.eqns:
            v, rule = e.outvars[0], e.primitive.kernel
            if v in self.views:
                continue
            kept = v in self.pinned or v in self.early
            rows = e.effects.may_raise and self._copies_rows(e)
            again = rows or (e.effects.may_raise and v not in spread and self._checks_rarely(e))
            raises = e.effects.may_raise and not again
            stored = isinstance(rule, (Block, Reduction)) or kept or raises
            if not stored:
                reads = {(e.invars[i], index) for i, index in self.accesses[e].reads}
                own = self.accesses[e].cost + sum(cost.get(x, 1) for x, _ in reads if isinstance(x, Var))
                own = min(own, CHEAP) if rows else own  # the indices are checked once per row
                heavy = 1 + sum(weight.get(x, 0) for x, _ in reads)
                wide = sum(arrays.get(x, 1) for x, _ in reads if isinstance(x, Var))
                wide = len(self._read_by(e, weight)) if wide >= MOST_ARRAYS else wide
                stored = (
                    heavy > LARGEST
                    or wide >= MOST_ARRAYS
                    or (own > CHEAP and v in spread)
                    or (own > TRIVIAL and v in enlarged)
                    or (own > 1 and v in spread and v in exact)
                )
                if not stored:
                    cost[v], weight[v], arrays[v] = own, heavy, wide
                    if again:
                        self.checked.add(v)
            if stored:
                self.stored.update(e.outvars)

    def _read_by(self, e: Eqn, inlined: Container[Atom]) -> set[Var]:
        """The stored values and inputs from which an equation is computed, through inlined ones."""
        seen: set[Var] = set()
        waiting = [e]
        while waiting:
            e = waiting.pop()
            operands = {e.invars[r.operand] for r in self.accesses[e].reads}
            new = {x for x in operands if isinstance(x, Var)} - seen
            seen |= new
            waiting += [self.producer[x] for x in new if x in inlined]
        return {x for x in seen if x not in inlined}

    def _checks_rarely(self, e: Eqn) -> bool:
        """Whether an equation looks up many elements of an input that nothing overwrites at each of its indices."""
        if not isinstance(e.primitive.kernel, Indexed):
            return False
        x, shape = e.invars[0], e.outvars[0].aval.shape
        read = {d for r in self.accesses[e].reads if r.operand != 0 for d in r.place}
        often = any(n >= ROW and d not in read for d, n in enumerate(shape))
        return often and x in self.inputs and x not in self.overwritten

    def _copies_rows(self, e: Eqn) -> bool:
        """Whether an equation copies long contiguous runs, at any indices, of an input that nothing overwrites."""
        last = e.outvars[0].aval.ndim - 1
        if not isinstance(e.primitive.kernel, Indexed) or last < 0 or e.outvars[0].aval.shape[last] < ROW:
            return False
        x = e.invars[0]
        if x not in self.inputs or x in self.overwritten:
            return False
        rows = [r.place for r in self.accesses[e].reads if r.operand == 0]
        others = [r.place for r in self.accesses[e].reads if r.operand != 0]
        return all(place[-1] == last for place in rows) and not any(last in place for place in others)

    def _number(self) -> None:
        numbers: dict[Atom, int] = {}
        barriers: dict[Atom, int] = {}
        for i, e in enumerate(self.jaxpr.eqns):
            last = max([barriers.get(a, -1) for a in e.invars], default=-1)
            numbers.update(dict.fromkeys(e.outvars, i))
            barriers.update(dict.fromkeys(e.outvars, i if e.primitive is barrier_p else last))
        for root in self.roots:
            root.number = numbers.get(root.var, -1)
            root.after = barriers.get(root.var, -1)

    def _spread_values(self) -> tuple[set[Atom], set[Atom]]:
        """The values read in several places or under a condition, and those read more often than they have elements."""
        spread: set[Atom] = set()
        enlarged: set[Atom] = set()
        seen: set[Atom] = set()
        for e, a in self.accesses.items():
            whole = isinstance(e.primitive.kernel, (Reduction, Block))
            places = 0 if whole else e.outvars[0].aval.size
            for x in {(e.invars[i], index): i for i, index in a.reads}:
                if x[0] in seen:
                    spread.add(x[0])
                seen.add(x[0])
                if places >= MANY * x[0].aval.size:
                    enlarged.add(x[0])
                elif places > x[0].aval.size:
                    spread.add(x[0])
            spread.update(e.invars[i] for i in a.guarded)
        return spread, enlarged

    def _compared_values(self) -> set[Atom]:
        """Values compared for equality, possibly with the maximum of them: computed twice, they might differ."""
        compared: set[Atom] = set()
        for e in reversed(self.jaxpr.eqns):
            rule = e.primitive.kernel
            moves = isinstance(rule, (Indexed, Reshape)) and e.outvars[0] in compared
            if moves or e.primitive.tests_equality:
                compared.update(a for a in e.invars if is_inexact(a.aval.dtype))
        return compared

    # --- how they iterate -----------------------------------------------------------------------------------

    def _roots_of(self, e: Eqn) -> Iterable[Root]:
        v, rule = e.outvars[0], e.primitive.kernel
        if isinstance(rule, Block):
            in_memory = e.invars[: streamed_from(e)]
            reads = [self._whole(a if isinstance(a, Var) else self.literals[a]) for a in in_memory]
            update = e.invars[streamed_from(e) :]
            along = tuple(range(max([a.aval.ndim for a in update], default=0)))
            root = Root(v, e, "block", in_memory=len(reads))
            self._collect(root, e, along)
            root.reads = reads + root.reads
            yield root
        elif v in self.views:
            if v in self.jaxpr.outvars:
                yield Root(v, e, "copy", reads=[self._whole(v)])
        elif v in self.stored or v in self.checked:
            root = _iterate(v, e)
            own = range(len(root.space)) if isinstance(rule, Reduction) else range(v.aval.ndim)
            self._collect(root, e, tuple(own))
            yield root

    def _whole(self, v: Var) -> tuple[Var, IndexMap]:
        base = self.base(v)
        return base, (None,) * base.aval.ndim

    def base(self, v: Var) -> Var:
        """The value whose buffer holds `v`: itself unless it is a reshape."""
        while v in self.views:
            v = self.views[v]
        return v

    def _collect(self, root: Root, e: Eqn, own: IndexMap) -> None:
        """Note what a root reads through the equations inlined into it, and what these do."""
        reads: dict[tuple[Var, IndexMap], None] = {}
        seen: set[tuple[Var, IndexMap]] = set()
        waiting: list[tuple[Eqn, IndexMap]] = [(e, own)]
        root.weight = 0
        while waiting:
            eqn, where = waiting.pop()
            root.weight += 1
            root.cost += self.accesses[eqn].cost
            for axis, number in self.accesses[eqn].cuts:
                along = where[axis]
                if along is not None:
                    own_axis, by = split(along)
                    root.cuts.setdefault(own_axis, set()).add(number - by)
            for i, index in self.accesses[eqn].reads:
                x = eqn.invars[i]
                if not isinstance(x, Var):
                    continue
                read = x, tuple([through(d, where) for d in index])
                if read in seen:
                    continue
                seen.add(read)
                if x in self.views:
                    reads[self._viewed(*read)] = None
                elif x in self.stored or x in self.inputs:
                    reads[read] = None
                else:
                    waiting.append((self.producer[x], read[1]))
        root.reads = list(reads)

    def _viewed(self, v: Var, place: IndexMap) -> tuple[Var, IndexMap]:
        """A read of a reshape as a read of the value that it views: common leading axes stay known."""
        base = self.base(v)
        a, b = base.aval.shape, v.aval.shape
        common = 0
        while common < min(len(a), len(b)) and a[common] == b[common]:
            common += 1
        return base, (*place[:common], *(None,) * (len(a) - common))


def _iterate(v: Var, e: Eqn) -> Root:
    """The loops of a map or a fold: in memory order, except for reductions that another order suits better."""
    rule = e.primitive.kernel
    if not isinstance(rule, Reduction):
        loops = tuple(d for d, n in enumerate(v.aval.shape) if n != 1)
        return Root(v, e, "map", v.aval.shape, loops, len(loops), tuple(range(v.aval.ndim)))
    space = e.invars[0].aval.shape
    reduced = {d for d in reduced_axes(e) if space[d] != 1}
    remaining = tuple(d for d in range(len(space)) if d not in reduced_axes(e))
    if not reduced:
        loops = tuple(d for d in remaining if space[d] != 1)
        return Root(v, e, "map", space, loops, len(loops), remaining)
    loops = tuple(d for d, n in enumerate(space) if n != 1)
    if prod(space[d] for d in reduced) <= SHORT:
        loops = (*(d for d in loops if d not in reduced), *sorted(reduced))
    depth = next(p for p, d in enumerate(loops) if d in reduced)
    return Root(v, e, "fold", space, loops, depth, remaining)


def reduced_axes(e: Eqn) -> tuple[int, ...]:
    """The axes that a reduction reduces."""
    return tuple(e.params["axes"])


def fold_of(e: Eqn) -> str:
    """The name of a reduction's operation."""
    rule = e.primitive.kernel
    assert isinstance(rule, Reduction)
    return rule.fold
