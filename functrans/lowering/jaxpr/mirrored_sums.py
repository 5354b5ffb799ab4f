"""Sums of a symmetric or antisymmetric array along either of its axes, computed once.

Energies of pairs have such derivatives: with ``d[i, k] = x[i] - x[k]`` and ``w = g(d * d)``, the gradient adds the sums
of ``w * d`` along both axes, and one is the negative of the other. The symmetry follows from the equations alone, and
holds bit for bit, except for the signs of zeros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ...core import Atom, Eqn, Pointwise, Var
from ...core.values import Params
from ...passes.toolkit import equation_key, new_equation, substitute
from ...primitives.elementwise.arithmetic import (
    div_p,
    eq_p,
    max_p,
    min_p,
    mul_p,
    ne_p,
    neg_p,
    select_p,
    sub_p,
)
from ...primitives.elementwise.bits import and_p, or_p, xor_p
from ...primitives.elementwise.complexes import abs_p
from ...primitives.elementwise.exp_log import integer_pow_p
from ...primitives.elementwise.rounding import sign_p
from ...primitives.elementwise.trig import cos_p, cosh_p
from ...primitives.structure.linear import add_p, broadcast_in_dim_p, reduce_sum_p, reshape_p
from ...primitives.structure.shape import iota_p

#: ``f(-x) == -f(x)`` for the first of these, ``f(-x) == f(x)`` for the second.
_ODD = (neg_p, sign_p)
_EVEN = (abs_p, cos_p, cosh_p)
_COMMUTATIVE = (add_p, mul_p, max_p, min_p, eq_p, ne_p, and_p, or_p, xor_p)
#: Longer chains of equations are not followed.
_DEEPEST = 64

#: A value equal to another one with two axes exchanged, and the sign between them.
Mirror = tuple[Atom, int]


def share_mirrored_sums(eqns: list[Eqn], outvars: Iterable[Atom]) -> tuple[list[Eqn], list[Atom]]:
    """The equations, and the outputs, with sums replaced by equal or opposite ones before them."""
    sums = Counter(len(e.params["axes"]) for e in eqns if _may_have_twin(e))
    if not any(n > 1 for n in sums.values()):
        return eqns, list(outvars)
    mirrors = _Mirrors(eqns)
    env: dict[Any, Atom] = {}
    result: list[Eqn] = []
    seen: set[Eqn] = set()
    for e in eqns:
        twin = mirrors.sum_before(e, seen) if _may_have_twin(e) else None
        seen.add(e)
        if twin is None:
            result.append(e)
        elif twin[1] > 0:
            env[e.outvars[0]] = env.get(twin[0], twin[0])
        else:
            opposite = new_equation(neg_p, [twin[0]], {}, e.source)
            result.append(opposite.replace(outvars=e.outvars))
    return substitute(result, env), [env.get(a, a) for a in outvars]


def _may_have_twin(e: Eqn) -> bool:
    return e.primitive is reduce_sum_p and e.outvars[0].aval.dtype.kind in "fc" and any(_pairs(e))


def _pairs(e: Eqn) -> list[tuple[int, int]]:
    """A reduced and a remaining axis of one extent, without other remaining axes between them."""
    shape, axes = e.invars[0].aval.shape, e.params["axes"]
    return [
        (i, j)
        for i in axes
        for j in range(len(shape))
        if j not in axes
        and shape[i] == shape[j] > 1
        and all(d in axes for d in range(min(i, j) + 1, max(i, j)))
    ]


def _exchanged(values: Sequence[Any], i: int, j: int) -> tuple[Any, ...]:
    new = list(values)
    new[i], new[j] = values[j], values[i]
    return tuple(new)


class _Mirrors:
    """Finds the value that equals another one with two axes exchanged."""

    def __init__(self, eqns: Sequence[Eqn]):
        self.producer = {v: e for e in eqns for v in e.outvars}
        self.known = {key: e for e in eqns if (key := _key(e, e.invars, e.params)) is not None}
        self.mirrors: dict[tuple[Atom, int, int], Mirror | None] = {}

    def sum_before(self, e: Eqn, seen: set[Eqn]) -> Mirror | None:
        """An earlier sum that equals this one, up to a sign."""
        axes = e.params["axes"]
        for i, j in _pairs(e):
            mirror = self.of(e.invars[0], i, j)
            if mirror is not None:
                params = {**e.params, "axes": tuple(sorted({*axes, j} - {i}))}
                twin = self.known.get(_key(e, [mirror[0]], params))
                if twin in seen:
                    return twin.outvars[0], mirror[1]
        return None

    def of(self, a: Atom, i: int, j: int, depth: int = 0) -> Mirror | None:
        """The value that equals `a` with axes `i` and `j` exchanged, if there is one."""
        shape = a.aval.shape
        if len(shape) < 2 or shape[i] == shape[j] == 1:
            return a, 1
        key = (a, min(i, j), max(i, j))
        if key not in self.mirrors:
            e = self.producer.get(a) if isinstance(a, Var) else None
            found = None if e is None or depth > _DEEPEST else self._of_result(e, key[1], key[2], depth + 1)
            self.mirrors[key] = found
        return self.mirrors[key]

    def _of_result(self, e: Eqn, i: int, j: int, depth: int) -> Mirror | None:
        prim = e.primitive
        if len(e.outvars) != 1 or not e.effects.movable:
            return None
        if isinstance(prim.kernel, Pointwise):
            return self._of_elements(e, i, j, depth)
        if prim is reshape_p:
            return self._of_reshape(e, i, j)
        if prim is broadcast_in_dim_p:
            return self._of_broadcast(e, i, j, depth)
        if prim is iota_p:
            shape = _exchanged(e.params["shape"], i, j)
            along = {i: j, j: i}.get(e.params["dimension"], e.params["dimension"])
            return self._named(e, e.invars, {**e.params, "shape": shape, "dimension": along}, 1)
        if prim is reduce_sum_p:
            remaining = [d for d in range(e.invars[0].aval.ndim) if d not in e.params["axes"]]
            inner = self.of(e.invars[0], remaining[i], remaining[j], depth)
            return inner and self._named(e, [inner[0]], e.params, inner[1])
        return None

    def _of_elements(self, e: Eqn, i: int, j: int, depth: int) -> Mirror | None:
        ndim = e.outvars[0].aval.ndim
        if any(a.aval.ndim not in (0, ndim) for a in e.invars):
            return None
        inner = [self.of(a, i, j, depth) for a in e.invars]
        if any(m is None for m in inner):
            return None
        operands, signs = [m[0] for m in inner if m], [m[1] for m in inner if m]
        sign = _sign(e, signs)
        if sign is None:
            return None
        same = self._named(e, operands, e.params, sign)
        if same is None and e.primitive in _COMMUTATIVE:
            same = self._named(e, operands[::-1], e.params, sign)
        if same is None and e.primitive is sub_p:  # a - b == -(b - a)
            same = self._named(e, operands[::-1], e.params, -sign)
        return same

    def _of_reshape(self, e: Eqn, i: int, j: int) -> Mirror | None:
        """An axis of extent 1 moves past others freely."""
        shape = e.params["shape"]
        if (shape[i] != 1 and shape[j] != 1) or any(n != 1 for n in shape[i + 1 : j]):
            return None
        return self._named(e, e.invars, {**e.params, "shape": _exchanged(shape, i, j)}, 1)

    def _of_broadcast(self, e: Eqn, i: int, j: int, depth: int) -> Mirror | None:
        x, axes, shape = e.invars[0], e.params["broadcast_dimensions"], e.params["shape"]
        if i in axes and j in axes:
            inner = self.of(x, axes.index(i), axes.index(j), depth)
            params = {**e.params, "shape": _exchanged(shape, i, j)}
            return inner and self._named(e, [inner[0]], params, inner[1])
        moved = tuple([{i: j, j: i}.get(d, d) for d in axes])
        params = {**e.params, "shape": _exchanged(shape, i, j), "broadcast_dimensions": moved}
        return self._named(e, [x], params, 1)

    def _named(self, e: Eqn, operands: Sequence[Atom], params: Params, sign: int) -> Mirror | None:
        """The result of the equation with these operands and parameters, if the program computes it."""
        twin = self.known.get(_key(e, operands, params))
        return None if twin is None else (twin.outvars[0], sign)


def _sign(e: Eqn, signs: Sequence[int]) -> int | None:
    """The sign of a result whose operands have these signs; None if it has none."""
    prim = e.primitive
    if prim in _ODD:
        return signs[0]
    if prim is integer_pow_p:
        return signs[0] if e.params["y"] % 2 else 1
    if prim in (mul_p, div_p):
        return signs[0] * signs[1]
    if prim in (add_p, sub_p):
        return signs[0] if signs[0] == signs[1] else None
    if prim is select_p:
        return signs[1] if signs[0] > 0 and signs[1] == signs[2] else None
    if prim in _EVEN or all(s > 0 for s in signs):
        return 1
    return None


def _key(e: Eqn, operands: Sequence[Atom], params: Params) -> Any:
    return equation_key(e if params is e.params else e.replace(params=params), operands)
