"""Taylor mode: derivatives of high order along a curve, in one pass.

``jax.experimental.jet`` has the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

from .. import errors
from ..api.derivatives import fit_tree, flatten_primals
from ..api.grad import as_typed
from ..core import Zero, aval_of, boundary
from ..core.values import PyTree, Tangent
from ..frontend.arguments import Flat, argument_name, name_of, result, results
from ..frontend.checked import checked
from ..frontend.pytree import tree_flatten, tree_structure, tree_unflatten
from ..primitives.elementwise.arithmetic import div_p, mul_p
from ..primitives.families import literal
from ..runtime.module_getattr import module_attributes as _module_attributes
from ..transforms.jet import jet as jet_flat

__all__ = ["jet"]
__getattr__, __dir__ = _module_attributes("functrans.experimental.jet", globals())


@boundary
@checked
def jet(
    fun: Callable[..., PyTree],
    primals: Sequence[PyTree],
    series: Sequence[Any],
    factorial_scaled: bool = True,
) -> tuple[Any, Any]:
    """Value and higher derivatives of a function along a curve (Taylor mode).

    If the arguments follow the curve ``x(t)``, `jet` maps its derivatives at ``t = 0`` to those of ``fun(x(t))``.

    Parameters
    ----------
    fun : callable
        A function of arrays or pytrees of arrays.
    primals : tuple or list
        The positional arguments ``x(0)``.
    series : tuple or list
        For each argument the derivatives ``x'(0), x''(0), ...``: a tuple or list of values with the structure and
        shapes of the argument, equally long for all arguments. Their number is the order. None counts as zero, and so
        does the Python number 0, for an argument of any shape; terms that are zero in this way cost nothing.
    factorial_scaled : bool
        Whether `series` and the result contain derivatives. If false, they contain the coefficients of the Taylor
        polynomial, which are the derivatives divided by ``k!``.

    Returns
    -------
    out : pytree
        ``fun(*primals)``.
    out_series : pytree
        The structure of `out`, with a list of the derivatives, or coefficients, for each leaf.

    Raises
    ------
    ArgumentError, ShapeError, GradientError
        If the lengths, structures, shapes or dtypes of `primals` and `series` do not match.
    MissingRuleError
        If `fun` uses a custom rule or a callback without forward mode.

    Notes
    -----
    Order `d` through an elementwise function costs O(d**2) operations, nested `jvp` O(2**d). All operations that `jvp`
    knows are supported, by the recurrences in Griewank and Walther, *Evaluating Derivatives* (2nd ed., 2008), tables
    13.1 and 13.2, which follow from their jvp rules; so the result equals nested `jvp`, also at kinks and with
    `custom_jvp`. Functions with ``custom_jvp`` or ``custom_vjp`` rules cost one call of the rule for each order.

    Examples
    --------
    The derivatives of ``exp(sin(t))`` at 0:

    >>> import functrans.numpy as fnp
    >>> from functrans.experimental.jet import jet
    >>> value, derivatives = jet(lambda t: fnp.exp(fnp.sin(t)), (0.0,), ((1.0, 0, 0, 0, 0),))
    >>> value, [float(d) for d in derivatives]
    (Array(1.), [1.0, 1.0, 0.0, -3.0, -8.0])

    The second derivative in the direction `v`, without a Hessian:

    >>> import numpy as np
    >>> x, v = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    >>> jet(lambda x: fnp.prod(x) ** 2, (x,), ((v, None),))[1][1]
    Array(-6.)
    """
    leaves, treedef = flatten_primals("jet", fun, primals)
    terms = _terms(fun, primals, series)
    if factorial_scaled:
        terms = [_scaled(ts, div_p.bind) for ts in terms]
    flat = Flat(fun, treedef, lambda f, args: f(*args))
    outs, out_terms = jet_flat(flat, leaves, terms)
    if factorial_scaled:
        out_terms = [_scaled(ts, mul_p.bind) for ts in out_terms]
    ids = {id(x) for x in (*leaves, *[t for ts in terms for t in ts])}
    lists = [[result(as_typed(t, aval_of(x)), ids) for t in ts] for ts, x in zip(out_terms, outs)]
    return results(flat.out_tree, outs, ids), tree_unflatten(flat.out_tree, lists)


def _terms(fun: Callable[..., PyTree], primals: Sequence[Any], series: Sequence[Any]) -> list[list[Any]]:
    """For each leaf of the arguments its terms, values or `Zero`."""
    if len(series) != len(primals):
        raise errors.ArgumentError(
            f"jet of {name_of(fun)}: series must have an entry for each of the {len(primals)} primals, got "
            f"{len(series)}"
        )
    columns: list[list[Any]] = []
    order = None
    for i, (x, terms) in enumerate(zip(primals, series)):
        what = f"jet of {name_of(fun)}: the series of {argument_name(fun, i)}"
        if not hasattr(terms, "__len__") or isinstance(terms, dict | str):
            raise errors.ArgumentError(
                f"{what} must be a tuple or list of derivatives, got {type(terms).__name__}: write (v,) for order 1"
            )
        if order is None:
            order = len(terms)
        if len(terms) != order:
            raise errors.ArgumentError(
                f"{what} has {len(terms)} terms, that of {argument_name(fun, 0)} has {order}; all arguments "
                "need equally many: add None for zeros"
            )
        treedef = tree_structure(x)
        avals = [aval_of(leaf) for leaf in flatten_primals("jet", fun, [x])[0]]
        rows = [fit_tree(_sparse(t), treedef, avals, f"{what}, term {k}") for k, t in enumerate(terms, 1)]
        columns += [[row[j] for row in rows] for j in range(len(avals))]
    return columns


def _sparse(term: Any) -> Any:
    """The term with None instead of each Python number 0."""
    leaves, treedef = tree_flatten(term)
    return tree_unflatten(treedef, [None if type(x) in (int, float) and x == 0 else x for x in leaves])


def _scaled(terms: Sequence[Tangent], scale: Callable[[Any, Any], Any]) -> list[Tangent]:
    """The terms, from order 1 on, multiplied or divided by the factorials of their orders."""
    return [
        t if type(t) is Zero or k == 1 else scale(t, literal(float(factorial(k)), t))
        for k, t in enumerate(terms, 1)
    ]
