"""Control flow of a jitted function: its loops, which variables are live where, which arrays a region writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...runtime.context import cached_property
from ...runtime.private.numba_names import ir, types
from ..numba_parts import NumbaType, Statement

#: Where a path ends that returns or raises.
END = -1
#: The name under which the result is kept.
RESULT = "@result"

Stops = frozenset[int]
#: Functions and methods whose result may share memory with their first argument.
_VIEWS = """asarray ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d broadcast_to diagonal
expand_dims flip fliplr flipud ravel reshape rot90 squeeze swapaxes transpose view"""
VIEWS = frozenset(_VIEWS.split())
#: Methods that write to their array.
WRITERS = frozenset({"fill", "sort", "put", "partition", "itemset"})


class ControlFlow:
    """Control flow and data flow of the blocks of one function."""

    def __init__(self, blocks: dict[int, Any], typemap: dict[str, Any]) -> None:
        self.blocks = blocks
        self.typemap = typemap
        self.entry = min(blocks)
        self.successors = {label: _targets(block) for label, block in blocks.items()}
        self.order = {label: k for k, label in enumerate(self._reverse_postorder())}
        self.order[END] = len(self.order)

    def _reverse_postorder(self) -> list[int]:
        done: list[int] = []
        seen = {self.entry}
        stack = [(self.entry, iter(self.successors[self.entry]))]
        while stack:
            label, rest = stack[-1]
            following = next((s for s in rest if s not in seen and s != END), None)
            if following is None:
                done.append(label)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(self.successors[following])))
        return done[::-1]

    @cached_property
    def loops(self) -> dict[int, Stops]:
        """The blocks of each loop, by the label of its first block."""
        loops: dict[int, set[int]] = {}
        sources: dict[int, list[int]] = {}
        for label, targets in self.successors.items():
            for target in targets:
                sources.setdefault(target, []).append(label)
        for label, targets in self.successors.items():
            if label not in self.order:
                continue
            for target in targets:
                if target != END and self.order[target] <= self.order[label]:
                    body = loops.setdefault(target, {target})
                    todo = [label]
                    while todo:
                        block = todo.pop()
                        if block not in body:
                            body.add(block)
                            todo += [s for s in sources.get(block, ()) if s in self.order]
        return {label: frozenset(body) for label, body in loops.items()}

    def exits(self, header: int) -> Stops:
        """The blocks after a loop, where its exits lead."""
        body = self.loops[header]
        return frozenset([t for b in body for t in self.successors[b] if t not in body])

    def is_counted(self, header: int) -> bool:
        """Whether a loop ends only where its iterator ends."""
        body = self.loops[header]
        leaving = [b for b in body for t in self.successors[b] if t not in body and not self.only_raises(t)]
        return self.iterated(header) is not None and leaving == [header]

    def iterated(self, header: int) -> str | None:
        """The iterator that a ``for`` loop asks for its next value; None for another loop."""
        for statement in self.blocks[header].body:
            value = getattr(statement, "value", None)
            if isinstance(value, ir.Expr) and value.op == "iternext":
                return value.value.name
        return None

    def only_raises(self, label: int) -> bool:
        """Whether every path from a block raises at once."""
        return label != END and isinstance(
            self.blocks[label].terminator, (ir.Raise, ir.StaticRaise, ir.DynamicRaise)
        )

    def reachable(self, start: int, stops: Stops) -> frozenset[int]:
        """The blocks that a path from `start` may enter before it meets one of `stops`."""
        seen: set[int] = set()
        todo = [start]
        while todo:
            label = todo.pop()
            if label not in seen and label not in stops and label != END:
                seen.add(label)
                todo += self.successors[label]
        return frozenset(seen)

    @cached_property
    def live(self) -> dict[int, frozenset[str]]:
        """The variables that may be read after a block is entered, before they are assigned."""
        uses: dict[int, set[str]] = {}
        assigned: dict[int, set[str]] = {}
        for label, block in self.blocks.items():
            read, written = uses.setdefault(label, set()), assigned.setdefault(label, set())
            for statement in block.body:
                if isinstance(statement, ir.Del):
                    continue
                target = statement.target.name if isinstance(statement, ir.Assign) else None
                names = _reads(statement)
                read.update([n for n in names if n not in written])
                if target is not None:
                    written.add(target)
        live: dict[int, frozenset[str]] = {label: frozenset() for label in self.blocks}
        live[END] = frozenset({RESULT})
        changed = True
        while changed:
            changed = False
            for label in sorted(self.order, key=self.order.__getitem__, reverse=True):
                if label == END:
                    continue
                after = frozenset().union(*[live[t] for t in self.successors[label]])
                now = frozenset(uses[label]) | (after - assigned[label])
                if now != live[label]:
                    live[label], changed = now, True
        return live

    def assigned(self, blocks: Iterable[int]) -> frozenset[str]:
        """The variables that some blocks assign."""
        names = {s.target.name for b in blocks for s in self.blocks[b].body if isinstance(s, ir.Assign)}
        if any(END in self.successors[b] for b in blocks):
            names.add(RESULT)
        return frozenset(names)

    def written(self, blocks: Iterable[int]) -> frozenset[str]:
        """The variables whose arrays some blocks may write, by any name that may mean the same memory."""
        names: set[str] = set()
        for block in blocks:
            for statement in self.blocks[block].body:
                for name in self._writes(statement):
                    names |= self._aliases.get(name, {name})
        return frozenset(names)

    def _writes(self, statement: Statement) -> Iterator[str]:
        if isinstance(statement, (ir.SetItem, ir.StaticSetItem)):
            yield statement.target.name
        value = getattr(statement, "value", None)
        if not (isinstance(statement, ir.Assign) and isinstance(value, ir.Expr)):
            return
        if value.op == "inplace_binop" and self._holds_array(value.lhs.name):
            yield value.lhs.name
        if value.op == "getattr" and value.attr in WRITERS:
            yield value.value.name
        if value.op == "call" and isinstance(self.typemap[value.func.name], types.Dispatcher):
            yield from [v.name for v in _arguments(value) if self._holds_array(v.name)]
        if value.op == "call" and "copyto" in str(self.typemap[value.func.name]):
            yield value.args[0].name

    def _holds_array(self, name: str) -> bool:
        return holds_array(self.typemap.get(name))

    @cached_property
    def _aliases(self) -> dict[str, set[str]]:
        """Variables that may share memory, as a flow-insensitive partition."""
        group: dict[str, set[str]] = {}

        def join(a: str, b: str) -> None:
            one, two = group.setdefault(a, {a}), group.setdefault(b, {b})
            if one is not two:
                one |= two
                for name in two:
                    group[name] = one

        for block in self.blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.Assign):
                    for name in self._sources(statement.value):
                        join(statement.target.name, name)
        return group

    def _sources(self, value: Any) -> Iterator[str]:
        if isinstance(value, ir.Var):
            yield value.name
        elif isinstance(value, ir.Expr):
            if value.op in (
                "getitem",
                "static_getitem",
                "getattr",
                "cast",
                "getiter",
                "iternext",
                "pair_first",
            ):
                yield value.value.name
            elif value.op in ("build_tuple", "exhaust_iter"):
                yield from [v.name for v in value.list_vars()]
            elif value.op == "inplace_binop":
                yield value.lhs.name
            elif value.op == "call":
                kind = self.typemap[value.func.name]
                text = getattr(kind, "typing_key", None)
                name = text[1] if isinstance(text, tuple) else getattr(text, "__name__", None)
                if (
                    isinstance(kind, types.Dispatcher)
                    or name in VIEWS
                    or name in ("enumerate", "zip", "tuple")
                ):
                    yield value.func.name
                    yield from [v.name for v in _arguments(value)]


def holds_array(kind: NumbaType) -> bool:
    """Whether a value of a Numba type is or contains an array."""
    if isinstance(kind, types.BaseTuple):
        return any(map(holds_array, kind.types))
    return isinstance(kind, types.Array)


def _arguments(call: Any) -> list[Any]:
    return [*call.args, *[v for _, v in call.kws], *([call.vararg] if call.vararg else [])]


def _targets(block: Any) -> tuple[int, ...]:
    last = block.terminator
    if isinstance(last, ir.Jump):
        return (last.target,)
    if isinstance(last, ir.Branch):
        return (last.truebr, last.falsebr)
    return (END,)


def _reads(statement: Statement) -> list[str]:
    if isinstance(statement, ir.Assign):
        value = statement.value
        if isinstance(value, ir.Var):
            return [value.name]
        return [v.name for v in value.list_vars()] if isinstance(value, ir.Expr) else []
    return [v.name for v in statement.list_vars()]
