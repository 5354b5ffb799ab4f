"""Patterns as users write them, and where they occur."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping, Sequence

import numpy as np

from ..control.bodies.enclosed import enclosed
from ..core import Eqn, Jaxpr, Primitive, RewriteError
from ..frontend.checked import checked
from ..passes.rewriter import EquationPattern, Hole, Matching, ResultOf, Rewriter
from .names import primitive

_NUMBERS = (bool, int, float, complex, np.generic)


class Any(Hole):
    """In a pattern: any value. Where the name occurs again in the pattern, the same value.

    Parameters
    ----------
    name : str
        The value's name in a match: ``m["x"]``.

    Examples
    --------
    >>> from functrans import ir
    >>> ir.Op("mul", ir.Any("x"), ir.Any("x"))
    mul(x, x)
    """

    __slots__ = ()

    def __init__(self, name: str):
        if not isinstance(name, str) or not name:
            raise RewriteError(f"Any: the name must be a non-empty string, got {name!r}")
        super().__init__(name)


class Op(EquationPattern):
    """In a pattern: an equation of a primitive, whose operands match.

    Parameters
    ----------
    name : str or Primitive
    *operands : Any, Op or number
        A number is that literal, or an array all of whose elements are it; 1 and 1.0 are the same, 0.0 and -0.0 are
        not. Operands of operations that commute match in either order. Without operands, any will do. Of an operation
        with several results, ``Op("svd", x)[1]`` is the second one.
    **params
        Values of parameters; others may have any value.

    Raises
    ------
    RewriteError
        If no primitive has this name, or it has no such parameter.

    Examples
    --------
    >>> from functrans import ir
    >>> ir.Op("reduce_sum", ir.Op("exp", ir.Any("x")), axes=(0,))
    reduce_sum(exp(x), axes=(0,))
    >>> ir.Op("reduce_sum", ir.Any("x"), axis=0)
    Traceback (most recent call last):
    ...
    functrans.errors.RewriteError: reduce_sum has no parameter 'axis': it has axes...
    """

    __slots__ = ()

    def __init__(self, name: str | Primitive, /, *operands: typing.Any, **params: typing.Any):
        prim = name if isinstance(name, Primitive) else primitive(name)
        super().__init__(
            prim,
            [_operand(prim, i, x) for i, x in enumerate(operands)],
            {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()},
        )
        known = _parameters(prim)
        unknown = [k for k in params if known is not None and k not in known]
        if unknown:
            has = f"it has {', '.join(known or ())}" if known else "it has none"
            raise RewriteError(f"{prim.name} has no parameter {unknown[0]!r}: {has}")

    def __getitem__(self, index: int) -> ResultOf:
        """The pattern of one result of an equation with several."""
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise RewriteError(f"{self}: the number of a result must be 0 or more, got {index!r}")
        return super().__getitem__(index)

    def __iter__(self) -> typing.NoReturn:
        raise TypeError(f"the pattern {self} has no known number of results: select them by [0], [1], ...")


def _operand(primitive: Primitive, i: int, x: typing.Any) -> typing.Any:
    if isinstance(x, np.ndarray) and not x.ndim:
        x = x[()]
    if isinstance(x, EquationPattern) and x.primitive.multiple_results:
        raise RewriteError(
            f"pattern of {primitive.name}: operand {i} is {x}, which has several results. Write {x}[0] for the first"
        )
    if not isinstance(x, (Hole, EquationPattern, ResultOf, *_NUMBERS)):
        raise RewriteError(
            f"pattern of {primitive.name}: operand {i} is {str(x)[:60]!r} of type {type(x).__name__}; expected Any, Op "
            "or a number"
        )
    return x.item() if isinstance(x, np.generic) else x


def _parameters(primitive: Primitive) -> list[str] | None:
    """The names of a primitive's parameters; None if it takes any."""
    try:
        declared = inspect.signature(primitive.abstract).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in declared):
        return None
    return [p.name for p in declared if p.kind is p.KEYWORD_ONLY]


class Match:
    """Where a pattern occurs.

    Attributes
    ----------
    eqns : list of Eqn
        The equations of the pattern, operands first; the last one is the root.
    params : dict
        The parameters of the root.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> program = ir.trace(lambda x: np.log(np.sum(np.exp(x), axis=0)), np.ones((3, 2)))
    >>> (m,) = ir.match(program, ir.Op("log", ir.Op("reduce_sum", ir.Op("exp", ir.Any("x")))))
    >>> m["x"].aval, [e.primitive.name for e in m.eqns], m.eqns[1].params
    (f64[3,2], ['exp', 'reduce_sum', 'log'], {'axes': (0,)})
    """

    __slots__ = ("_values", "eqns")

    def __init__(self, eqns: Sequence[Eqn], values: Mapping[str, typing.Any]):
        self.eqns = list(eqns)
        self._values = dict(values)

    @property
    def params(self) -> dict[str, typing.Any]:
        """The parameters of the root."""
        return self.eqns[-1].params

    def __getitem__(self, name: str) -> typing.Any:
        """The value of an `Any`: a `Var` or a `Literal`; in a replacement, a traced value or a number."""
        if name not in self._values:
            known = ", ".join(self._values) or "none"
            raise RewriteError(f"the pattern has no Any({name!r}); it has {known}")
        return self._values[name]

    def items(self) -> list[tuple[str, typing.Any]]:
        """The names of the pattern with their values."""
        return list(self._values.items())

    def __repr__(self) -> str:
        values = ", ".join(f"{k}={v}" for k, v in self._values.items())
        return f"<match of {self.eqns[-1].primitive.name}: {values}>"


def matched(rw: Rewriter, pattern: EquationPattern, eqn: Eqn) -> Match | None:
    """How a pattern, whose root is of this primitive, fits an equation; None if it does not."""
    state = Matching(rw)
    return Match(state.eqns, state.values) if state.operation(pattern, eqn) else None


@checked
def match(jaxpr: Jaxpr, pattern: typing.Any) -> list[Match]:
    """All places where a pattern occurs in a program, including the bodies of its calls, loops and branches.

    Parameters
    ----------
    jaxpr : Jaxpr
    pattern : Op

    Returns
    -------
    list of Match
        In the order of the root equations. ``m["x"]`` is the `Var` or `Literal` for ``Any("x")``.

    Raises
    ------
    RewriteError
        If `pattern` is not an `Op`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> program = ir.trace(lambda x: np.exp(x) * 2.0 + np.exp(x), 1.0)
    >>> ir.match(program, ir.Op("mul", 2.0, ir.Any("x")))
    [<match of mul: x=Var:f64[]>]
    """
    check_pattern("match", pattern)
    found: list[Match] = []
    _search(jaxpr, pattern, found)
    return found


def _search(jaxpr: Jaxpr, pattern: EquationPattern, found: list[Match]) -> None:
    def look(rw: Rewriter, eqn: Eqn) -> Eqn:
        for body in enclosed(eqn):
            _search(body.jaxpr, pattern, found)
        m = matched(rw, pattern, eqn) if eqn.primitive is pattern.primitive else None
        if m is not None:
            found.append(m)
        return eqn

    Rewriter().sweep(jaxpr.eqns, look)


def check_pattern(what: str, pattern: typing.Any) -> None:
    """Raise `RewriteError` unless the root of a pattern is an equation."""
    if not isinstance(pattern, EquationPattern):
        kind = (
            "one result of an equation"
            if isinstance(pattern, ResultOf)
            else f"of type {type(pattern).__name__}"
        )
        kind = "any value" if isinstance(pattern, Hole) else kind
        raise RewriteError(f"{what}: the pattern must be an Op, but is {str(pattern)[:60]}, {kind}")
