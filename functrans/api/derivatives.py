"""Jacobian products: `jvp`, `vjp`, `linearize`, `linear_transpose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..arrays.array import unwrap
from ..control.call import call_p
from ..core import PYTHON_KEYS, Aval, StateAval, Unportable, Zero, aval_of, boundary, is_float0, is_inexact
from ..core.values import ArrayLike, Param, Value
from ..frontend.arguments import (
    Flat,
    argument_name,
    check_function,
    check_states,
    flatten_values,
    given,
    name_of,
    results,
    struct_aval,
    value_of,
)
from ..frontend.checked import checked
from ..frontend.pytree import PyTree, PyTreeDef, tree_flatten, tree_structure
from ..frontend.pytree.nodes import KeyPath, keystr, register_kind
from ..frontend.tree_spec import Mismatch, derivative_leaves, leaf_mismatch, real_for_real
from ..passes.toolkit import lift_tracers
from ..primitives.elementwise.arithmetic import convert
from ..primitives.structure.linear import instantiate
from ..transforms.jvp import jvp as jvp_flat
from ..transforms.linear_program import LinearProgram
from ..transforms.linearize import Linearized, replay
from ..transforms.linearize import linearize as linearize_flat
from ..transforms.stage import stage
from ..transforms.transpose import backward, transpose_jaxpr
from .grad import as_typed


def _spread(fun: Callable[..., PyTree], args: tuple[Any, ...]) -> Any:
    return fun(*args)


def flatten_primals(
    what: str, fun: Callable[..., PyTree], primals: Sequence[PyTree]
) -> tuple[list[Any], PyTreeDef]:
    """The leaves of the positional arguments as values, and the structure of their tuple."""
    check_function(what, fun)
    leaves: list[Any] = []
    for i, x in enumerate(primals):

        def place(path: KeyPath, i: int = i) -> str:
            return f"{what} of {name_of(fun)}: {argument_name(fun, i)}{keystr(path)}"

        leaves += flatten_values(x, place)[0]
    treedef = tree_structure(tuple(primals))
    check_states(what, fun, [aval_of(x) for x in leaves], tree_structure((tuple(primals), {})))
    return leaves, treedef


def _linearized(flat: Flat, leaves: Sequence[Value]) -> tuple[Linearized, Any]:
    """The linearization in all float and complex arguments, with retained residuals, and the auxiliary data."""
    perturbed = [is_inexact(aval_of(x).dtype) for x in leaves]
    linear = linearize_flat(flat, leaves, perturbed, retain=True)
    outs, aux = flat.separate(linear.outs, {id(x) for x in leaves})
    return linear._replace(outs=outs, tangents=linear.tangents[: len(outs)]), aux


def fit_tree(tree: PyTree, treedef: PyTreeDef, avals: Sequence[Aval], what: str) -> list[Any]:
    """The leaves of a tangent or cotangent, each converted to the type of its primal; None counts as zero.

    Raises
    ------
    ArgumentError
        If the structure differs.
    ShapeError
        If a shape differs.
    GradientError
        If one is complex and its primal is real.
    """
    leaves = derivative_leaves(tree, treedef)
    if isinstance(leaves, Mismatch):
        raise errors.ArgumentError(
            f"{what} must have the structure {treedef}, but has {tree_structure(tree)}"
        )
    many = len(avals) > 1
    return [
        Zero(a) if x is None or is_float0(x) else _fitted(x, a, f"{what}, leaf {i}" if many else what)
        for i, (x, a) in enumerate(zip(leaves, avals))
    ]


def _fitted(x: ArrayLike, aval: Aval, what: str) -> PyTree:
    x = value_of(x, lambda: what)
    own = aval_of(x)
    mismatch = leaf_mismatch(own, aval, real_for_real)
    if mismatch == "shape":
        raise errors.ShapeError(
            f"{what} has shape {own.shape}, but its primal has shape {aval.shape}; they must be equal"
        )
    if not is_inexact(aval.dtype):
        return Zero(aval)
    if mismatch == "dtype":
        raise errors.GradientError(
            f"{what} is complex, but its primal has dtype {aval.dtype}; take the real part"
        )
    # Rules ask a cotangent for its shape, which a Python number does not have.
    return aval.dtype.type(x) if type(x) in PYTHON_KEYS else convert(x, aval.dtype)


@boundary
@checked
def jvp(
    fun: Callable[..., PyTree],
    primals: Sequence[PyTree],
    tangents: Sequence[PyTree],
    *,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Value and directional derivative (Jacobian-vector product).

    Parameters
    ----------
    fun : callable
        A function of arrays or pytrees of arrays.
    primals : tuple or list
        The positional arguments at which to differentiate.
    tangents : tuple or list
        The direction, with the same structure and shapes; None (or a ``float0`` array) counts as zero.
    has_aux : bool
        Whether `fun` returns a pair whose second part is not differentiated.

    Returns
    -------
    (out, tangent_out) or (out, tangent_out, aux)

    Raises
    ------
    ArgumentError, ShapeError
        If structures or shapes of primals and tangents differ.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.jvp(fnp.sin, (0.0,), (2.0,))
    (Array(0.), Array(2.))
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise errors.ArgumentError(
            "jvp: primals and tangents must be tuples or lists of arguments, got "
            f"{type(primals).__name__} and {type(tangents).__name__}: write jvp(f, (x,), (t,))"
        )
    leaves, treedef = flatten_primals("jvp", fun, primals)
    ts = fit_tree(tuple(tangents), treedef, [aval_of(x) for x in leaves], "jvp: tangents")
    flat = Flat(fun, treedef, _spread, has_aux)
    outs, out_ts = jvp_flat(flat, leaves, ts)
    ids = {id(x) for x in (*leaves, *ts)}
    outs, aux = flat.separate(outs, ids)
    out = results(flat.out_tree, outs, ids)
    tangent = results(flat.out_tree, [as_typed(t, aval_of(x)) for t, x in zip(out_ts, outs)], ids)
    return (out, tangent, aux) if has_aux else (out, tangent)


class _Derivative(Unportable):
    """The derivative of a function at a point, as a linear program; `what` is the transformation that returned it."""

    what: str
    _form: _Form | None = None

    def __init__(
        self, name: str, linear: Linearized, in_tree: PyTreeDef, in_avals: list[Aval], out_tree: PyTreeDef
    ):
        self._name = name
        self._linear: Linearized | None = linear
        self._out_avals = [aval_of(x) for x in linear.outs]
        self._in_tree = in_tree
        self._in_avals = in_avals
        self._out_tree = out_tree

    def _called(self) -> str:
        return f"what {self.what} returned for {self._name}"

    @property
    def residual_bytes(self) -> int:
        """The memory that the derivative keeps besides the arguments and their copies; 0 once it is freed."""
        return 0 if self._linear is None else self._linear.residual_bytes()

    @classmethod
    def at(
        cls, fun: Callable[..., PyTree], primals: Sequence[Any], has_aux: bool, **options: Param
    ) -> tuple[Any, ...]:
        """The value at `primals`, the derivative there, and any auxiliary data."""
        leaves, in_tree = flatten_primals(cls.what, fun, primals)
        flat = Flat(fun, in_tree, _spread, has_aux)
        linear, aux = _linearized(flat, leaves)
        out = results(flat.out_tree, linear.outs, {id(x) for x in leaves})
        in_avals = [aval_of(x) for x in leaves]
        derivative = cls(name_of(fun), linear, in_tree, in_avals, flat.out_tree, **options)
        return (out, derivative, aux) if has_aux else (out, derivative)


class _Form:
    """A derivative without its residuals, as the static part of a pytree."""

    __slots__ = ("_attributes", "_kind", "_program")

    def __init__(self, derivative: _Derivative, linear: Linearized):
        self._kind = type(derivative)
        self._program = LinearProgram(linear)
        self._attributes = {**vars(derivative), "_linear": None}

    @staticmethod
    def flatten(derivative: _Derivative) -> tuple[list[Any], Any]:
        """The residuals of a derivative (unless they were freed), and its form."""
        linear = derivative._linear
        if linear is None:
            return [], (derivative._form or derivative, False)
        if derivative._form is None:
            derivative._form = _Form(derivative, linear)
        return [given(x) for x in derivative._form._program.values(linear)], (derivative._form, True)

    @staticmethod
    def filled(aux: PyTree, values: Sequence[Any]) -> _Derivative:
        """The derivative with this form and these residuals."""
        form, alive = aux
        if isinstance(form, _Derivative):
            return form
        derivative: _Derivative = object.__new__(form._kind)
        vars(derivative).update(form._attributes, _form=form)
        if alive:
            derivative._linear = form._program.filled([unwrap(x) for x in values])
        return derivative


class VJP(_Derivative):
    """The pullback that `vjp` returns, from a cotangent of the output to a tuple of cotangents of the arguments.

    It may be called any number of times, unless `vjp` had ``retain=False``.
    """

    what = "vjp"

    def __init__(self, *parts: Any, retain: bool):
        super().__init__(*parts)
        self._retain = retain

    @boundary
    def __call__(self, cotangent: PyTree) -> PyTree:
        """A tuple of cotangents of the arguments, for a `cotangent` with the structure and shapes of the output."""
        linear = self._linear
        if linear is None:
            how = "by the first call" if not self._retain else "by release()"
            raise errors.SavedValuesFreedError(
                f"vjp of {self._name}: Trying to backward through the graph a second time (or directly access saved "
                "tensors after they have already been freed). Its residuals were freed "
                f"{how}. Leave retain at True (the default), and call release() after the last call"
            )
        cts = fit_tree(cotangent, self._out_tree, self._out_avals, f"vjp of {self._name}: the cotangent")
        arg_cts = backward(linear.tape, linear.tangents, cts, linear.inputs)
        if not self._retain and linear.holds_residuals:
            self._linear = None
        values = [
            None if type(a) is StateAval else as_typed(Zero(a) if c is None else c, a)
            for c, a in zip(arg_cts, self._in_avals)
        ]
        return results(self._in_tree, values, {id(c) for c in cts})

    def release(self) -> None:
        """Free the residuals now; a later call raises `SavedValuesFreedError`."""
        self._linear = None

    def __repr__(self) -> str:
        freed = " (freed)" if self._linear is None else ""
        return f"<vjp of {self._name}: {self._out_tree} -> {self._in_tree}{freed}>"


@boundary
@checked
def vjp(
    fun: Callable[..., PyTree], *primals: PyTree, has_aux: bool = False, retain: bool = True
) -> tuple[Any, ...]:
    """The value, and the pullback from output cotangents to argument cotangents (vector-Jacobian product).

    Parameters
    ----------
    fun : callable
    *primals
        The arguments: arrays or pytrees of arrays. Integers get a zero cotangent.
    has_aux : bool
        As for `jvp`.
    retain : bool
        Whether ``vjp_fun`` may be called more than once. If not, its first call frees the residuals, if it has any.

    Returns
    -------
    (out, vjp_fun) or (out, vjp_fun, aux)
        ``vjp_fun(ct)`` takes a cotangent with the structure and shapes of `out`, and returns a tuple with a cotangent
        for each primal. It stays valid if you change the arrays passed here.

    Raises
    ------
    SavedValuesFreedError
        When ``vjp_fun`` is called after its residuals were freed: a second time with ``retain=False``, or after
        ``vjp_fun.release()``.

    Notes
    -----
    `vjp` evaluates `fun` once; each call of ``vjp_fun`` costs a small multiple of that. The residuals live as long as
    ``vjp_fun``, or until ``vjp_fun.release()``. ``vjp_fun`` is a pytree of these arrays: it passes through `jit`,
    `vmap` and loops, and custom rules may save it.

    Examples
    --------
    >>> import functrans as ft
    >>> y, pull = ft.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pull(1.0)
    (Array(3.), Array(2.))
    >>> pull(10.0)
    (Array(30.), Array(20.))
    >>> pull.release()
    """
    return VJP.at(fun, primals, has_aux, retain=retain)


class Pushforward(_Derivative):
    """The function that `linearize` returns, from tangents of the arguments to the tangent of the output."""

    what = "linearize"

    @boundary
    def __call__(self, *tangents: ArrayLike) -> PyTree:
        """The tangent of the output, for a tangent of each argument."""
        ts = fit_tree(tangents, self._in_tree, self._in_avals, f"linearize of {self._name}: tangents")
        assert self._linear is not None
        outs = replay(self._linear, [instantiate(t) for t in ts])
        out_tangents = [as_typed(t, a) for t, a in zip(outs, self._out_avals)]
        return results(self._out_tree, out_tangents, {id(t) for t in ts})

    def __repr__(self) -> str:
        return f"<linearized {self._name}: {self._in_tree} -> {self._out_tree}>"


register_kind(VJP, _Form.flatten, _Form.filled)
register_kind(Pushforward, _Form.flatten, _Form.filled)


@boundary
@checked
def linearize(fun: Callable[..., PyTree], *primals: PyTree, has_aux: bool = False) -> tuple[Any, ...]:
    """The value, and the derivative there as a linear function that is cheap to apply many times.

    Parameters
    ----------
    fun : callable
    *primals
        The arguments.
    has_aux : bool
        As for `jvp`.

    Returns
    -------
    (out, jvp_fun) or (out, jvp_fun, aux)
        ``jvp_fun(*tangents)`` takes a tangent for each primal, and returns the output's tangent.

    Notes
    -----
    Unlike `jvp`, this evaluates `fun` only once; ``jvp_fun`` runs only linear operations.

    Examples
    --------
    >>> import functrans as ft
    >>> y, push = ft.linearize(lambda x: x ** 3, 2.0)
    >>> push(1.0)
    Array(12.)
    """
    return Pushforward.at(fun, primals, has_aux)


@boundary
@checked
def linear_transpose(fun: Callable[..., PyTree], *primals: ArrayLike) -> Callable[[PyTree], PyTree]:
    """The transpose of a linear function.

    Parameters
    ----------
    fun : callable
        Linear in all its arguments; otherwise a `NoRuleError` names the operation that is not.
    *primals
        Arrays or `ShapeDtypeStruct`s with the types of its arguments.

    Returns
    -------
    callable
        Maps a cotangent of the output to a tuple of cotangents of the arguments.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6.),)
    """
    check_function("linear_transpose", fun)
    leaves, treedef = tree_flatten(primals)
    avals = [
        struct_aval(x, lambda: f"linear_transpose of {name_of(fun)}: an argument").strong() for x in leaves
    ]
    for a in avals:
        if not is_inexact(a.dtype):
            raise errors.GradientError(
                f"linear_transpose of {name_of(fun)}: the primals (its arguments) must be float "
                f"or complex, got {a.dtype}"
            )
    flat = Flat(fun, treedef, _spread)
    jaxpr, captured = lift_tracers(stage(flat, avals, name_of(fun), argument=flat.argument))

    def transposed(cotangent: PyTree) -> PyTree:
        cts = fit_tree(
            cotangent, flat.out_tree, jaxpr.out_avals, f"linear_transpose of {name_of(fun)}: the cotangent"
        )
        nonzero = tuple(type(c) is not Zero for c in cts)
        try:
            linear = (False,) * len(captured) + (True,) * len(avals)
            body, has = transpose_jaxpr(jaxpr, linear, nonzero)
        except errors.MissingRuleError:
            raise
        except errors.NoRuleError as error:
            raise errors.GradientError(
                f"linear_transpose of {name_of(fun)}: the function is not linear: {error.message}"
            ) from None
        arg_cts = iter(call_p.bind(*captured, *[c for c in cts if type(c) is not Zero], jaxpr=body))
        values = [next(arg_cts) if h else instantiate(Zero(a)) for h, a in zip(has, avals)]
        return results(treedef, values, {id(c) for c in cts})

    return transposed
