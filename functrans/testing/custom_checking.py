"""`check_custom_rule`: all laws for a function with custom rules, in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.errors import ArgumentValueError
from ..core.pytree import tree_flatten, tree_leaves, tree_unflatten
from ..core.trace import Tracer
from ..custom.custom_function import CustomFunction
from ..custom.function import Function
from ..transforms.values import check_function, name_of
from . import custom_rules as _laws
from .setting import Wrt

_NUMBERS = (bool, int, float, complex)

#: The laws of custom rules by name, in the order in which they are tried.
RULE_LAWS: dict[str, Callable[..., None]] = {
    law.__name__: law
    for law in (
        _laws.rules_repeat,
        _laws.rules_keep_values,
        _laws.cotangents_count,
        _laws.tangents_count,
        _laws.rule_is_derivative,
        _laws.duality,
        _laws.rules_batch,
        _laws.rules_compile,
    )
}


def check_custom_rule(
    rule: Any,
    *args: Any,
    expected_different: bool = False,
    order: int = 2,
    laws: str | Iterable[str] = "all",
    wrt: Wrt = None,
    rng: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    nondet_tol: float = 0.0,
) -> None:
    """Try every law of custom rules on a function at a point.

    Parameters
    ----------
    rule : Function class, `custom_vjp`, `custom_jvp`, or any callable
        What has rules. Of another callable: all rules that it applies are tried.
    *args
        Its arguments: arrays and trees of arrays, best a generic point. What is no array (for a `Function` numbers too,
        for the others what is in `nondiff_argnums`) is passed as it is.
    expected_different : bool
        Whether the rule is meant to be no derivative of its forward pass, and so is not compared with that:
        straight-through, clipped, reversed gradients.
    order : int
        1 or 2: whether second derivatives are compared, too.
    laws : 'all' or iterable of str
        Names of laws: keys of `functrans.testing.RULE_LAWS`.
    wrt : int, sequence of int or None
        Positions of the arguments to differentiate in; None: all float and complex leaves.
    rng : int
        Seed of the random directions.
    rtol, atol : float, optional
        Tolerances in the place of each law's own.
    nondet_tol : float
        How far two calls of one rule may be apart.

    Raises
    ------
    LawViolation
        An `AssertionError` whose message names the law, the place of the largest error, and a line to repeat it.
    ArgumentValueError
        For a law that does not exist.

    Notes
    -----
    ====================== ====================================================================================
    `rules_repeat`         the same twice, up to `nondet_tol`
    `rules_keep_values`    forward passes of rules give the function's values
    `cotangents_count`     ``backward`` is linear in its cotangents, zero to zero; missing ones are zero
    `tangents_count`       the same for ``jvp``
    `rule_is_derivative`   both rules give the derivative of the forward pass, with all rules taken off
    `duality`              ``<jvp v, w> = <v, backward w>``
    `rules_batch`          `vmap` is a loop, of values and gradients, in every mix of batch axes
    `rules_compile`        `jit` changes neither values nor gradients
    ====================== ====================================================================================

    What has no rule, and for which none follows, is left out: a mode, `vmap`, second derivatives of what is
    `once_differentiable`, `jit` of a `Function` with ``host = True`` that has no ``shape``. The derivatives of such a
    host forward are compared with finite differences.

    A forward pass whose own derivative is not finite at the point, as is the reason for many rules, cannot tell: take
    another point.

    See Also
    --------
    check : all laws of transformations, against finite differences.

    Examples
    --------
    >>> import numpy as np, functrans as ft, functrans.numpy as fnp
    >>> from functrans.testing import check_custom_rule
    >>> class Square(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3.0 * g * x
    >>> check_custom_rule(Square, np.array([0.5, 2.0]))
    Traceback (most recent call last):
    ...
    functrans.testing.report.LawViolation: Square.apply: the law 'rule = derivative of the forward pass' does not hold
      where: reverse mode, gradient in argument 0
    ...
    """
    chosen = list(RULE_LAWS) if laws == "all" else [laws] if isinstance(laws, str) else list(laws)
    for name in chosen:
        if name not in RULE_LAWS:
            raise ArgumentValueError(
                f"check_custom_rule: there is no law {name!r}; there are {', '.join(RULE_LAWS)}"
            )
    f, arrays = _subject(rule, args)
    for name in chosen:
        if (name == "rules_compile" and _is_eager(rule)) or (
            name == "rule_is_derivative" and expected_different
        ):
            continue
        options: dict[str, Any] = {"rng": rng, "wrt": wrt}
        if name == "rules_repeat":
            options["nondet_tol"] = nondet_tol
        else:
            options |= {"rtol": rtol, "atol": atol}
        if name == "rule_is_derivative":
            options["order"] = order
        RULE_LAWS[name](f, *arrays, **options)


def _is_eager(rule: Any) -> bool:
    """Whether a `Function` runs on the host and does not say of which shape its results are."""
    is_class = isinstance(rule, type) and issubclass(rule, Function)
    return is_class and rule.host and rule.shape is Function.shape


def _subject(rule: Any, args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The rule as a function of arrays to arrays; and its arguments, with None in the place of all that is no array."""
    is_class = isinstance(rule, type) and issubclass(rule, Function)
    fun = rule.apply if is_class else rule
    check_function("check_custom_rule", fun)
    fixed = rule.nondiff_argnums if isinstance(rule, CustomFunction) else ()
    leaves, mask = [], []
    for i, arg in enumerate(args):
        own = tree_flatten(arg)[0]
        leaves += own
        mask += [i not in fixed and _is_array(x, numbers=not is_class) for x in own]
    treedef = tree_flatten(args)[1]

    def subject(*arrays: Any) -> tuple[Any, ...]:
        given = iter(tree_leaves(arrays))
        out = fun(*tree_unflatten(treedef, [next(given) if m else x for m, x in zip(mask, leaves)]))
        return tuple([y for y in tree_leaves(out) if _is_array(y, numbers=True)])

    subject.__name__ = f"{rule.__name__}.apply" if is_class else name_of(fun)
    return subject, tree_unflatten(treedef, [x if m else None for m, x in zip(mask, leaves)])


def _is_array(x: Any, *, numbers: bool) -> bool:
    if isinstance(x, np.ndarray | np.generic | Tracer | Array):
        return True
    return numbers and isinstance(x, _NUMBERS)
