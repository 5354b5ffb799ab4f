"""Evaluation of jaxprs, and the other names of ``jax.core`` for programs that interpret jaxprs themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors.source import replayed
from .aval import Aval
from .dtypes import canonical
from .ir import Atom, Eqn, Jaxpr, Literal
from .trace import current_trace, eval_trace
from .values import DTypeLike, Value

__all__ = [
    "AbstractValue",
    "ClosedJaxpr",
    "JaxprEqn",
    "ParamDict",
    "ShapedArray",
    "Visit",
    "bind_equation",
    "eval_context",
    "eval_jaxpr",
    "evaluate",
    "jaxpr_as_fun",
    "max_dim",
    "min_dim",
    "run_equations",
]

#: Computes one equation: ``visit(eqn, operands) -> results``.
Visit = Callable[[Eqn, list[Any]], Iterable[Any]]


def evaluate(jaxpr: Jaxpr, args: Sequence[Any], visit: Visit | None = None) -> list[Any]:
    """Compute the outputs of `jaxpr` at `args`.

    Parameters
    ----------
    jaxpr : Jaxpr
    args : sequence
        One value for each input. NumPy values give numbers; with tracers, an interpreter processes the jaxpr.
    visit : callable, optional
        ``visit(eqn, operands) -> results`` computes an equation. By default it binds the primitive in the current
        trace.

    Returns
    -------
    list
    """
    env: dict[Atom, Any] = dict(zip(jaxpr.constvars, jaxpr.consts))
    env.update(zip(jaxpr.invars, args))
    run_equations(jaxpr.eqns, env, visit)
    return [a.value if type(a) is Literal else env[a] for a in jaxpr.outvars]


def run_equations(eqns: Iterable[Eqn], env: MutableMapping[Atom, Any], visit: Visit | None = None) -> None:
    """Compute equations in order, reading operands from `env` and adding results to it.

    Values traced meanwhile keep the source line of their equation.
    """
    before = replayed.get()
    try:
        for eqn in eqns:
            replayed.set(eqn.source or before)
            values = [a.value if type(a) is Literal else env[a] for a in eqn.invars]
            if visit is not None:
                env.update(zip(eqn.outvars, visit(eqn, values)))
            elif eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, eqn.primitive.bind(*values, **eqn.params)))
            else:
                env[eqn.outvars[0]] = eqn.primitive.bind(*values, **eqn.params)
    finally:
        replayed.set(before)


def bind_equation(eqn: Eqn, values: Sequence[Value]) -> Sequence[Value]:
    """Bind an equation in the current trace: the default visitor of `evaluate`."""
    out = eqn.primitive.bind(*values, **eqn.params)
    return out if eqn.primitive.multiple_results else (out,)


# --- the names of jax.core ----------------------------------------------------------------------------------

AbstractValue = Aval
ClosedJaxpr = Jaxpr
JaxprEqn = Eqn
ParamDict = dict[str, Any]


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Value) -> list[Any]:
    """Compute the outputs of a jaxpr, with `consts` for its captured arrays.

    Parameters
    ----------
    jaxpr : Jaxpr
        From `make_jaxpr`; ``jaxpr.jaxpr`` is the same object.
    consts : sequence
        Usually ``jaxpr.consts``.
    *args
        One value for each input: the leaves of the arguments, numbers or traced values.

    Returns
    -------
    list

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> closed = ft.make_jaxpr(lambda x: fnp.sin(x) * 2.0)(1.0)
    >>> ft.core.eval_jaxpr(closed.jaxpr, closed.consts, 0.0)
    [np.float64(0.0)]
    """
    return evaluate(jaxpr.replace(constants=list(zip(jaxpr.constvars, consts, strict=True))), args)


def jaxpr_as_fun(jaxpr: Jaxpr) -> Callable[..., list[Any]]:
    """The function that computes the outputs of a jaxpr.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans import extend
    >>> extend.core.jaxpr_as_fun(ft.make_jaxpr(lambda x: x + 1.0)(0.0))(2.0)
    [3.0]
    """
    return lambda *args: evaluate(jaxpr, args)


class _AnyAval(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Aval)


class ShapedArray(metaclass=_AnyAval):
    """An aval, made from any dtype-like; every `Aval` is an instance.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.core.ShapedArray((2, 3), "float32")
    f32[2,3]
    >>> isinstance(ft.typeof(1.0), ft.core.ShapedArray)
    True
    """

    def __new__(cls, shape: Sequence[int], dtype: DTypeLike, weak_type: bool = False) -> Any:
        """An `Aval` with this shape and dtype."""
        return Aval(tuple(shape), canonical(dtype, "ShapedArray: dtype"), weak_type)


@contextmanager
def eval_context() -> Iterator[None]:
    """A block that computes with numbers even while a function is traced around it."""
    token = current_trace.set(eval_trace)
    try:
        yield
    finally:
        current_trace.reset(token)


def max_dim(a: int, b: int) -> int:
    """The larger of two extents."""
    return max(a, b)


def min_dim(a: int, b: int) -> int:
    """The smaller of two extents."""
    return min(a, b)
