"""``custom_vjp``: a function with a reverse rule."""

from __future__ import annotations

from .decorated import CustomFunction

__all__ = ["custom_vjp"]


class custom_vjp(CustomFunction):
    """A function whose reverse mode is a rule of its own: a decorator.

    Parameters
    ----------
    fun : callable
        Of arrays and trees of arrays. It gives the values; it is never differentiated.
    nondiff_argnums : int or sequence of int
        Arguments that rules get as they are, and apart: functions, strings, numbers that Python's ``if`` asks for.
    nondiff_argnames : str or sequence of str
        The same by name.

    Raises
    ------
    FunctionDefinitionError
        If `nondiff_argnums` or `nondiff_argnames` name no parameter; when called: if arguments do not fit the
        signature, or `fwd` returns no pair, or another output than `fun`.
    MissingRuleError
        When called before `defvjp`; when differentiated forward, if no rule for it is defined, or follows.
    GradientCountError, GradientStructureError, GradientShapeError, GradientDtypeError, BackwardError
        When differentiated: `bwd` did not return a tuple with a gradient of the structure and shapes of each argument.

    Notes
    -----
    Reverse mode runs `fwd` of `defvjp` in the place of the function, and `bwd` when cotangents are known. Forward mode
    runs the rule given by `defjvp`; without one it transposes `bwd`, which must be linear in the cotangent then. All
    transformations compose: `vmap` maps the rules, `jit` compiles them, and derivatives of higher order differentiate
    `fwd` and `bwd`, or apply the rule once more where `fwd` calls the function itself.

    Arguments given by name, and defaults, reach the rules by position. As a method, the function gets ``self`` as its
    first argument; a class that is no pytree needs ``nondiff_argnums=0``.

    Rules may read traced values from around them, and from arguments in `nondiff_argnums`, as long as these are not
    differentiated: that is `CapturedTracerError`.

    Examples
    --------
    Gradients clipped to an interval on their way back:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functools import partial
    >>> @partial(ft.custom_vjp, nondiff_argnums=(0, 1))
    ... def clip_gradient(low, high, x):
    ...     return x
    >>> def fwd(low, high, x):
    ...     return x, None
    >>> def bwd(low, high, residuals, ct):
    ...     return (fnp.clip(ct, low, high),)
    >>> clip_gradient.defvjp(fwd, bwd)
    >>> ft.grad(lambda x: clip_gradient(-1.0, 1.0, x) ** 2)(fnp.asarray(3.0))
    Array(1.)

    A derivative that does not lose its digits, where that of the formula is 0/0:

    >>> @ft.custom_vjp
    ... def norm(x):
    ...     return fnp.sqrt(fnp.sum(x * x))
    >>> def norm_fwd(x):
    ...     y = norm(x)
    ...     return y, (x, y)
    >>> def norm_bwd(residuals, ct):
    ...     x, y = residuals
    ...     return (ct * fnp.where(y > 0, x / fnp.where(y > 0, y, 1.0), 0.0),)
    >>> norm.defvjp(norm_fwd, norm_bwd)
    >>> ft.jit(ft.grad(norm))(fnp.zeros(2))
    Array([0., 0.])
    """

    _front = "custom_vjp"
    _missing = "No VJP defined for custom_vjp function {0} using defvjp. Define one: {0}.defvjp(fwd, bwd)"
