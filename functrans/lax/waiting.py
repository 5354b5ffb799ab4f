"""A loop that waits: ``while_loop``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api.bodies import Body, carry_out, trace_body, trace_carry
from ..control import while_loop as while_primitive
from ..core.aval import Aval, aval_of
from ..core.checked import checked
from ..core.config import config
from ..core.errors import ConditionTypeError
from ..core.pytree import PyTreeDef, tree_structure, tree_unflatten
from ..core.source import Source, last_line
from ..core.trace import is_abstract
from ..core.tracebacks import boundary
from ..core.tree_nodes import keystr
from ..transforms.values import check_function, flatten_values, name_of
from .loops import name_of_any
from .stepping import Carry

__all__ = ["while_loop"]
_NUMBER = tree_structure(0)


@boundary
@checked
def while_loop(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any) -> Any:
    """Loop as long as a condition holds; differentiable in both modes.

    Parameters
    ----------
    cond_fun : callable
        ``cond_fun(val) -> bool``, a scalar.
    body_fun : callable
        ``body_fun(val) -> val``.
    init_val : tree
        The first value: arrays and numbers, of which each keeps its shape and dtype. A Python number takes on the
        dtype that `body_fun` gives it.

    Returns
    -------
    tree
        The first value for which the condition does not hold.

    Raises
    ------
    CarryTypeError
        If the value comes out of `body_fun` with another shape, dtype or structure than it goes in with.
    ConditionTypeError
        If `cond_fun` returns anything but a scalar boolean.
    ArgumentError
        If `cond_fun` or `body_fun` is no function.

    Notes
    -----
    The same as this Python loop, which is what runs under ``functrans.disable_jit()``::

        while cond_fun(val):
            val = body_fun(val)
        return val

    Reverse mode, which JAX refuses, keeps what the derivative of `body_fun` needs of each iteration on a tape, which
    grows with the loop up to ``config.tape_limit`` bytes. Under `vmap` each lane runs to its own end.

    Examples
    --------
    Newton's method for a square root, and its derivative through all iterations:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> def root(a):
    ...     return lax.while_loop(lambda x: fnp.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)
    >>> root(2.0), ft.grad(root)(2.0)
    (Array(1.41421356), Array(0.35355339))
    >>> ft.vmap(root)(fnp.asarray([1.0, 4.0, 9.0]))
    Array([1., 2., 3.])
    """
    name = f"while_loop of {name_of_any(body_fun)}"
    check_function("while_loop", cond_fun)
    check_function("while_loop", body_fun)
    init, tree = flatten_values(init_val, lambda path: f"{name}: init_val{keystr(path)}")
    if config.disable_jit:
        carry = Carry("while_loop", body_fun, init, tree)
        while True:
            holds = _python_condition(cond_fun, carry)
            if is_abstract(holds):
                init = carry.leaves
                break
            if not holds:
                return carry.last
            carry.replace(body_fun(carry.value))

    def trace(avals: list[Aval]) -> Body:
        return trace_body(body_fun, avals, tree, _call, avals)

    found = trace_carry("while_loop", body_fun, init, tree, trace)
    avals = [Aval(a.shape, a.dtype, w) for a, w in zip(map(aval_of, found.init), found.weak)]
    test = trace_body(cond_fun, avals, tree, _call)
    _check_condition(cond_fun, test.out_tree, test.outs, test.sources)
    outs = while_primitive.bind(test.jaxpr, test.consts, found.body.jaxpr, found.body.consts, found.init)
    return tree_unflatten(tree, carry_out(outs[: len(found.init)], found.weak))


def _call(fun: Callable[..., Any], val: Any) -> Any:
    return fun(val)


def _python_condition(cond_fun: Callable[..., Any], carry: Carry) -> Any:
    leaves, tree = flatten_values(
        cond_fun(carry.value), lambda path: f"the result of {name_of(cond_fun)}{keystr(path)}"
    )
    _check_condition(cond_fun, tree, [aval_of(x) for x in leaves], [last_line(cond_fun)])
    return leaves[0]


def _check_condition(
    cond_fun: Callable[..., Any], tree: PyTreeDef, outs: list[Aval], sources: list[Source | None]
) -> None:
    name = f"while_loop: the condition {name_of(cond_fun)} must return a scalar boolean, but returned"
    if tree != _NUMBER:
        raise ConditionTypeError(f"{name} {tree}", last_line(cond_fun))
    (aval,) = outs
    if aval.shape:
        raise ConditionTypeError(f"{name} {aval}. Reduce it: fnp.all(...), fnp.any(...)", sources[0])
    if aval.dtype.kind != "b":
        raise ConditionTypeError(f"{name} {aval}. Compare it: x != 0", sources[0])
