"""Choose one of several functions at run time: ``cond``, ``switch``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...api.bodies import Body, carry_out, trace_body
from ...api.refs import put_back
from ...control import cond as cond_primitive
from ...core import INT64, Aval, aval_of, boundary, concrete, is_abstract, is_float, last_line, promote
from ...core.values import ArrayLike, Index, PyTree
from ...errors import ArgumentError, ArgumentValueError, BranchTypeError, ConditionTypeError, HookError
from ...frontend.arguments import check_function, flatten_values, name_of, value_of
from ...frontend.checked import checked
from ...frontend.pytree import PyTreeDef, first_difference, leaf_path, tree_unflatten
from ...frontend.pytree.nodes import keystr
from ...primitives import ops
from ...primitives.operands import strong
from ...runtime.config import config
from ...transforms.stage import Uses

__all__ = ["cond", "switch"]
_ABSENT: Any = object()


@boundary
@checked
def cond(
    pred: ArrayLike,
    true_fun: Any,
    false_fun: Any,
    *operands: ArrayLike,
    operand: ArrayLike = _ABSENT,
) -> Any:
    """Call one of two functions; only that one runs.

    Parameters
    ----------
    pred : bool
        A scalar; a nonzero number counts as true.
    true_fun, false_fun : callable
        Calls ``true_fun(*operands)`` if `pred` is true, else ``false_fun(*operands)``. Both must return the same
        structure, shapes and dtypes.
    *operands : pytrees
    operand : pytree
        A single operand, passed by keyword.

    Returns
    -------
    pytree
        What the function returned. Python numbers get the dtype of the other branch, if they are of its kind.

    Raises
    ------
    ConditionTypeError
        If `pred` is not a scalar.
    BranchTypeError
        If the functions return different structures, shapes or dtypes.
    ArgumentError
        If `true_fun` or `false_fun` is not a function.

    Notes
    -----
    Both functions are traced, and one native branch runs: errors and NaN of the other one affect neither values nor
    derivatives. Under `vmap` with a mapped `pred`, each lane runs the branch that it chose. If `pred` is known while
    tracing (a static argument, a global), a Python ``if`` makes a smaller program.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> def log_or_line(x):
    ...     return lax.cond(x > 1.0, fnp.log, lambda x: x - 1.0, x)
    >>> log_or_line(fnp.e), log_or_line(-1.0)
    (Array(1.), Array(-2.))
    >>> ft.vmap(ft.grad(log_or_line))(fnp.asarray([0.0, 2.0]))
    Array([1. , 0.5])
    """
    if not (callable(true_fun) and callable(false_fun)):
        if len(operands) == 2 and callable(false_fun) and callable(operands[1]):
            return _with_own_operands(pred, true_fun, false_fun, *operands)
        check_function("cond", true_fun)
        check_function("cond", false_fun)
    if operand is not _ABSENT:
        if operands:
            raise ArgumentError("cond: operands are given by position or as operand=, not both")
        operands = (operand,)
    test: Any = value_of(pred, lambda: "cond: pred")
    aval = aval_of(test)
    if aval.shape:
        raise ConditionTypeError(
            f"cond: pred must be a scalar boolean, got {aval}. Reduce it: fnp.all(...), fnp.any(...); to choose for "
            "each element, use fnp.where"
        )
    holds = test if aval.dtype.kind == "b" else test != 0
    return _branch("cond", ops.convert(holds, INT64), [false_fun, true_fun], operands)


def _with_own_operands(
    pred: Any, true_operand: Any, true_fun: Any, false_operand: Any, false_fun: Any
) -> Any:
    """JAX's old form, with one operand per branch."""
    return cond(pred, lambda x, _: true_fun(x), lambda _, y: false_fun(y), true_operand, false_operand)


@boundary
@checked
def switch(
    index: Index, branches: Sequence[Callable[..., Any]], *operands: ArrayLike, operand: ArrayLike = _ABSENT
) -> Any:
    """Call one of several functions; only that one runs.

    Parameters
    ----------
    index : int
        A scalar. Values below 0 select the first branch, values beyond the end the last.
    branches : sequence of callables
        ``branches[index](*operands)``. All must return the same structure, shapes and dtypes.
    *operands : pytrees
    operand : pytree
        A single operand, passed by keyword.

    Returns
    -------
    pytree
        What the function returned.

    Raises
    ------
    ArgumentError
        If `index` is not an integer scalar, or a branch is not a function.
    ArgumentValueError
        If `branches` is empty.
    BranchTypeError
        If the functions return different structures, shapes or dtypes.

    Notes
    -----
    As for `cond`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> f = ft.jit(lambda i, x: lax.switch(i, [fnp.sin, fnp.cos, lambda x: -x], x))
    >>> f(1, 0.0), f(2, 3.0), f(7, 3.0)
    (Array(1.), Array(-3.), Array(-3.))
    """
    branches = list(branches)
    if not branches:
        raise ArgumentValueError("switch: branches is empty; give at least one function")
    for branch in branches:
        check_function("switch", branch)
    if operand is not _ABSENT:
        if operands:
            raise ArgumentError("switch: operands are given by position or as operand=, not both")
        operands = (operand,)
    value = value_of(index, lambda: "switch: index")
    aval = aval_of(value)
    if aval.shape or aval.dtype.kind not in "iu":
        raise ArgumentError(f"switch: index must be an integer scalar, got {aval}")
    if len(branches) == 1:
        return branches[0](*operands)
    last = aval.dtype.type(min(len(branches) - 1, np.iinfo(aval.dtype).max))
    clamped = ops.min_p.bind(ops.max_p.bind(value, aval.dtype.type(0)), last)
    return _branch("switch", ops.convert(clamped, INT64), branches, operands)


def _branch(what: str, index: Index, branches: list[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    if config.disable_jit and not is_abstract(index):
        return branches[int(concrete(index))](*operands)
    values, tree = flatten_values(operands, lambda path: f"{what}: operands{keystr(path)}")
    avals = [aval_of(x) for x in values]
    bodies = [trace_body(f, avals, tree, _call) for f in branches]
    for hook in [a.hook for b in bodies for a in b.hooks]:
        raise HookError(
            f"{what}: a branch calls {hook.label} on a value from outside of it, but whether the branch runs is not "
            "known yet. Pass the value as an operand, or register the hook outside",
            hook.source,
        )
    _check_structures(what, branches, bodies)
    uses = _common_uses(bodies)
    casts = any(b.casts for b in bodies)
    outs = [_joined([b.outs[i] for b in bodies], casts) for i in range(len(bodies[0].outs))]
    for k, body in enumerate(bodies):
        own = body.uses.refs == uses.refs and body.uses.written == uses.written
        if not own or any(a.dtype != b.dtype for a, b in zip(body.outs, outs)):
            bodies[k] = trace_body(
                branches[k], avals, tree, _call, outs, Uses(uses.refs, uses.written), casts
            )
    _check_types(what, branches, bodies)
    given = [strong(x, a.dtype) for x, a in zip(values, avals)]
    given += [ref.take() for ref in uses.refs]
    results = cond_primitive.bind(index, [(b.jaxpr, b.consts) for b in bodies], given)
    results = put_back(uses, results)
    weak = [all(b.outs[i].weak for b in bodies) for i in range(len(outs))]
    return tree_unflatten(bodies[0].out_tree, carry_out(results, weak))


def _common_uses(bodies: Sequence[Body]) -> Uses:
    """The refs that any branch uses, and those that any writes."""
    refs = list(dict.fromkeys([ref for body in bodies for ref in body.uses.refs]))
    written = {ref for body in bodies for ref, w in zip(body.uses.refs, body.uses.written) if w}
    return Uses(refs, [ref in written for ref in refs])


def _call(fun: Callable[..., PyTree], operands: tuple[Any, ...]) -> Any:
    return fun(*operands)


def _joined(avals: Sequence[Aval], casts: bool) -> Aval:
    """The type that the branches should return: that of the first one that is not a Python number.

    Where autocast changes dtypes in a branch, real floating-point numbers are promoted to the widest.
    """
    own = [a for a in avals if not a.weak]
    if casts and own and all(is_float(a.dtype) and a.shape == own[0].shape for a in own):
        return own[0].update(dtype=promote([(a.dtype, False) for a in own])[0])
    return own[0] if own else avals[0]


def _order(what: str, count: int) -> list[int]:
    """Branches in the user's order."""
    return [1, 0] if what == "cond" else list(range(count))


def _label(what: str, k: int) -> str:
    return ("false_fun", "true_fun")[k] if what == "cond" else f"branch {k}"


def _check_structures(what: str, branches: list[Callable[..., Any]], bodies: list[Body]) -> None:
    first, *others = _order(what, len(bodies))
    tree: PyTreeDef = bodies[first].out_tree
    for k in others:
        parted = first_difference(tree, bodies[k].out_tree)
        if parted is None:
            continue
        path, one, other = parted
        place = f" at {keystr(path)}" if path else ""
        raise BranchTypeError(
            f"{what}: the branches return different structures{place}: {one} from {_label(what, first)} "
            f"({name_of(branches[first])}), {other} from {_label(what, k)} ({name_of(branches[k])})\n"
            f"  {_label(what, first)} returns {tree}\n"
            f"  {_label(what, k)} returns {bodies[k].out_tree}",
            last_line(branches[k]),
        )


def _check_types(what: str, branches: list[Callable[..., Any]], bodies: list[Body]) -> None:
    first, *others = _order(what, len(bodies))
    for i, a in enumerate(bodies[first].outs):
        for k in others:
            b = bodies[k].outs[i]
            if a.shape == b.shape and a.dtype == b.dtype:
                continue
            path = leaf_path(bodies[k].out_tree, i)
            place = f" at {keystr(path)}" if path else ""
            dtype = np.result_type(a.dtype, b.dtype).name
            cure = "Make the shapes equal" if a.shape != b.shape else f"Convert both: .astype({dtype!r})"
            raise BranchTypeError(
                f"{what}: the branches return different types{place}: {a} from {_label(what, first)} "
                f"({name_of(branches[first])}), {b} from {_label(what, k)} ({name_of(branches[k])}). {cure}",
                bodies[k].sources[i],
            )
