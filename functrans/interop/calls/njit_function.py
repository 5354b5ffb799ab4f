"""``numba_call``: a function of Numba's ``njit`` as one of functrans's; ``njit``, which makes both at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numba
import numpy as np

from ...api.compiled.caches import Recent
from ...api.compiled.jit import jit
from ...arrays.array import Array, WeakArray
from ...core import Aval, Tracer, aval_of, is_low
from ...core.values import Param, Params, PyTree
from ...custom.custom_function import custom_jvp, custom_vjp
from ...errors import ArgumentError, DtypeError, GradientStructureError
from ...frontend.pytree import tree_flatten, tree_map, tree_unflatten
from ...passes.toolkit import lift_constants
from ...primitives.operands import strong
from ...runtime.config import config
from ...runtime.private.numba_names import (
    CPUDispatcher,
    Dispatcher,
    OmittedArg,
    as_dtype,
    normalize_signature,
    types,
)
from ...transforms.stage import stage
from ..native import NativeFunction, native_p, translated_p
from ..numba_parts import NumbaType, Signature
from .flow import holds_array
from .functions import SizeUnknown
from .translation import numba_type, translate
from .typed_ir import typed_function


class NumbaCall(CPUDispatcher):
    """A jitted function that functrans can transform: what `numba_call` returns.

    It is a dispatcher of Numba's with the machine code of the function's dispatcher, so that calls cost the same. Numba
    asks it to compile where it has none for some arguments: there traced values are met.
    """

    def __init__(self, fn: Any, vjp: Any = None, jvp: Any = None, result_shape_dtypes: Any = None) -> None:
        # As in object mode, arguments without a Numba type are no error before `_compile_for_args`.
        super().__init__(
            fn.py_func, fn.locals, {k: v for k, v in fn.targetoptions.items() if k != "nopython"}
        )
        self.targetoptions = fn.targetoptions
        self._cache, self._cache_hits, self._cache_misses = fn._cache, fn._cache_hits, fn._cache_misses
        self._type = fn._type
        self.typingctx._remove_global(self)
        self.typingctx.insert_global(self, fn._type)
        self._fn = fn
        self._vjp, self._jvp, self._result = _rule(vjp), _rule(jvp), result_shape_dtypes
        self._jitted: Recent[Any, Callable[..., Any]] = Recent(lambda: config.trace_limit)
        self._sized: set[Any] = set()

    def compile(self, sig: Signature) -> Any:
        """Compile the jitted function for argument types; returns what is called."""
        self._fn.compile(sig)
        args, _ = normalize_signature(sig)
        if args not in self.overloads:
            self.add_overload(self._fn.overloads[args])
        return self.overloads[args].entry_point

    def recompile(self) -> None:
        """Compile the jitted function again, after a change of its globals."""
        self._fn.recompile()
        self._reset_overloads()

    def _compile_for_args(self, *args: PyTree, **kws: Any) -> Callable[..., PyTree]:
        """What to call with arguments of types for which there is no machine code."""
        leaves = tree_flatten(args)[0]
        for x in leaves:
            dtype = getattr(x, "dtype", None)
            if isinstance(dtype, np.dtype) and is_low(dtype):
                raise DtypeError(
                    f"numba_call of {self.py_func.__qualname__}: an argument has dtype {dtype}, which code compiled "
                    "by Numba for the CPU cannot hold: pass x.astype('float32')"
                )
        if any(isinstance(x, Tracer) for x in leaves):
            return self._traced
        if any(_is_number(x) for x in leaves):
            return lambda *args: self(*tree_map(_plain, args))
        return super()._compile_for_args(*args, **kws)

    def _make_finalizer(self) -> Callable[..., None]:
        """Nothing: the machine code belongs to the jitted function."""
        return lambda: None

    def _reduce_states(self) -> dict[str, Any]:
        return {"fn": self._fn, "vjp": self._vjp, "jvp": self._jvp, "result_shape_dtypes": self._result}

    @classmethod
    def _rebuild(cls, **states: Any) -> NumbaCall:
        return cls(**states)

    def __repr__(self) -> str:
        return f"numba_call({self.py_func.__qualname__})"

    @property
    def _numba_type_(self) -> Any:
        """In jitted code it is the jitted function."""
        return self._fn._numba_type_

    @property
    def _numba_dispatcher(self) -> Any:
        return self._fn

    def _traced(self, *given: Any) -> Any:
        """Call the translation, or the custom rule."""
        leaves, tree = tree_flatten(tuple([x.value if isinstance(x, OmittedArg) else x for x in given]))
        kinds = tuple([type(x) for x in leaves])
        if (tree, kinds) not in self._sized:
            try:
                return self._run(leaves, tree, (*_TRACED, int))
            except SizeUnknown as error:
                if not any(type(x) is int for x in leaves):
                    raise error.args[0] from None
            self._sized.add((tree, kinds))
        try:
            return self._run(leaves, tree, _TRACED)
        except SizeUnknown as error:
            raise error.args[0] from None

    def _run(self, leaves: list[Any], tree: PyTree, kinds: tuple[type, ...]) -> Any:
        """Call the jitted translation, or the custom rule; values of `kinds` are its arguments, others are known."""
        is_dynamic = [isinstance(x, kinds) and type(x) is not bool for x in leaves]
        static = tuple([(k, x) for k, x in enumerate(leaves) if not is_dynamic[k]])
        key = (tree, static, *[type(x) for _, x in static])
        jitted = self._jitted[key]
        if jitted is None:
            make = self._translated if self._vjp is None and self._jvp is None else self._ruled
            f = make(tree, static)
            f.__name__ = self._fn.py_func.__name__
            jitted = self._jitted[key] = jit(f)
        return jitted(*[x for x, dynamic in zip(leaves, is_dynamic, strict=True) if dynamic])

    def _translated(self, tree: PyTree, static: tuple[tuple[int, Any], ...]) -> Callable[..., PyTree]:
        """A function of the dynamic leaves that has machine code, and a translation for its derivatives."""

        def translated(*dynamic: Any) -> Any:
            avals = [aval_of(x).strong() for x in dynamic]
            trees = []

            def flat(*values: Any) -> list[Any]:
                result = translate(self._fn, arguments_of(tree, static, values))
                outs, out_tree = tree_flatten(result)
                trees.append(out_tree)
                return outs

            jaxpr, consts = lift_constants(stage(flat, avals, self._fn.py_func.__name__))
            function = NativeFunction(
                self._fn, tree, static, tuple(avals), tuple(jaxpr.out_avals), trees[-1], len(consts)
            )
            values = [strong(x, a.dtype) for x, a in zip(dynamic, avals, strict=True)]
            outs = translated_p.bind(function.sizes, *consts, *values, function=function, jaxpr=jaxpr)
            return tree_unflatten(trees[-1], outs)

        return translated

    def _ruled(self, tree: PyTree, static: tuple[tuple[int, Any], ...]) -> Callable[..., PyTree]:
        """A function of the dynamic leaves with the user's derivative rule."""

        def primal(*dynamic: Any) -> Any:
            args = arguments_of(tree, static, dynamic)
            avals = tuple([aval_of(x).strong() for x in dynamic])
            outs, out_tree = self._result_of(args, avals, tree, static)
            function = NativeFunction(self._fn, tree, static, avals, outs, out_tree)
            values = [strong(x, a.dtype) for x, a in zip(dynamic, avals, strict=True)]
            return tree_unflatten(out_tree, native_p.bind(function.sizes, *values, function=function))

        def parts(per_argument: Any, dynamic: Sequence[Any]) -> tuple[Any, ...]:
            """The leaves, of those for each argument, that belong to dynamic ones."""
            found = per_leaf(per_argument, tree, self._fn.py_func.__qualname__)
            known = dict(static)
            return tuple([x for k, x in enumerate(found) if k not in known])

        def forward(*dynamic: Any) -> Any:
            out = primal(*dynamic)
            return out, (dynamic, out)

        def backward(saved: Any, ct: Any) -> tuple[Any, ...]:
            dynamic, out = saved
            return parts(self._vjp(arguments_of(tree, static, dynamic), out, ct), dynamic)

        def forward_mode(dynamic: Any, tangents: Any) -> Any:
            out = primal(*dynamic)
            known = tuple([(k, None) for k, _ in static])
            args = arguments_of(tree, static, dynamic)
            return out, self._jvp(args, out, arguments_of(tree, known, tangents))

        ruled = (custom_jvp if self._vjp is None else custom_vjp)(primal)
        if self._vjp is not None:
            ruled.defvjp(forward, backward)
        if self._jvp is not None:
            ruled.defjvp(forward_mode)
        return ruled

    def _result_of(self, args: Any, avals: Any, tree: PyTree, static: Any) -> tuple[tuple[Aval, ...], Any]:
        """The types and structure of the result."""
        given = self._result
        if given is not None:
            leaves, out_tree = tree_flatten(given(*args) if callable(given) else given)
            return tuple([Aval(tuple(x.shape), np.dtype(x.dtype)) for x in leaves]), out_tree
        kind = typed_function(self._fn, tuple([numba_type(a) for a in args])).return_type
        return scalars_of(kind, self._fn.py_func.__qualname__)


def _rule(rule: Any) -> Any:
    return NumbaCall(rule) if isinstance(rule, Dispatcher) and not isinstance(rule, NumbaCall) else rule


def _is_number(x: Any) -> bool:
    """Whether `x` is a number that functrans returned, which Numba takes for an array without axes."""
    return isinstance(x, Array) and not x.ndim


def _plain(x: Any) -> Any:
    if isinstance(x, OmittedArg):
        return x.value
    return (x.item() if isinstance(x, WeakArray) else np.asarray(x)[()]) if _is_number(x) else x


#: What is passed to a translated function as an argument; other leaves are known while it is translated.
_TRACED = (Tracer, np.ndarray, np.generic, float, complex)


def arguments_of(tree: PyTree, static: Sequence[tuple[int, Any]], dynamic: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a call, from their leaves."""
    known, rest = dict(static), iter(dynamic)
    count = len(known) + len(dynamic)
    return tree_unflatten(tree, [known[k] if k in known else next(rest) for k in range(count)])


def per_leaf(parts: Any, tree: PyTree, name: str) -> list[Any]:
    """What a rule returned for each argument, for each leaf of the arguments; None means zero for all of one."""
    if not isinstance(parts, (tuple, list)) or len(parts) != len(tree.children()):
        raise GradientStructureError(
            f"numba_call of {name}: vjp must return a tuple with one cotangent for each of the {len(tree.children())} "
            f"arguments, got {type(parts).__name__}"
            + (f" of {len(parts)}" if isinstance(parts, (tuple, list)) else "")
        )
    found: list[Any] = []
    for part, child in zip(parts, tree.children(), strict=True):
        leaves = (
            [None] * child.num_leaves if part is None else tree_flatten(part, is_leaf=lambda x: x is None)[0]
        )
        found += leaves if len(leaves) == child.num_leaves else [None] * child.num_leaves
    return found


def scalars_of(kind: NumbaType, name: str) -> tuple[tuple[Aval, ...], Any]:
    """The types of a result of numbers.

    Raises
    ------
    ArgumentError
        If there are arrays: their shapes are unknown.
    """
    if holds_array(kind):
        raise ArgumentError(
            f"numba_call of {name}: it returns arrays ({kind}), so it needs result_shape_dtypes: their shapes and "
            "dtypes as functrans.ShapeDtypeStruct, or a function of the arguments that returns them"
        )
    kinds = kind.types if isinstance(kind, types.BaseTuple) else [kind]
    avals = tuple([Aval((), np.dtype(as_dtype(k))) for k in kinds])
    example = tuple(range(len(kinds))) if isinstance(kind, types.BaseTuple) else 0
    return avals, tree_flatten(example)[1]


def numba_call(
    fn: Any,
    *,
    jvp: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
    result_shape_dtypes: Any = None,
) -> NumbaCall:
    """Make a function of Numba's ``njit`` one that functrans can differentiate, batch and compile in.

    Parameters
    ----------
    fn : callable
        What ``numba.njit`` returned.
    jvp : callable, optional
        ``jvp(args, out, tangents)`` returns the tangent of the result. `args` and `tangents` are tuples with one entry
        for each parameter.
    vjp : callable, optional
        ``vjp(args, out, ct)`` returns a tuple with one cotangent for each parameter; None stands for zero. If only one
        rule is there, the other mode follows from it.
    result_shape_dtypes : pytree of ShapeDtypeStruct, or callable, optional
        The shapes and dtypes of the result, or a function of the arguments that returns them. Needed with a rule if
        `fn` returns arrays.

    Returns
    -------
    callable
        Called on arrays and numbers, it is `fn`; so it is in jitted code.

    Raises
    ------
    ArgumentError
        If `fn` is not a function of Numba's, or there are both rules.
    NumbaTranslationError
        On a traced value, if `fn` uses what has no translation and there is no rule.

    Notes
    -----
    For derivatives and ``vmap`` the code that Numba has typed is translated: loops, branches and writes to arrays
    become those of functrans, and every value has the dtype that Numba infers. Values behave as in jitted code:
    indices are not checked unless the function has ``boundscheck=True``, and a division by zero raises unless it has
    ``error_model="numpy"``. What the function raises is raised when the program ends.

    Sizes of arrays must be known when the function is translated: take them from shapes, or pass Python integers.

    Examples
    --------
    >>> import numba, numpy as np, functrans as ft
    >>> @numba.njit
    ... def smooth(x, a):
    ...     y = np.empty_like(x)
    ...     y[0] = x[0]
    ...     for i in range(1, len(x)):
    ...         y[i] = a * x[i] + (1.0 - a) * y[i - 1]
    ...     return y
    >>> x = np.array([1.0, 3.0, 2.0])
    >>> ft.jacobian(ft.numba_call(smooth), argnums=1)(x, 0.5)
    Array([0., 2., 1.])

    A function that cannot be translated, with its derivative:

    >>> @numba.njit
    ... def root(a):
    ...     try:
    ...         return a**0.5
    ...     except Exception:
    ...         return 0.0
    >>> f = ft.numba_call(root, vjp=lambda args, out, ct: (ct / (2.0 * out),))
    >>> ft.grad(f)(4.0)
    Array(0.25)
    """
    if isinstance(fn, NumbaCall):
        fn = fn._fn
    if not isinstance(fn, Dispatcher):
        raise ArgumentError(
            f"numba_call: fn must be a function compiled by numba.njit, got {type(fn).__name__}. Decorate it with "
            "numba.njit, or use functrans.njit"
        )
    for name, rule in (("vjp", vjp), ("jvp", jvp)):
        if rule is not None and not callable(rule):
            raise ArgumentError(f"numba_call: {name} must be a function, got {type(rule).__name__}")
    return NumbaCall(fn, vjp, jvp, result_shape_dtypes)


def njit(function: Any = None, **options: Param) -> Any:
    """Compile a function with ``numba.njit``, and let functrans differentiate and batch it.

    Parameters
    ----------
    function : callable, optional
        Without it, ``njit`` returns a decorator.
    **options
        Those of ``numba.njit``: ``fastmath``, ``error_model``, ``boundscheck``, ``cache``, ``inline``, ...

    Returns
    -------
    callable
        As of `numba_call`. Jitted functions may call it.

    Raises
    ------
    ArgumentError
        If `function` is not a Python function.

    Examples
    --------
    >>> import functrans as ft
    >>> @ft.njit
    ... def power(x, n):
    ...     result = 1.0
    ...     for _ in range(n):
    ...         result *= x
    ...     return result
    >>> power(2.0, 10)
    1024.0
    >>> ft.grad(power)(2.0, 3), ft.grad(ft.grad(power))(2.0, 3)
    (Array(12.), Array(12.))
    """
    if function is None:
        return partial(_compiled, options)
    return _compiled(options, function)


def _compiled(options: Params, function: Any) -> NumbaCall:
    if not inspect.isfunction(function):
        raise ArgumentError(
            f"njit: function must be a Python function, got {type(function).__name__}. Decorate one written with "
            "def, and give options by keyword: njit(boundscheck=True)"
        )
    return numba_call(numba.njit(function, **options))
