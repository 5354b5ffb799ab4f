"""Sums of mostly zero arrays, which add only the nonzero parts.

The gradient of a program that reads many elements of an array one by one is a sum of pads, each zero except for one
element. Adding the arrays costs (number of pads) x (size of the array); instead, each piece is added in place, in the
same order.

The gradient of a look-up is a scatter into zeros, which is then added to other gradients: it is scattered into them
directly. If an index occurs twice, this changes the order of additions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...core import Atom, Aval, Block, BlockEmitter, Buffer, Eqn, Literal, Primitive, Scalar, Var, Workload
from ...passes.toolkit import new_equation
from ...primitives.indexing.gather_scatter import scatter_add_p
from ...primitives.structure.dynamic import dynamic_slice_p, dynamic_update_slice_p
from ...primitives.structure.linear import add_p, broadcast_in_dim_p, reshape_p
from ...primitives.structure.shape import slice_p, window_p
from ...transforms.transpose import is_large

#: Sums with fewer windows than this, or whose average window exceeds the array by this factor, stay sums.
FEWEST = 4
#: A part of an array is added in place if the array is larger by this factor; otherwise additions of arrays fuse.
SMALL_PART = 4


def _sum_impl(*xs: Any, starts: tuple[tuple[int, ...], ...], shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape, xs[0].dtype)
    for x, start in zip(xs, starts):
        out[tuple(slice(i, i + n) for i, n in zip(start, x.shape))] += x
    return out


def _sum_kernel(
    k: BlockEmitter,
    operands: Sequence[Buffer],
    results: Sequence[Buffer],
    *,
    starts: tuple[tuple[int, ...], ...],
    shape: tuple[int, ...],
) -> None:
    out = results[0]

    def loops(extents: Sequence[int], index: list[Scalar | int], body: Any) -> None:
        if len(index) == len(extents):
            body(index)
        elif extents[len(index)] == 1:
            loops(extents, [*index, 0], body)
        else:
            with k.loop(extents[len(index)]) as i:
                loops(extents, [*index, i], body)

    zero = k.const(0, out.dtype)
    loops(shape, [], lambda index: k.store(out, index, zero))
    for x, start in zip(operands, starts):

        def add(index: list[Scalar | int], x: Buffer = x, start: tuple[int, ...] = start) -> None:
            place = [i + n for i, n in zip(index, start)]
            k.store(out, place, k.load(out, place) + k.load(x, index))

        loops(x.shape, [], add)


#: The sum of arrays placed at ``starts`` in an array of zeros.
sum_of_windows_p = Primitive(
    "sum_of_windows",
    lambda *xs, starts, shape: Aval(shape, xs[0].dtype),
    _sum_impl,
    kernel=Block(_sum_kernel, streamed_from=0),
    cost=lambda *xs, **params: Workload(sum([x.size for x in xs])),
)


# --- additions in place -------------------------------------------------------------------------------------


def add_in_place(eqns: list[Eqn], outvars: Iterable[Atom], within: bool) -> list[Eqn]:
    """The equations with ``x + scatter_add(0, updates)`` as ``scatter_add(x, updates)``.

    If they are `within` a loop or a branch, so that `x` may be a total that other iterations add to, small windows and
    slices of zeros are added in place too.
    """
    if not any(e.primitive is add_p for e in eqns):
        return eqns
    return _Additions(eqns, outvars, within).eqns


class _Additions:
    def __init__(self, eqns: list[Eqn], outvars: Iterable[Atom], within: bool):
        self.within = within
        self.producer = {v: e for e in eqns for v in e.outvars}
        self.readers = Counter(a for e in eqns for a in e.invars)
        self.readers.update(outvars)
        gone: set[Eqn] = set()
        new: list[Eqn] = []
        for e in eqns:
            replacement, replaced = self.addition(e)
            gone.update(replaced)
            new += replacement
            for r in replacement:
                self.producer.update((v, r) for v in r.outvars)
                self.readers.update(v for v in r.outvars if v not in self.readers)
        self.eqns = [e for e in new if e not in gone]

    def addition(self, e: Eqn) -> tuple[list[Eqn], list[Eqn]]:
        """What replaces an equation, and the equations of the term that this makes superfluous."""
        if e.primitive is add_p and all(a.aval.shape == e.outvars[0].aval.shape for a in e.invars):
            for term, other in (e.invars, e.invars[::-1]):
                gone: list[Eqn] = []
                eqns = self.put_back(term, other, gone)
                if eqns is None:
                    eqns = self.onto(term, other, gone)
                if eqns is not None:
                    return [*eqns[:-1], eqns[-1].replace(outvars=e.outvars)], gone
        return [e], []

    def put_back(self, term: Atom, base: Atom, gone: list[Eqn]) -> list[Eqn] | None:
        """The sum of an array with zeros in a window, and of that window, as one write into the array.

        Scatters that were added to the array since are added after the write.
        """
        window, cleared = self.maker(term), self.maker(base)
        if window is None or not _is_window(window):
            return None
        added: list[Eqn] = []
        while cleared is not None and cleared.primitive is scatter_add_p and self.readers[base] == 1:
            added.append(cleared)
            base = cleared.invars[0]
            cleared = self.maker(base)
        if cleared is None or cleared.primitive is not dynamic_update_slice_p:
            return None
        x, zeros, *starts = cleared.invars
        part, first = window.invars[0], [lo for lo, _, _ in window.params["padding_config"]]
        same = [isinstance(s, Literal) and int(s.value) == i for s, i in zip(starts, first)]
        if not self.is_zeros(zeros) or part.aval.shape != zeros.aval.shape or not all(same):
            return None
        if self.is_slice_of(x, part, tuple(first)):  # nothing changed
            eqns = [new_equation(reshape_p, [x], {"shape": x.aval.shape}, window.source)]
        else:
            eqns = [new_equation(dynamic_update_slice_p, [x, part, *starts], {}, window.source)]
        for scatter in reversed(added):
            total = eqns[-1].outvars[0]
            out = Var(scatter.outvars[0].aval)
            eqns.append(scatter.replace(invars=[total, *scatter.invars[1:]], outvars=[out]))
        gone += added
        return eqns

    def is_slice_of(self, x: Atom, part: Atom, starts: tuple[int, ...]) -> bool:
        """Whether `part` is what a slice of `x` without gaps takes from `starts` on."""
        e = self.maker(part)
        if e is None or e.primitive is not slice_p or e.invars[0] is not x:
            return False
        return e.params["start_indices"] == starts and set(e.params["strides"]) <= {1}

    def maker(self, a: Atom) -> Eqn | None:
        """The equation that computes a value."""
        return self.producer.get(a) if isinstance(a, Var) else None

    def onto(self, term: Atom, base: Atom, gone: list[Eqn]) -> list[Eqn] | None:
        """The equations that add a mostly zero term to `base` in place; None if it is not of this kind."""
        e = self.maker(term)
        if e is None or self.readers[term] != 1:
            return None
        if e.primitive is scatter_add_p:
            eqns = [] if self.is_zeros(e.invars[0]) else self.onto(e.invars[0], base, gone)
            if eqns is None:
                return None
            gone.append(e)  # if this fails after all, nothing is gone
            total = eqns[-1].outvars[0] if eqns else base
            return [*eqns, e.replace(invars=[total, *e.invars[1:]], outvars=[Var(base.aval.strong())])]
        if e.primitive is reshape_p:
            view = new_equation(reshape_p, [base], {"shape": e.invars[0].aval.shape}, e.source)
            eqns = self.onto(e.invars[0], view.outvars[0], gone)
            if eqns is None:
                return None
            gone.append(e)
            return [view, *eqns, e.replace(invars=eqns[-1].outvars, outvars=[Var(base.aval.strong())])]
        if not self.within or not is_large(base.aval):
            return None
        if e.primitive is dynamic_update_slice_p and self.is_zeros(e.invars[0]):
            _, update, *starts = e.invars
            part = new_equation(
                dynamic_slice_p, [base, *starts], {"slice_sizes": update.aval.shape}, e.source
            )
            return self.part_of(e, base, part, update, starts, gone)
        if _is_window(e):
            update = e.invars[0]
            first = [lo for lo, _, _ in e.params["padding_config"]]
            limits = tuple([i + n for i, n in zip(first, update.aval.shape)])
            params = {"start_indices": tuple(first), "limit_indices": limits, "strides": (1,) * len(first)}
            part = new_equation(slice_p, [base], params, e.source)
            return self.part_of(e, base, part, update, [Literal(np.int64(i)) for i in first], gone)
        return None

    def part_of(
        self, e: Eqn, base: Atom, part: Eqn, update: Atom, starts: Sequence[Atom], gone: list[Eqn]
    ) -> list[Eqn] | None:
        """The equations that add to one part of an array, unless that is most of it."""
        eqns = self.onto(update, part.outvars[0], gone)
        if eqns is None and update.aval.size * SMALL_PART > base.aval.size:
            return None
        if eqns is None:
            eqns = [new_equation(add_p, [part.outvars[0], update], {}, part.source)]
        gone.append(e)
        operands = [base, eqns[-1].outvars[0], *starts]
        return [part, *eqns, new_equation(dynamic_update_slice_p, operands, {}, part.source)]

    def is_zeros(self, a: Atom) -> bool:
        """Whether an array is zeros."""
        e = self.maker(a)
        return e is not None and e.primitive is broadcast_in_dim_p and _is_zero(e.invars[0])


def _is_zero(a: Atom) -> bool:
    return isinstance(a, Literal) and not a.value


# --- windows ------------------------------------------------------------------------------------------------


def gather_sums(eqns: list[Eqn], outvars: Iterable[Atom]) -> list[Eqn]:
    """The equations with long sums of windows as one equation each; the equations of these become dead code."""
    outvars = tuple(outvars)
    producer = {v: e for e in eqns for v in e.outvars}
    windows = [e for e in eqns if _is_window(e)]
    if len(windows) < FEWEST:
        return eqns
    uses = Counter(a for e in eqns for a in e.invars)
    uses.update(outvars)
    inner = {a for e in eqns if e.primitive is add_p for a in e.invars if uses[a] == 1}
    return [_replaced(e, producer, uses, inner) for e in eqns]


def _is_window(e: Eqn) -> bool:
    if e.primitive is not window_p:
        return False
    return _is_zero(e.invars[1]) and all(lo >= 0 and hi >= 0 for lo, hi, _ in e.params["padding_config"])


def _replaced(e: Eqn, producer: dict[Var, Eqn], uses: Counter[Atom], inner: set[Atom]) -> Eqn:
    """The sum whose last addition this is, as one equation if that is worthwhile."""
    if e.primitive is not add_p or e.outvars[0] in inner:
        return e
    out = e.outvars[0]
    terms = _terms(e, producer, uses)
    pieces = [t for t in terms if isinstance(t, Eqn)]
    small = sum(t.invars[0].aval.size for t in pieces) * FEWEST <= len(pieces) * out.aval.size
    if len(pieces) < FEWEST or not small:
        return e
    operands: list[Atom] = []
    starts = []
    for t in terms:
        operands.append(t.invars[0] if isinstance(t, Eqn) else t)
        pads = t.params["padding_config"] if isinstance(t, Eqn) else ((0, 0, 0),) * out.aval.ndim
        starts.append(tuple([lo for lo, _, _ in pads]))
    params = {"starts": tuple(starts), "shape": out.aval.shape}
    return e.replace(primitive=sum_of_windows_p, invars=operands, params=params)


def _terms(e: Eqn, producer: dict[Var, Eqn], uses: Counter[Atom]) -> list[Atom | Eqn]:
    """The terms of a sum in the order of addition: windows as equations, others unchanged."""
    terms: list[Atom | Eqn] = []
    shape = e.outvars[0].aval.shape
    while True:
        x, y = e.invars
        if x.aval.shape != shape or y.aval.shape != shape:
            return [e.outvars[0]]
        chain = [a for a in (x, y) if isinstance(a, Var) and uses[a] == 1 and _adds(producer.get(a))]
        if len(chain) != 1:
            break
        terms.append(_term(y if chain[0] is x else x, producer))
        e = producer[chain[0]]
    terms += [_term(y, producer), _term(x, producer)]
    return terms[::-1]


def _adds(e: Eqn | None) -> bool:
    return e is not None and e.primitive is add_p


def _term(a: Atom, producer: dict[Var, Eqn]) -> Atom | Eqn:
    definition = producer.get(a) if isinstance(a, Var) else None
    return definition if definition is not None and _is_window(definition) else a
