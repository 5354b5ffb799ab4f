"""Which statements can run block by block of the rows of a tall matrix (see `row_blocks`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .. import ir, queries
from ..touches import touches_of
from .row_calls import RowCall, row_call

#: Statements after which something else may happen than in the order in which they stand, or that are not for rows.
_NEVER = (ir.Fail, ir.HostCall, ir.Reserve, ir.While, ir.Call, ir.Copy)
#: A loop over a shorter inner axis is left to `collapse`, which merges the two.
SHORT_AXIS = 8

Member = ir.For | ir.Mark | RowCall


class Part(NamedTuple):
    """How a statement uses a storage.

    Attributes
    ----------
    buffer : BufferDecl
    step : int
        The elements of each row, if row number i of the loop or the product is part number i of the storage; else 0.
    writes : bool
    moves : bool
        Whether each row uses other elements.
    """

    buffer: ir.BufferDecl
    step: int
    writes: bool
    moves: bool


def row_loop(s: ir.Statement) -> int:
    """How many rows a loop has, if it can be divided into blocks; else 0."""
    if type(s) is not ir.For or not s.separate or s.reverse or s.team is not None or s.start != ir.Extent(0):
        return 0
    if any(isinstance(t, _NEVER) for t in queries.walk(s.body)):
        return 0
    match s.body.statements:
        case [ir.For(stop=ir.Extent(value=inner))] if inner < SHORT_AXIS:
            return 0
    return s.stop.value if type(s.stop) is ir.Extent else 0


def parts_of(member: Member) -> Iterator[Part]:
    """How a loop or a product uses storages."""
    if isinstance(member, RowCall):
        call = member.call
        for i, a in enumerate(call.args):
            if type(a) is ir.Address:
                step = member.moving.get(i, 0)
                in_rows = step * member.rows == a.buffer.size
                yield Part(a.buffer, step if in_rows else 0, i == member.result, step > 0)
    elif type(member) is ir.For:
        for s in queries.walk(member.body):
            if isinstance(s, ir.Load | ir.Store):
                n, (first, *others) = member.stop.value, s.index or (None,)
                in_rows = first is member.var and member.var not in others and s.buffer.shape[0] == n
                step = s.buffer.size // n if in_rows else 0
                yield Part(s.buffer, step, type(s) is ir.Store, in_rows)


@dataclass(eq=False)
class Uses:
    """What statements read and write: storages, variables, values."""

    read: set[object] = field(default_factory=set)
    written: set[object] = field(default_factory=set)

    def add(self, other: Uses) -> None:
        """Add what other statements use."""
        self.read |= other.read
        self.written |= other.written

    def conflicts(self, later: Uses) -> bool:
        """Whether later statements must stay after these."""
        written = self.written
        return not (
            written.isdisjoint(later.read)
            and written.isdisjoint(later.written)
            and self.read.isdisjoint(later.written)
        )


def uses_of(statement: ir.Statement) -> Uses:
    """What a statement uses, with those inside."""
    uses = Uses()
    for s in queries.walk(ir.StatementList([statement])):
        product = row_call(s)
        for touch in touches_of(s):
            only_read = product is not None and touch.buffer is not product.target
            (uses.written if touch.writes and not only_read else uses.read).add(touch.buffer.place)
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
class Group:
    """Statements that run block by block, of which each row needs nothing of the other rows.

    Attributes
    ----------
    rows : int
    members : list
        Loops, products, and marks between them.
    steps : dict of str to int
        The storages that have rows, with the elements of each.
    bytes : dict of str to int
        The storages of which each row uses a part.
    """

    rows: int
    members: list[Member] = field(default_factory=list)
    steps: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    uses: Uses = field(default_factory=Uses)
    _times: Counter[str] = field(default_factory=Counter)
    _whole: set[str] = field(default_factory=set)
    _written: set[str] = field(default_factory=set)
    _variables: set[ir.LocalVar] = field(default_factory=set)

    def takes(self, member: Member) -> bool:
        """Add a statement if that is possible."""
        steps, whole, written = dict(self.steps), set(self._whole), set(self._written)
        sizes: dict[str, int] = {}
        for part in parts_of(member):
            place = part.buffer.place
            if part.writes and not part.step:
                if not isinstance(member, RowCall) or place in self._times:
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
        self.steps, self._whole, self._written = steps, whole, written
        self._variables |= variables
        self._times.update(sizes.keys())
        self.bytes.update({p: n for p, n in sizes.items() if n})
        return True

    @property
    def shared(self) -> int:
        """The bytes of what several statements use row by row, if there is a product."""
        if not any(isinstance(m, RowCall) for m in self.members):
            return 0
        return sum(n for place, n in self.bytes.items() if self._times[place] > 1)

    def touches(self, place: str) -> int:
        """How often statements touch a storage, of which they only use the parts of their rows; else 0."""
        if place not in self.steps or place in self._whole:
            return 0
        return sum(part.buffer.place == place for m in self.members for part in parts_of(m))


def _variables(member: Member) -> set[ir.LocalVar]:
    """The variables from outside that a loop uses."""
    if type(member) is not ir.For:
        return set()
    statements = list(queries.walk(member.body))
    own = {s.var for s in statements if type(s) is ir.Declare}
    return {s.var for s in statements if isinstance(s, ir.Get | ir.Set)} - own
