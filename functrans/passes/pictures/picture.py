"""What can be drawn, drawn: the picture of a program as SVG, as a graph for Graphviz, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, Protocol

from ...core.ir import Eqn, Jaxpr
from ...errors import ArgumentValueError, JaxprError
from ...runtime.records import NamedTuple
from .dot import write_dot
from .graph import Graph
from .groups import count
from .layout import place
from .program import graph_of
from .svg import write_svg

#: Longer programs are folded in a notebook.
OPEN = 60


class Drawn(NamedTuple):
    """A program, with the number of the kernel that computes an equation; -1 for a host call."""

    jaxpr: Jaxpr
    kernels: Mapping[Eqn, int] | None = None


class Drawable(Protocol):
    """What has a program with kernels: a lowered or a compiled function."""

    def drawn(self) -> tuple[Jaxpr, Mapping[Eqn, int]]:
        """The program, and the number of each equation's kernel, as `Drawn` has them."""
        ...


def drawn_of(what: str, x: Any) -> Drawn:
    """The program of an argument; raises `JaxprError` if it has none."""
    if isinstance(x, Jaxpr):
        return Drawn(x)
    parts = getattr(x, "drawn", None)
    if not callable(parts):
        raise JaxprError(
            f"{what}: expected a Jaxpr, or a lowered or compiled function, got {str(x)[:60]!r} of type "
            f"{type(x).__name__}. functrans.ir.trace makes a Jaxpr of a function"
        )
    return Drawn(*parts())


def graph_with_legend(x: Drawn) -> tuple[Graph, list[tuple[str, int]]]:
    """The graph of a program, and what the colours of its kernels mean."""
    legend: list[tuple[str, int]] = []
    if x.kernels:
        kernels = sorted({n for n in x.kernels.values() if n >= 0})
        legend = [(f"kernel {n + 1}", n) for n in kernels]
        if -1 in x.kernels.values():
            legend.append(("host call", -1))
    return graph_of(x.jaxpr, x.kernels), legend


def svg_of(x: Drawn) -> str:
    """The picture of a program."""
    graph, legend = graph_with_legend(x)
    place(graph)
    return write_svg(graph, x.jaxpr.name, legend)


def dot_of(x: Drawn) -> str:
    """The graph of a program for Graphviz."""
    graph, legend = graph_with_legend(x)
    return write_dot(graph, x.jaxpr.name, legend)


def write(what: str, path: Any, svg: Any, dot: Any) -> None:
    """Write the result of one of two functions to a file, by the ending of its name."""
    try:
        target = Path(path)
    except TypeError:
        raise ArgumentValueError(
            f"{what}: path must be a str or a path, got {path!r} of type {type(path).__name__}"
        ) from None
    text = {".svg": svg, ".dot": dot}.get(target.suffix)
    if text is None:
        raise ArgumentValueError(
            f"{what}: path {str(path)!r} must end with .svg, for a picture, or with .dot, for Graphviz"
        )
    target.write_text(text(), encoding="utf-8")


def html_of(x: Drawn, text: str = "") -> str:
    """What a notebook shows: the picture, and the text of the program below; long ones are folded."""
    size = count(x.jaxpr)
    summary = f"<code>{escape(x.jaxpr.name)}</code>: {size} equation{'s' * (size != 1)}"
    return folded(summary, scrolled(svg_of(x)), size <= OPEN) + folded(
        "text", f"<pre>{escape(text or str(x.jaxpr))}</pre>", False
    )


def folded(summary: str, content: str, is_open: bool) -> str:
    """HTML that opens and closes with a click on its summary."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>{content}</details>"


def scrolled(content: str) -> str:
    """HTML in a box that scrolls if it is large."""
    return f'<div style="overflow:auto;max-height:640px">{content}</div>'
