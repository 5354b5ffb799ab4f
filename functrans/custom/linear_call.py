"""``linear_call``: a linear function and its transpose, both written by the user.

Forward mode is the call itself at the tangents. Reverse mode transposes that call: it is a `linear_call` again, with
the two functions exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .. import errors
from ..core import Linear, Zero, aval_of, boundary, current_trace, eval_trace, is_inexact
from ..core.values import Value
from ..frontend.arguments import check_function, flatten_values, given, name_of, results, returned_values
from ..frontend.checked import checked
from ..frontend.pytree import PyTree, tree_unflatten
from ..frontend.pytree.nodes import KeyPath, keystr
from ..frontend.tree_spec import TreeSpec
from ..passes.masks import perturbed
from ..primitives.structure.linear import added, instantiate
from ..runtime.records import dataclass
from ..transforms import jvp as forward
from .custom_call import bind_rule
from .returned import GRADIENT, DerivativeCheck
from .rule import Again, CustomRule, Pushed, Values

_COTANGENT = replace(GRADIENT, name="cotangent")


@boundary
@checked
def linear_call(
    fun: Callable[[PyTree, PyTree], PyTree],
    fun_transpose: Callable[[PyTree, PyTree], PyTree],
    residual_args: PyTree,
    linear_args: PyTree,
) -> PyTree:
    r"""Call a linear function together with its transpose.

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
    For :math:`y = A(r)\,x`, where `fun` computes :math:`A` and `fun_transpose` :math:`A^T`,

    .. math:: \dot y = A(r)\,\dot x + \dot A\,x, \qquad \bar x = A(r)^T\,\bar y,

    where :math:`\dot A\,x` is the derivative of `fun` in its residuals, taken as of any function. The transpose of the
    call is a `linear_call` with the two functions exchanged, so transposing twice gives the call itself. Complex
    functions are transposed without conjugation. Whether the two belong together is not checked: test it by
    ``<A x, y> = <x, A^T y>``.

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
    values: list[Any] = []
    specs = []
    for name, tree in (("residual_args", residual_args), ("linear_args", linear_args)):
        leaves, treedef = flatten_values(tree, lambda path, name=name: f"{what}: {name}{keystr(path)}")  # type: ignore[misc]
        specs.append(TreeSpec(treedef, tuple([aval_of(x).strong() for x in leaves])))
        values += leaves
    call = _LinearCall(fun, fun_transpose, specs[0], specs[1])
    if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
        outs = call.fwd(values)
    else:
        outs = bind_rule(call, values, functions=(fun, fun_transpose))
    assert call.results is not None
    return results(call.results.tree, outs, set(map(id, values)))


@dataclass(eq=False)
class _LinearCall(CustomRule):
    """One call of `fun` (or, if `transposed`, of `fun_transpose`) as a function of flat values.

    Attributes
    ----------
    residuals, inputs : TreeSpec
        The two arguments of `fun`.
    results : TreeSpec or None
        What `fun` returns; None before its first call.
    """

    fun: Callable[..., PyTree]
    fun_transpose: Callable[..., Any]
    residuals: TreeSpec
    inputs: TreeSpec
    results: TreeSpec | None = None
    transposed: bool = False
    has_forward = has_transpose = True

    def __post_init__(self) -> None:
        self.name = f"linear_call of {name_of(self.fun_transpose if self.transposed else self.fun)}"
        self.count = len(self.residuals.avals)
        argument, returned = (self.results, self.inputs) if self.transposed else (self.inputs, self.results)
        assert argument is not None
        self.arity = self.count + len(argument.avals)
        self.outs = None if returned is None else tuple(returned.avals)

    def fwd(self, values: Values) -> list[Value]:
        """The results of `fun`, or of `fun_transpose`."""
        leaves = list(map(given, values))
        residuals, linear = tree_unflatten(self.residuals.tree, leaves[: self.count]), leaves[self.count :]
        if self.transposed:
            assert self.results is not None
            out = self.fun_transpose(residuals, tree_unflatten(self.results.tree, linear))
            title = f"fun_transpose of linear_call ({name_of(self.fun_transpose)})"
            check = DerivativeCheck(_COTANGENT, title, self.fun_transpose, _place)
            return list(map(instantiate, check.fitted(out, *self.inputs)))
        outs, tree = returned_values(self.fun, self.fun(residuals, tree_unflatten(self.inputs.tree, linear)))
        self.results = TreeSpec(tree, tuple([aval_of(x).strong() for x in outs]))
        return outs

    def _at(self, values: Values, linear: Values, transposed: bool) -> list[Value]:
        """The call, or its transpose, at other linear arguments."""
        call = replace(self, transposed=transposed)
        functions = (self.fun, self.fun_transpose)
        return bind_rule(call, [*values[: self.count], *map(instantiate, linear)], functions)

    def jvp(self, values: Values, tangents: Values, again: Again) -> Pushed:
        """Outputs and their tangents: the call at the tangents, and the derivative of `fun` in its residuals."""
        outs = again()
        pushed: list[Any] = [Zero(y) for y in outs]
        t_residuals, t_linear = tangents[: self.count], tangents[self.count :]
        if any(perturbed(t_linear)):
            at_tangents = self._at(values, t_linear, self.transposed)
            pushed = [t if is_inexact(aval_of(t).dtype) else z for t, z in zip(at_tangents, pushed)]
        if any(perturbed(t_residuals)):
            linear = values[self.count :]
            moved = forward.jvp(lambda *xs: self.fwd([*xs, *linear]), values[: self.count], t_residuals)[1]
            pushed = list(map(added, pushed, moved))
        return outs, pushed

    def transpose(self, cts: Values, values: Values) -> list[Any]:
        """Cotangents of the linear arguments: the other function at those of the outputs."""
        if any(type(x) is Linear for x in values[: self.count]):
            raise errors.NoRuleError("linear_call is linear in linear_args, not in residual_args")
        back = self._at(values, cts, not self.transposed)
        return [
            *[None] * self.count,
            *[ct if type(x) is Linear else None for ct, x in zip(back, values[self.count :])],
        ]


def _place(path: KeyPath) -> str:
    return f"linear_args{keystr(path)}"
