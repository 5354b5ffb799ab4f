"""Fuse roots into loop nests: which of them share loops, and how little memory each needs.

The result is a tree of loops, with the roots that are evaluated in them. Each root starts as a chain of loops,
and is merged from the outside in, loop by loop, into an earlier nest if that is correct and shares something. Two loops
may be merged if what the second root reads of the first is read only in the iteration that computes it. So softmax runs
row by row (maximum, exponentials, sum, division), and stores one row of exponentials.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from ....core.ir import Var
from ....runtime.config import config
from ....runtime.passes import FUSION
from ....runtime.records import NamedTuple, dataclass
from .materialize import LARGEST, MOST_ARRAYS, Root, Roots
from .order import overwritten

#: The elements of an array for which a nest waits, and the most nests of a kernel that are looked at for that.
LARGE, MOST_REORDERED = 1 << 15, 500


class PairFold(NamedTuple):
    """A fold over pairs, in two loops inside `depth` others, whose elements have mirrors with this sign.

    `kept` is the axis of these two that its value has, too: a sum of rows or of columns; None for a total.
    """

    sign: int
    depth: int
    kept: int | None


@dataclass(eq=False)
class Loop:
    """A loop of `extent` iterations; the folds in `folds` start before it and end with it.

    `first` is the number of its first root, `arrays` are what the roots read and are. If it has `mirrors`, its only
    item is another loop of the same extent, and its nest need only visit half of the pairs of iterations (see `pairs`).
    """

    extent: int
    first: int
    body: list[Loop | Root] = field(default_factory=list)
    folds: list[Root] = field(default_factory=list)
    members: dict[Root, None] = field(default_factory=dict)
    reads: set[Var] = field(default_factory=set)
    arrays: set[Var] = field(default_factory=set)
    weight: int = 0
    mirrors: dict[Root, PairFold] = field(default_factory=dict)

    def rounds(self) -> int:
        """How often the innermost loop of the nest runs."""
        return self.extent * max([item.rounds() for item in self.body if isinstance(item, Loop)], default=1)


@dataclass(eq=False)
class Fusion:
    """The nests of a kernel.

    Attributes
    ----------
    body : list of Loop and Root
        In execution order. A root in a body is evaluated there.
    stored_axes : dict of Var to tuple of int
        For each fused root, the axes of its value that its buffer has; None if it lives in a register.
    paths : dict of Root to list of Loop
        The loops around each root, outermost first.
    """

    body: list[Loop | Root]
    stored_axes: dict[Var, tuple[int, ...] | None]
    paths: dict[Root, list[Loop]]

    def is_independent(self, loop: Loop, depth: int) -> bool:
        """Whether no iteration of a loop, inside `depth` others, reads or overwrites what another one writes.

        Fused roots are read in the iteration that computes them, so it suffices that each writes different elements. A
        value folded along the loop does not, nor a value stored without the loop's axis and reused.
        """
        for root in loop.members:
            axis, stored_axes = root.loops[depth], self.stored_axes[root.var]
            if not any(
                along == axis and (stored_axes is None or a in stored_axes)
                for a, along in enumerate(root.axes)
            ):
                return False
        return True


def fuse(roots: Roots) -> Fusion:
    """Merge the roots' loops into nests, and decide how much of its values each nest must store."""
    tree = _LoopTree()
    for root in _numbers_first(roots):
        tree.place(tree.body, 0, root)
    return Fusion(_after_readers(tree.body, roots), stored_axes_of(roots, tree.paths), tree.paths)


def _after_readers(body: list[Loop | Root], roots: Roots) -> list[Loop | Root]:
    """The items of a body, with some loops behind all items that need not wait for them.

    A loop stands where its first root was, although roots that joined it may compute large arrays that are needed much
    later. If it reads a large array that other items read later, it is better placed behind these, where its arrays
    may have the memory of what is not read any more. Not if more memory had to be kept for it.
    """
    items = list(body)
    if len(items) > MOST_REORDERED or not config.runs(FUSION):
        return items
    for loop in body[::-1]:
        if isinstance(loop, Loop) and len(loop.members) > 1 and all(r.kind == "map" for r in loop.members):
            start = items.index(loop)
            end = _first_after(items, start)
            later = {v for item in items[start + 1 : end] for v in _read_by(item)}
            others = later.union(*[_read_by(item) for item in (*items[:start], *items[end:])])
            shared = any(v.aval.size >= LARGE for v in loop.reads.intersection(later) - roots.inputs)
            kept = sum(v.aval.size for v in loop.reads - others - roots.inputs)
            if shared and sum(root.var.aval.size for root in loop.members) > kept:
                items.insert(end - 1, items.pop(start))
    return items


def _first_after(items: list[Loop | Root], start: int) -> int:
    """The number of the first item that must stay behind the one at `start`."""
    made = {root.var for root in members_of(items[start])}
    if any(map(_is_fixed, members_of(items[start]))):
        return start + 1
    for place in range(start + 1, len(items)):
        if not made.isdisjoint(_read_by(items[place])) or any(map(_is_fixed, members_of(items[place]))):
            return place
    return len(items)


def _is_fixed(root: Root) -> bool:
    """Whether a root may raise, has to wait for a barrier, or overwrites an operand."""
    writes = root.kind == "block" and root.eqn is not None and bool(overwritten(root.eqn))
    return _may_raise(root) or root.after >= 0 or writes


def members_of(item: Loop | Root) -> Iterable[Root]:
    """The roots in an item of a body."""
    return item.members if isinstance(item, Loop) else (item,)


def _read_by(item: Loop | Root) -> set[Var]:
    return item.reads if isinstance(item, Loop) else {v for v, _ in item.reads}


def _numbers_first(roots: Roots) -> list[Root]:
    """The roots, first the numbers that follow from inputs alone: loops that read them can join any loop before.

    Otherwise the powers in an Adam step would come between the loop of its moments and that of its parameters.
    """
    early: dict[Var, Root] = {}
    for root in roots.roots:
        is_number = root.kind == "map" and not root.loops and root.after < 0 and not _may_raise(root)
        if is_number and all(v in early or v in roots.inputs for v, _ in root.reads):
            early[root.var] = root
    return [*early.values(), *[root for root in roots.roots if root.var not in early]]


def _may_raise(root: Root) -> bool:
    return root.eqn is not None and root.eqn.effects.may_raise


def arrays_of(root: Root) -> set[Var]:
    """What a root reads, and its value."""
    return {root.var, *[v for v, _ in root.reads]}


class _LoopTree:
    def __init__(self) -> None:
        self.body: list[Loop | Root] = []
        self.roots: dict[Var, Root] = {}
        self.paths: dict[Root, list[Loop]] = {}
        self.positions: dict[Loop | Root, int] = {}  # of items in their bodies
        self.readers: dict[tuple[int, Var], list[Loop]] = {}  # the loops in a body that read a value

    def place(self, body: list[Loop | Root], depth: int, root: Root) -> None:
        """Insert a root into a body at loop depth `depth`."""
        if depth == 0:
            self.paths[root] = []
            for v in root.eqn.outvars if root.kind == "block" and root.eqn else [root.var]:
                self.roots[v] = root
        if depth == len(root.loops):
            self.append(body, root)
            return
        loop = self._shared(body, depth, root)
        if loop is None:
            loop = Loop(root.space[root.loops[depth]], root.number)
            self.append(body, loop)
        loop.members[root] = None
        for v, _ in root.reads:
            if v not in loop.reads:
                loop.reads.add(v)
                self.readers.setdefault((id(body), v), []).append(loop)
        loop.arrays.update(arrays_of(root))
        loop.weight += root.weight
        self.paths[root].append(loop)
        if root.kind == "fold" and depth == root.depth:
            loop.folds.append(root)
        self.place(loop.body, depth + 1, root)

    def append(self, body: list[Loop | Root], item: Loop | Root) -> None:
        """Append an item to a body."""
        self.positions[item] = len(body)
        body.append(item)

    def _shared(self, body: list[Loop | Root], depth: int, root: Root) -> Loop | None:
        """The last loop that the root may join: the root must not read anything after it.

        Candidates are the items that read what the root reads, or compute it; the others, possibly thousands, are
        skipped.
        """
        if not config.runs(FUSION):
            return None
        parent = self.paths[root][depth - 1] if depth else None
        candidates: dict[Loop, None] = {}
        last = -1
        for v, index in root.reads:
            if root.loops[depth] in index:
                candidates.update(dict.fromkeys(self.readers.get((id(body), v), ())))
            needed = self.roots.get(v)
            if needed is None or needed is root:
                continue
            path = self.paths[needed]
            if depth and (len(path) < depth or path[depth - 1] is not parent):
                continue
            item: Loop | Root = path[depth] if len(path) > depth else needed
            last = max(last, self.positions[item])
            if isinstance(item, Loop):
                candidates[item] = None
        extent = root.space[root.loops[depth]]
        # The latest first, which is closest to what the root reads. In a loop before `last` the root would run too
        # early: an item that it depends on comes later.
        for loop in sorted(candidates, key=self.positions.__getitem__, reverse=True):
            if self.positions[loop] < last:
                return None
            if loop.extent == extent and self._may_join(loop, depth, root):
                return loop
        return None

    def _may_join(self, loop: Loop, depth: int, root: Root) -> bool:
        if loop.weight + root.weight > LARGEST or loop.first <= root.after:
            return False
        if (
            len(loop.arrays) + len(root.reads) >= MOST_ARRAYS
            and len(loop.arrays | arrays_of(root)) > MOST_ARRAYS
        ):
            return False
        shares = False
        for v, index in root.reads:
            # A value constant along the loop, such as a number shared by a thousand updates, saves no memory traffic.
            shares = shares or (v in loop.reads and root.loops[depth] in index)
            other = self.roots.get(v)
            if other in loop.members:
                shares = True
                if other.depth <= depth or other.kind not in ("map", "fold"):
                    return False
                axis = other.axis_of_loop(depth)
                if axis is None or index[axis] != root.loops[depth]:
                    return False
        return shares


def stored_axes_of(roots: Roots, paths: dict[Root, list[Loop]]) -> dict[Var, tuple[int, ...] | None]:
    """The axes that the buffer of each root needs: none along loops shared with all its readers."""
    shared = {r: r.depth for r in roots.roots if r.kind in ("map", "fold")}
    by_var = {r.var: r for r in shared}
    for reader in roots.roots:
        for v, _ in reader.reads:
            root = by_var.get(v)
            if root is not None:
                common = 0
                for a, b in zip(paths[root], paths[reader]):
                    if a is not b:
                        break
                    common += 1
                shared[root] = min(shared[root], common)
    axes_of: dict[Var, tuple[int, ...] | None] = {}
    for root, depth in shared.items():
        axes: tuple[int, ...] | None = tuple(range(root.var.aval.ndim))
        if root.var not in roots.pinned:
            dropped = {root.axis_of_loop(d) for d in range(depth)}
            axes = tuple(a for a, n in enumerate(root.var.aval.shape) if n != 1 and a not in dropped)
            in_register = not axes and depth == root.depth
            axes = None if in_register else axes
        axes_of[root.var] = axes
    return axes_of
