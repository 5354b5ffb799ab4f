"""Which statements can run block by block of the rows of a tall matrix (see `row_blocks`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from math import prod

from ....runtime.records import NamedTuple, dataclass
from .. import ir, queries
from ..touches import RESULTS, touches_of
from .collapse import adjacent_uses
from .places import MatrixPlaces, extents_of, has_literals
from .row_calls import RowCall

#: Statements that a loop over rows does not have.
_NEVER = (ir.HostCall, ir.Reserve, ir.While, ir.Call, ir.Copy)
#: A loop over rows with a shorter axis inside is left to `collapse`, which merges the two.
SHORT_AXIS = 8


class RowLoop(NamedTuple):
    """A nest of loops of which one, that is not inside of several statements, runs over the rows.

    Loops over products know their places.
    """

    nest: ir.For
    loop: ir.For
    rows: int
    places: MatrixPlaces | None = None


Member = RowLoop | RowCall


class RowPart(NamedTuple):
    """How a statement uses a storage.

    Attributes
    ----------
    buffer : BufferDecl
    step : int
        If each row uses the elements at its number on an axis: those from one to the next on that axis; else 0.
    writes : bool
    moves : bool
        Whether each row uses other elements.
    """

    buffer: ir.BufferDecl
    step: int
    writes: bool
    moves: bool


def row_loops(s: ir.Statement, numbers: Collection[int], of_heads: bool = False) -> list[RowLoop]:
    """The loops of a nest over one of these numbers of rows that can be divided into blocks, outer ones first.

    Loops `of_heads` may have few iterations; these are the outermost ones alone.
    """
    found: list[RowLoop] = []
    if type(s) is not ir.For or any(isinstance(t, _NEVER) for t in queries.walk(s.body)):
        return found
    loop = s
    while (
        loop.start == ir.Extent(0) and not loop.reverse and loop.team is None and type(loop.stop) is ir.Extent
    ):
        inner = loop.body.statements[0] if len(loop.body.statements) == 1 else None
        if loop.stop.value in numbers:
            if not of_heads and loop is s and type(inner) is ir.For and _is_short(loop, inner):
                break
            found.append(RowLoop(s, loop, loop.stop.value))
        if of_heads or type(inner) is not ir.For:
            break
        loop = inner
    return found


def head_loops(s: ir.Statement, places: MatrixPlaces) -> list[RowLoop]:
    """A loop over products, each with matrices of its own, such as those of the heads of attention."""
    if type(s) is not ir.For or not s.separate or s.reverse or s.team is not None or s.start != ir.Extent(0):
        return []
    inside = list(queries.walk(s.body))
    calls = [t for t in inside if type(t) is ir.Call]
    if type(s.stop) is not ir.Extent or s.stop.value < 2 or not calls:
        return []
    others = any(isinstance(t, _NEVER) for t in inside if type(t) is not ir.Call)
    if others or not all(call.routine in RESULTS and has_literals(call) for call in calls):
        return []
    return [RowLoop(s, s, s.stop.value, places)]


def _is_short(loop: ir.For, inner: ir.For) -> bool:
    m = queries.rounds(inner, SHORT_AXIS)
    return m < SHORT_AXIS and adjacent_uses(inner.body, loop.var, inner.var, m) is not None


def axis_of(buffer: ir.BufferDecl, rows: int, step: int) -> int | None:
    """The axis of so many rows, with so many elements from one to the next."""
    shape = buffer.shape
    return next((d for d, n in enumerate(shape) if n == rows and prod(shape[d + 1 :]) == step), None)


def parts_of(member: Member) -> Iterator[RowPart]:
    """How a loop or a product uses storages."""
    rows = member.rows
    if isinstance(member, RowCall):
        for i, a in enumerate(member.call.args):
            if type(a) is ir.Address:
                step = member.moving.get(i, 0)
                in_rows = step > 0 and axis_of(a.buffer, rows, step) is not None
                yield RowPart(a.buffer, step if in_rows else 0, i == member.result, step > 0)
        return
    var = member.loop.var
    for s in queries.walk(member.nest.body):
        if isinstance(s, ir.Load | ir.Store):
            axes = [d for d, x in enumerate(s.index) if x is var]
            in_rows = len(axes) == 1 and s.buffer.shape[axes[0]] == rows
            step = prod(s.buffer.shape[axes[0] + 1 :]) if in_rows else 0
            yield RowPart(s.buffer, step, type(s) is ir.Store, in_rows)
        elif type(s) is ir.Call and member.places is not None:
            yield from _parts_of_call(s, member.places, var, rows)


def _parts_of_call(call: ir.Call, places: MatrixPlaces, var: ir.Value, rows: int) -> Iterator[RowPart]:
    """How a product in a loop uses storages."""
    for i, a in enumerate(call.args):
        if type(a) is ir.Address:
            step = places.terms(a.offset).get(var, 0)
            inner, outer, distance = extents_of(call, i)
            in_rows = step > 0 and axis_of(a.buffer, rows, step) is not None
            if in_rows:
                width = inner if distance % (rows * step) == 0 else inner + distance * (outer - 1)
                in_rows = places.in_rows(a.offset, width, rows, step, var)
            yield RowPart(a.buffer, step if in_rows else 0, i == RESULTS[call.routine], step != 0)


@dataclass(eq=False)
class Dependences:
    """What statements read and write: storages, variables, values."""

    read: set[object] = field(default_factory=set)
    written: set[object] = field(default_factory=set)

    def add(self, other: Dependences) -> None:
        """Add what other statements use."""
        self.read |= other.read
        self.written |= other.written

    def conflicts(self, later: Dependences) -> bool:
        """Whether later statements must stay after these."""
        written = self.written
        return not (
            written.isdisjoint(later.read)
            and written.isdisjoint(later.written)
            and self.read.isdisjoint(later.written)
        )


def uses_of(statement: ir.Statement) -> Dependences:
    """What a statement uses, with those inside."""
    uses = Dependences()
    for s in queries.walk(ir.StatementList([statement])):
        for touch in touches_of(s):
            (uses.written if touch.writes else uses.read).add(touch.buffer.place)
        match s:
            case ir.Let(value=value) | ir.Load(value=value) | ir.For(var=value):
                uses.written.add(value)
            case ir.Get(value=value, var=var):
                uses.written.add(value)
                uses.read.add(var)
            case ir.Set(var=var) | ir.Declare(var=var):
                uses.written.add(var)
            case ir.Call(value=value, args=args):
                uses.written.update(a for a in (value, *args) if isinstance(a, ir.Value | ir.LocalVar))
        operands = [x.offset if type(x) is ir.Address else x for x in queries.operands_of(s)]
        uses.read.update(x for x in operands if type(x) is ir.Value)
    return uses


@dataclass(eq=False)
class RowGroup:
    """Statements that run block by block, of which each row needs nothing of the other rows.

    Attributes
    ----------
    rows : int
    in_order : bool
        Whether one block runs after the other.
    users : mapping of str to int
        How often the kernel's statements touch each storage of temporary memory.
    members : list
        Loops, products, and marks between them.
    steps : dict of str to int
        The storages that have rows, with the elements from one to the next.
    bytes : dict of str to int
        The storages of which each row uses a part.
    """

    rows: int
    in_order: bool
    users: Mapping[str, int]
    members: list[Member | ir.Mark] = field(default_factory=list)
    steps: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    _times: Counter[str] = field(default_factory=Counter)
    _whole: set[str] = field(default_factory=set)
    _inside: set[str] = field(default_factory=set)  # as `RowCall.inside`
    _written: set[str] = field(default_factory=set)
    _variables: set[ir.LocalVar] = field(default_factory=set)

    def agrees(self, member: Member) -> int:
        """The bytes of what a statement has by rows as those in the group do."""
        parts = {p.buffer.place: p for p in parts_of(member)}
        return sum(self.bytes.get(place, 0) for place, p in parts.items() if self.steps.get(place) == p.step)

    def needs(self, member: Member, wide: Collection[str]) -> bool:
        """Whether a statement has rows of what the group computes, or of one of these storages."""
        return any(
            p.step and (p.buffer.place in self._written or p.buffer.place in wide) for p in parts_of(member)
        )

    def takes(self, member: Member) -> bool:
        """Add a statement if that is possible."""
        steps, whole, written = dict(self.steps), set(self._whole), set(self._written)
        sizes: dict[str, int] = {}
        scratch = self._scratch(member)
        for part in parts_of(member):
            place = part.buffer.place
            fixed = part.writes and not part.step and place not in scratch
            if fixed and not (self._may_add(member) and place not in self._times):
                return False
            if part.step:
                if steps.setdefault(place, part.step) != part.step:
                    return False
            else:
                whole.add(place)
            if part.writes:
                written.add(place)
            sizes.setdefault(place, part.moves * part.buffer.size * part.buffer.dtype.itemsize)
        for place in sizes.keys() & whole & written:  # only the product that writes it may use it
            if place in self._times or place in steps:
                return False
        variables = _variables(member)
        if not all(var.fold for var in variables) or not self._variables.isdisjoint(variables):
            return False
        self.members.append(member)
        if isinstance(member, RowCall):
            self._inside |= member.inside
        self.steps, self._whole, self._written = steps, whole, written
        self._variables |= variables
        self._times.update(sizes.keys())
        self.bytes.update({p: n for p, n in sizes.items() if n})
        return True

    def _may_add(self, member: Member) -> bool:
        """Whether a statement may add up rows in memory that only it uses: its rows run in their order then."""
        return isinstance(member, RowCall) or (self.in_order and member.nest is member.loop)

    def _scratch(self, member: Member) -> set[str]:
        """The temporary storages that nothing but a loop uses, which hands nothing from one row to the next."""
        if isinstance(member, RowCall) or not member.loop.separate or member.nest is not member.loop:
            return set()
        inside = Counter(p.buffer.place for p in parts_of(member) if p.buffer.role == "scratch")
        return {place for place, n in inside.items() if n == self.users.get(place)}

    @property
    def shared(self) -> int:
        """The bytes of what several statements use row by row, if there is a product."""
        if not any(isinstance(m, RowCall) for m in self.members):
            return 0
        return sum(n for place, n in self.bytes.items() if self._times[place] > 1)

    @property
    def written(self) -> set[str]:
        """The storages of rows that statements write."""
        return self._written - self._whole

    def touches(self, place: str) -> int:
        """How often statements touch a storage, of which they only use the parts of their rows; else 0."""
        apart = place in self.steps and place not in self._whole and place not in self._inside
        return self.uses(place) if apart else 0

    def uses(self, place: str) -> int:
        """How often statements touch a storage."""
        members = [m for m in self.members if not isinstance(m, ir.Mark)]
        return sum(part.buffer.place == place for m in members for part in parts_of(m))


def _variables(member: Member) -> set[ir.LocalVar]:
    """The variables from outside that a loop uses."""
    if isinstance(member, RowCall):
        return set()
    statements = list(queries.walk(member.nest.body))
    own = {s.var for s in statements if type(s) is ir.Declare}
    return {s.var for s in statements if isinstance(s, ir.Get | ir.Set)} - own
