"""From functions to programs and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..api.compiled.stages import make_jaxpr
from ..control.bodies.cache import alike
from ..core import Aval, Jaxpr, JaxprError, Tracer, aval_of, boundary
from ..core.evaluation import evaluate
from ..core.values import ArrayLike, PyTree
from ..frontend.arguments import result, value_of
from ..frontend.checked import checked


def trace(fun: Callable[..., PyTree], *args: ArrayLike, **kwargs: Any) -> Jaxpr:
    """The program of a function for arguments of these types; nothing is computed.

    Parameters
    ----------
    fun : callable
    *args, **kwargs
        Its arguments: arrays, numbers, `functrans.ShapeDtypeStruct`s, or trees of them.

    Returns
    -------
    Jaxpr
        From the leaves of the arguments to the leaves of the result.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> print(ir.trace(lambda x, y: np.sin(x) * y, np.ones(3), np.ones(3)))
    lambda a:f64[3] b:f64[3].
      c:f64[3] = sin a
      d:f64[3] = mul c b
      return (d,)
    """
    return make_jaxpr(fun)(*args, **kwargs)


@boundary
def eval_jaxpr(jaxpr: Jaxpr, *args: Any) -> list[Any]:
    """Compute the outputs of a program, one equation at a time.

    Parameters
    ----------
    jaxpr : Jaxpr
    *args : array_like
        One for each input, of its shape and dtype; a number may be given for an input of rank 0. In a function that
        is being transformed, traced values.

    Returns
    -------
    list of Array

    Raises
    ------
    JaxprError
        If the arguments do not suit the inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> program = ir.trace(lambda x: (x + 1.0, np.sum(x)), np.ones(2))
    >>> ir.eval_jaxpr(program, np.array([1.0, 2.0]))
    [Array([2., 3.]), Array(3.)]
    """
    check_jaxpr_type("eval_jaxpr", jaxpr)
    return _evaluated(f"eval_jaxpr of {jaxpr.name}", jaxpr, args)


def _evaluated(label: str, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    values = suitable_values(label, jaxpr, args)
    return [result(x, {*map(id, values), *map(id, jaxpr.consts)}) for x in evaluate(jaxpr, values)]


@checked
def as_function(jaxpr: Jaxpr) -> Callable[..., Any]:
    """The function that a program computes. It goes through every transformation.

    Parameters
    ----------
    jaxpr : Jaxpr

    Returns
    -------
    callable
        Takes an array for each input. Returns the result, or a tuple if there are several or none.

    Raises
    ------
    JaxprError
        When it is called with arguments that do not suit the inputs.

    Examples
    --------
    >>> import numpy as np, functrans as ft
    >>> from functrans import ir
    >>> f = ir.as_function(ir.trace(lambda x: np.sin(x) * 2.0, 1.0))
    >>> ft.grad(f)(0.0)
    Array(2.)
    """
    label = f"the program '{jaxpr.name}'"

    @boundary
    def function(*args: Any) -> PyTree:
        outs = _evaluated(label, jaxpr, args)
        return outs[0] if len(outs) == 1 else tuple(outs)

    function.__name__ = function.__qualname__ = jaxpr.name
    function.__doc__ = f"Compute {label}."
    return function


@checked
def equal(a: Jaxpr, b: Jaxpr) -> bool:
    """Whether two programs are the same but for the names of their variables.

    The same equations in the same order, with equal parameters, literals and captured arrays. The name of the program
    and the user's lines do not count. Python functions in parameters must be the same objects.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> one, two = ir.trace(lambda x: x + x, 1.0), ir.trace(lambda y: y + y, 2.0)
    >>> ir.equal(one, two), ir.equal(one, ir.trace(lambda x: x + x, np.ones(3)))
    (True, False)
    """
    return alike(a, b)


def check_jaxpr_type(what: str, jaxpr: Any) -> None:
    """Raise `JaxprError` if an argument is not a program."""
    if not isinstance(jaxpr, Jaxpr):
        raise JaxprError(
            f"{what}: expected a Jaxpr, got {str(jaxpr)[:60]!r} of type {type(jaxpr).__name__}. "
            "functrans.ir.trace makes one of a function"
        )


def suitable_values(label: str, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """The arguments of a program as values, checked against its inputs."""
    if len(args) != len(jaxpr.invars):
        raise JaxprError(f"{label}: it takes {len(jaxpr.invars)} values, but {len(args)} were given")
    values = [value_of(x, lambda i=i: f"{label}: input {i}") for i, x in enumerate(args)]  # type: ignore[misc]
    return [_fitted(x, v.aval, f"{label}: input {i}") for i, (x, v) in enumerate(zip(values, jaxpr.invars))]


def _fitted(x: ArrayLike, aval: Aval, what: str) -> Any:
    own = aval_of(x)
    if own.shape == aval.shape and own.dtype == aval.dtype:
        # A number stays one where the program takes one, and becomes strong where it takes an array.
        return x if own.weak <= aval.weak or isinstance(x, Tracer) else np.asarray(x, aval.dtype)[()]
    if (
        own.weak
        and not isinstance(x, Tracer)
        and not aval.shape
        and np.can_cast(type(x), aval.dtype, "same_kind")
    ):
        return np.asarray(x, aval.dtype)[()]
    raise JaxprError(f"{what} is {own}, but must be {aval}")
