"""``custom_jvp``: a function with a forward rule."""

from __future__ import annotations

from typing import Any

from ..core.pytree import tree_map
from ..core.trace import Tracer, current_trace, eval_trace
from ..primitives.elementwise import stop_gradient_p
from ..transforms.values import given
from .decorated import CustomFunction

__all__ = ["custom_jvp"]


class custom_jvp(CustomFunction):
    """A function whose derivative is a rule of its own, for both modes: a decorator.

    Parameters
    ----------
    fun : callable
        Of arrays and trees of arrays. It gives the values; it is never differentiated.
    nondiff_argnums : int or sequence of int
        Arguments that rules get as they are, and apart: functions, strings, numbers that Python's ``if`` asks for.
        Derivatives in them are zero.
    nondiff_argnames : str or sequence of str
        The same by name.

    Raises
    ------
    FunctionDefinitionError
        If `nondiff_argnums` or `nondiff_argnames` name no parameter; when called: if arguments do not fit the
        signature, or the rule's first output differs in type from that of `fun`.
    MissingRuleError
        When called before `defjvp` or `defjvps`.
    TangentError, TangentShapeError, TangentDtypeError, TangentCountError
        When differentiated: the rule did not return a pair of output and tangent of one structure and shape.
    NoRuleError
        In reverse mode, if the rule is not linear in the tangents.

    Notes
    -----
    Forward mode runs the rule given by `defjvp` or `defjvps`; reverse mode runs it on symbolic tangents and transposes
    what it did to them, unless a rule for it is given by `defvjp`. All transformations compose: `vmap` maps the rule,
    `jit` compiles it, and derivatives of higher order differentiate it, or apply it once more where it calls the
    function itself.

    Arguments given by name, and defaults, reach the rules by position. As a method, the function gets ``self`` as its
    first argument; a class that is no pytree needs ``nondiff_argnums=0``.

    Rules may read traced values from around them as long as these are not differentiated: that is
    `CapturedTracerError`.

    Examples
    --------
    A derivative that does not overflow where the function does not:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.custom_jvp
    ... def softplus(x):
    ...     return fnp.log1p(fnp.exp(x))
    >>> @softplus.defjvp
    ... def softplus_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return softplus(x), t / (1.0 + fnp.exp(-x))
    >>> ft.grad(softplus)(50.0)
    Array(1.)
    >>> ft.jvp(softplus, (0.0,), (1.0,))
    (Array(0.69314718), Array(0.5))
    """

    _front = "custom_jvp"
    _missing = "No JVP defined for custom_jvp function {0} using defjvp. Define one: {0}.defjvp(jvp)"

    def _undifferentiated(self, nondiff: tuple[Any, ...]) -> tuple[Any, ...]:
        if current_trace.get() is eval_trace:
            return nondiff
        return tuple([tree_map(_stopped, x) for x in nondiff])


def _stopped(x: Any) -> Any:
    return given(stop_gradient_p.bind(x)) if isinstance(x, Tracer) else x
