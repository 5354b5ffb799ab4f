"""``linear_call``: a linear function and its transpose, both the user's.

Forward mode is the call itself at the tangents; reverse mode transposes that call, which is a `linear_call` again with
the two functions exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.aval import Aval, Zero, aval_of
from ..core.dtypes import is_inexact
from ..core.errors import (
    BackwardError,
    GradientDtypeError,
    GradientShapeError,
    GradientStructureError,
    NoRuleError,
)
from ..core.primitive import Linear
from ..core.trace import current_trace, eval_trace
from ..core.tracebacks import boundary
from ..frontend.arguments import check_function, flatten_values, given, name_of, results, returned_values
from ..frontend.checked import checked
from ..frontend.pytree import PyTree, PyTreeDef, tree_unflatten
from ..frontend.pytree.nodes import KeyPath, keystr
from ..primitives.structure.linear import added, instantiate
from ..transforms import jvp as forward
from .custom_call import bind_rule
from .returned import DerivativeCheck, Kind
from .rule import Again, CustomRule, Pushed, Values

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
    call = _LinearCall(fun, fun_transpose, residuals, _Side(moving_tree, avals))
    if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
        outs = call.fwd([*known, *moving])
    else:
        outs = bind_rule(call, [*known, *moving], functions=(fun, fun_transpose))
    assert call.results is not None
    return results(call.results.tree, outs, {id(x) for x in (*known, *moving)})


@dataclass(frozen=True)
class _Side:
    """The arguments of one of the functions, and the results of the other."""

    tree: PyTreeDef
    avals: tuple[Aval, ...]


class _LinearCall(CustomRule):
    """One call of `fun` (or, `transposed`, of `fun_transpose`) as a function of flat values.

    Attributes
    ----------
    known, ins : _Side
        Residuals; linear arguments of `fun`.
    results : _Side or None
        Its results; known when it has run once.
    """

    has_forward = has_transpose = True

    def __init__(
        self,
        fun: Callable[..., Any],
        fun_transpose: Callable[..., Any],
        known: _Side,
        ins: _Side,
        results: _Side | None = None,
        transposed: bool = False,
    ):
        self.fun = fun
        self.fun_transpose = fun_transpose
        self.known = known
        self.count = len(known.avals)
        self.ins = ins
        self.results = results
        self.transposed = transposed
        side, back = (results, ins) if transposed else (ins, results)
        assert side is not None
        self.name = f"linear_call of {name_of(fun_transpose if transposed else fun)}"
        self.arity = self.count + len(side.avals)
        self.outs = None if back is None else back.avals

    def fwd(self, values: Values) -> list[Any]:
        """The results of `fun`, or of `fun_transpose`."""
        known, moving = values[: self.count], values[self.count :]
        residuals = tree_unflatten(self.known.tree, map(given, known))
        if self.transposed:
            assert self.results is not None
            out = self.fun_transpose(residuals, tree_unflatten(self.results.tree, map(given, moving)))
            title = f"fun_transpose of linear_call ({name_of(self.fun_transpose)})"
            check = DerivativeCheck(_COTANGENT, title, self.fun_transpose, _place)
            return [instantiate(ct) for ct in check.fitted(out, self.ins.tree, self.ins.avals)]
        out = self.fun(residuals, tree_unflatten(self.ins.tree, map(given, moving)))
        leaves, tree = returned_values(self.fun, out)
        self.results = _Side(tree, tuple([aval_of(x).strong() for x in leaves]))
        return leaves

    def _at(self, values: Values, moving: Values, transposed: bool) -> list[Any]:
        """The call, or its transpose, at other linear arguments."""
        call = _LinearCall(self.fun, self.fun_transpose, self.known, self.ins, self.results, transposed)
        functions = (self.fun, self.fun_transpose)
        return bind_rule(call, [*values[: self.count], *map(instantiate, moving)], functions)

    def jvp(self, values: Values, tangents: Values, again: Again) -> Pushed:
        outs = again()
        found: list[Any] = [Zero(y) for y in outs]
        known, moving = tangents[: self.count], tangents[self.count :]
        if any(type(t) is not Zero for t in moving):
            pushed = self._at(values, moving, self.transposed)
            found = [t if is_inexact(aval_of(t).dtype) else z for t, z in zip(pushed, found)]
        if any(type(t) is not Zero for t in known):
            linear = values[self.count :]
            moved = forward.jvp(lambda *xs: self.fwd([*xs, *linear]), values[: self.count], known)[1]
            found = list(map(added, found, moved))
        return outs, found

    def transpose(self, cts: Values, values: Values) -> list[Any]:
        if any(type(x) is Linear for x in values[: self.count]):
            raise NoRuleError("linear_call is linear in linear_args, not in residual_args")
        back = self._at(values, cts, not self.transposed)
        moving = values[self.count :]
        return [*[None] * self.count, *[ct if type(x) is Linear else None for ct, x in zip(back, moving)]]


def _place(path: KeyPath) -> str:
    return f"linear_args{keystr(path)}"
