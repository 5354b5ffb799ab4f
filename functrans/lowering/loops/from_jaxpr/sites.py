"""The sites of a kernel: which of the user's lines the time between two marks belongs to, while a profile is open.

A *site* is a run of loop nests. `Nests` writes a mark before each, which adds the time since the last mark to the site
before it. A mark costs about 10 ns, so sites are chosen by what their equations cost by estimate (`passes.costs`):
nests that take less than `LEAST` share one, and the body of a loop that does as little is part of the loop's own site.
What one site computes of several lines is divided by the same estimate.

.. code-block:: text

    mark first 0        0   a = x @ w         line 3
    ...
    mark next 1         1   scan              line 4
    for i in 0..n:
      mark next 2       2     matrix product  line 7
      ...
      mark next 3       3     tanh, sum       lines 8 (70%) and 9 (30%)
      ...
    mark last 0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from ....core import Atom, Eqn, Jaxpr, Literal, Source, TapeAval, Var
from ....core.backward_state import StateAval
from ....core.ir import subjaxprs
from ....passes.costs import cost
from ....runtime.records import NamedTuple, dataclass
from ...host.host_calls import HostEquation, host_p, silent_p
from .fuse import Loop, members_of
from .materialize import Root, Roots

#: The least cost of a site, in additions of `passes.costs`: about 400 ns.
LEAST = 8000
#: The words of the counters before those of the sites, and for each site: its time and how often it began.
HEADER, WORDS = 10, 2


class Share(NamedTuple):
    """What one of the user's lines has of a site: by estimated cost, and in bytes for each time that it runs."""

    source: Source | None
    cost: float
    read: int
    written: int


@dataclass(eq=False)
class TimedSite:
    """A part of a kernel that is timed by itself.

    Attributes
    ----------
    name : str
        The primitives that it computes.
    shares : list of Share
        Of all that it computes, also in the bodies of loops.
    own : list of Share
        Of what is left if sites in these bodies are timed by themselves.
    inner : list of int
        The numbers of those sites.
    host : list of int
        The numbers of the equations that Python evaluates in it.
    """

    name: str = ""
    shares: list[Share] = field(default_factory=list)
    own: list[Share] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)
    host: list[int] = field(default_factory=list)


class Sites:
    """The sites of one kernel, as its loops are written.

    Attributes
    ----------
    sites : list of TimedSite
        By number.
    """

    def __init__(self) -> None:
        self.sites: list[TimedSite] = []
        self._open: list[int] = []  # the sites of the loops around, by number
        self._bodies: list[bool] = []

    @property
    def words(self) -> int:
        """The number of counters."""
        return HEADER + WORDS * len(self.sites)

    def note_host(self, equation: HostEquation) -> None:
        """Note an equation that Python evaluates in the site that is being written."""
        if self._open:
            self.sites[self._open[-1]].host.append(equation.number)

    def planned(self, roots: Roots, items: list[Loop | Root]) -> Iterator[int | None]:
        """For each item of a body, in order, the number of the site that begins with it; None if none does.

        The item must be written before the next one is asked for.
        """
        parts = [_TimedItem(roots, item) for item in items]
        outer = self._open[-1] if self._open else None
        if outer is not None and sum(p.cost for p in parts) < 2 * LEAST:
            yield from [None] * len(items)
            return
        site: TimedSite | None = None
        total = 0.0
        for part in parts:
            begins = site is None or bool(site.inner) or max(total, part.cost) >= LEAST
            if begins:
                if site is not None:
                    self._open.pop()
                site, total, number = TimedSite(), 0.0, len(self.sites)
                self.sites.append(site)
                self._open.append(number)
                if outer is not None:
                    self.sites[outer].inner.append(number)
            assert site is not None
            total += part.cost
            part.add_to(site)
            yield number if begins else None
        if site is not None:
            self._open.pop()


class _TimedItem:
    """What an item computes."""

    def __init__(self, roots: Roots, item: Loop | Root):
        self.roots = roots
        self.members = list(members_of(item))
        self.eqns = _equations(roots, self.members)
        self.cost = sum(_estimate(e) for e in self.eqns)

    def add_to(self, site: TimedSite) -> None:
        """Add it to a site."""
        names = dict.fromkeys(_plain(e).primitive.name for e in self.eqns)
        site.name = " ".join(filter(None, [site.name, *names]))
        stored = {v for root in self.members for v in (root.eqn.outvars if root.eqn else ())}
        for e in self.eqns:
            read = sum(_nbytes(a) for a in dict.fromkeys(e.invars) if self.is_in_memory(a))
            written = sum(_nbytes(v) for v in e.outvars if v in stored and self.is_in_memory(v))
            shares = list(_shares(_plain(e), None, 1.0))
            whole = sum(s.cost for s in shares) or 1.0
            site.shares += [
                s._replace(read=round(read * s.cost / whole), written=round(written * s.cost / whole))
                for s in shares
            ]
            site.own.append(Share(e.source, max(cost(_plain(e)), 1), read, written))

    def is_in_memory(self, a: Atom) -> bool:
        return isinstance(a, Var) and (
            a in self.roots.stored or a in self.roots.inputs or a in self.roots.views
        )


def _equations(roots: Roots, members: list[Root]) -> list[Eqn]:
    """The equations that roots evaluate: their own, and those inlined into these."""
    found: dict[Eqn, None] = {}
    waiting = [root.eqn for root in members if root.eqn is not None]
    known = {root.var for root in members}
    while waiting:
        e = waiting.pop()
        if e in found:
            continue
        found[e] = None
        for a in e.invars:
            if type(a) is Literal or a in roots.stored or a in roots.inputs or a in roots.views or a in known:
                continue
            assert isinstance(a, Var)
            waiting.append(roots.producer[a])
    return list(found)


def _plain(eqn: Eqn) -> Eqn:
    """The equation itself, where one of `host_p` or `silent_p` stands for it."""
    return eqn.params["eqn"] if eqn.primitive in (host_p, silent_p) else eqn


def _estimate(eqn: Eqn) -> float:
    """The cost of an equation; one that Python evaluates is expensive."""
    if eqn.primitive is host_p:
        return 2.0 * LEAST
    return float(cost(_plain(eqn)))


def _shares(eqn: Eqn, outer: Source | None, times: float) -> Iterator[Share]:
    """The shares of lines in an equation, and in its bodies."""
    source = eqn.source or outer
    bodies = list(subjaxprs(eqn.params))
    if not bodies or eqn.primitive.cost is not None:
        yield Share(source, times * max(cost(eqn), 1), 0, 0)
        return
    inner = [share for body in bodies for share in _of_body(body, source)]
    whole = sum(share.cost for share in inner) or 1.0
    scale = times * max(cost(eqn), 1) / whole
    yield from (share._replace(cost=share.cost * scale) for share in inner)


def _of_body(jaxpr: Jaxpr, outer: Source | None) -> Iterator[Share]:
    for e in jaxpr.eqns:
        yield from _shares(e, outer, 1.0)


def _nbytes(a: Atom) -> int:
    if isinstance(a.aval, TapeAval | StateAval):
        return 0
    return a.aval.size * a.aval.dtype.itemsize
