"""A loop that counts: ``fori_loop``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.bodies import Body, carry_out, trace_body, trace_carry
from ..api.progress import Progress
from ..control import scan as scan_primitive
from ..core.aval import Aval, aval_of
from ..core.checked import checked
from ..core.config import config
from ..core.errors import ArgumentError, ArgumentValueError
from ..core.pytree import PyTreeDef, tree_structure, tree_unflatten
from ..core.trace import concrete, is_abstract
from ..core.tracebacks import boundary
from ..core.tree_nodes import keystr
from ..primitives.elementwise.arithmetic import sub_p
from ..primitives.operands import strong
from ..transforms.values import check_function, flatten_values, value_of
from .loops import name_of_any, unrolled
from .reporting import START, reporting
from .scanning import COUNTER, Loop, pair

__all__ = ["fori_loop"]
_NUMBER = tree_structure(0)
#: Longer loops carry their counter; in others it comes in rows, of which reverse mode needs no copies.
LONG = 1 << 20


@boundary
@checked
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[..., Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Loop from one integer to another, carrying a value along.

    Parameters
    ----------
    lower, upper : int
        The counter goes from `lower` to ``upper - 1``; no iteration where `upper` is not above `lower`. Either may be
        known only when it runs (an argument of a jitted function).
    body_fun : callable
        ``body_fun(i, val) -> val``. `i` is an integer like one of Python's ``range``: it takes on the dtype of what it
        meets.
    init_val : tree
        The first value: arrays and numbers, of which each keeps its shape and dtype. A Python number takes on the
        dtype that `body_fun` gives it.
    unroll : int or bool, optional
        As for `scan`; for bounds that are known.

    Returns
    -------
    tree
        The last value.

    Raises
    ------
    CarryTypeError
        If the value comes out of `body_fun` with another shape, dtype or structure than it goes in with.
    ArgumentError
        If `body_fun` is no function, or a bound no integer.

    Notes
    -----
    The same as this Python loop, which is what runs under ``functrans.disable_jit()``::

        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    Differentiable in both modes, also where the bounds are known only when it runs (JAX refuses reverse mode then):
    what the derivative needs is kept on a tape that grows with the loop.

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
        if len(rows) > LONG and not config.disable_jit:
            return _counted(body_fun, carry, tree, np.int64(start), length=len(rows), unroll=times)
        return Loop("fori_loop", body_fun, _with_row, carry, tree, [rows], _NUMBER).run(
            len(rows), unroll=times
        )[0]
    if unroll is not None:
        raise ArgumentValueError(f"{name}: unroll needs bounds that are known, but one is a traced value")
    start, stop = [strong(b, COUNTER.dtype) for b in bounds]
    return _counted(body_fun, carry, tree, start, length=None, count=sub_p.bind(stop, start))


def _bound(name: str, which: str, x: Any) -> Any:
    value = value_of(x, lambda: f"{name}: {which}")
    aval = aval_of(value)
    if aval.shape or aval.dtype.kind not in "iu":
        raise ArgumentError(f"{name}: {which} must be an integer, got a value of type {aval}")
    return value


def _with_row(fun: Callable[..., Any], pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return fun(pair[1], pair[0]), None


def _with_counter(fun: Callable[..., Any], values: tuple[Any, Any]) -> tuple[Any, Any]:
    return fun(values[1], values[0]), values[1] + 1


def _counted(
    fun: Callable[..., Any],
    init: list[Any],
    tree: PyTreeDef,
    start: Any,
    *,
    length: int | None,
    call: Callable[..., tuple[Any, Any]] = _with_counter,
    **options: Any,
) -> Any:
    """A loop whose counter is carried."""
    if isinstance(fun, Progress):
        if length is not None:
            fun.check("fori_loop", length)
        tree = pair(tree_structure(START), tree)
        call = reporting(fun, call)
        return _counted(fun.body, [*START, *init], tree, start, length=length, call=call, **options)[1]
    in_tree = pair(tree, _NUMBER)

    def trace(avals: list[Aval]) -> Body:
        return trace_body(fun, [*avals, COUNTER], in_tree, call, avals)

    found = trace_carry("fori_loop", fun, init, tree, trace, lambda out: out.children()[0])
    outs = scan_primitive.bind(
        found.body.jaxpr,
        found.body.consts,
        [*found.init, start],
        [],
        length=length,
        **options,
    )
    return tree_unflatten(tree, carry_out(outs[: len(init)], found.weak))
