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

from ...core import Atom, Aval, Block, BlockEmitter, Buffer, Eqn, Literal, Primitive, Scalar, Var
from ...primitives.indexing.gather_scatter import scatter_add_p
from ...primitives.structure.linear import add_p, broadcast_in_dim_p
from ...primitives.structure.shape import window_p

#: Sums with fewer windows than this, or whose average window exceeds the array by this factor, stay sums.
FEWEST = 4


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
)


def gather_sums(eqns: list[Eqn], outvars: Iterable[Atom]) -> list[Eqn]:
    """The equations with sums of sparse arrays replaced; the equations of these become dead code."""
    outs = tuple(outvars)
    return _gather_windows(_into_sums(eqns, outs), outs)


# --- scatters -----------------------------------------------------------------------------------------------


def _into_sums(eqns: list[Eqn], outvars: tuple[Atom, ...]) -> list[Eqn]:
    """``x + scatter_add(0, updates)`` as ``scatter_add(x, updates)``."""
    if not any(e.primitive is scatter_add_p for e in eqns):
        return eqns
    producer = {v: e for e in eqns for v in e.outvars}
    readers = Counter(a for e in eqns for a in e.invars)
    readers.update(outvars)
    replaced: dict[Eqn, Eqn] = {}
    gone: set[Eqn] = set()
    for e in eqns:
        term = _scatter_term(e, producer, readers)
        if term is not None:
            scatter, other = term
            gone.add(scatter)
            replaced[e] = scatter.replace(invars=[other, *scatter.invars[1:]], outvars=e.outvars)
    return [replaced.get(e, e) for e in eqns if e not in gone]


def _scatter_term(e: Eqn, producer: dict[Var, Eqn], readers: Counter[Atom]) -> tuple[Eqn, Atom] | None:
    """The scatter into zeros among an addition's operands, and the other operand."""
    if e.primitive is not add_p or any(a.aval.shape != e.outvars[0].aval.shape for a in e.invars):
        return None
    for term, other in (e.invars, e.invars[::-1]):
        scatter = producer.get(term) if isinstance(term, Var) and readers[term] == 1 else None
        if scatter is not None and scatter.primitive is scatter_add_p:
            zeros = producer.get(scatter.invars[0])  # type: ignore[arg-type]
            if zeros is not None and zeros.primitive is broadcast_in_dim_p and _is_zero(zeros.invars[0]):
                return scatter, other
    return None


def _is_zero(a: Atom) -> bool:
    return isinstance(a, Literal) and not a.value


# --- windows ------------------------------------------------------------------------------------------------


def _gather_windows(eqns: list[Eqn], outvars: tuple[Atom, ...]) -> list[Eqn]:
    """Long sums of windows, each as one equation."""
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
