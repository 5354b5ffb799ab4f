"""One call of a function with rules in JAX's form: the user's functions of trees as slots of flat values."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from .. import errors
from ..arrays.array import Array, unwrap
from ..core import (
    PYTHON_KEYS,
    Aval,
    Tracer,
    Zero,
    aval_of,
    debug_nans_active,
    float0,
    has_jax_semantics,
    is_inexact,
    last_line,
)
from ..core.values import ArrayLike, Tangent
from ..frontend.arguments import given, name_of, returned_values, value_of
from ..frontend.binding import Positions
from ..frontend.checked import checked
from ..frontend.pytree import LEAF, PyTree, PyTreeDef, tree_flatten, tree_map, tree_unflatten
from ..frontend.pytree.nodes import KeyPath, SequenceKey, keystr
from ..frontend.tree_spec import TreeSpec
from ..primitives.structure.linear import added, instantiate, zeros
from ..runtime.context import cached_property
from ..runtime.records import NamedTuple
from .closures import Sealed, Staged, may_capture
from .returned import GRADIENT, TANGENT, DerivativeCheck, exact, output_place
from .rule import Again, CustomRule, Forward, Mask, Pushed, UserFunction, Values


@dataclass(frozen=True, eq=False)
class Declared(Sealed):
    """A function and its rules, as the user wrote them.

    Attributes
    ----------
    fun : callable
    positions : Positions
    fwd, bwd : callable
        Both or none.
    jvp : callable
    partials : tuple of (callable or None)
        Instead of `jvp` a rule for each argument.
    symbolic_vjp, symbolic_jvp : bool
        Whether the rules take symbolic zeros.
    """

    fun: UserFunction
    positions: Positions
    fwd: UserFunction | None = None
    bwd: UserFunction | None = None
    jvp: UserFunction | None = None
    partials: tuple[UserFunction | None, ...] | None = None
    symbolic_vjp: bool = False
    symbolic_jvp: bool = False

    @cached_property
    def has_rule(self) -> bool:
        """Whether there is any rule."""
        return self.bwd is not None or self.has_forward

    @cached_property
    def has_forward(self) -> bool:
        """Whether there is a rule for forward mode."""
        return self.jvp is not None or self.partials is not None

    @cached_property
    def name(self) -> str:
        """That of the function."""
        return name_of(self.fun)

    @cached_property
    def functions(self) -> tuple[Any, ...]:
        """What may have captured traced values."""
        known = (self.fun, self.fwd, self.bwd, self.jvp, *(self.partials or ()))
        return tuple([f for f in known if may_capture(f)])


def check_partials(positions: Positions, rules: int, arguments: int) -> None:
    """Raise `TangentCountError` where ``defjvps`` received too few or too many rules."""
    if rules != arguments:
        raise errors.TangentCountError(
            f"{positions.where}: defjvps was given {rules} rules, but the function has {arguments} arguments. Give one "
            "for each, None where its derivative is zero"
        )


@dataclass(frozen=True, eq=False)
class CustomVJPPrimal:
    """An argument as ``fwd`` gets it with ``symbolic_zeros=True``.

    Attributes
    ----------
    value : array
    perturbed : bool
        Whether it is being differentiated. If not, its gradient is never used, and may be None.

    Examples
    --------
    >>> import functrans as ft
    >>> @ft.custom_vjp
    ... def product(x, y):
    ...     return x * y
    >>> def fwd(x, y):  # keeps only what will be needed
    ...     return x.value * y.value, (x.value if y.perturbed else None, y.value if x.perturbed else None)
    >>> def bwd(residuals, ct):
    ...     x, y = residuals
    ...     return (None if y is None else ct * y), (None if x is None else ct * x)
    >>> product.defvjp(fwd, bwd, symbolic_zeros=True)
    >>> ft.grad(product)(2.0, 3.0)
    Array(3.)
    """

    value: Any
    perturbed: bool


@checked
def custom_vjp_primal_tree_values(tree: PyTree) -> PyTree:
    """The values in a tree of `CustomVJPPrimal`.

    Parameters
    ----------
    tree : tree of CustomVJPPrimal

    Returns
    -------
    tree of arrays, of the same structure

    Raises
    ------
    ArgumentError
        If a leaf is not a `CustomVJPPrimal`.

    Examples
    --------
    >>> from functrans.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
    >>> custom_vjp_primal_tree_values({"x": CustomVJPPrimal(2.0, perturbed=True)})
    {'x': 2.0}
    """

    def value(leaf: Any) -> Any:
        if not isinstance(leaf, CustomVJPPrimal):
            raise errors.ArgumentError(
                f"custom_vjp_primal_tree_values: expected a tree of CustomVJPPrimal, got {str(leaf)[:60]!r} of type "
                f"{type(leaf).__name__} in it. A fwd rule gets them with defvjp(..., symbolic_zeros=True)"
            )
        return leaf.value

    return tree_map(value, tree)


@checked
def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero that is the tangent of a value, or those of all values in a tree.

    Parameters
    ----------
    val : array, or tree of arrays
    symbolic_zeros : bool
        Whether to return `SymbolicZero`, which rules with ``symbolic_zeros=True`` may return.

    Returns
    -------
    tree of the same structure
        With zeros of the shape and dtype of each array, or `SymbolicZero`. With ``config.jax_semantics``, zeros of
        integers have the dtype ``float0``, as in JAX.

    Examples
    --------
    >>> from functrans.custom_derivatives import zero_from_primal
    >>> zero_from_primal([1.0, 2.0][0]), zero_from_primal(2.0, symbolic_zeros=True)
    (Array(0.), Zero(f64[]))
    >>> zero_from_primal({"b": 3.0, "w": 2.0})
    {'b': Array(0.), 'w': Array(0.)}
    """

    def zero(leaf: Any) -> Any:
        aval = aval_of(value_of(leaf, lambda: "zero_from_primal: val")).strong()
        if symbolic_zeros:
            return Zero(aval)
        if has_jax_semantics() and not is_inexact(aval.dtype):
            return np.zeros(aval.shape, float0)
        return given(zeros(aval))

    return tree_map(zero, val)


#: What residuals may hold besides arrays.
_STATIC = (*PYTHON_KEYS, str, bytes, type, np.dtype, enum.Enum, Staged)


class _Token(NamedTuple):
    """What ``bwd`` needs besides arrays: structures, and residuals that are not arrays, by position."""

    residuals: PyTreeDef
    static: list[tuple[int, Any]]
    outs: PyTreeDef
    avals: list[Aval]


class JaxCall(CustomRule):
    """One call.

    Parameters
    ----------
    declared : Declared
    nondiff : tuple
        The arguments that are not differentiated, as they are.
    treedef : PyTreeDef
        Of the tuple of the others.
    """

    def __init__(self, declared: Declared, nondiff: tuple[Any, ...], treedef: PyTreeDef):
        self.declared = declared
        self.name = declared.name
        self.has_reverse = declared.bwd is not None
        self.has_forward = declared.has_forward
        self.nondiff = nondiff
        self.treedef = treedef
        self.arity = treedef.num_leaves
        self.count = len(treedef.children())
        self.flat = treedef.num_nodes == self.count + 1 == self.arity + 1  # no argument is a tree
        self.out_tree: Any = None
        self.out_avals: list[Aval] = []
        self.source: UserFunction = declared.fun  # gave the type of the outputs

    @property
    def no_reverse(self) -> str:  # type: ignore[override]
        """The cure."""
        return f"it has no rule. Define one: {self.name}.defvjp(fwd, bwd)"

    @property
    def no_forward(self) -> str:  # type: ignore[override]
        """The cure."""
        return f"it has no jvp rule. Define one: {self.name}.defjvp(jvp)"

    # --- slots ---------------------------------------------------------------------------------------------------

    def fwd(self, values: Values) -> list[Any]:
        """The outputs of the function itself."""
        d = self.declared
        return self._outputs(d.fun, d.fun(*d.positions.merged(self.nondiff, self._tree(values))))

    def fwd_res(self, values: Values, perturbed: Mask, again: Again) -> Forward:
        """Outputs and residuals, by the user's ``fwd``."""
        d = self.declared
        rule = d.fwd
        assert rule is not None
        avals = list(map(aval_of, values))
        leaves = list(map(given, values))
        if d.symbolic_vjp:
            moving = [p and is_inexact(a.dtype) for p, a in zip(perturbed, avals)]
            leaves = [CustomVJPPrimal(x, p) for x, p in zip(leaves, moving)]
        args = leaves if self.flat else tree_unflatten(self.treedef, leaves)
        pair = rule(*d.positions.merged(self.nondiff, args)) if self.nondiff else rule(*args)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            text = f"must return a pair (output, residuals), but returned {described(pair)}"
            self._refuse("fwd", rule, errors.FunctionDefinitionError, text)
        outs = self._outputs(rule, pair[0])
        residuals, token = self._residuals(rule, pair[1], avals)
        return Forward(outs, residuals, token, materialized=not d.symbolic_vjp)

    def bwd(self, token: Any, residuals: Values, cts: Values) -> list[Any]:
        """Cotangents of all operands, by the user's ``bwd``."""
        d = self.declared
        rule = d.bwd
        assert rule is not None
        leaves = list(map(given, residuals))
        for i, x in token.static:
            leaves.insert(i, x)
        saved = leaves[0] if token.residuals is LEAF else tree_unflatten(token.residuals, leaves)
        derivatives = _derivatives(cts, d.symbolic_vjp)
        cotangents = derivatives[0] if token.outs is LEAF else tree_unflatten(token.outs, derivatives)
        gradients = rule(*self.nondiff, saved, cotangents)
        if type(gradients) is not tuple or len(gradients) != self.count:
            self._check_count(rule, gradients)
        return self._gradients(rule, tuple(gradients), token.avals)

    def jvp(self, values: Values, tangents: Values, again: Again) -> Pushed:
        """Outputs and their tangents, by the user's ``jvp``."""
        d = self.declared
        rule = d.jvp
        if rule is None:
            return self._partials(values, tangents, again)
        ts = tree_unflatten(self.treedef, _derivatives(tangents, d.symbolic_jvp))
        pair = rule(*self.nondiff, self._tree(values), ts)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            text = f"must return a pair (output, tangent of the output), but returned {described(pair)}"
            self._refuse("jvp", rule, errors.TangentError, text)
        return self._outputs(rule, pair[0]), self._tangents("jvp", rule, pair[1])

    def _partials(self, values: Values, tangents: Values, again: Again) -> Pushed:
        """Outputs and their tangents, by a rule for each argument that moves."""
        d = self.declared
        assert d.partials is not None
        outs = again()
        primals = self._tree(values)
        check_partials(d.positions, len(d.partials), len(primals))
        out = tree_unflatten(self.out_tree, [given(x) for x in outs])
        totals: list[Tangent] = [Zero(a) for a in self.out_avals]
        rest = iter(tangents)
        for i, (rule, tree) in enumerate(zip(d.partials, self.treedef.children())):
            ts = [next(rest) for _ in range(tree.num_leaves)]
            if rule is None or all(type(t) is Zero for t in ts):
                continue
            tangent = rule(tree_unflatten(tree, _derivatives(ts, False)), out, *primals)
            totals = list(map(added, totals, self._tangents(f"jvp {i}", rule, tangent)))
        return outs, totals

    # --- trees ---------------------------------------------------------------------------------------------------

    def _tree(self, values: Values) -> PyTree:
        return tree_unflatten(self.treedef, [given(x) for x in values])

    def _title(self, slot: str, rule: UserFunction) -> str:
        return f"{self.declared.positions.where}: the {slot} rule {name_of(rule)}"

    def _refuse(
        self, slot: str, rule: UserFunction, error: type[errors.FunctransError], text: str
    ) -> NoReturn:
        raise error(f"{self._title(slot, rule)} {text}", last_line(rule))

    def _gradients(self, rule: UserFunction, returned: tuple[Any, ...], avals: list[Aval]) -> list[Any]:
        if self.flat and not debug_nans_active():
            gradients = exact(returned, avals, "fc")
            if gradients is not None:
                return gradients
        check = DerivativeCheck(GRADIENT, self._title("bwd", rule), rule, self._argument)
        return check.fitted(returned, self.treedef, avals)

    def _tangents(self, slot: str, rule: UserFunction, tree: PyTree) -> list[Any]:
        check = DerivativeCheck(TANGENT, self._title(slot, rule), rule, output_place)
        return check.fitted(tree, self.out_tree, self.out_avals)

    def _argument(self, path: KeyPath) -> str:
        d = self.declared
        if not path or not isinstance(path[0], SequenceKey):
            return "the arguments"
        return f"{d.positions.place(path[0].idx)}{keystr(path[1:])}"

    def _outputs(self, rule: UserFunction, out: PyTree) -> list[Any]:
        """The leaves of an output; the function and its rules must all return the same type."""
        leaves, tree = returned_values(rule, out)
        avals = [aval_of(x) for x in leaves]
        if self.out_tree is None:
            self.source, self.out_tree, self.out_avals = rule, tree, avals
            return leaves
        mismatch = TreeSpec(self.out_tree, self.out_avals).mismatch(tree, avals)
        if mismatch is not None:
            aspect, path, expected, got, _ = mismatch
            if aspect != "structure":
                aspect, expected, got = "shape and dtype", expected.strong(), got.strong()
            raise errors.FunctionDefinitionError(
                f"{self.declared.positions.where}: {name_of(rule)} returned {got} as {output_place(path)}, but "
                f"{name_of(self.source)} returned {expected}: the function and its rules must return outputs of one "
                f"{aspect}",
                last_line(rule),
            )
        return leaves

    def _residuals(self, rule: UserFunction, tree: PyTree, avals: list[Aval]) -> tuple[list[Any], _Token]:
        if type(tree) is Array:
            return [unwrap(tree)], _Token(LEAF, [], self.out_tree, avals)
        leaves, treedef = tree_flatten(tree)
        static: list[tuple[int, Any]] = []
        arrays = []
        for i, x in enumerate(leaves):
            if type(x) is Array:
                arrays.append(unwrap(x))
            elif isinstance(x, _STATIC) and not isinstance(x, np.generic):
                static.append((i, x))
            else:
                arrays.append(self._residual(rule, x))
        return arrays, _Token(treedef, static, self.out_tree, avals)

    def _residual(self, rule: UserFunction, x: ArrayLike) -> Any:
        if isinstance(x, CustomVJPPrimal):
            text = "returned a CustomVJPPrimal among the residuals: keep x.value"
            self._refuse("fwd", rule, errors.ArgumentError, text)
        return value_of(x, lambda: f"{self._title('fwd', rule)}: a residual")

    def _check_count(self, rule: UserFunction, gradients: Any) -> None:
        if not isinstance(gradients, tuple | list):
            text = (
                f"must return a tuple with a gradient for each argument ({self.count}), but returned "
                f"{described(gradients)}. For one argument write: return (gradient,)"
            )
            self._refuse("bwd", rule, errors.GradientStructureError, text)
        if len(gradients) != self.count:
            text = (
                f"returned an incorrect number of gradients (expected {self.count}, got {len(gradients)}). Return one "
                "for each argument that is not in nondiff_argnums, None for zero"
            )
            self._refuse("bwd", rule, errors.GradientCountError, text)


def _derivatives(values: Values, symbolic: bool) -> list[Any]:
    """Tangents or cotangents as a user's rule gets them."""
    return [given(x) if type(x) is not Zero else x if symbolic else given(instantiate(x)) for x in values]


def described(x: Any) -> str:
    """What a rule returned, in words."""
    if isinstance(x, tuple | list):
        return f"a {type(x).__name__} of length {len(x)}"
    if x is None or isinstance(x, Tracer):
        return str(x)
    return f"{str(x)[:60]!r} of type {type(x).__name__}"
