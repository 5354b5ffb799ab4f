"""``while_loop`` and ``fori_loop``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...api.bodies import Body, carry_out, loop_body, trace_body, trace_carry
from ...api.progress import Progress
from ...control import scan as scan_primitive
from ...control import while_loop as while_primitive
from ...core import Aval, Source, aval_of, boundary, concrete, is_abstract, last_line
from ...core.values import ArrayLike, PyTree, Value
from ...errors import ArgumentError, ArgumentValueError, ConditionTypeError
from ...frontend.arguments import check_function, flatten_values, name_of, value_of
from ...frontend.checked import checked
from ...frontend.pytree import LEAF, PyTreeDef, tree_structure, tree_unflatten
from ...frontend.pytree.nodes import keystr
from ...primitives import ops
from ...primitives.operands import strong
from ...runtime.config import config
from ...transforms.stage import Uses, attach_to
from .loops import name_of_any, unrolled
from .scanning import COUNTER, START, Carry, ScanLoop, pair, reporting

__all__ = [
    "fori_loop", "while_loop",
]  # fmt: skip


@boundary
@checked
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[..., PyTree],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
) -> PyTree:
    """Loop from one integer to another, with a carry.

    Parameters
    ----------
    lower, upper : int
        The counter goes from `lower` to ``upper - 1``; the loop does not run if `upper` is not above `lower`. Either
        may be known only at run time (an argument of a jitted function).
    body_fun : callable
        ``body_fun(i, val) -> val``. `i` is an integer like one of Python's ``range``: it gets the dtype of the array it
        meets.
    init_val : pytree
        The first value: arrays and numbers, each of which keeps its shape and dtype. A Python number gets the dtype
        that `body_fun` returns for it.
    unroll : int or bool, optional
        As for `scan`; requires bounds known while tracing.

    Returns
    -------
    pytree
        The last value.

    Raises
    ------
    CarryTypeError
        If `body_fun` returns a value with another shape, dtype or structure than it was passed.
    ArgumentError
        If `body_fun` is not a function, or a bound is not an integer.

    Notes
    -----
    Equivalent to this Python loop, which is also what runs under ``functrans.disable_jit()``::

        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    Differentiable in both modes, also if the bounds are known only at run time (JAX raises in reverse mode then):
    residuals are stored on a tape that grows with the loop.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> lax.fori_loop(0, 4, lambda i, x: x.at[i].set(i * i), fnp.zeros(5))
    Array([0., 1., 4., 9., 0.])

    A power, whose exponent is an argument of the compiled function:

    >>> power = ft.jit(lambda x, n: lax.fori_loop(0, n, lambda i, p: p * x, 1.0))
    >>> power(2.0, 10), ft.grad(power)(2.0, 3)
    (Array(1024.), Array(12.))
    """
    name = f"fori_loop of {name_of_any(body_fun)}"
    check_function("fori_loop", body_fun)
    bounds = [_bound(name, "lower", lower), _bound(name, "upper", upper)]
    carry, tree = flatten_values(init_val, lambda path: f"{name}: init_val{keystr(path)}")
    if not any(map(is_abstract, bounds)):
        start, stop = [operator.index(concrete(b)) for b in bounds]
        rows = range(start, max(start, stop))
        times = unrolled(name, 1 if unroll is None else unroll, len(rows))
        return ScanLoop("fori_loop", body_fun, _with_row, carry, tree, [rows], LEAF).run(
            len(rows), unroll=times
        )[0]
    if unroll is not None:
        raise ArgumentValueError(f"{name}: unroll requires known bounds, but one is a traced value")
    start, stop = [strong(b, COUNTER.dtype) for b in bounds]
    return _counted(body_fun, carry, tree, start, ops.sub_p.bind(stop, start))


def _bound(name: str, which: str, x: ArrayLike) -> Any:
    value = value_of(x, lambda: f"{name}: {which}")
    aval = aval_of(value)
    if aval.shape or aval.dtype.kind not in "iu":
        raise ArgumentError(f"{name}: {which} must be an integer, got a value of type {aval}")
    return value


def _with_row(fun: Callable[..., PyTree], pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return fun(pair[1], pair[0]), None


def _counted(
    fun: Callable[..., PyTree],
    init: list[ArrayLike],
    tree: PyTreeDef,
    start: ArrayLike,
    count: ArrayLike,
    call: Callable[..., tuple[Any, Any]] = _with_row,
) -> Any:
    """Run a loop over `count` numbers from `start` on; both are known only at run time."""
    if isinstance(fun, Progress):
        tree = pair(tree_structure(START), tree)
        return _counted(fun.body, [*START, *init], tree, start, count, reporting(fun, call))[1]
    in_tree = pair(tree, LEAF)

    def trace(avals: list[Aval]) -> Body:
        return trace_body(fun, [*avals, COUNTER], in_tree, call, avals)

    carried = trace_carry("fori_loop", fun, init, tree, trace, lambda out: out.children()[0])
    body = loop_body(carried.body, len(init), 1)
    outs = scan_primitive.bind(
        body.jaxpr,
        body.consts,
        [*carried.init, *body.carried],
        [start],
        length=None,
        count=count,
    )
    outs = body.put_back(outs, len(init))
    return tree_unflatten(tree, carry_out(outs[: len(init)], carried.weak))


@boundary
@checked
def while_loop(cond_fun: Callable[..., PyTree], body_fun: Callable[..., PyTree], init_val: PyTree) -> PyTree:
    """Loop as long as a condition holds; differentiable in both modes.

    Parameters
    ----------
    cond_fun : callable
        ``cond_fun(val) -> bool``, a scalar.
    body_fun : callable
        ``body_fun(val) -> val``.
    init_val : pytree
        The first value: arrays and numbers, each of which keeps its shape and dtype. A Python number gets the dtype
        that `body_fun` returns for it.

    Returns
    -------
    pytree
        The first value for which the condition is false.

    Raises
    ------
    CarryTypeError
        If `body_fun` returns a value with another shape, dtype or structure than it was passed.
    ConditionTypeError
        If `cond_fun` returns anything but a scalar boolean.
    ArgumentError
        If `cond_fun` or `body_fun` is not a function.

    Notes
    -----
    Equivalent to this Python loop, which is also what runs under ``functrans.disable_jit()``::

        while cond_fun(val):
            val = body_fun(val)
        return val

    Reverse mode, which JAX does not support here, stores the residuals of each iteration on a tape, which grows with
    the loop up to ``config.tape_limit`` bytes. Under `vmap`, each lane stops independently.

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

    used: Uses = Uses()

    def trace(avals: list[Aval]) -> Body:
        uses = Uses(used.refs, [True] * len(used.refs))
        return trace_body(body_fun, avals, tree, _call, avals, uses)

    carried = trace_carry("while_loop", body_fun, init, tree, trace)
    avals = [
        aval_of(x).over(a.vma).update(weak_type=w)
        for x, a, w in zip(carried.init, carried.body.outs, carried.weak)
    ]
    test = trace_body(cond_fun, avals, tree, _call, uses=Uses(carried.body.uses.refs, read_only=True))
    if not all(carried.body.uses.written) or len(test.uses.refs) > len(carried.body.uses.refs):
        used = test.uses  # the condition and the body have one carry
        carried = trace_carry("while_loop", body_fun, init, tree, trace)
    attach_to(test.hooks)
    _check_condition(cond_fun, test.out_tree, test.outs, test.sources)
    body = loop_body(carried.body, len(carried.init))
    outs = while_primitive.bind(
        test.jaxpr, test.consts, body.jaxpr, body.consts, [*carried.init, *body.carried]
    )
    outs = body.put_back(outs, len(carried.init))
    return tree_unflatten(tree, carry_out(outs[: len(carried.init)], carried.weak))


def _call(fun: Callable[..., PyTree], val: ArrayLike) -> Any:
    return fun(val)


def _python_condition(cond_fun: Callable[..., PyTree], carry: Carry) -> Value:
    leaves, tree = flatten_values(
        cond_fun(carry.value), lambda path: f"the result of {name_of(cond_fun)}{keystr(path)}"
    )
    _check_condition(cond_fun, tree, [aval_of(x) for x in leaves], [last_line(cond_fun)])
    return leaves[0]


def _check_condition(
    cond_fun: Callable[..., PyTree], tree: PyTreeDef, outs: list[Aval], sources: list[Source | None]
) -> None:
    name = f"while_loop: the condition {name_of(cond_fun)} must return a scalar boolean, but returned"
    if tree != LEAF:
        raise ConditionTypeError(f"{name} {tree}", last_line(cond_fun))
    (aval,) = outs
    if aval.shape:
        raise ConditionTypeError(f"{name} {aval}. Reduce it: fnp.all(...), fnp.any(...)", sources[0])
    if aval.dtype.kind != "b":
        raise ConditionTypeError(f"{name} {aval}. Compare it: x != 0", sources[0])
