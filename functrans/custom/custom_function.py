"""``custom_vjp``, ``custom_jvp``, ``custom_gradient``: functions that have rules, and apply them when called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..arrays.array import Array, WeakArray
from ..core import Tracer, aval_of, boundary, current_trace, eval_trace, last_line
from ..core.values import Value
from ..errors import ArgumentError, FunctionDefinitionError, MissingRuleError
from ..frontend.arguments import flatten_values, given, name_of, results, returned_values
from ..frontend.binding import RuledFunction
from ..frontend.checked import checked
from ..frontend.pytree import PyTree, PyTreeDef, tree_map, tree_structure, tree_unflatten
from ..frontend.pytree.nodes import keystr
from ..primitives.elementwise.arithmetic import stop_gradient_p
from .closures import Apart, Staged
from .custom_call import bind_rule
from .jax_call import Declared, JaxCall, check_partials, described

_IMMUTABLE = frozenset((Array, WeakArray, float, int, complex, bool))


class CustomFunction(RuledFunction):
    """A function with derivative rules from the user. Subclasses say which must be defined."""

    #: What the error says when a function without rules is called.
    _missing: ClassVar[str]
    _of_function_inside = frozenset(("def_vmap",))

    def __init__(
        self,
        fun: Callable[..., PyTree],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Iterable[str] = (),
    ):
        self._wrap(fun, nondiff_argnums, nondiff_argnames)
        self._declared = Declared(fun, self._positions)

    def defvjp(
        self,
        fwd: Callable[..., tuple[Any, Any]],
        bwd: Callable[..., PyTree],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Define the rule for reverse mode.

        Parameters
        ----------
        fwd : callable
            ``fwd(*args) -> (output, residuals)``, with the arguments of the function. The output is of the same
            structure, shapes and dtypes as the function's; the residuals are what `bwd` needs, a tree of arrays
            (numbers, strings and None in it are kept as they are).
        bwd : callable
            ``bwd(*nondiff_args, residuals, cotangent) -> gradients``: from a cotangent of the structure of the output
            to a tuple with a gradient for each argument that is not in `nondiff_argnums`, each of the structure and
            shapes of its argument. None stands for a zero gradient of any part; a gradient of an
            integer is ignored. Dtypes are converted.
        symbolic_zeros : bool
            Whether `fwd` gets each argument as a `CustomVJPPrimal`, which says whether it is being differentiated, and
            `bwd` a `SymbolicZero` for a cotangent that is known to be zero.
        optimize_remat : bool
            Has no effect: residuals that `bwd` does not read are never kept.

        Notes
        -----
        `fwd` runs only where the function is differentiated in reverse mode. A second derivative differentiates what
        `fwd` and `bwd` do; where the rule is to hold at all orders, `fwd` calls the function itself for its output.
        The cotangent of an integer output arrives as integer zeros.

        Examples
        --------
        >>> import functrans as ft, functrans.numpy as fnp
        >>> @ft.custom_vjp
        ... def f(x, y):
        ...     return fnp.sin(x) * y
        >>> def f_fwd(x, y):
        ...     return f(x, y), (fnp.cos(x), fnp.sin(x), y)
        >>> def f_bwd(residuals, ct):
        ...     cos_x, sin_x, y = residuals
        ...     return ct * cos_x * y, ct * sin_x
        >>> f.defvjp(f_fwd, f_bwd)
        >>> ft.grad(f)(0.0, 3.0)
        Array(3.)
        """
        self._check_rule("defvjp", fwd)
        self._check_rule("defvjp", bwd)
        self._declared = replace(self._declared, fwd=fwd, bwd=bwd, symbolic_vjp=bool(symbolic_zeros))

    def defjvp(
        self, jvp: Callable[..., tuple[Any, Any]], symbolic_zeros: bool = False
    ) -> Callable[..., PyTree]:
        """Define the rule for forward mode; reverse mode transposes it, unless there is a `defvjp` too.

        Parameters
        ----------
        jvp : callable
            ``jvp(*nondiff_args, primals, tangents) -> (output, tangent)``: `primals` is the tuple of the arguments that
            are not in `nondiff_argnums`, `tangents` has the same structure; the tangent has the structure and shapes of
            the output, and is linear in `tangents`. None stands for a zero of any part. Dtypes are converted.
        symbolic_zeros : bool
            Whether `jvp` gets a `SymbolicZero` for a tangent that is known to be zero.

        Returns
        -------
        callable
            `jvp`, so that ``@f.defjvp`` is a decorator.

        Notes
        -----
        A second derivative differentiates what `jvp` does; where the rule is to hold at all orders, `jvp` calls the
        function itself for its output. The tangent of an integer argument arrives as integer zeros; that of an integer
        output is None.

        Examples
        --------
        >>> import functrans as ft, functrans.numpy as fnp
        >>> @ft.custom_jvp
        ... def f(x, y):
        ...     return fnp.sin(x) * y
        >>> @f.defjvp
        ... def f_jvp(primals, tangents):
        ...     (x, y), (t_x, t_y) = primals, tangents
        ...     return f(x, y), fnp.cos(x) * t_x * y + fnp.sin(x) * t_y
        >>> ft.value_and_grad(f)(0.0, 3.0)
        (Array(0.), Array(3.))
        """
        self._check_rule("defjvp", jvp)
        self._declared = replace(self._declared, jvp=jvp, partials=None, symbolic_jvp=bool(symbolic_zeros))
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Define the rule for forward mode by one function for each argument.

        Parameters
        ----------
        *jvps : callable or None
            ``jvp(tangent, output, *args) -> tangent of the output`` for the tangent of this argument alone; None where
            the derivative is zero. Their results are added up.

        Raises
        ------
        TangentCountError
            If there are more or fewer than the function has arguments.
        FunctionDefinitionError
            If the function has `nondiff_argnums`.

        Notes
        -----
        A rule is called only where its argument is being differentiated. Since the output comes from the function with
        its rules, they hold at all orders.

        Examples
        --------
        >>> import functrans as ft, functrans.numpy as fnp
        >>> @ft.custom_jvp
        ... def f(x, y):
        ...     return fnp.exp(x) * y
        >>> f.defjvps(lambda t, out, x, y: t * out, lambda t, out, x, y: fnp.exp(x) * t)
        >>> ft.grad(f, argnums=(0, 1))(0.0, 3.0)
        (Array(3.), Array(1.))
        """
        positions = self._positions
        if positions.apart:
            raise FunctionDefinitionError(
                f"{positions.where}: defjvps takes a rule for each argument, and nondiff_argnums have none; use defjvp"
            )
        for jvp in jvps:
            if jvp is not None:
                self._check_rule("defjvps", jvp)
        if positions.count is not None:
            check_partials(positions, len(jvps), positions.count)
        self._declared = replace(self._declared, jvp=None, partials=jvps)

    # --- calling -------------------------------------------------------------------------------------------------

    @boundary
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """The function's result, which is differentiated by its rules."""
        declared = self._declared
        if not declared.has_rule:
            raise MissingRuleError(self._missing.format(name_of(declared.fun)))
        positions = self._positions
        args = positions.resolved(args, kwargs)
        if current_trace.get() is eval_trace:
            return self._evaluated(args)
        nondiff, others = positions.split(args) if positions.apart else ((), args)
        values, treedef = self._flattened(others)
        apart: list[Apart] = []
        if nondiff:
            nondiff = self._undifferentiated(nondiff)
            apart = [Apart(positions.name(i), x) for i, x in zip(positions.apart, nondiff)]
        call = JaxCall(declared, nondiff, treedef)
        outs = bind_rule(call, values, declared.functions, apart)
        return results(call.out_tree, outs, {id(x) for x in values})

    def _evaluated(self, args: Sequence[Any]) -> PyTree:
        """Outside of all transformations: the function itself, on arrays that it cannot change."""
        declared = self._declared
        values: list[Any] = []
        if not _IMMUTABLE.issuperset(map(type, args)):
            nondiff, others = self._positions.split(tuple(args))
            values, treedef = self._flattened(others)
            args = self._positions.merged(nondiff, tree_unflatten(treedef, [given(x) for x in values]))
        out = declared.fun(*args)
        if type(out) is Array and not any(np.may_share_memory(out, x) for x in values):
            return out
        leaves, tree = returned_values(declared.fun, out)
        return results(tree, leaves, {id(x) for x in values})

    @property
    def nondiff_argnums(self) -> tuple[int, ...]:
        """The positions of arguments that are not differentiated."""
        return self._positions.apart

    def _flattened(self, args: Sequence[Value]) -> tuple[list[Any], PyTreeDef]:
        try:
            return super()._flattened(args)
        except ArgumentError as error:
            raise ArgumentError(
                f"{error.message}. Arguments that are not arrays may be listed in nondiff_argnums",
                error.source,
            ) from None

    def _undifferentiated(self, nondiff: tuple[Value, ...]) -> tuple[Value, ...]:
        return nondiff

    def _check_rule(self, method: str, rule: Any) -> None:
        if not callable(rule):
            self._refuse(method, rule)

    def _refuse(self, method: str, rule: Any) -> NoReturn:
        raise FunctionDefinitionError(
            f"{self._positions.where}: {method} takes functions, got {str(rule)[:60]!r} of type "
            f"{type(rule).__name__}"
        )


class custom_vjp(CustomFunction):
    """A function whose reverse mode is a rule that you write: a decorator.

    Parameters
    ----------
    fun : callable
        Of arrays and trees of arrays. It gives the values; it is never differentiated.
    nondiff_argnums : int or sequence of int
        Arguments that rules get as they are, and apart: functions, strings, numbers that Python's ``if`` asks for.
    nondiff_argnames : str or sequence of str
        The same by name.

    Raises
    ------
    FunctionDefinitionError
        If `nondiff_argnums` or `nondiff_argnames` name no parameter; when called: if arguments do not fit the
        signature, or `fwd` does not return a pair, or returns another output than `fun`.
    MissingRuleError
        When called before `defvjp`; when differentiated forward, if no rule for it is defined, or follows.
    GradientCountError, GradientStructureError, GradientShapeError, GradientDtypeError, BackwardError
        When differentiated: `bwd` did not return a tuple with a gradient of the structure and shapes of each argument.

    Notes
    -----
    Reverse mode runs `fwd` of `defvjp` instead of the function, and `bwd` when cotangents are known. Forward mode
    runs the rule from `defjvp`; without one it transposes `bwd`, which must be linear in the cotangent then. All
    transformations compose: `vmap` maps the rules, `jit` compiles them, and derivatives of higher order differentiate
    `fwd` and `bwd`, or apply the rule once more where `fwd` calls the function itself.

    Keyword arguments, and defaults, reach the rules by position. As a method, the function gets ``self`` as its
    first argument; a class that is not a pytree needs ``nondiff_argnums=0``.

    Rules may read traced values from around them, and from arguments in `nondiff_argnums`, as long as these are not
    differentiated: that is `CapturedTracerError`.

    Examples
    --------
    Gradients clipped to an interval on their way back:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functools import partial
    >>> @partial(ft.custom_vjp, nondiff_argnums=(0, 1))
    ... def clip_gradient(low, high, x):
    ...     return x
    >>> def fwd(low, high, x):
    ...     return x, None
    >>> def bwd(low, high, residuals, ct):
    ...     return (fnp.clip(ct, low, high),)
    >>> clip_gradient.defvjp(fwd, bwd)
    >>> ft.grad(lambda x: clip_gradient(-1.0, 1.0, x) ** 2)(fnp.asarray(3.0))
    Array(1.)

    A derivative that does not lose its digits, where that of the formula is 0/0:

    >>> @ft.custom_vjp
    ... def norm(x):
    ...     return fnp.sqrt(fnp.sum(x * x))
    >>> def norm_fwd(x):
    ...     y = norm(x)
    ...     return y, (x, y)
    >>> def norm_bwd(residuals, ct):
    ...     x, y = residuals
    ...     return (ct * fnp.where(y > 0, x / fnp.where(y > 0, y, 1.0), 0.0),)
    >>> norm.defvjp(norm_fwd, norm_bwd)
    >>> ft.jit(ft.grad(norm))(fnp.zeros(2))
    Array([0., 0.])
    """

    _front = "custom_vjp"
    _missing = "No VJP defined for custom_vjp function {0} using defvjp. Define one: {0}.defvjp(fwd, bwd)"


class custom_jvp(CustomFunction):
    """A function whose derivative is a rule that you write, for both modes: a decorator.

    Parameters
    ----------
    fun : callable
        Of arrays and trees of arrays. It gives the values; it is never differentiated.
    nondiff_argnums : int or sequence of int
        Arguments that rules get as they are, and apart: functions, strings, numbers that Python's ``if`` asks for.
        Derivatives in them are zero.
    nondiff_argnames : str or sequence of str
        The same by name.

    Raises
    ------
    FunctionDefinitionError
        If `nondiff_argnums` or `nondiff_argnames` name no parameter; when called: if arguments do not fit the
        signature, or the rule's first output differs in type from that of `fun`.
    MissingRuleError
        When called before `defjvp` or `defjvps`.
    TangentError, TangentShapeError, TangentDtypeError, TangentCountError
        When differentiated: the rule did not return a pair of output and tangent of one structure and shape.
    NoRuleError
        In reverse mode, if the rule is not linear in the tangents.

    Notes
    -----
    Forward mode runs the rule from `defjvp` or `defjvps`; reverse mode runs it on symbolic tangents and transposes
    what it did to them, unless `defvjp` sets a rule for it. All transformations compose: `vmap` maps the rule,
    `jit` compiles it, and derivatives of higher order differentiate it, or apply it once more where it calls the
    function itself.

    Keyword arguments, and defaults, reach the rules by position. As a method, the function gets ``self`` as its
    first argument; a class that is not a pytree needs ``nondiff_argnums=0``.

    Rules may read traced values from around them as long as these are not differentiated: that is
    `CapturedTracerError`.

    Examples
    --------
    A derivative that does not overflow where the function does not:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.custom_jvp
    ... def softplus(x):
    ...     return fnp.log1p(fnp.exp(x))
    >>> @softplus.defjvp
    ... def softplus_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return softplus(x), t / (1.0 + fnp.exp(-x))
    >>> ft.grad(softplus)(50.0)
    Array(1.)
    >>> ft.jvp(softplus, (0.0,), (1.0,))
    (Array(0.69314718), Array(0.5))
    """

    _front = "custom_jvp"
    _missing = "No JVP defined for custom_jvp function {0} using defjvp. Define one: {0}.defjvp(jvp)"

    def _undifferentiated(self, nondiff: tuple[Any, ...]) -> tuple[Any, ...]:
        if current_trace.get() is eval_trace:
            return nondiff
        return tuple([tree_map(_stopped, x) for x in nondiff])


def _stopped(x: Any) -> Any:
    return given(stop_gradient_p.bind(x)) if isinstance(x, Tracer) else x


class _GradientFunction(CustomFunction):
    """A `custom_vjp` of which both rules come from one function."""

    _front = "custom_gradient"
    _transient = frozenset(("_declared",))

    def __init__(self, fun: Callable[..., PyTree]):
        super().__init__(fun)
        self._made = self._declared
        self._arrived()

    def _arrived(self) -> None:
        fun = self._made.fun

        @functools.wraps(fun, updated=())
        def value(*args: Value) -> Value:
            return self._called(fun, args)[0]

        @functools.wraps(fun, updated=())
        def fwd(*args: Value) -> PyTree:
            out, pull = self._called(fun, args)
            leaves, tree = flatten_values(out, lambda path: f"the result of {name_of(fun)}{keystr(path)}")
            staged, captured = Staged.of(pull, [aval_of(x).strong() for x in leaves], _one(tree))
            return out, (staged, len(args), captured)

        @functools.wraps(fun, updated=())
        def bwd(residuals: tuple[Staged, int, list[Any]], cotangent: PyTree) -> PyTree:
            staged, count, captured = residuals
            leaves = flatten_values(cotangent, lambda path: f"the cotangent{keystr(path)}")[0]
            gradients = staged(captured, leaves)
            return (gradients,) if count == 1 and not isinstance(gradients, tuple | list) else gradients

        bwd.__name__ = f"vjp of {name_of(fun)}"
        self._declared = replace(self._made, fun=value, fwd=fwd, bwd=bwd)

    def _called(self, fun: Callable[..., PyTree], args: tuple[Value, ...]) -> tuple[Any, Any]:
        """The result and the reverse rule."""
        pair = fun(*args)
        if isinstance(pair, tuple | list) and len(pair) == 2 and callable(pair[1]):
            return pair[0], pair[1]
        raise FunctionDefinitionError(
            f"{self._positions.where}: the function must return a pair (result, vjp) with a function vjp from "
            f"the cotangent of the result to a tuple of gradients of the arguments, but returned {described(pair)}",
            last_line(fun),
        )


def _one(tree: PyTreeDef) -> PyTreeDef:
    """The structure of a tuple with one tree in it."""
    return tree_structure((tree_unflatten(tree, range(tree.num_leaves)),))


@checked
def custom_gradient(fun: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """A function whose reverse mode is the rule that it returns with its result: a decorator.

    Parameters
    ----------
    fun : callable
        Of arrays and trees of arrays. It returns a pair ``(result, vjp)``: ``vjp(cotangent)`` takes a cotangent of the
        structure of the result and returns a tuple with a gradient for each argument; for one argument the gradient
        alone will do. None stands for a zero of any part.

    Returns
    -------
    callable
        Returns the result alone.

    Raises
    ------
    FunctionDefinitionError
        When called: `fun` returned no such pair, or arguments do not fit its signature.
    GradientCountError, GradientStructureError, GradientShapeError, GradientDtypeError, BackwardError
        When differentiated: ``vjp`` did not return a gradient of the structure and shapes of each argument.

    Notes
    -----
    ``vjp`` may read what `fun` computed; it is traced where the function is differentiated, and what it read is kept.
    So values inside are known by shape and dtype only, as under `jit`. Otherwise as `custom_vjp`: forward mode
    transposes ``vjp``; derivatives of higher order differentiate `fun` and ``vjp``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.custom_gradient
    ... def log1pexp(x):
    ...     e = fnp.exp(-x)
    ...     return x + fnp.log1p(e), lambda ct: ct / (1.0 + e)
    >>> log1pexp(100.0), ft.grad(log1pexp)(100.0)
    (Array(100.), Array(1.))
    >>> ft.vmap(ft.grad(log1pexp))(fnp.zeros(2))
    Array([0.5, 0.5])
    """
    return _GradientFunction(fun)
