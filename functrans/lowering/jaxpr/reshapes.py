"""Move reshapes that merge axes to where they are free: to inputs, and to values that are in memory anyway."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ...core import Atom, Aval, Block, Eqn, Pointwise, Reduction, Var
from ...primitives.structure.linear import broadcast_in_dim_p, reshape_p


def raise_reshapes(eqns: list[Eqn], outvars: Iterable[Atom]) -> list[Eqn]:
    """Move reshapes above elementwise operations.

    ``reshape(f(x, y))`` becomes ``f(reshape(x), reshape(y))`` if nothing else reads ``f(x, y)``, each operand has its
    shape or is a scalar, and each is in memory (an input, the result of a block or a reduction) or is itself such a
    function. A reshape that only splits axes is an index map, and stays.
    """
    if not any(e.primitive is reshape_p for e in eqns):
        return eqns
    return _Raiser(eqns, outvars).done[::-1]


class _Raiser:
    """Visits the equations from last to first; reshapes wait for their operand's definition."""

    def __init__(self, eqns: list[Eqn], outvars: Iterable[Atom]):
        self.readers = Counter(a for e in eqns for a in set(e.invars))
        self.readers.update(outvars)
        self.in_memory = self._in_memory(eqns)
        self.waiting: dict[Atom, dict[tuple[int, ...], Var]] = {}
        self.done: list[Eqn] = []
        for eqn in reversed(eqns):
            self.visit(eqn)
        for a in list(self.waiting):
            self.settle(a)

    def _in_memory(self, eqns: list[Eqn]) -> dict[Atom, bool]:
        """For each defined value, whether a reshape of it is free or can move further up."""
        free_of: dict[Atom, bool] = {}
        for e in eqns:
            rule = e.primitive.kernel
            if isinstance(rule, (Block, Reduction)) or rule is None or e.primitive is reshape_p:
                free = True
            elif e.primitive is broadcast_in_dim_p:
                free = not e.invars[0].aval.shape
            else:
                whole = [a for a in e.invars if a.aval.shape]
                free = (
                    self.readers[e.outvars[0]] == 1
                    and is_elementwise(e)
                    and all(free_of.get(a, True) for a in whole)
                )
            free_of.update(dict.fromkeys(e.outvars, free))
        return free_of

    def ask(self, a: Atom, result: Var) -> Var:
        """The variable that will hold `a` in the shape of `result`."""
        return self.waiting.setdefault(a, {}).setdefault(result.aval.shape, result)

    def settle(self, a: Atom) -> None:
        """Place the pending reshapes of a value here."""
        for shape, r in self.waiting.pop(a, {}).items():
            self.done.append(Eqn(reshape_p, [a], [r], {"shape": shape}))

    def visit(self, eqn: Eqn) -> None:
        """Move the pending reshapes of this equation's result above it, or place them after it."""
        if not eqn.outvars:
            self.done.append(eqn)
            return
        out = eqn.outvars[0]
        merges = eqn.primitive is reshape_p and not reshape_inlines(eqn.invars[0].aval.shape, out.aval.shape)
        if merges and self.ask(eqn.invars[0], out) is out:
            self.settle(out)
            return
        waiting = self.waiting.get(out, {})
        if len(waiting) == 1 and self.readers[out] == 1 and is_elementwise(eqn) and self.in_memory[out]:
            ((shape, result),) = self.waiting.pop(out).items()
            invars = [self.ask(a, Var(Aval(shape, a.aval.dtype))) if a.aval.shape else a for a in eqn.invars]
            self.done.append(eqn.replace(invars=invars, outvars=[result]))
            return
        for v in eqn.outvars:
            self.settle(v)
        self.done.append(eqn)


def is_elementwise(eqn: Eqn) -> bool:
    """Whether an equation is elementwise, and broadcasts only scalars."""
    if type(eqn.primitive.kernel) is not Pointwise or not eqn.effects.movable:
        return False
    shape = eqn.outvars[0].aval.shape
    return len(shape) > 0 and all(a.aval.shape in ((), shape) for a in eqn.invars)


# --- the axes of a reshape ------------------------------------------------------------------------------------


def reshape_groups(source: tuple[int, ...], target: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The axes of both shapes, without those of size 1, in the smallest groups with equal products.

    The shapes must not contain a zero.
    """
    groups = []
    i = j = 0
    while i < len(source) or j < len(target):
        left, right = [i][: len(source) - i], [j][: len(target) - j]
        p = source[i] if left else 1
        q = target[j] if right else 1
        i, j = i + len(left), j + len(right)
        while p != q:
            if p < q:
                p, i = p * source[i], i + 1
                left.append(i - 1)
            else:
                q, j = q * target[j], j + 1
                right.append(j - 1)
        group = [a for a in left if source[a] != 1], [b for b in right if target[b] != 1]
        if group[0]:
            groups.append(group)
    return groups


def reshape_inlines(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an index of `target` gives one of `source` without division: no axes of `source` are merged."""
    return 0 not in source and all(len(left) == 1 for left, _ in reshape_groups(source, target))


def reshape_index(source: tuple[int, ...], target: tuple[int, ...], index: Sequence[Any]) -> list[Any]:
    """The index into `source` of the element at `index` of `target`, where `reshape_inlines` holds."""
    result: list[Any] = [0] * len(source)
    for left, right in reshape_groups(source, target):
        place = index[right[0]]
        for d in right[1:]:
            place = place * target[d] + index[d]
        result[left[0]] = place
    return result
