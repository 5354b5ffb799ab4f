"""``linear_call``: a linear function and its transpose, both the user's.

Forward mode is the call itself at the tangents; reverse mode transposes that call, which is a `linear_call` again with
the two functions exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.aval import Aval, Zero, aval_of
from ..core.checked import checked
from ..core.dtypes import is_inexact
from ..core.errors import (
    BackwardError,
    GradientDtypeError,
    GradientShapeError,
    GradientStructureError,
    NoRuleError,
)
from ..core.primitive import Linear
from ..core.pytree import PyTree, PyTreeDef, tree_unflatten
from ..core.trace import current_trace, eval_trace
from ..core.tracebacks import boundary
from ..core.tree_nodes import KeyPath, keystr
from ..primitives.structure.linear import added, instantiate
from ..transforms import jvp as forward
from ..transforms.values import check_function, flatten_values, given, name_of, results, returned_values
from .custom_call import bind_rule
from .returned import Kind, Returned
from .rule import CustomRule, Values

_COTANGENT = Kind("cotangent", GradientStructureError, GradientShapeError, GradientDtypeError, BackwardError)


@boundary
@checked
def linear_call(
    fun: Callable[[PyTree, PyTree], PyTree],
    fun_transpose: Callable[[PyTree, PyTree], PyTree],
    residual_args: PyTree,
    linear_args: PyTree,
) -> PyTree:
    r"""Call a linear function that comes with its own transpose.

    Parameters
    ----------
    fun : callable
        ``fun(residual_args, linear_args) -> out``, linear in the second argument.
    fun_transpose : callable
        ``fun_transpose(residual_args, ct) -> ct_linear``: from a cotangent of the structure, shapes and dtypes of `out`
        to one of those of `linear_args`. None stands for a cotangent (of a leaf, or of a whole part) that is zero.
    residual_args : tree of arrays
        What the two functions share, and need not be linear in. ``()`` where there is nothing.
    linear_args : tree of arrays

    Returns
    -------
    tree of Array
        ``fun(residual_args, linear_args)``.

    Raises
    ------
    GradientStructureError, GradientShapeError, GradientDtypeError
        If `fun_transpose` returns another structure, other shapes, or complex for real.
    CapturedTracerError
        If one of the functions reads a captured value that is being differentiated; make it a residual.

    Notes
    -----
    For :math:`y = A(r)\,x`, with :math:`A` given by `fun` and :math:`A^T` by `fun_transpose`,

    .. math:: \dot y = A(r)\,\dot x + \dot A\,x, \qquad \bar x = A(r)^T\,\bar y,

    where :math:`\dot A\,x` is the derivative of `fun` in its residuals, taken as of any function. The transpose of the
    call is a `linear_call` with the two functions exchanged, so transposing twice gives the call itself. Complex
    functions are transposed without conjugation. Nobody checks that the two belong together: ``<A x, y> = <x, A^T y>``
    is easy to test.

    JAX has no derivative in residuals, and no `vmap`.

    References
    ----------
    .. [1] A. Radul, A. Paszke, R. Frostig, M. Johnson, D. Maclaurin: You only linearize once. POPL 2023.

    Examples
    --------
    A sum of neighbours, whose transpose spreads values again:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> def pairs(_, x):
    ...     return x.reshape(-1, 2).sum(axis=1)
    >>> def spread(_, ct):
    ...     return fnp.repeat(ct, 2)
    >>> def f(x):
    ...     return fnp.sum(ft.linear_call(pairs, spread, (), x) ** 2)
    >>> x = fnp.asarray([1.0, 2.0, 3.0, 4.0])
    >>> ft.grad(f)(x)
    Array([ 6.,  6., 14., 14.])

    With a residual; the transposed call is one that can be transposed:

    >>> def scaled(x, factor):
    ...     return ft.linear_call(lambda r, x: r * x, lambda r, ct: r * ct, factor, x)
    >>> ft.grad(scaled, argnums=(0, 1))(3.0, 2.0)
    (Array(2.), Array(3.))
    >>> ft.linear_transpose(lambda y: ft.linear_transpose(lambda x: scaled(x, 2.0), 1.0)(y)[0], 1.0)(5.0)
    (Array(10.),)
    """
    what = "linear_call"
    check_function(what, fun)
    check_function(what, fun_transpose)
    known, known_tree = flatten_values(residual_args, lambda path: f"{what}: residual_args{keystr(path)}")
    moving, moving_tree = flatten_values(linear_args, lambda path: f"{what}: linear_args{keystr(path)}")
    avals = tuple([aval_of(x).strong() for x in moving])
    residuals = _Side(known_tree, tuple([aval_of(x).strong() for x in known]))
    call = _Call(fun, fun_transpose, residuals, _Side(moving_tree, avals))
    if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
        outs = call.forward([*known, *moving])
    else:
        outs = bind_rule(call.rule(), [*known, *moving], functions=(fun, fun_transpose))
    assert call.outs is not None
    return results(call.outs.tree, outs, {id(x) for x in (*known, *moving)})


@dataclass(frozen=True)
class _Side:
    """The arguments of one of the functions, and the results of the other."""

    tree: PyTreeDef
    avals: tuple[Aval, ...]


class _Call:
    """One call: the two functions as functions of flat values.

    Attributes
    ----------
    known, ins : _Side
        Residuals; linear arguments of `fun`.
    outs : _Side or None
        Its results; known when it has run once.
    """

    def __init__(self, fun: Callable[..., Any], fun_transpose: Callable[..., Any], known: _Side, ins: _Side):
        self.fun = fun
        self.fun_transpose = fun_transpose
        self.known = known
        self.count = len(known.avals)
        self.ins = ins
        self.outs: _Side | None = None

    def forward(self, values: Values) -> list[Any]:
        """The results of `fun`."""
        out = self.fun(*self._arguments(values, self.ins))
        leaves, tree = returned_values(self.fun, out)
        self.outs = _Side(tree, tuple([aval_of(x).strong() for x in leaves]))
        return leaves

    def backward(self, values: Values) -> list[Any]:
        """The results of `fun_transpose`."""
        assert self.outs is not None
        out = self.fun_transpose(*self._arguments(values, self.outs))
        title = f"fun_transpose of linear_call ({name_of(self.fun_transpose)})"
        found = Returned(_COTANGENT, title, self.fun_transpose, _place).fitted(
            out, self.ins.tree, self.ins.avals
        )
        return [instantiate(ct) for ct in found]

    def _arguments(self, values: Values, side: _Side) -> list[PyTree]:
        known, moving = values[: self.count], values[self.count :]
        return [
            tree_unflatten(tree, [given(x) for x in xs])
            for tree, xs in ((self.known.tree, known), (side.tree, moving))
        ]

    def rule(self, transposed: bool = False) -> CustomRule:
        """The rule of `fun`, or of `fun_transpose`."""
        run = self.backward if transposed else self.forward
        ins, outs = (self.outs, self.ins) if transposed else (self.ins, self.outs)
        assert ins is not None

        def at(values: Values, moving: Sequence[Any], transposed: bool) -> list[Any]:
            rule = self.rule(transposed)  # anew: by now it is known what the functions return
            return bind_rule(rule, [*values[: self.count], *moving], functions=(self.fun, self.fun_transpose))

        def jvp(values: Values, tangents: Values, again: Callable[[], list[Any]]) -> tuple[Any, Any]:
            outs = again()
            found: list[Any] = [Zero(y) for y in outs]
            known, moving = tangents[: self.count], tangents[self.count :]
            if any(type(t) is not Zero for t in moving):
                pushed = at(values, [instantiate(t) for t in moving], transposed)
                found = [t if is_inexact(aval_of(t).dtype) else z for t, z in zip(pushed, found)]
            if any(type(t) is not Zero for t in known):
                linear = values[self.count :]
                moved = forward.jvp(lambda *xs: run([*xs, *linear]), values[: self.count], known)[1]
                found = list(map(added, found, moved))
            return outs, found

        def transpose(cts: Values, values: Values) -> list[Any]:
            if any(type(x) is Linear for x in values[: self.count]):
                raise NoRuleError("linear_call is linear in linear_args, not in residual_args")
            back = at(values, [instantiate(ct) for ct in cts], not transposed)
            moving = values[self.count :]
            return [*[None] * self.count, *[ct if type(x) is Linear else None for ct, x in zip(back, moving)]]

        return CustomRule(
            name=f"linear_call of {name_of(self.fun_transpose if transposed else self.fun)}",
            arity=self.count + len(ins.avals),
            fwd=run,
            jvp=jvp,
            transpose=transpose,
            outs=None if outs is None else outs.avals,
        )


def _place(path: KeyPath) -> str:
    return f"linear_args{keystr(path)}"
