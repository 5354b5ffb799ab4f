"""Traced values: where Python wants a number that is not known yet; what a program is made of."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from .base import FunctransError


class ConcretizationError(FunctransError, TypeError):
    """A value was needed while only its shape and dtype are known.

    Base class of the errors that follow. Inside ``jit`` (and for a batched value inside ``vmap``) numbers do not exist
    yet: a traced value cannot become a Python number, choose a branch, or be written into a NumPy array.

    >>> import functrans as ft
    >>> try:
    ...     ft.jit(lambda x: int(x))(2.5)
    ... except ft.errors.ConcretizationError as error:
    ...     print(type(error).__name__)
    TracerScalarConversionError

    Outside ``jit``, ``grad`` and its like see numbers, and the same function works. Inside, compute with functions of
    ``functrans.numpy``, or mark the argument static.
    """

    #: The trace of the value that was asked for its number, as a weak reference, where it is such a value.
    trace: Callable[[], Any] | None = None

    def is_of(self, trace: Any) -> bool:
        """Whether the number that was asked for is that of a value of this trace."""
        return self.trace is not None and self.trace() is trace


class TracerBoolConversionError(ConcretizationError):
    """A traced value was used as a condition: ``if x > 0``, ``while``, ``and``, ``not``, ``x in y``.

    >>> import functrans as ft
    >>> ft.jit(lambda x: x if x > 0 else -x)(3.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.TracerBoolConversionError: truth value of a traced value of type bool[]...

    Choose with ``fnp.where(x > 0, a, b)``, combine with ``&``, ``|``, ``~``, or mark the argument static:
    ``jit(f, static_argnums=0)``. For a missing argument write ``x is None``, not ``x == None``.
    """


class TracerArrayConversionError(ConcretizationError):
    """A traced value met something that wants a plain NumPy array: ``np.array([t])``, ``X[t]`` with a plain ndarray
    `X`, a SciPy function.

    >>> import numpy as np, functrans as ft
    >>> ft.grad(lambda t: np.array([t, t]).sum())(1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.TracerArrayConversionError: a traced value of type f64[]* (traced by grad) cannot become...

    Use the function of functrans (``fnp.stack([t, t])``, ``fnp.asarray(X)[t]``), and ``x.at[i].set(t)`` to write.
    """


class TracerScalarConversionError(ConcretizationError):
    """A traced value met ``float``, ``int``, ``complex``, or compiled code that wants a number: the ``math`` module,
    ``map(float, xs)``, a solver of SciPy.

    >>> import math, functrans as ft
    >>> ft.jit(lambda x: math.sin(x))(1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.TracerScalarConversionError: float() of a traced value of type f64[]*...

    Use functions of ``functrans.numpy`` on it, ``.astype`` to change the dtype, or mark the argument static.

    Outside ``jit`` the number is known. There ``float(x)`` in your own code gives a constant; where other code asks for
    the number of a value that is being differentiated, the derivative would be lost:

    >>> ft.grad(lambda x: sum(map(math.sin, [x, 2 * x])))(1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.TracerScalarConversionError: sum asked for the number of a value of type f64[]* that is...

    If a zero derivative is meant, pass ``functrans.lax.stop_gradient(x)``.
    """


class TracerIntegerConversionError(ConcretizationError):
    """A traced value was used where Python wants an integer: ``range``, the index of a list, a shape.

    >>> import functrans as ft
    >>> ft.jit(lambda n: sum(range(n)))(3)
    Traceback (most recent call last):
    ...
    functrans.core.errors.TracerIntegerConversionError: integer value of a traced value of type i64[]*...

    Mark the argument static (``static_argnums``). Instead of a list of numbers index an array:
    ``fnp.asarray([1, 2, 3])[n]``.
    """


class NonConcreteBooleanIndexError(ConcretizationError, IndexError):
    """A traced boolean mask as an index: the shape of the result would depend on data.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.jit(lambda x: fnp.sum(x[x > 0]))(fnp.arange(3.0))
    Traceback (most recent call last):
    ...
    functrans.core.errors.NonConcreteBooleanIndexError: a boolean mask of type bool[3] as an index...

    Use ``fnp.where(mask, x, fill)``, or ``x.at[mask].set(v)`` with a scalar `v`. Outside ``jit`` masks work.
    """


class UnexpectedTracerError(FunctransError, RuntimeError):
    """A traced value outlived the function it was traced in (a leak).

    >>> import functrans as ft
    >>> kept = []
    >>> def f(x):
    ...     kept.append(x)
    ...     return x
    >>> y = ft.jit(f)(1.0)
    >>> kept[0] + 1.0
    Traceback (most recent call last):
    ...
    functrans.core.errors.UnexpectedTracerError: a traced value of type f64[]* was used after the function...

    Return the value from the function instead of storing it in a global, a list or an attribute.
    """


class StaticArgumentError(FunctransError, ValueError):
    """A static argument of ``jit`` that is not hashable, or `static_argnums` that name no argument.

    >>> import functrans as ft
    >>> ft.jit(lambda x, sizes: x, static_argnums=1)(1.0, [2, 3])
    Traceback (most recent call last):
    ...
    functrans.core.errors.StaticArgumentError: jit of <lambda>: the static argument 1 ('sizes') is a list...

    Static arguments are part of the cache key: pass a tuple instead of a list, a frozen dataclass instead of a
    dictionary, and arrays as ordinary arguments.
    """


class StaleInstanceError(FunctransError, ValueError):
    """A jitted method whose instance has changed since the method was traced with it, or may change unseen.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Model:
    ...     def __init__(self, w):
    ...         self.w = w
    ...     @ft.jit
    ...     def loss(self, y):
    ...         return fnp.sum((self.w - y) ** 2)
    >>> model = Model(fnp.zeros(2))
    >>> model.loss(fnp.ones(2))
    Array(2.)
    >>> model.w = fnp.ones(2)
    >>> model.loss(fnp.ones(2))
    Traceback (most recent call last):
    ...
    functrans.core.errors.StaleInstanceError: jit of Model.loss: self.w has changed since the method was traced...

    `self` is neither an array nor a tree, so what the method reads from it is a constant of the compiled program. Make
    the class a tree (``@functrans.tree_util.register_dataclass``), and its arrays are arguments; or pass `w` as an
    argument. With ``static_argnames="self"`` the instance is the constant that it was when traced, whatever changes.
    """


class JaxprError(FunctransError, TypeError):
    """A jaxpr that is not well formed, found by the verifier: a fault in functrans or in a primitive's rule.

    >>> import numpy as np, functrans as ft
    >>> from functrans.core.aval import Aval
    >>> from functrans.core.check import check_jaxpr
    >>> from functrans.core.ir import Jaxpr, Var
    >>> never_computed = Var(Aval((), np.dtype(float)))
    >>> check_jaxpr(Jaxpr([], [], [never_computed]))
    Traceback (most recent call last):
    ...
    functrans.core.errors.JaxprError: jaxpr 'f': output 0: variable Var:f64[] is used but not defined before...

    Users see it only with ``config.verify = True``; then please report it, with the program.
    """


class PicklingError(FunctransError, pickle.PicklingError, TypeError):
    """Something that cannot go to another process: a program or kernel of this one, or a traced value.

    >>> import pickle, functrans as ft
    >>> y, pull = ft.vjp(lambda x: x**2, 3.0)
    >>> pickle.dumps(pull)
    Traceback (most recent call last):
    ...
    functrans.core.errors.PicklingError: what vjp returned for <lambda> cannot be pickled...

    Send the function and its arguments, and transform or compile it there. Functions, and what ``jit``, ``grad``,
    ``vmap`` and their like make of them, can be pickled.
    """
