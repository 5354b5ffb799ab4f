"""`check_custom_rule`: all laws for a function with custom rules, in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core import ArgumentValueError, Tracer
from ..core.values import PyTree, Value
from ..custom.custom_function import CustomFunction
from ..custom.function import Function
from ..frontend.arguments import check_function, name_of
from ..frontend.pytree import tree_flatten, tree_leaves, tree_unflatten
from . import custom_rules as _laws
from .setting import Wrt

_NUMBERS = (bool, int, float, complex)

#: The laws of custom rules by name, in the order in which they are tested.
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
    *args: PyTree,
    expected_different: bool = False,
    order: int = 2,
    laws: str | Iterable[str] = "all",
    wrt: Wrt = None,
    rng: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    nondet_tol: float = 0.0,
) -> None:
    """Test every law of custom rules on a function at a point.

    Parameters
    ----------
    rule : Function class, `custom_vjp`, `custom_jvp`, or any callable
        The function to test. For any other callable, all rules that it applies.
    *args
        Its arguments: arrays and pytrees of arrays, preferably at a generic point. Arguments that are not arrays (for a
        `Function`, also numbers; for the others, those in `nondiff_argnums`) are passed unchanged.
    expected_different : bool
        Whether the rule deliberately differs from the derivative of its forward pass (straight-through, clipped or
        reversed gradients). The two are then not compared.
    order : int
        1 or 2; with 2, second derivatives are compared, too.
    laws : 'all' or iterable of str
        Names of laws: keys of `functrans.testing.RULE_LAWS`.
    wrt : int, sequence of int or None
        Positions of the arguments to differentiate; None for all float and complex leaves.
    rng : int
        Seed of the random directions.
    rtol, atol : float, optional
        Tolerances that replace those of each law.
    nondet_tol : float
        The largest difference allowed between two calls of a rule.

    Raises
    ------
    LawViolation
        An `AssertionError` whose message names the law and the largest error, and has a line that reproduces it.
    ArgumentValueError
        If a law does not exist.

    Notes
    -----
    ====================== ====================================================================================
    `rules_repeat`         two calls agree, up to `nondet_tol`
    `rules_keep_values`    forward passes of rules return the function's values
    `cotangents_count`     ``backward`` is linear in its cotangents, and missing ones count as zero
    `tangents_count`       the same for ``jvp``
    `rule_is_derivative`   both rules are the derivative of the forward pass without rules
    `duality`              ``<jvp v, w> = <v, backward w>``
    `rules_batch`          `vmap` equals a loop, for values, gradients and every mix of batch axes
    `rules_compile`        `jit` changes neither values nor gradients
    ====================== ====================================================================================

    Checks without a rule, written or derived, are skipped: a mode, `vmap`, second derivatives under
    `once_differentiable`, `jit` of a `Function` with ``host = True`` and no ``shape``. The derivatives of a host
    forward are compared with finite differences.

    If the derivative of the forward pass is not finite at the point, which is the reason for many rules, the comparison
    shows nothing. Choose another point.

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
                f"check_custom_rule: unknown law {name!r}; choose from {', '.join(RULE_LAWS)}"
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
    """Whether a `Function` runs on the host and has no ``shape``."""
    is_class = isinstance(rule, type) and issubclass(rule, Function)
    return is_class and rule.host and rule.shape is Function.shape


def _subject(rule: Any, args: tuple[Value, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The rule as a function from arrays to arrays, and its arguments, with None for those that are not arrays."""
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

    def subject(*arrays: Value) -> tuple[Value, ...]:
        remaining = iter(tree_leaves(arrays))
        out = fun(*tree_unflatten(treedef, [next(remaining) if m else x for m, x in zip(mask, leaves)]))
        return tuple([y for y in tree_leaves(out) if _is_array(y, numbers=True)])

    subject.__name__ = f"{rule.__name__}.apply" if is_class else name_of(fun)
    return subject, tree_unflatten(treedef, [x if m else None for m, x in zip(mask, leaves)])


def _is_array(x: Value, *, numbers: bool) -> bool:
    if isinstance(x, np.ndarray | np.generic | Tracer | Array):
        return True
    return numbers and isinstance(x, _NUMBERS)
