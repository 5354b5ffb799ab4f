"""Operations that only lowering knows: forms of a primitive that suit a kernel better. `algebra` puts them
in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.aval import Aval
from ...core.ir import Eqn, Jaxpr, Var
from ...core.kernel import Block, BlockEmitter, Indexed, IndexEmitter, Operand, Pointwise, Scalar
from ...core.primitive import Primitive
from ...core.tape import TapeAval
from ...primitives.structure.shape import pad_p


def _window_kernel(
    k: IndexEmitter,
    index: Sequence[Scalar],
    x: Operand,
    value: Operand,
    *,
    out: Aval,
    padding_config: tuple[tuple[int, int, int], ...],
) -> Scalar:
    inside: Scalar | None = None
    place = []
    for i, n, (lo, hi, _) in zip(index, x.aval.shape, padding_config):
        j = i - lo if lo else i
        place.append(j)
        for needed, condition in ((lo > 0, lambda j=j: j >= 0), (hi > 0, lambda j=j, n=n: j < n)):
            if needed:
                inside = condition() if inside is None else inside & condition()
    return x[place] if inside is None else k.guarded(inside, lambda: x[place], value[()])


#: ``pad`` without gaps between elements, read through its index: it fuses, and a sum of pads is one pass.
window_p = Primitive("window", pad_p.abstract, pad_p.impl, kernel=Indexed(_window_kernel))


#: A value as it is, in memory of its own.
same_p = Primitive("same", lambda x: x, lambda x: x, kernel=Pointwise(lambda k, x: x), moves_data=True)


def _same_tape_kernel(k: BlockEmitter, operands: Sequence[Any], results: Sequence[Any]) -> None:
    k.copy(results[0], operands[0])


#: Tapes as they are, in pools of their own.
same_tape_p = Primitive("same_tape", lambda x: x, lambda x: x, kernel=Block(_same_tape_kernel))


def with_distinct_outputs(jaxpr: Jaxpr) -> Jaxpr:
    """An equivalent jaxpr whose outputs are distinct variables that its equations define."""
    defined = {v for e in jaxpr.eqns for v in e.outvars}
    eqns, outvars = list(jaxpr.eqns), []
    for a in jaxpr.outvars:
        if a not in defined:
            copy = same_tape_p if isinstance(a.aval, TapeAval) else same_p
            eqns.append(Eqn(copy, [a], [Var(a.aval)], {}))
            a = eqns[-1].outvars[0]
        defined.discard(a)
        outvars.append(a)
    return jaxpr.replace(eqns=eqns, outvars=outvars)


def _place_impl(x: Any, extreme: Any, *, axis: int) -> np.ndarray:
    n = x.shape[axis]
    found = (x == extreme) | ((x != x) & (extreme != extreme))
    places = np.arange(n).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    return np.where(found, places, n)


def _place_kernel(
    k: IndexEmitter, index: Sequence[Scalar], x: Operand, extreme: Operand, *, out: Aval, axis: int
) -> Scalar:
    a, b = x[index], extreme[index]
    found = a.eq(b)
    if a.dtype.kind == "f":
        found = found | (a.ne(a) & b.ne(b))
    return k.where(found, index[axis], index[axis] * 0 + out.shape[axis])


#: The index along ``axis`` where an element equals the extreme one (or both are NaN), else the axis' extent.
place_p = Primitive(
    "place",
    lambda x, extreme, *, axis: Aval(x.shape, np.dtype(np.int64)),
    _place_impl,
    kernel=Indexed(_place_kernel),
)
