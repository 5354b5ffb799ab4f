"""Gradients of scalar functions: `grad`, `value_and_grad`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import errors
from ..core.aval import Aval, aval_of
from ..core.backward_state import BackwardState, StateAval
from ..core.debug_nans import looks_for_faults
from ..core.dtypes import dtype_name, float0, is_complex, is_inexact
from ..core.trace import current_trace, eval_trace
from ..core.values import ArrayLike, PyTree, Tangent, Value
from ..frontend.arguments import (
    Flat,
    argument_name,
    check_function,
    flatten_values,
    name_of,
    result,
    results,
)
from ..frontend.checked import checked
from ..frontend.pytree import PyTreeDef, tree_flatten_with_path, tree_structure
from ..frontend.pytree.nodes import KeyPath, keystr
from ..primitives.elementwise.arithmetic import weakly
from ..primitives.structure.linear import instantiate
from ..runtime.config import config
from ..runtime.portable import Transformed
from ..runtime.records import NamedTuple
from ..transforms.linearize import linearize
from ..transforms.transpose import backward
from .compiled.jitted import Jitted

Argnums = int | Sequence[int]


def checked_argnums(what: str, fun: Callable[..., PyTree], argnums: Argnums, nargs: int) -> tuple[int, ...]:
    """`argnums` as a tuple of positions from 0 to `nargs` - 1.

    Raises
    ------
    ArgumentError, ArgumentValueError
        If they are not integers, exceed the number of arguments, or repeat.
    """
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(numbers, tuple | list) or not all(type(i) is int for i in numbers):
        raise errors.ArgumentError(
            f"{what} of {name_of(fun)}: argnums must be an int or a tuple of ints, got {argnums!r}"
        )
    for i in numbers:
        if not -nargs <= i < nargs:
            raise errors.ArgumentValueError(
                f"{what} of {name_of(fun)}: argnums={argnums!r}, but it was called with {nargs} positional "
                f"argument{'s' if nargs != 1 else ''}; count from 0, and pass what you differentiate by position"
            )
    positions = tuple([i % nargs for i in numbers])
    if len(set(positions)) != len(positions):
        raise errors.ArgumentValueError(
            f"{what} of {name_of(fun)}: argnums={argnums!r} names an argument twice"
        )
    return positions


class Selected(NamedTuple):
    """The arguments with respect to which a function is differentiated.

    Attributes
    ----------
    leaves : list
        Their values.
    tree : PyTreeDef
        The structure of the tuple of them.
    call : callable
        ``call(fun, tuple of them)`` calls `fun` with all other arguments as well.
    """

    leaves: list[Any]
    tree: PyTreeDef
    call: Callable[..., PyTree]


def select(
    what: str,
    fun: Callable[..., PyTree],
    argnums: Argnums,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    holomorphic: bool,
    allow_int: bool = False,
) -> Selected:
    """Select and check the differentiated arguments of a call; `what` names the transformation."""
    numbers = checked_argnums(what, fun, argnums, len(args))
    leaves: list[Any] = []
    for i in numbers:
        where = partial(_leaf_name, what, fun, i)
        values, _ = flatten_values(args[i], where)
        for k, x in enumerate(values):
            aval = aval_of(x)
            if allow_int and aval.dtype.kind in "biu":
                continue
            if not is_inexact(dtype := aval.dtype) or is_complex(dtype) or holomorphic:
                _check_input(what, where(tree_flatten_with_path(args[i])[0][k][0]), aval, holomorphic)
        leaves += values

    def call(fun: Callable[..., PyTree], parts: tuple[Any, ...]) -> Value | None:
        full = list(args)
        for i, part in zip(numbers, parts):
            full[i] = part
        return fun(*full, **kwargs)

    return Selected(leaves, tree_structure(tuple([args[i] for i in numbers])), call)


def _leaf_name(what: str, fun: Callable[..., PyTree], position: int, path: KeyPath) -> str:
    return f"{what} of {name_of(fun)}: {argument_name(fun, position)}{keystr(path)}"


def _check_input(what: str, where: str, aval: Aval, holomorphic: bool) -> None:
    if type(aval) is StateAval:
        raise errors.BackwardStateError(
            f"{where} is a BackwardState, which has no derivative; select others with argnums"
        )
    dtype = aval.dtype
    if not is_inexact(dtype):
        raise errors.GradientError(
            f"{where} has dtype {dtype_name(dtype)}, but only float and complex arguments have derivatives. Pass a "
            "float (1.0 instead of 1, x.astype(float)), select other arguments with argnums, or say allow_int=True"
        )
    if holomorphic and not is_complex(dtype):
        raise errors.GradientError(f"{where} has dtype {dtype}, but holomorphic=True needs complex arguments")
    if what == "jacfwd" and is_complex(dtype) and not holomorphic:
        raise errors.GradientError(
            f"{where} is complex. Pass holomorphic=True if the "
            "function is complex-differentiable, or differentiate in its real and imaginary parts"
        )


def _check_output(
    what: str, fun: Callable[..., PyTree], flat: Flat, outs: Sequence[Value], holomorphic: bool
) -> None:
    if not outs and flat.out_tree == tree_structure(None):
        raise errors.GradientError(
            f"{what} of {name_of(fun)}: it must return one scalar, but returned None. Is a `return` missing?"
        )
    if len(outs) != 1 or flat.out_tree != tree_structure(0):
        raise errors.GradientError(
            f"{what} of {name_of(fun)}: it must return one scalar, but returned the structure {flat.out_tree}"
            + ("; for (value, auxiliary data) pass has_aux=True" if not flat.has_aux else "")
        )
    aval = aval_of(outs[0])
    if aval.shape:
        raise errors.GradientError(
            f"{what} of {name_of(fun)}: it must return a scalar, but returned an array of shape {aval.shape}. "
            "Reduce it (sum, mean), or use jacrev, jacfwd or vjp"
        )
    if holomorphic != is_complex(aval.dtype) or not is_inexact(aval.dtype):
        cure = (
            "Return a float; integers and booleans have no derivative"
            if not is_complex(aval.dtype)
            else "Take the real part or abs, or pass holomorphic=True if the function is holomorphic"
        )
        raise errors.GradientError(
            f"{what} of {name_of(fun)}: it returned a scalar of dtype {aval.dtype}"
            f"{' with holomorphic=True' if holomorphic else ''}. {cure}"
        )


class _OfJitted(Jitted):
    """Value and gradient of a jitted function, compiled as one program, whose cache belongs to that of the function.

    It takes what compiled functions take most often. For anything else, and inside other transformations, `fun` runs as
    it is, which composes the derivatives of the function.
    """

    _settles = False

    def __init__(self, fun: Callable[..., PyTree], jitted: Jitted, key: Hashable):
        self._fun = fun
        self._signature, self._donated = jitted._signature, jitted._donated
        self._use(jitted._cache.derived(key))

    def _call(self, args: tuple[Value, ...], kwargs: dict[str, Any], fast_key: Any) -> Any:
        if fast_key is None or BackwardState in fast_key or config.disable_jit or looks_for_faults():
            return self._fun(*args, **kwargs)
        return Jitted._call(self, args, kwargs, fast_key)


class Differentiated(Transformed):
    """A function whose calls differentiate another one, with the options of `grad`.

    A subclass has the function `_rule`: it takes the name of the transformation, the function, the options, and the
    arguments as a tuple and a dictionary.
    """

    _transient = frozenset(("_compiled",))

    @staticmethod
    def _rule(*args: PyTree) -> Any:
        raise NotImplementedError

    def __init__(
        self,
        what: str,
        fun: Callable[..., PyTree],
        argnums: Argnums,
        has_aux: bool,
        holomorphic: bool,
        allow_int: bool = False,
    ):
        check_function(what, fun)
        super().__init__(what, fun)
        self._argnums = argnums
        self._has_aux = has_aux
        self._holomorphic = holomorphic
        self._allow_int = allow_int

    def _differentiate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of `_rule`; of a jitted function, outside other transformations, in one compiled program."""
        compiled = self.__dict__.get("_compiled", False)
        if compiled is False:
            compiled = self._compiled = self._of_jitted()
        if compiled is not None and current_trace.get() is eval_trace:
            return compiled(*args, **kwargs)
        options = self._argnums, self._has_aux, self._holomorphic, self._allow_int
        return self._rule(self._made_by, self._fun, *options, args, kwargs)

    def _of_jitted(self) -> _OfJitted | None:
        jitted, keys = self._jitted_below()
        if jitted is None:
            return None
        what, fun, rule, options = self._made_by, self._fun, self._rule, keys[0][2:]

        @functools.wraps(jitted._fun, assigned=("__name__", "__qualname__"), updated=())
        def differentiated(*args: Value, **kwargs: PyTree) -> PyTree:
            return rule(what, fun, *options, False, args, kwargs)

        try:
            return _OfJitted(differentiated, jitted, keys)
        except TypeError:  # argnums of a kind that the call will refuse
            return None

    def _jitted_below(self) -> tuple[Jitted | None, tuple[Any, ...]]:
        """The jitted function that is differentiated, perhaps several times, and the options of each time."""
        keys: list[Any] = []
        fun: Any = self
        while isinstance(fun, Differentiated):
            if fun._allow_int:
                return None, ()
            argnums = tuple(fun._argnums) if isinstance(fun._argnums, list) else fun._argnums
            options = argnums, bool(fun._has_aux), bool(fun._holomorphic)
            keys.append((fun._kind(fun is self), type(argnums), *options))
            fun = fun._fun
        fits = type(fun) is Jitted and not fun._signature and not fun._donated
        return (fun if fits else None), tuple(keys)

    def _kind(self, outermost: bool) -> str:
        """What distinguishes the result from those of other transformations with the same options."""
        return self._made_by


class _Reverse(Differentiated):
    """Reverse mode of a scalar function; all have one compiled program, which returns the value as well."""

    @staticmethod
    def _rule(*args: PyTree) -> tuple[Any, Any]:
        return _value_and_grad(*args)

    def _kind(self, outermost: bool) -> str:
        return "value and gradient" if outermost else self._made_by


class _ValueAndGrad(_Reverse):
    def __call__(self, *args: ArrayLike, **kwargs: PyTree) -> PyTree:
        """Value and gradient."""
        return self._differentiate(args, kwargs)


class _Grad(_Reverse):
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """The gradient, and auxiliary data."""
        value, gradient = self._differentiate(args, kwargs)
        return (gradient, value[1]) if self._has_aux else gradient


def derivative_in(t: Tangent, aval: Aval, outer: tuple[int, ...] = ()) -> Value:
    """A derivative in an argument of this type, after axes of shape `outer`: float0 for integers, else `as_typed`."""
    return as_typed(t, aval) if is_inexact(aval.dtype) else np.zeros(outer + aval.shape, float0)


def as_typed(t: Tangent, aval: Aval) -> Value:
    """A tangent or cotangent of a value of this type, for the user; weak if the value is."""
    value = instantiate(t)
    return weakly(value) if aval.weak else value


@checked
def value_and_grad(
    fun: Callable[..., PyTree],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., PyTree]:
    """A function that returns the value of `fun` and its gradient.

    Parameters
    ----------
    fun : callable
        Returns a scalar (shape ``()``), or with `has_aux` a pair (scalar, anything).
    argnums : int or tuple of int
        The positional arguments to differentiate: arrays or pytrees of arrays, of float or complex dtype.
    has_aux : bool
        Whether `fun` also returns auxiliary data.
    holomorphic : bool
        Declares that `fun` is complex-differentiable; arguments and output must be complex.
    allow_int : bool
        Whether arguments may be integers. Their gradients have the dtype `functrans.float0`, whose elements have no
        value.

    Returns
    -------
    callable
        Takes the same arguments; returns ``(value, gradient)`` or ``((value, aux), gradient)``. The gradient has the
        structure, shapes and dtypes of the argument (a tuple of gradients for several `argnums`).

    Raises
    ------
    GradientError
        When called: the output is not a scalar, or an argument is an integer.
    ArgumentValueError
        When called: `argnums` does not match an argument.

    Notes
    -----
    Reverse mode: evaluates the function once, and transposes the linear program of its derivative. The cost is a small
    multiple of the function's, whatever the size of the argument. For a real function of complex ``z = x + iy`` the
    gradient is ``df/dx - i df/dy`` (as in JAX): descend along its conjugate.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.value_and_grad(lambda x: fnp.sum(x ** 2))(fnp.asarray([1.0, 2.0]))
    (Array(5.), Array([2., 4.]))
    """
    return _ValueAndGrad("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)


@checked
def grad(
    fun: Callable[..., PyTree],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., PyTree]:
    """A function that returns the gradient of a scalar function.

    Parameters, errors and notes as for `value_and_grad`.

    Returns
    -------
    callable
        Returns the gradient, or with `has_aux` ``(gradient, aux)``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.grad(fnp.tanh)(0.0)
    Array(1.)
    >>> ft.grad(ft.grad(lambda x: x ** 3))(2.0)
    Array(12.)
    """
    return _Grad("grad", fun, argnums, has_aux, holomorphic, allow_int)


def _value_and_grad(
    what: str,
    fun: Callable[..., PyTree],
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, Any]:
    chosen = select(what, fun, argnums, args, kwargs, holomorphic, allow_int)
    flat = Flat(fun, chosen.tree, chosen.call, has_aux)
    linear = linearize(flat, chosen.leaves, [is_inexact(aval_of(x).dtype) for x in chosen.leaves])
    ids = {id(x) for x in chosen.leaves}
    outs, aux = flat.separate(linear.outs, ids)
    _check_output(what, fun, flat, outs, holomorphic)
    one = aval_of(outs[0]).dtype.type(1)
    cts = backward(linear.tape, linear.tangents[:1], [one], linear.inputs)
    gradients = results(
        chosen.tree, [derivative_in(ct, aval_of(x)) for ct, x in zip(cts, chosen.leaves)], ids
    )
    value = result(outs[0], ids)
    return (value, aux) if has_aux else value, gradients[0] if isinstance(argnums, int) else gradients
