"""Values stored in another value's memory: reshapes, and values that overwrite others in place.

This is decided before the statements are written, because these name their buffers. So it relies on what items are
known to read, and `verify_reads` checks later that the statements access nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from ....core import Along, Jaxpr, Var
from ....runtime.config import config
from ....runtime.passes import LATE_READS, MIRRORED_PAIRS, SHARING
from ....runtime.records import NamedTuple
from .. import ir
from ..check import LoopIRError
from ..handles import Place, storages_of
from ..touches import touches
from .fuse import Fusion, Loop, fuse, members_of
from .materialize import Root, Roots
from .order import Updates, in_step, out_of_step, overwritten, reads_first, waits
from .pairs import with_pairs
from .read_patterns import IndexMap, lag, shifted, split

#: The pairs of an array that an item reads late and the value that it writes into its memory (see `late_reads`).
Late = dict[Loop | Root, list[tuple[Var, Var]]]


def verify_reads(item: Loop | Root, statements: list[ir.Statement], memory: Mapping[Var, Place]) -> None:
    """Check that statements access only the values that their item is known to read or compute.

    Whether a value may be overwritten is decided from what items read, before the statements exist.

    Parameters
    ----------
    item : Loop or Root
    statements : list of Statement
        The statements written for the item.
    memory : mapping
        The memory of each value.

    Raises
    ------
    LoopIRError
        The message names the values.
    """
    members = list(members_of(item))
    named = {v for root in members for v, _ in root.reads} | {root.var for root in members}
    named |= {v for root in members if root.eqn is not None for v in root.eqn.outvars}
    allowed = {place for v in named if v in memory for place in storages_of(memory[v])}
    others = {place for m in memory.values() for place in storages_of(m)} - allowed
    undeclared = others & {touch.buffer.place for touch in touches(ir.StatementList(statements))}
    if undeclared:
        raise LoopIRError(f"statements access {sorted(undeclared)}, which {item} does not declare")


def home(owner: dict[Var, Var], v: Var) -> Var:
    """The value whose memory finally holds `v`."""
    while v in owner:
        v = owner[v]
    return v


def shared_storage(
    roots: Roots, fusion: Fusion, updates: Updates, spare: Collection[Var] = ()
) -> tuple[dict[Var, Var], Late]:
    """For each value without separate memory, the value whose memory it uses; and what overwrites values read late.

    `updates` names inputs whose memory an output may have: if it can be written without a copy, the input is assigned
    to the output's memory. Values that are not outputs may use the memory of `spare` inputs.

    * A reshape uses its operand's memory; but an operand that is not an output uses that of an output reshaping it.
    * The first result of a block takes the operand that its rule may overwrite, if nothing reads it later.
    * An input whose memory an output may have takes that of one which is first written after the input's last read.
    * A value read for the last time, element by element, by a loop that stores another value of the same shape, uses
      the memory of that value. The loop may read an element a few iterations after it has overwritten it.
    """
    sharing = _Sharing(roots, fusion, updates, spare)
    return sharing.owner, sharing.late


class _Sharing:
    def __init__(self, roots: Roots, fusion: Fusion, updates: Updates, spare: Collection[Var]):
        self.roots = roots
        self.fusion = fusion
        self.outputs = set(roots.jaxpr.outvars)
        self.updates = updates
        self.spare = spare
        self.lent: set[Var] = set()
        self.owner: dict[Var, Var] = {}
        self.late: Late = {}
        self.last: dict[Var, Loop | Root] = {}
        for item in fusion.body:
            self.last.update((v, item) for root in members_of(item) for v, _ in root.reads)
        self.views()
        if not config.runs(SHARING):
            return
        # From the end: whether a value may share a later one's memory depends on where that one is stored (`movable`).
        for item in reversed(fusion.body):
            if isinstance(item, Loop):
                self.loop(item)
            elif item.kind == "block":
                self.block(item)
        self.leftovers()

    def home(self, v: Var) -> Var:
        return home(self.owner, v)

    def free(self, v: Var) -> bool:
        """Whether a value has separate memory, invisible outside the kernel."""
        return v not in self.owner and v not in self.roots.inputs and v not in self.outputs

    def movable(self, v: Var, target: Var) -> bool:
        """Whether a value may use the memory of `target`."""
        if v in self.updates:
            return v not in self.owner and self.home(target) in self.updates[v]
        return self.free(v)

    def views(self) -> None:
        for v in self.roots.views:
            base = self.roots.base(v)
            if v not in self.outputs:
                self.owner[v] = base
            elif self.free(base) or (v in self.updates.get(base, ()) and base not in self.owner):
                self.owner[base] = v

    def block(self, item: Root) -> None:
        """The operands that a block may overwrite."""
        eqn = item.eqn
        assert eqn is not None
        for i, k in overwritten(eqn):
            operand, target = eqn.invars[i], eqn.outvars[k]
            base = self.roots.base(operand) if isinstance(operand, Var) else self.roots.literals[operand]
            place = self.home(target)
            streamed = self._streamed(item, base)
            if self.last[base] is not item or streamed is None or place is base:
                continue
            if self.movable(base, target):
                self.owner[base] = place
            elif base in self.spare and base not in self.lent and self.free(place):
                self.owner[place] = base
                self.lent.add(base)
            else:
                continue
            if not all(in_step(eqn, index) for index in streamed):
                self.late.setdefault(item, []).append((base, target))

    def _streamed(self, item: Root, base: Var) -> list[IndexMap] | None:
        """How a block reads a value while it overwrites it, or None if it may not."""
        assert item.eqn is not None
        whole = [v for v, _ in item.reads[: item.in_memory]]
        streamed = [index for v, index in item.reads[item.in_memory :] if v is base]
        late = config.runs(LATE_READS)
        possible = all(
            in_step(item.eqn, index) or (late and out_of_step(item.eqn, index)) for index in streamed
        )
        return streamed if possible and whole.count(base) == 1 else None

    def loop(self, item: Loop) -> None:
        """Values stored by a nest in place of values that it reads for the last time."""
        readers: dict[Var, list[tuple[Root, IndexMap]]] = {}
        for root in item.members:
            for v, index in root.reads:
                readers.setdefault(v, []).append((root, index))
        taken: set[Var] = set()
        for source in sorted(readers, key=lambda v: v not in self.updates):
            reads = readers[source]
            if self.last[source] is not item or not self._whole(source):
                continue
            possible = [
                (late, target.var)
                for target in item.members
                if target.kind == "map" and target.var not in taken and self._whole(target.var)
                if self.movable(source, target.var)
                if (late := self._late(target, source, reads)) is not None
            ]
            if not possible:
                continue
            late, place = min(possible, key=lambda p: p[0])
            self.owner[source] = self.home(place)
            if late:
                self.late.setdefault(item, []).append((source, place))
            taken.add(place)
        if item in self.late and self._alternates(item):
            for source, _ in self.late.pop(item):
                del self.owner[source]

    def leftovers(self) -> None:
        """Give the memory of inputs that is still free to outputs that are first written when nothing reads it."""
        left = [v for v in self.updates if v not in self.owner and v not in self.lent]
        if not left:
            return
        place = {item: n for n, item in enumerate(self.fusion.body)}
        first: dict[Var, int] = {}
        for item, n in place.items():
            for root in members_of(item):
                made = root.eqn.outvars if root.kind == "block" and root.eqn else (root.var,)
                for w in made:
                    first.setdefault(self.home(w), n)
        taken = {self.home(v) for v in self.updates if v in self.owner}
        for v in left:
            end = place[self.last[v]] if v in self.last else -1
            for y in self.updates[v]:
                if y not in taken and y not in self.owner and first.get(y, -1) > end:
                    self.owner[v] = y
                    taken.add(y)
                    break

    def _whole(self, v: Var) -> bool:
        """Whether a value is in memory with all of its axes."""
        axes = self.fusion.stored_axes.get(v, tuple(range(v.aval.ndim)))
        return axes is not None and len(axes) == v.aval.ndim and v.aval.ndim > 0

    def _late(self, target: Root, source: Var, reads: list[tuple[Root, IndexMap]]) -> bool | None:
        """Whether elements of `source` are read late, if the same elements of `target` may be stored in their place.

        None if they may not. They may if each is last read just before that, or at most a few iterations later.
        """
        a, b = source.aval, target.var.aval
        if a.shape != b.shape or a.dtype != b.dtype or self.home(target.var) is source:
            return None
        path = self.fusion.paths[target]
        order = path[-1].body if path else []
        places = tuple([_position(target, axis, n) for axis, n in zip(target.axes, b.shape)])
        late = False
        for reader, index in reads:
            if self.fusion.paths[reader] != path or reader not in order:
                return None
            read = tuple([_position(reader, axis, n) for axis, n in zip(index, a.shape)])
            if read != places or order.index(reader) > order.index(target):
                late = True
                if not config.runs(LATE_READS) or not waits(a, lag(places, read, a.shape, range(len(path)))):
                    return None
        return late

    def _alternates(self, item: Loop) -> bool:
        """Whether a nest reads a carry and stores the next one elsewhere.

        LLVM compares their addresses before the loop then, and would also compare those of what is read late and of
        what overwrites it: the loop would not become vectors.
        """
        stored = {root.var for root in item.members}
        read = {v for root in item.members for v, _ in root.reads}
        return any(
            v in read and v not in self.owner and stored.intersection(self.updates[v]) for v in self.updates
        )


def _position(root: Root, axis: Along, extent: int) -> Along:
    """The number of a root's loop that runs along an axis; -1 if none, None if the index is computed or one number.

    An axis of length 1 of the root's own has no loop: all of its iterations read the same element there.
    """
    if extent == 1:
        return -1
    if axis is None or split(axis).axis not in root.loops:
        return None
    return shifted(root.loops.index(split(axis).axis), split(axis).by)


# --- all decisions ------------------------------------------------------------------------------------------


class Schedule(NamedTuple):
    """The decisions about a jaxpr before its loops are written."""

    roots: Roots
    fusion: Fusion
    owner: dict[Var, Var]
    late: Late


def schedule(
    jaxpr: Jaxpr,
    updates: Updates = MappingProxyType({}),
    spare: Collection[Var] = (),
    *,
    reassoc: bool = True,
) -> Schedule:
    """Decide which values to store, which of them share loops, and which share memory.

    Parameters
    ----------
    jaxpr : Jaxpr
        All its equations have kernel rules; its outputs are distinct variables defined by its equations.
    updates : mapping
        Inputs whose memory may become an output's, with the outputs that may have it.
    spare : collection of Var
        Inputs whose memory may become that of other values.
    reassoc : bool
        Whether sums may be reordered.
    """
    roots = Roots(reads_first(jaxpr, updates, spare))
    fusion = fuse(roots)
    if reassoc and config.runs(MIRRORED_PAIRS):
        fusion = with_pairs(roots, fusion)
    return Schedule(roots, fusion, *shared_storage(roots, fusion, updates, spare))
