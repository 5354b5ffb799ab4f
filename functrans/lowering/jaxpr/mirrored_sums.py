"""Sums of a symmetric or antisymmetric array along either of its axes, computed once.

Energies of pairs have such derivatives: with ``d[i, k] = x[i] - x[k]`` and ``w = g(d * d)``, the gradient adds the sums
of ``w * d`` along both axes, and one is the negative of the other. The symmetry follows from the equations alone, and
holds bit for bit, except for the signs of zeros: ``d[i, k]`` of equal points is 0.0, and so is ``d[k, i]``. Where the
sign of a zero makes a difference, as in ``1 / d``, nothing mirrors anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ...core import Atom, Eqn, Pointwise, Var
from ...core.values import Params
from ...passes.toolkit import equation_key, new_equation, substitute
from ...primitives.elementwise.arithmetic import neg_p, sub_p
from ...primitives.structure.linear import broadcast_in_dim_p, reduce_sum_p, reshape_p
from ...primitives.structure.shape import iota_p
from .mirrors import Mirror, exactness_of, is_integer, is_zero, sign_of

#: Longer chains of equations are not followed.
_DEEPEST = 64


def share_mirrored_sums(eqns: list[Eqn], outvars: Iterable[Atom]) -> tuple[list[Eqn], list[Atom]]:
    """The equations, and the outputs, with sums replaced by equal or opposite ones before them."""
    sums = Counter(len(e.params["axes"]) for e in eqns if _may_have_twin(e))
    if not any(n > 1 for n in sums.values()):
        return eqns, list(outvars)
    mirrors = Mirrors(eqns)
    env: dict[Any, Atom] = {}
    result: list[Eqn] = []
    seen: set[Eqn] = set()
    for e in eqns:
        twin = mirrors.sum_before(e, seen) if _may_have_twin(e) else None
        seen.add(e)
        if twin is None:
            result.append(e)
        elif twin.sign >= 0:
            env[e.outvars[0]] = env.get(twin.value, twin.value)
        else:
            opposite = new_equation(neg_p, [twin.value], {}, e.source)
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


class Mirrors:
    """Finds the value that equals another one with two axes exchanged.

    Reshapes that insert or remove axes of extent 1, written or implied by an operand of fewer axes, are *views*: of one
    value there is only one of each shape, and it may exist only here.
    """

    def __init__(self, eqns: Sequence[Eqn]):
        self.producer = {v: e for e in eqns for v in e.outvars}
        self.views: dict[tuple[Atom, tuple[int, ...]], Atom] = {}
        self.bases: dict[Atom, Atom] = {}
        self._note_views(eqns)
        self.known = {key: e for e in eqns if (key := _key(e, self.operands(e), e.params)) is not None}
        self.mirrors: dict[tuple[Atom, int, int], Mirror | None] = {}

    def _note_views(self, eqns: Sequence[Eqn]) -> None:
        first: dict[Any, Atom] = {}
        for e in eqns:
            key: Any = None
            out = e.outvars[0]
            if e.primitive is reshape_p:
                key = base = self.base(e.invars[0])
                if _without_ones(base) == _without_ones(out):
                    first.setdefault((key, _without_ones(out)), base)
            elif e.primitive is iota_p and out.aval.shape[along := e.params["dimension"]] != 1:
                key = e.params["dtype"], len([n for n in out.aval.shape[:along] if n != 1])
            if key is not None:
                base = self.bases[out] = first.setdefault((key, _without_ones(out)), out)
                self.views.setdefault((base, base.aval.shape), base)
                self.views.setdefault((base, out.aval.shape), out)

    def base(self, a: Atom) -> Atom:
        """The value of which another one is a view; most are their own."""
        return self.bases.get(a, a)

    def view(self, a: Atom, shape: tuple[int, ...]) -> Atom:
        """A view of a value."""
        key = base, _ = self.base(a), shape
        if key not in self.views:
            self.views[key] = a if a.aval.shape == shape else Var(a.aval.with_shape(shape))
            self.bases[self.views[key]] = base
        return self.views[key]

    def operands(self, e: Eqn) -> list[Atom]:
        """The operands of an equation, with as many axes as an elementwise one has."""
        ndim = e.outvars[0].aval.ndim if isinstance(e.primitive.kernel, Pointwise) else 0
        return [self.of_rank(a, ndim) for a in e.invars]

    def of_rank(self, a: Atom, ndim: int = 0) -> Atom:
        """A value with at least so many axes, unless it is a number."""
        shape = a.aval.shape
        return self.view(a, (1,) * (ndim - len(shape)) + shape) if shape and isinstance(a, Var) else a

    def sum_before(self, e: Eqn, seen: set[Eqn]) -> Mirror | None:
        """An earlier sum that equals this one, up to a sign."""
        axes = e.params["axes"]
        for i, j in _pairs(e):
            mirror = self.of(self.of_rank(e.invars[0]), i, j)
            if mirror is not None:
                params = {**e.params, "axes": tuple(sorted({*axes, j} - {i}))}
                twin = self.known.get(_key(e, [mirror.value], params))
                if twin in seen:
                    return mirror._replace(value=twin.outvars[0])
        return None

    def own_sign(self, a: Atom, i: int, j: int) -> int | None:
        """The sign between a value and itself with two axes exchanged; None if they differ in more."""
        a = self.of_rank(a)
        mirror = self.of(a, i, j)
        return mirror.sign or 1 if mirror is not None and mirror.value is a else None

    def of(self, a: Atom, i: int, j: int, depth: int = 0) -> Mirror | None:
        """The value that equals `a` with axes `i` and `j` exchanged, if there is one."""
        shape = a.aval.shape
        if is_zero(a):
            return Mirror(a, 0)
        if len(shape) < 2 or shape[i] == shape[j] == 1:
            return Mirror(a, 1)
        key = (a, min(i, j), max(i, j))
        if key not in self.mirrors:
            self.mirrors[key] = None if depth > _DEEPEST else self._of_view(a, key[1], key[2], depth + 1)
        return self.mirrors[key]

    def _of_view(self, a: Atom, i: int, j: int, depth: int) -> Mirror | None:
        shape, base = a.aval.shape, self.base(a)
        if 1 in (shape[i], shape[j]):
            e = self.producer.get(a) if isinstance(a, Var) and base is a else None
            found = None if e is None else self._of_result(e, i, j, depth)
            if found is None and all(n == 1 for n in shape[i + 1 : j]):
                # an axis of extent 1 moves past others freely
                return Mirror(self.view(a, _exchanged(shape, i, j)), 1)
            return found
        if base is not a:
            long = [d for d, n in enumerate(base.aval.shape) if n != 1]
            places = [long[sum(n != 1 for n in shape[:d])] for d in (i, j)]
            inner = self.of(base, places[0], places[1], depth)
            return inner and inner._replace(value=self.view(inner.value, _exchanged(shape, i, j)))
        e = self.producer.get(a) if isinstance(a, Var) else None
        return None if e is None else self._of_result(e, i, j, depth)

    def _of_result(self, e: Eqn, i: int, j: int, depth: int) -> Mirror | None:
        prim = e.primitive
        if len(e.outvars) != 1 or not e.effects.movable:
            return None
        if isinstance(prim.kernel, Pointwise):
            return self._of_elements(e, i, j, depth)
        if prim is broadcast_in_dim_p:
            return self._of_broadcast(e, i, j, depth)
        if prim is iota_p:
            shape = _exchanged(e.params["shape"], i, j)
            along = {i: j, j: i}.get(e.params["dimension"], e.params["dimension"])
            return self._named(e, e.invars, {**e.params, "shape": shape, "dimension": along})
        if prim is reduce_sum_p:
            remaining = [d for d in range(e.invars[0].aval.ndim) if d not in e.params["axes"]]
            inner = self.of(self.of_rank(e.invars[0]), remaining[i], remaining[j], depth)
            return inner and self._named(e, [inner.value], e.params, inner.sign, inner.exact)
        return None

    def _of_elements(self, e: Eqn, i: int, j: int, depth: int) -> Mirror | None:
        inner = [m for a in self.operands(e) if (m := self.of(a, i, j, depth)) is not None]
        if len(inner) < len(e.invars):
            return None
        sign = sign_of(e, [m.sign for m in inner])
        exact = exactness_of(e, inner)
        if sign is None or exact is None:
            return None
        operands = [m.value for m in inner]
        same = self._named(e, operands, e.params, sign, exact)
        if same is None and e.primitive.commutes:
            same = self._named(e, operands[::-1], e.params, sign, exact)
        if same is None and e.primitive is sub_p:  # a - b == -(b - a), but for zeros
            same = self._named(e, operands[::-1], e.params, -sign, is_integer(e.outvars[0]))
        return same

    def _of_broadcast(self, e: Eqn, i: int, j: int, depth: int) -> Mirror | None:
        x, axes, shape = self.of_rank(e.invars[0]), e.params["broadcast_dimensions"], e.params["shape"]
        if i in axes and j in axes:
            inner = self.of(x, axes.index(i), axes.index(j), depth)
            params = {**e.params, "shape": _exchanged(shape, i, j)}
            return inner and self._named(e, [inner.value], params, inner.sign, inner.exact)
        moved = tuple([{i: j, j: i}.get(d, d) for d in axes])
        params = {**e.params, "shape": _exchanged(shape, i, j), "broadcast_dimensions": moved}
        return self._named(e, [x], params, 0 if is_zero(x) else 1)

    def _named(
        self, e: Eqn, operands: Sequence[Atom], params: Params, sign: int = 1, exact: bool = True
    ) -> Mirror | None:
        """The result of the equation with these operands and parameters, if the program computes it."""
        twin = self.known.get(_key(e, operands, params))
        return None if twin is None else Mirror(self.of_rank(twin.outvars[0]), sign, exact)


def _without_ones(a: Atom) -> tuple[int, ...]:
    return tuple([n for n in a.aval.shape if n != 1])


def _key(e: Eqn, operands: Sequence[Atom], params: Params) -> Any:
    return equation_key(e if params is e.params else e.replace(params=params), operands)
