"""Numbers that count: residuals of a ``while_loop``, computed from the number of the iteration; and rows of a scan.

What grows by the same integer in each iteration needs no tape. The condition of the loop holds whenever its body runs,
so what it says of such a number holds in the derivative too, where it bounds indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...core import INT64, Atom, Aval, Eqn, Jaxpr, Literal, Var, aval_of
from ...core.values import Value
from ...passes.indices.int_ranges import FAR, LARGEST_STEP, UNKNOWN, Facts, Range, ranges_of
from ...primitives.elementwise.arithmetic import convert_element_type_p, max_p, min_p, mul_p, sub_p
from ...primitives.structure.linear import add_p, reshape_p
from ...primitives.structure.shape import iota_p, slice_p
from ...runtime.records import NamedTuple
from ...transforms.stage import StagedTracer
from ..bodies.building import JaxprBuilder


class Count(NamedTuple):
    """An integer that is the sum of part number `carry` of the carry and of `shift`.

    That part grows by `step` in each iteration, and is in the range `limits`.
    """

    carry: int
    step: int
    shift: int
    limits: Range


def counts_of(
    body: Jaxpr, values: Iterable[Atom], num_consts: int, limits: Sequence[Range]
) -> dict[Atom, Count]:
    """Those of the values of a loop's body that count.

    Parameters
    ----------
    body : Jaxpr
        From constants and carry to carry.
    values : iterable of Atom
    num_consts : int
    limits : sequence of Range
        What the condition of the loop says of the carry.
    """
    carry = body.invars[num_consts : num_consts + len(limits)]
    integers = {v for v in carry if type(v.aval) is Aval and not v.aval.shape and v.aval.dtype == INT64}
    if not integers:
        return {}
    # Sums that exceed int64 start again at the other end, whatever is added last.
    known = ranges_of(body, [Facts((-FAR, FAR), v) if v in integers else Facts() for v in body.invars])
    places: dict[Atom, int] = {v: i for i, v in enumerate(carry)}
    steps: dict[Atom, int] = {}
    for v, after in zip(carry, body.outvars):
        x = known.get(after, Facts())
        if v in integers and x.is_sum_with(v) and 0 < abs(x.shift[0]) <= LARGEST_STEP:
            steps[v] = x.shift[0]
    counts: dict[Atom, Count] = {}
    for a in values:
        x = known.get(a, Facts())
        if x.base in steps and x.is_sum_with(x.base) and not a.aval.shape:
            counts[a] = Count(places[x.base], steps[x.base], x.shift[0], limits[places[x.base]])
    return counts


def counted(new: JaxprBuilder, v: Atom, count: Count, start: Var, number: Var) -> Atom:
    """Write the equations for a value `v` that counts: from its part of the first carry, and the iteration's number."""
    x: Atom = number if count.step == 1 else new.bind(mul_p, number, np.int64(count.step))
    x = new.bind(add_p, start, x)
    low, high = count.limits
    if count.step > 0 and high != UNKNOWN[1]:
        x = new.bind(min_p, x, np.int64(high))
    if count.step < 0 and low != UNKNOWN[0]:
        x = new.bind(max_p, x, np.int64(low))
    if count.shift:
        x = new.bind(add_p, x, np.int64(count.shift))
    return new.bind(convert_element_type_p, x, dtype=INT64, weak=True) if v.aval.weak else x


def first_of_consecutive(x: Value) -> int | None:
    """The first of consecutive integers, if an array consists of them, as far as is known; None for other arrays.

    Those of an array of several axes are in the order of its memory.
    """
    aval = aval_of(x)
    if type(aval) is not Aval or aval.dtype != INT64:
        return None
    if type(x) is StagedTracer:
        producer = {v: e for e in x._trace.eqns for v in e.outvars}
        return _first_of(x._var, producer)
    if not isinstance(x, np.ndarray) or not x.size:
        return None
    flat = np.ravel(x)
    return int(flat[0]) if (flat == np.arange(flat[0], flat[0] + flat.size)).all() else None


def _first_of(a: Atom, producer: Mapping[Var, Eqn]) -> int | None:
    e = producer.get(a) if isinstance(a, Var) else None
    if e is None:
        return None
    if e.primitive is reshape_p:
        return _first_of(e.invars[0], producer)
    if a.aval.ndim != 1:
        return None
    if e.primitive is iota_p:
        return 0
    if e.primitive is slice_p and set(e.params["strides"]) == {1}:
        first, shift = _first_of(e.invars[0], producer), e.params["start_indices"][0]
    elif e.primitive in (add_p, sub_p) and isinstance(e.invars[1], Literal):
        first, shift = _first_of(e.invars[0], producer), int(e.invars[1].value)
        shift = shift if e.primitive is add_p else -shift
    else:
        return None
    return None if first is None else first + shift
