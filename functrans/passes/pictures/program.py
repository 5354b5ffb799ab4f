"""The graph of a program: a box for each equation, a frame for one with bodies."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.ir import Atom, Eqn, Jaxpr, JaxprPrinter, Literal, Var, subjaxprs
from ...core.kernel import Block, Indexed, Reduction, Reshape
from ...core.primitive import Effect
from ...errors.source import Source, at_line
from .graph import Graph, Node, Row
from .groups import BOXES, READABLE, count, runs, shares, size_of_bodies

#: The longest row, in letters.
LONGEST = 34
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_TAGS = {
    Effect.RAISE: "may raise",
    Effect.HOST: "host",
    Effect.HOOK: "hook",
    Effect.COLLECTIVE: "collective",
}


def graph_of(jaxpr: Jaxpr, tints: Mapping[Eqn, int] | None = None, dashed: Sequence[Eqn] = ()) -> Graph:
    """The graph of a program.

    Parameters
    ----------
    jaxpr : Jaxpr
    tints : mapping of Eqn to int, optional
        The number of the kernel that computes an equation; -1 for a host call.
    dashed : sequence of Eqn
        The equations that are drawn with dashes.
    """
    total = count(jaxpr)
    return _Drawing(tints, dashed).graph(jaxpr, total if total <= READABLE else BOXES)


def bytes_text(aval: Any) -> str:
    """The size of a value in memory, for people."""
    n = float(aval.size * getattr(aval.dtype, "itemsize", 8))
    for unit in _UNITS:
        if n < 1000 or unit == _UNITS[-1]:
            break
        n /= 1000
    return f"{n:.3g} {unit}" if n < 999.5 else f"{n:.0f} {unit}"


def shortened(text: str, most: int = LONGEST) -> str:
    """A text of at most so many letters."""
    return text if len(text) <= most else text[: most - 1] + "…"


class _Drawing:
    def __init__(self, tints: Mapping[Eqn, int] | None, dashed: Sequence[Eqn]):
        self.tints = tints
        self.dashed = frozenset(dashed)
        self.known: dict[Source, tuple[str, int, str, str]] = {}

    def source(self, eqn: Eqn) -> tuple[str, int, str, str] | None:
        """File, line, function and text of the user's line; to find them takes longer than to draw the box."""
        if eqn.source is None:
            return None
        parts = self.known.get(eqn.source)
        if parts is None:
            parts = self.known[eqn.source] = eqn.source.parts()
        return parts

    def tint(self, eqn: Eqn) -> int | None:
        return None if self.tints is None else self.tints.get(eqn)

    def graph(self, jaxpr: Jaxpr, boxes: int, name: str = "", inner: bool = False) -> Graph:
        """The graph of a program, of at most so many boxes for equations."""
        graph = Graph(name=name, inner=inner)
        names = JaxprPrinter(False)
        made: dict[Atom, tuple[Node, int]] = {}
        for kind, variables in (("const", jaxpr.constvars), ("input", jaxpr.invars)):
            for v in variables:
                node = Node(kind, [Row("type", names.binder(v))], outs=1, title=f"{kind} {names.binder(v)}")
                graph.nodes.append(node)
                made[v] = node, 0
                if kind == "input":
                    graph.inputs.append(node)
        divided = shares(jaxpr, boxes)
        waiting: Node | None = None
        parts = runs(jaxpr.eqns, divided.own, self.tint, self.source)
        # The number of the last run that reads a value.
        last: dict[Atom, int] = {a: i for i, run in enumerate(parts) for e in run for a in e.invars}
        last.update(dict.fromkeys(jaxpr.outvars, len(parts)))
        for i, run in enumerate(parts):
            read: list[Atom]
            if len(run) == 1:
                node = self.equation(run[0], names, divided.of_bodies.get(run[0], 0))
                read, written = list(run[0].invars), list(run[0].outvars)
            else:
                written = [v for e in run for v in e.outvars if last.get(v, -1) > i]
                node, read = self.group(run, names, len(written))
            graph.nodes.append(node)
            for slot, a in enumerate(read):
                self.connect(graph, made, names, a, node, slot)
            made.update({v: (node, port) for port, v in enumerate(written)})
            if any(e.effects.ordered for e in run):
                if waiting is not None:
                    graph.connect(waiting, 0, node, 0, kind="order")
                waiting = node
        for i, a in enumerate(jaxpr.outvars):
            text = names.binder(a) if type(a) is Var else names.atom(a)
            label = "return" if len(jaxpr.outvars) == 1 else f"return {i}"
            node = Node("output", [Row("type", shortened(f"{label} {text}"))], ins=1, title=f"{label} {text}")
            graph.nodes.append(node)
            graph.outputs.append(node)
            self.connect(graph, made, names, a, node, 0)
        return graph

    def connect(
        self,
        graph: Graph,
        made: Mapping[Atom, tuple[Node, int]],
        names: JaxprPrinter,
        a: Atom,
        node: Node,
        slot: int,
    ) -> None:
        if a in made:
            source, port = made[a]
            graph.connect(source, port, node, slot, bytes_text(a.aval), names.atom(a))

    def group(self, run: Sequence[Eqn], names: JaxprPrinter, written: int) -> tuple[Node, list[Atom]]:
        """The box of several equations, and what they read."""
        made = {v for e in run for v in e.outvars}
        read: dict[Atom, None] = dict.fromkeys(
            a for e in run for a in e.invars if type(a) is Var and a not in made
        )
        texts = [names.eqn(_bare(e), "") for e in run]
        title = "\n".join(shortened(text.splitlines()[0], 120) for text in texts[:20])
        node = Node("group", self.group_rows(run), len(read), max(written, 1), title)
        effects = Effect.NONE
        for e in run:
            effects |= e.effects
        tints = {self.tint(e) for e in run}
        node.tag, node.tint = _tag(effects), tints.pop() if len(tints) == 1 else None
        return node, list(read)

    def equation(self, e: Eqn, names: JaxprPrinter, boxes: int) -> Node:
        """The box of an equation, or its frame."""
        bodies = _named_bodies(e)
        size = size_of_bodies(e)
        opened = bool(bodies) and (boxes >= size or boxes >= 4)
        literals = [] if bodies else [_number(a) for a in e.invars if type(a) is Literal]
        first = shortened(" ".join([e.primitive.name, *literals, _params(e, names)]).strip())
        outs = [names.binder(v) for v in e.outvars]
        rows = [Row("name", first)]
        rows += [Row("type", text) for text in _in_lines(outs)]
        place = self.source(e)
        if place is not None:
            rows.append(Row("line", shortened(_short(place))))
        if bodies and not opened:
            rows.append(Row("line", f"{size} equations inside"))
        node = Node(
            _kind(e), rows, len(e.invars), max(len(e.outvars), 1), _title(e, names, place), _tag(e.effects)
        )
        node.tint = self.tint(e)
        if e in self.dashed:
            node.kind += " again"
        if opened:
            total = max(size, 1)
            node.parts = [
                self.graph(body, max(2, boxes * count(body) // total), name, inner=True)
                for name, body in bodies
            ]
        return node

    def group_rows(self, run: Sequence[Eqn]) -> list[Row]:
        """How many equations, of which primitives, at which lines."""
        names = Counter(e.primitive.name for e in run)
        most = sorted(names.items(), key=lambda pair: -pair[1])
        text = ", ".join(f"{n} {name}" for name, n in most[:3]) + (", …" if len(most) > 3 else "")
        rows = [Row("name", f"{len(run)} equations"), Row("type", shortened(text))]
        places = list(dict.fromkeys(_short(p) for e in (run[0], run[-1]) if (p := self.source(e))))
        return [*rows, Row("line", shortened(" – ".join(places)))] if places else rows


def _short(place: tuple[str, int, str, str]) -> str:
    return at_line(os.path.basename(place[0]), place[1])


def _in_lines(outs: list[str]) -> list[str]:
    """The types of results, two in a row, three rows at most."""
    pairs = [", ".join(outs[i : i + 2]) for i in range(0, len(outs), 2)]
    return [shortened(p) for p in pairs[:3]] + [f"… {len(outs) - 6} more"] * (len(pairs) > 3)


def _kind(e: Eqn) -> str:
    """The style of an equation's box."""
    rule = e.primitive.kernel
    if any(True for _ in subjaxprs(e.params)):
        return "frame"
    if e.effects.on_host:
        return "host"
    if isinstance(rule, Reduction):
        return "fold"
    if isinstance(rule, Indexed | Reshape) or e.primitive.moves_data:
        return "move"
    if isinstance(rule, Block):
        return "block"
    return "host" if rule is None else "eqn"


def _tag(effects: Effect) -> str:
    return ", ".join(text for effect, text in _TAGS.items() if effect in effects)


def _named_bodies(e: Eqn) -> list[tuple[str, Jaxpr]]:
    """The bodies of an equation, each with what it is, if there are several."""
    bodies: list[tuple[str, Jaxpr]] = []
    for key, value in e.params.items():
        if isinstance(value, Jaxpr):
            bodies.append((key.removesuffix("_jaxpr"), value))
        elif isinstance(value, tuple):
            stem = {"branches": "branch"}.get(key, key)
            bodies += [(f"{stem} {i}", v) for i, v in enumerate(value) if isinstance(v, Jaxpr)]
    return bodies if len(bodies) > 1 else [("", body) for _, body in bodies]


def _number(a: Literal) -> str:
    value = a.value
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _params(e: Eqn, names: JaxprPrinter) -> str:
    """The parameters that a box has room for."""
    texts = []
    for key, value in e.params.items():
        if value is None or value is False or isinstance(value, Jaxpr) or key.startswith("num_"):
            continue
        if isinstance(value, tuple) and any(isinstance(v, Jaxpr) for v in value):
            continue
        if isinstance(value, bool | int | float | str | tuple | np.dtype):
            text = f"{key}={names.param(value, '')}"
            if len(text) <= 22 and text not in ("unroll=1", "weak=True", "on_error=raise"):
                texts.append(text)
    return " ".join(texts)


def _bare(e: Eqn) -> Eqn:
    """An equation without its bodies, for its text."""
    if e.primitive.show is not None or not any(True for _ in subjaxprs(e.params)):
        return e
    params = {k: v for k, v in e.params.items() if not any(True for _ in subjaxprs({k: v}))}
    copy = object.__new__(Eqn)
    copy.primitive, copy.invars, copy.outvars = e.primitive, e.invars, e.outvars
    copy.params, copy.effects, copy.source = params, e.effects, e.source
    return copy


def _title(e: Eqn, names: JaxprPrinter, place: tuple[str, int, str, str] | None) -> str:
    """What shows when the mouse is over the box: the equation, and the user's line."""
    text = shortened(names.eqn(_bare(e), "").splitlines()[0], 300)
    if place is None:
        return text
    _, _, function, line = place
    return f"{text}\n{_short(place)} ({function})" + (f"\n    {line}" if line else "")
