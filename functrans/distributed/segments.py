"""Where `fully_shard` cuts a program: before the first use of each group of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import Var
from ..core.ir import Eqn, Jaxpr, Literal
from ..runtime.records import dataclass
from .gathering import Group


@dataclass(frozen=True, eq=False)
class Segment:
    """Consecutive equations of a program.

    Attributes
    ----------
    groups : tuple of Group
        Those that the equations use, in the order of their first uses. None that other parts use, but the root.
    counts : tuple of int
        How many equations stand between one first use and the next; the first of them before the first use.
    eqns : tuple of Eqn
    read : tuple of Var
        What they read from before, without parameters of `groups`.
    written : tuple of Var
        What is read later.
    """

    groups: tuple[Group, ...]
    counts: tuple[int, ...]
    eqns: tuple[Eqn, ...]
    read: tuple[Var, ...]
    written: tuple[Var, ...]


class SegmentedProgram:
    """A program, cut into parts.

    Parameters
    ----------
    jaxpr : Jaxpr
        Its first inputs are the whole parameters.
    groups : sequence of Group
        The root first.
    prefetch : int
        How many groups to collect early.
    reshard : bool
        Whether the backward pass collects groups again.

    Attributes
    ----------
    order : list of Group
        In the order in which they are collected; without those that the program does not use.
    parts : list of Segment
        The first has no groups, and is what comes before them all.
    """

    def __init__(self, jaxpr: Jaxpr, groups: Sequence[Group], prefetch: int, reshard: bool):
        self._jaxpr = jaxpr
        self._prefetch = prefetch
        self._reshard = reshard
        root, *others = groups
        uses = _uses(jaxpr)
        spans = {}
        for group in others:
            places = [i for v in self.variables(group) for i in uses.get(v, ())]
            if places:
                spans[group] = min(places), max(places)
        ordered = sorted(spans, key=lambda g: (spans[g][0], g.index))
        self.order = ([root] if root.places else []) + ordered
        self._place = {group: i for i, group in enumerate(self.order)}
        self.parts = self._cut(ordered, spans)

    def variables(self, group: Group) -> list[Var]:
        """The whole parameters of a group."""
        return [self._jaxpr.invars[i] for i in group.places]

    def ahead(self, group: Group) -> tuple[Group, ...]:
        """The groups to collect after this one in a forward pass."""
        at = self._place[group] + 1
        return tuple(self.order[at : at + self._prefetch])

    def behind(self, group: Group) -> tuple[Group, ...]:
        """The groups to collect after this one in a backward pass. The root stays."""
        if not self._reshard or group.state.is_root:
            return ()
        at = self._place[group]
        before = self.order[max(at - self._prefetch, 0) : at]
        return tuple([g for g in reversed(before) if not g.state.is_root])

    def around(self, group: Group) -> tuple[Group, ...]:
        """The groups whose rows `gather_p` takes."""
        return (group, *self.ahead(group), *self.behind(group))

    def _cut(self, ordered: Sequence[Group], spans: dict[Group, tuple[int, int]]) -> list[Segment]:
        eqns = self._jaxpr.eqns
        together: list[list[Group]] = []
        end = -1
        for group in ordered:
            first, last = spans[group]
            if together and first <= end:
                together[-1].append(group)
            else:
                together.append([group])
            end = max(end, last)
        starts = [spans[groups[0]][0] for groups in together]
        bounds = [0, *starts, len(eqns)]
        pieces = zip([[], *together], bounds, bounds[1:])
        needed = {a for a in self._jaxpr.outvars if type(a) is not Literal}
        parts = []
        for groups, at, until in reversed(list(pieces)):
            part = self._part(tuple(groups), eqns[at:until], [spans[g][0] - at for g in groups], needed)
            needed.update(part.read)
            parts.append(part)
        return parts[::-1]

    def _part(
        self, groups: tuple[Group, ...], eqns: Sequence[Eqn], firsts: list[int], needed: set[Any]
    ) -> Segment:
        parameters = {v for g in groups for v in self.variables(g)}
        made = {v for e in eqns for v in e.outvars} | parameters
        read = [a for e in eqns for a in e.invars if isinstance(a, Var) and a not in made]
        counts = [b - a for a, b in zip([0, *firsts], firsts)]
        written = [
            v for v in dict.fromkeys([*parameters, *[v for e in eqns for v in e.outvars]]) if v in needed
        ]
        return Segment(groups, tuple(counts), tuple(eqns), tuple(dict.fromkeys(read)), tuple(written))


def _uses(jaxpr: Jaxpr) -> dict[Any, list[int]]:
    """At which equations each value is read; those after the last are the results."""
    uses: dict[Any, list[int]] = {}
    for i, e in enumerate(jaxpr.eqns):
        for a in e.invars:
            if type(a) is not Literal:
                uses.setdefault(a, []).append(i)
    for a in jaxpr.outvars:
        if type(a) is not Literal:
            uses.setdefault(a, []).append(len(jaxpr.eqns))
    return uses
