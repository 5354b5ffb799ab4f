"""Nests over all pairs ``(i, j)`` of one axis that need only visit half of them.

In an energy of pairs, what is summed over ``i`` and ``j`` is symmetric, and its derivative, which is summed over ``j``
alone, antisymmetric. So an element at ``(i, j)`` also tells what its mirror at ``(j, i)`` adds, and where. This module
finds such nests after fusion; `pair_nests` writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ...jaxpr.mirrored_sums import Mirrors
from .fuse import Fusion, Loop, PairFold, arrays_of, members_of, stored_axes_of
from .materialize import Root, Roots, fold_of

#: Axes with fewer elements are left alone.
LEAST = 256
#: A value that leaves a nest of pairs has at most so many elements in each row.
WIDE = 64


def with_pairs(roots: Roots, fusion: Fusion) -> Fusion:
    """Mark the loops over pairs of which half suffice (`Loop.mirrors`); each gets a nest of its own."""
    pairs = _Pairs(roots, fusion)
    pairs.body(fusion.body, 0)
    if not pairs.found:
        return fusion
    return Fusion(fusion.body, stored_axes_of(roots, fusion.paths), fusion.paths)


class _Pairs:
    def __init__(self, roots: Roots, fusion: Fusion):
        self.roots = roots
        self.fusion = fusion
        self.found = False
        self._mirrors: Mirrors | None = None

    @property
    def mirrors(self) -> Mirrors:
        """What is symmetric in the jaxpr."""
        if self._mirrors is None:
            self._mirrors = Mirrors(self.roots.jaxpr.eqns)
        return self._mirrors

    def body(self, body: list[Loop | Root], depth: int) -> None:
        """Look for pairs among the items of a body inside `depth` loops."""
        new: list[Loop | Root] = []
        for item in body:
            parts = self.parts(item, depth) if isinstance(item, Loop) else [item]
            for part in parts:
                if isinstance(part, Loop) and not part.mirrors:
                    self.body(part.body, depth + 1)
            new += parts
        body[:] = new

    def parts(self, loop: Loop, depth: int) -> list[Loop]:
        """A loop, or the loops that replace it: those over pairs, and what stands before, between and after these."""
        mirrors = {
            item: found
            for item in loop.body
            if isinstance(item, Loop) and item.extent == loop.extent >= LEAST
            if (found := self.mirrors_of(item, depth)) is not None
        }
        if not mirrors:
            return [loop]
        groups: list[list[Loop | Root]] = []
        for item in loop.body:
            if item in mirrors or not groups or groups[-1][0] in mirrors:
                groups.append([item])
            else:
                groups[-1].append(item)
        members = [dict.fromkeys(r for item in group for r in members_of(item)) for group in groups]
        if len(groups) > 1 and not self.is_apart(loop, members, depth):
            return [loop]
        self.found = True
        parts = [self.part(loop, group, roots, depth) for group, roots in zip(groups, members)]
        for part in parts:
            first = part.body[0]
            part.mirrors = mirrors.get(first, {}) if isinstance(first, Loop) else {}
        return parts

    def part(self, loop: Loop, body: list[Loop | Root], members: dict[Root, None], depth: int) -> Loop:
        """A loop over some items of a loop."""
        folds = [root for root in loop.folds if root in members]
        part = Loop(loop.extent, min(root.number for root in members), body, folds, members)
        for root in members:
            part.reads.update(v for v, _ in root.reads)
            part.arrays |= arrays_of(root)
            part.weight += root.weight
            self.fusion.paths[root][depth] = part
        return part

    def is_apart(self, loop: Loop, members: list[dict[Root, None]], depth: int) -> bool:
        """Whether what one part of a loop computes and another one reads is little."""
        part_of = {root: number for number, roots in enumerate(members) for root in roots}
        by_var = {root.var: root for root in part_of}
        for reader, number in part_of.items():
            for v, _ in reader.reads:
                root = by_var.get(v)
                if root is None or part_of[root] == number or v in self.roots.pinned:
                    continue
                outside = root.loops[:depth]
                size = prod(n for n, axis in zip(v.aval.shape, root.axes) if axis not in outside)
                if size > loop.extent * WIDE:
                    return False
        return True

    # --- whether --------------------------------------------------------------------------------------------

    def mirrors_of(self, inner: Loop, depth: int) -> dict[Root, PairFold] | None:
        """The folds of a loop inside another one over the same axis; None if half of it does not suffice."""
        sums = [root for root in inner.members if not self.is_private(root, depth)]
        if not sums or not all(_is_fold_of_pairs(root, depth) for root in sums):
            return None
        mirrors: dict[Root, PairFold] = {}
        for root in sums:
            sign = self.sign(root, depth)
            if sign is None:
                return None
            mirrors[root] = PairFold(sign, depth, _kept_axis(root, depth))
        return mirrors

    def is_private(self, root: Root, depth: int) -> bool:
        """Whether a value is only read in the iteration of both loops that computes it."""
        if root.kind not in ("map", "fold") or root.depth < depth + 2 or not _is_plain(root, depth):
            return False
        axes = self.fusion.stored_axes[root.var]
        if root.var in self.roots.pinned or root.var in self.roots.checked:
            return False
        return axes is None or not {root.axes[a] for a in axes} & set(root.loops[: depth + 2])

    def sign(self, root: Root, depth: int) -> int | None:
        """The sign between an element of a fold and its mirror; None if they differ in more."""
        eqn = root.eqn
        assert eqn is not None
        sign = self.mirrors.own_sign(eqn.invars[0], *root.loops[depth : depth + 2])
        return sign if sign == 1 or fold_of(eqn) == "sum" else None


def _is_plain(root: Root, depth: int) -> bool:
    """Whether a root neither fails nor treats some iterations of two loops in another way."""
    if root.eqn is None or root.eqn.effects.may_raise:
        return False
    return not any(root.cuts.get(axis) for axis in root.loops[depth : depth + 2])


def _is_fold_of_pairs(root: Root, depth: int) -> bool:
    """Whether a root is a fold over both loops, or over one of them for each iteration of the other."""
    if root.kind != "fold" or root.eqn is None or not _is_plain(root, depth):
        return False
    if fold_of(root.eqn) not in ("sum", "max", "min", "any", "all") or root.var.aval.dtype.kind not in "fiub":
        return False
    outer, inner = root.loops[depth : depth + 2]
    if outer in root.axes:
        return inner not in root.axes and root.depth == depth + 1
    return root.depth == depth if inner in root.axes else root.depth <= depth


def _kept_axis(root: Root, depth: int) -> int | None:
    """The axis of a fold's space, among those of two loops inside `depth` others, that its value has too."""
    return next((axis for axis in root.loops[depth : depth + 2] if axis in root.axes), None)


def folds_of_pairs(body: Iterable[Loop | Root]) -> dict[Root, PairFold]:
    """All folds over pairs of which half suffice."""
    found: dict[Root, PairFold] = {}
    for item in body:
        if isinstance(item, Loop):
            found.update(item.mirrors or folds_of_pairs(item.body))
    return found
