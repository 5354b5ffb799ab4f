"""Which elements of a carried array a loop overwrites later, by what its indices are sums of.

A loop that carries an array writes it by scatters, also in loops and branches inside. `elements_that_stay` finds the
elements that it reads or writes and does not overwrite afterwards: the last array still has them. An index is followed
as a sum of numbers that do not change, and of multiples of the numbers of the iterations::

    for k in range(n - 1):             turn a:     k = a
        for i in range(k + 1, n):      turn b:     i = a + 1 + b
            write [i, k]
            for j in range(k + 1, n):  turn c:     j = a + 1 + c
                read [k, j]; write [i, j]

In a later iteration of the outer loop, the row that is written is ``a + d + 1 + b`` with `d` at least 1. That is not
`a`, the row that is read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, prod
from typing import Any

import numpy as np

from ...core import INT64, Atom, Aval, Eqn, Jaxpr, Var, aval_of
from ...core.values import Value
from ...passes.indices.carry_ranges import step_of
from ...passes.indices.index_sums import Sum, Turn, is_index, known_sum, passed_sums, sum_of
from ...passes.masks import split
from ...primitives.indexing.gather_scatter import gather_p, scatter_p
from ...primitives.structure.dynamic import dynamic_update_slice_p
from ...runtime.records import NamedTuple
from .counting import first_of_consecutive


class Stretch(NamedTuple):
    """The elements of an axis that an access touches: `size` of them, from `start`; None if that is unknown."""

    start: Sum | None
    size: int


class ElementAccess(NamedTuple):
    """A read or a write of the array.

    Attributes
    ----------
    eqn : Eqn
    inside : tuple of (Eqn, int)
        The loops and branches around it, each with the number of its body.
    path : tuple
        Where it is: for each body, from the outermost, the turn or the branch, and the place among the updates.
    stretches : dict
        For each axis that it does not touch as a whole, the elements that it touches.
    """

    eqn: Eqn
    inside: tuple[tuple[Eqn, int], ...]
    path: tuple[Any, ...]
    stretches: dict[int, Stretch]

    def bytes(self, turns: float) -> float:
        """The bytes that all of these reads or writes touch, if loops of unknown trip count have so many turns."""
        e = self.eqn
        aval = e.outvars[0].aval if e.primitive is gather_p else e.invars[1].aval
        counts = [turns if t.most == inf else t.count for t in self.path if isinstance(t, Turn)]
        return prod(counts) * aval.size * aval.dtype.itemsize


class _First(NamedTuple):
    """The first of the consecutive numbers of an array."""

    array: Atom


class KnownLoop(NamedTuple):
    """What is known of a loop from outside.

    Attributes
    ----------
    length : int or None
        The trip count.
    reverse : bool
    counted : tuple of int
        How much larger a row, or its first number, is than the one before it, if all of them are consecutive; else 0.
    lowest : tuple
        For each operand the least that it can be; None if that is unknown.
    """

    length: int | None
    reverse: bool
    counted: tuple[int, ...]
    lowest: tuple[int | None, ...]


def loop_of(operands: Sequence[Any], sizes: tuple[int, int], length: int | None, reverse: bool) -> KnownLoop:
    """What is known of a loop with these constants, carry and rows, of which `sizes` are the numbers of the first two.

    The least values are rounded down to powers of two, so that loops from different numbers share what is derived.
    """
    first, rows = split(operands, sum(sizes))
    starts = [first_of_consecutive(x) if aval_of(x).shape else x for x in rows]
    counted = tuple(
        [
            0 if s is None or type(aval_of(s)) is not Aval else prod(aval_of(x).shape[1:])
            for x, s in zip(rows, starts)
        ]
    )
    return KnownLoop(length, reverse, counted, tuple(map(_least, [*first, *starts])))


def _least(x: Value) -> int | None:
    number = isinstance(x, int | np.integer | np.ndarray) and not np.shape(x) and aval_of(x).dtype == INT64
    return (1 << int(x).bit_length() >> 1) if number and x >= 0 else None


def updated_arrays(body: Jaxpr, num_consts: int, num_carry: int) -> list[int]:
    """The parts of the carry of which an iteration overwrites elements."""
    return [
        c
        for c, chain in enumerate(_chains(body)[:num_carry])
        if chain is not None
        and chain.updates
        and chain.start == num_consts + c
        and body.invars[chain.start].aval.shape
    ]


def elements_that_stay(
    body: Jaxpr, num_consts: int, num_carry: int, carry: int, loop: KnownLoop
) -> list[ElementAccess]:
    """The reads, and the writes of new values, of elements of a carried array that the loop does not overwrite later.

    Parameters
    ----------
    body : Jaxpr
        From constants, carry and rows.
    num_consts, num_carry : int
    carry : int
        The number of the array, one of `updated_arrays`.
    loop : KnownLoop

    Returns
    -------
    list of ElementAccess
    """
    lowest = {v: low for v, low in zip(body.invars, loop.lowest) if low is not None}
    array = body.invars[num_consts + carry]
    search = _Accesses(array.aval.shape, lowest)
    turn = Turn(_most(loop.length))
    sums: dict[Any, Sum] = {v: Sum(0, {v: 1}) for v in body.invars if is_index(v)}
    rows = dict(zip(body.invars[num_consts + num_carry :], loop.counted))
    sums.update((_First(v), Sum(0, {v: 1})) for v, step in rows.items() if step and v.aval.shape)
    _take_turn(body, (num_consts, num_carry), rows, turn, loop.reverse, sums)
    search.search(body, (array, carry), sums, _Whereabouts((turn,), ()))
    return [a for a in search.reads if all(search.apart(a, w) for w in search.writes)]


def _most(length: int | None) -> float:
    return inf if length is None else max(length - 1, 0)


# --- updates ------------------------------------------------------------------------------------------------

#: An equation that updates an array: the numbers of its operand and its result.
_Update = tuple[Eqn, int, int]


class _Chain(NamedTuple):
    """What makes an output of a body: updates, first to last, of the input of this number."""

    start: int
    updates: list[_Update]


def _chains(body: Jaxpr) -> list[_Chain | None]:
    """The chain of each output of a body; None if something else than updates makes it.

    Found once for each body: in nests, each level asks for those of all levels inside.
    """
    return body.derive("chains of updates", lambda: _find_chains(body))


def _find_chains(body: Jaxpr) -> list[_Chain | None]:
    inputs = {v: i for i, v in enumerate(body.invars)}
    producer = {v: e for e in body.eqns for v in e.outvars}

    def chain_to(end: Atom) -> _Chain | None:
        updates: list[_Update] = []
        while end not in inputs:
            eqn = producer.get(end) if isinstance(end, Var) else None
            place = -1 if eqn is None else eqn.outvars.index(end)
            operand = None if eqn is None else _updated(eqn, place)
            if eqn is None or operand is None:
                return None
            updates.append((eqn, operand, place))
            end = eqn.invars[operand]
        return _Chain(inputs[end], updates[::-1])

    return [chain_to(v) for v in body.outvars]


def _updated(eqn: Eqn, place: int) -> int | None:
    """The number of the operand that an equation updates to its result number `place`; None if there is none."""
    checkpoint = is_checkpoint(eqn)
    if not checkpoint and eqn.primitive.rewind is None:
        return None
    if not is_nested(eqn):
        return 0
    if checkpoint or "branches" in eqn.params:
        chains = [_chains(b)[place] for b in bodies_of(eqn)]
        starts = {None if chain is None else chain.start for chain in chains}
        (start,) = starts if len(starts) == 1 else (None,)
        return None if start is None else start + (not checkpoint)
    first, consts, carried = sizes_of(eqn)
    (body,) = bodies_of(eqn)
    if place >= carried:
        return None
    chain = _chains(body)[place]
    return None if chain is None or chain.start != consts + place else first + consts + place


def is_nested(eqn: Eqn) -> bool:
    """Whether an equation is a loop, a branch or a checkpoint."""
    return "branches" in eqn.params or "num_consts" in eqn.params or is_checkpoint(eqn)


def is_checkpoint(eqn: Eqn) -> bool:
    """Whether an equation is a call with a policy."""
    return "policy" in eqn.params


def bodies_of(eqn: Eqn) -> tuple[Jaxpr, ...]:
    """The bodies of a loop or a branch."""
    if "branches" in eqn.params:
        return eqn.params["branches"]
    return (eqn.params[body_name(eqn)],)


def body_name(eqn: Eqn) -> str:
    """The parameter of a loop that is its body."""
    return "body_jaxpr" if "cond_jaxpr" in eqn.params else "jaxpr"


def sizes_of(eqn: Eqn) -> tuple[int, int, int]:
    """Of a loop the number of operands before the constants, of constants, and of parts of the carry."""
    params = eqn.params
    if "cond_jaxpr" in params:
        first, consts = params["num_cond"], params["num_consts"]
        return first, consts, len(eqn.invars) - first - consts
    return int(params["length"] is None), params["num_consts"], params["num_carry"]


# --- turns --------------------------------------------------------------------------------------------------


def _take_turn(
    body: Jaxpr,
    sizes: tuple[int, int],
    rows: Mapping[Var, int],
    turn: Turn,
    reverse: bool,
    sums: dict[Any, Sum],
) -> None:
    """Replace the first values of what a loop carries and counts by those in an iteration; numbers that do something
    else than to count are removed.
    """
    consts, carried = sizes
    for n, v in enumerate(body.invars[consts:]):
        key = _First(v) if v.aval.shape else v
        if key not in sums:
            continue
        step = step_of(body, v, n) if n < carried else rows.get(v) or None
        total = sums.pop(key)
        if step is not None and n >= carried and reverse:
            if turn.bound is not None or turn.most == inf:
                continue
            total, step = total.plus(Sum(int(turn.most) * step, {})), -step
        if step is not None:
            sums[key] = total.plus(Sum(0, {turn: step} if step else {}))


# --- reads and writes ---------------------------------------------------------------------------------------


class _Whereabouts(NamedTuple):
    """Where a body is: `path` and `inside` of an `ElementAccess`."""

    path: tuple[Any, ...]
    inside: tuple[tuple[Eqn, int], ...]

    def at(self, number: float) -> _Whereabouts:
        return self._replace(path=(*self.path, number))

    def within(self, eqn: Eqn, body: int, turn: Any) -> _Whereabouts:
        return _Whereabouts((*self.path, turn), (*self.inside, (eqn, body)))


def _turns(path: Sequence[Any], outside: Mapping[Any, Sum]) -> Mapping[Any, Sum]:
    """Turns outside of a body, and any turns of the loops inside it, for those of a path."""
    turns = dict(outside)
    for t in path:
        if isinstance(t, Turn):
            bound = None if t.bound is None else t.bound.in_turns(turns)
            turns[t] = Sum(0, {Turn(t.most, bound): 1})
    return turns


class _Accesses:
    """The reads and writes of an array of this shape, in loops with numbers of which the least value is known."""

    def __init__(self, shape: Sequence[int], lowest: Mapping[Any, int]):
        self.shape = shape
        self.lowest = lowest
        self.reads: list[ElementAccess] = []
        self.writes: list[ElementAccess] = []

    def search(
        self, body: Jaxpr, array: tuple[Atom, int | None], sums: dict[Any, Sum], place: _Whereabouts
    ) -> None:
        """Search a body for accesses to an array. It becomes the result of this number; None if it is only read."""
        start, result = array
        whole = None if result is None else _chains(body)[result]
        chain = [] if whole is None else whole.updates
        # Version n is read before update n, wherever the equation stands.
        versions = {e.invars[i]: n - 0.5 for n, (e, i, _) in enumerate(chain)}
        versions[start if result is None else body.outvars[result]] = len(chain) - 0.5
        updates = {e: n for n, (e, _, _) in enumerate(chain)}
        for e in body.eqns:
            total = sum_of(e, sums)
            if total is not None:
                sums[e.outvars[0]] = total
            n = updates.get(e, -1)
            if n >= 0:
                self._update(chain[n], sums, place.at(n))
            for i, a in enumerate(e.invars):
                if a in versions and (n < 0 or i != chain[n][1]):
                    self._read(e, i, sums, place.at(versions[a]))

    def _update(self, update: _Update, sums: dict[Any, Sum], place: _Whereabouts) -> None:
        e, operand, result = update
        if is_nested(e):
            self._enter(e, operand, result, sums, place)
            return
        access = ElementAccess(e, place.inside, place.path, self._stretches(e, sums))
        self.writes.append(access)
        if e.primitive is scatter_p and self._holds_update(access):
            self.reads.append(access)

    def _read(self, e: Eqn, operand: int, sums: dict[Any, Sum], place: _Whereabouts) -> None:
        if e.primitive is gather_p and not operand and not e.outvars[0].aval.weak:
            self.reads.append(ElementAccess(e, place.inside, place.path, self._stretches(e, sums)))
        elif is_nested(e):
            self._enter(e, operand, None, sums, place)

    def _enter(
        self, e: Eqn, operand: int, result: int | None, sums: dict[Any, Sum], place: _Whereabouts
    ) -> None:
        """Search the bodies of a loop or a branch."""
        if "branches" in e.params or is_checkpoint(e):
            head = int("branches" in e.params)
            for n, b in enumerate(bodies_of(e) if operand >= head else ()):
                operands = list(zip(b.invars, e.invars[head:]))
                here = passed_sums(operands, sums)
                here.update((_First(v), sums[_First(a)]) for v, a in operands if _First(a) in sums)
                self.search(b, (b.invars[operand - head], result), here, place.within(e, n, f"branch {n}"))
            return
        first, consts, carried = sizes_of(e)
        (body,) = bodies_of(e)
        inner = operand - first
        if inner < 0 or (result is None and inner >= consts):  # a separate version, or rows
            return
        pairs = list(zip(body.invars, e.invars[first:]))
        here = passed_sums([(v, a) for v, a in pairs if is_index(v)], sums)
        # Rows are consecutive numbers, of which the operand is the first one or has all.
        rows = {v: v.aval.size for v, a in pairs[consts + carried :] if is_index(a) or _First(a) in sums}
        firsts = [(_First(v) if v.aval.shape else v, _First(a)) for v, a in pairs if v in rows]
        here.update((v, sums[a]) for v, a in firsts if a in sums)
        count = known_sum(e.invars[0], sums) if first and "length" in e.params else None
        bound = None if count is None else count.plus(Sum(-1, {}))
        most = _most(e.params.get("length")) if bound is None else max(self._most(bound), 0)
        turn = Turn(most, bound)
        _take_turn(body, (consts, carried), rows, turn, e.params.get("reverse", False), here)
        self.search(body, (body.invars[inner], result), here, place.within(e, 0, turn))

    def _stretches(self, e: Eqn, sums: Mapping[Any, Sum]) -> dict[int, Stretch]:
        """The elements that an access touches."""
        if e.primitive is dynamic_update_slice_p:
            extents = zip(e.invars[2:], self.shape, e.invars[1].aval.shape)
            axes = {d: (known_sum(a, sums), n, m) for d, (a, n, m) in enumerate(extents) if m < n}
            return {d: Stretch(self._within(x, n - m), m) for d, (x, n, m) in axes.items()}
        indices = e.invars[1:] if e.primitive is gather_p else e.invars[2:]
        pairs = [(d, known_sum(a, sums)) for d, a in zip(e.params["axes"], indices)]
        if e.params["mode"] in ("clip", "wrap"):
            pairs = [(d, self._within(x, self.shape[d] - 1)) for d, x in pairs]
        return {d: Stretch(x, 1) for d, x in pairs}

    def _within(self, x: Sum | None, most: int) -> Sum | None:
        """A sum that is from 0 to `most`; None for others."""
        low, high = (-inf, inf) if x is None else self._range(x)
        return x if low >= 0 and high <= most else None

    def _holds_update(self, write: ElementAccess) -> bool:
        """Whether an array has, after a scatter, all that it wrote."""
        e, v = write.eqn, write.eqn.invars[1]
        if not isinstance(v, Var) or v.aval.weak:
            return False
        if e.invars[2].aval.size != 1 and not e.params["unique_indices"]:
            return False
        stretches = write.stretches.items()
        return e.params["mode"] == "raise" or all(
            self._within(w.start, self.shape[d] - 1) for d, w in stretches
        )

    def _range(self, x: Sum) -> tuple[float, float]:
        """The least and the most that a sum can be."""
        return -self._most(Sum(0, {}).plus(x, -1)), self._most(x)

    def _most(self, x: Sum) -> float:
        bounds = {t: t.bound for t, n in x.terms.items() if isinstance(t, Turn) and n > 0 and t.bound}
        lower = self._most(x.in_turns(bounds)) if bounds else inf
        total: float = x.number
        for symbol, n in x.terms.items():
            if isinstance(symbol, Turn):
                total += max(0, n * symbol.most)
            else:
                total += n * self.lowest.get(symbol, -inf) if n < 0 else inf
        return min(total, lower)

    def apart(self, read: ElementAccess, write: ElementAccess) -> bool:
        """Whether no write after a read touches what it reads; the read may be a write, of what it has written."""
        for n, (mine, other) in enumerate(zip(read.path, write.path)):
            if isinstance(mine, Turn):  # the write may be in a later iteration
                later = Sum(1, {mine: 1, Turn(mine.most - 1): 1})
                if mine.most > 0 and not self._differ(
                    read, write, _turns(write.path[n + 1 :], {mine: later})
                ):
                    return False
            elif mine != other:  # two branches, or two places in one body
                earlier = isinstance(mine, str) or other < mine
                return earlier or self._differ(read, write, _turns(write.path[n + 1 :], {}))
        return True

    def _differ(self, read: ElementAccess, write: ElementAccess, turns: Mapping[Turn, Sum]) -> bool:
        """Whether a read and a write, in other turns of the loops, touch different elements."""
        for d, stretch in write.stretches.items():
            mine = read.stretches.get(d)
            if mine is None or mine.start is None or stretch.start is None:
                continue
            start = stretch.start.in_turns(turns)
            low, high = self._range(start.plus(mine.start, -1))
            if low < mine.size and high > -stretch.size:
                continue
            if self._range(stretch.start)[0] >= 0 and self._range(mine.start)[0] >= 0:
                return True
            # Negative indices count from the end.
            if high <= self.shape[d] - stretch.size and low >= mine.size - self.shape[d]:
                return True
        return False
