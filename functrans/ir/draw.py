"""`to_svg`, `to_dot`, `draw`: pictures of programs for users."""

from __future__ import annotations

from os import PathLike

from ..core import Jaxpr, boundary
from ..passes.pictures.picture import Drawable, dot_of, drawn_of, svg_of, write


@boundary
def to_svg(jaxpr: Jaxpr | Drawable) -> str:
    """Draw a program as SVG.

    From top to bottom: each equation is a box with its primitive, the types of its results and the user's line, each
    arrow has the size of its value. Bodies of loops, branches and calls are frames. What may raise, or calls the host,
    says so. The mouse over a box shows the equation. Colours suit light and dark pages.

    Parameters
    ----------
    jaxpr : Jaxpr, or what ``jit(f).lower(...)`` returns or its ``compile()``
        In a lowered function, the colours are those of the kernels.

    Returns
    -------
    str
        Equal programs have equal texts, in any process.

    Raises
    ------
    JaxprError
        If the argument is none of these.

    Notes
    -----
    A program of more than 200 equations, those of bodies included, is drawn with fewer boxes: consecutive equations of
    one line, or of one function, become one.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> picture = ir.to_svg(ir.trace(lambda x: np.sin(x) * 2.0, np.ones(3)))
    >>> picture[:4], "24 B" in picture
    ('<svg', True)
    """
    return svg_of(drawn_of("to_svg", jaxpr))


@boundary
def to_dot(jaxpr: Jaxpr | Drawable) -> str:
    """Write a program as a graph for Graphviz: the same boxes, arrows and frames as `to_svg` draws.

    Parameters
    ----------
    jaxpr : Jaxpr, or what ``jit(f).lower(...)`` returns or its ``compile()``

    Returns
    -------
    str

    Raises
    ------
    JaxprError
        If the argument is none of these.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> print(ir.to_dot(ir.trace(lambda x: x + x, 1.0)).splitlines()[0])
    digraph "<lambda>" {
    """
    return dot_of(drawn_of("to_dot", jaxpr))


@boundary
def draw(jaxpr: Jaxpr | Drawable, path: str | PathLike[str]) -> None:
    """Write the picture of a program to a file.

    Parameters
    ----------
    jaxpr : Jaxpr, or what ``jit(f).lower(...)`` returns or its ``compile()``
        In a lowered function, the colours are those of the kernels.
    path : str or path
        Its ending decides the form: ``.svg`` for a picture, see `to_svg`; ``.dot`` for Graphviz.

    Raises
    ------
    JaxprError
        If the first argument is none of these.
    ArgumentValueError
        If the name of the file ends otherwise.

    Examples
    --------
    >>> import numpy as np, functrans as ft, tempfile, os
    >>> from functrans import ir
    >>> lowered = ft.jit(lambda x: np.exp(x).sum()).lower(np.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ir.draw(lowered, os.path.join(folder, "program.svg"))
    """
    drawn = drawn_of("draw", jaxpr)
    write("draw", path, lambda: svg_of(drawn), lambda: dot_of(drawn))
