"""What cannot be traced or differentiated: numbers that are not known, loops, pickling; malformed programs."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from .base import FunctransError, JAXIndexError, JAXTypeError
from .distributed import CollectiveError


class ConcretizationTypeError(JAXTypeError):
    """Code needs a number while only its shape and dtype are known.

    Base class of the errors that follow. Inside ``jit`` (and for a batched value inside ``vmap``) numbers are unknown:
    a traced value cannot become a Python number, choose a branch, or be written to a NumPy array.

    >>> import functrans as ft
    >>> try:
    ...     ft.jit(lambda x: int(x))(2.5)
    ... except ft.errors.ConcretizationTypeError as error:
    ...     print(type(error).__name__)
    TracerScalarConversionError

    Outside ``jit``, ``grad`` and the other derivatives see numbers, and the same function works. Inside, compute with
    functions of ``functrans.numpy``, or mark the argument static.
    """

    #: Weak reference to the trace of the value whose number was needed, if any.
    trace: Callable[[], Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        make, args, state = super().__reduce__()
        # A trace cannot leave its process.
        return make, args, {k: v for k, v in state.items() if k != "trace"}

    def is_of(self, trace: Any) -> bool:
        """Whether the value whose number was needed belongs to this trace."""
        return self.trace is not None and self.trace() is trace


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a condition: ``if x > 0``, ``while``, ``and``, ``not``, ``x in y``.

    >>> import functrans as ft
    >>> ft.jit(lambda x: x if x > 0 else -x)(3.0)
    Traceback (most recent call last):
    ...
    functrans.errors.TracerBoolConversionError: truth value of a traced value of type bool[]...

    Choose with ``fnp.where(x > 0, a, b)``, combine with ``&``, ``|``, ``~``, or mark the argument static:
    ``jit(f, static_argnums=0)``. For a missing argument write ``x is None``, not ``x == None``.
    """


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced value was used where a plain NumPy array is needed: ``np.array([t])``, ``X[t]`` with a plain ndarray
    `X`, a SciPy function.

    >>> import numpy as np, functrans as ft
    >>> ft.grad(lambda t: np.array([t, t]).sum())(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.TracerArrayConversionError: a traced value of type f64[]* (traced by grad) cannot become...

    Use functions of functrans (``fnp.stack([t, t])``, ``fnp.asarray(X)[t]``), and ``x.at[i].set(t)`` to assign.
    """


class TracerScalarConversionError(ConcretizationTypeError):
    """A traced value was passed to ``float``, ``int``, ``complex``, or compiled code that needs a number: the ``math``
    module, ``map(float, xs)``, a SciPy solver.

    >>> import math, functrans as ft
    >>> ft.jit(lambda x: math.sin(x))(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.TracerScalarConversionError: float() of a traced value of type f64[]*...

    Use functions of ``functrans.numpy``, ``.astype`` to change the dtype, or mark the argument static.

    Outside ``jit`` the number is known, and ``float(x)`` in your own code returns a constant. If other code needs the
    number of a value that is being differentiated, the derivative would be lost:

    >>> ft.grad(lambda x: sum(map(math.sin, [x, 2 * x])))(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.TracerScalarConversionError: sum asked for the number of a value of type f64[]* that is...

    If you mean a zero derivative, pass ``functrans.lax.stop_gradient(x)``.
    """


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced value was used where Python needs an integer: ``range``, the index of a list, a shape.

    >>> import functrans as ft
    >>> ft.jit(lambda n: sum(range(n)))(3)
    Traceback (most recent call last):
    ...
    functrans.errors.TracerIntegerConversionError: integer value of a traced value of type i64[]*...

    Mark the argument static (``static_argnums``). Instead of a list of numbers, index an array:
    ``fnp.asarray([1, 2, 3])[n]``.
    """


class NonConcreteBooleanIndexError(ConcretizationTypeError, JAXIndexError):
    """A traced boolean mask was used as an index: the shape of the result would depend on data.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.jit(lambda x: fnp.sum(x[x > 0]))(fnp.arange(3.0))
    Traceback (most recent call last):
    ...
    functrans.errors.NonConcreteBooleanIndexError: a boolean mask of type bool[3] as an index...

    Use ``fnp.where(mask, x, fill)``, or ``x.at[mask].set(v)`` with a scalar `v`. Outside ``jit`` masks work.
    """


class UnexpectedTracerError(JAXTypeError, RuntimeError):
    """A traced value outlived the function it was traced in (a leak).

    >>> import functrans as ft
    >>> leaked = []
    >>> def f(x):
    ...     leaked.append(x)
    ...     return x
    >>> y = ft.jit(f)(1.0)
    >>> leaked[0] + 1.0
    Traceback (most recent call last):
    ...
    functrans.errors.UnexpectedTracerError: a traced value of type f64[]* was used after the function...

    Return the value from the function instead of storing it in a global, a list or an attribute.
    """


class NoTracingError(FunctransError, RuntimeError):
    """A function would be traced while ``config.no_tracing`` is set.

    >>> import functrans as ft
    >>> f = ft.jit(lambda x: 2.0 * x)
    >>> with ft.no_tracing(True):
    ...     f(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.NoTracingError: <lambda> would be traced, but config.no_tracing is set...

    First call the function once, with arguments of the same types.
    """


class UnboundAxisError(CollectiveError, NameError):
    """A collective names an axis that no ``vmap`` around it binds.

    >>> import functrans as ft
    >>> ft.vmap(lambda x: ft.lax.psum(x, "rows"), axis_name="batch")(ft.numpy.ones(3))
    Traceback (most recent call last):
    ...
    functrans.errors.UnboundAxisError: psum: the axis name 'rows' is not bound here; bound are: 'batch'...

    Name the axis where it is mapped: ``vmap(f, axis_name="rows")``.
    """


class RefError(FunctransError, ValueError):
    """A `Ref` was used where or when it cannot be: passed twice, returned, used as an array, or after `freeze`.

    >>> import functrans as ft
    >>> r = ft.new_ref(1.0)
    >>> ft.jit(lambda a, b: a[...] + b[...])(r, r)
    Traceback (most recent call last):
    ...
    functrans.errors.RefError: jit of <lambda>: argument 0 ('a') and argument 1 ('b') are the same Ref...

    The message says what to do instead. Return the value ``r[...]`` instead of the `Ref`, and pass each `Ref` once.
    """


class StaticArgumentError(FunctransError, ValueError):
    """A static argument of ``jit`` is not hashable, or `static_argnums` does not match an argument.

    >>> import functrans as ft
    >>> ft.jit(lambda x, sizes: x, static_argnums=1)(1.0, [2, 3])
    Traceback (most recent call last):
    ...
    functrans.errors.StaticArgumentError: jit of <lambda>: the static argument 1 ('sizes') is a list...

    Static arguments are part of the cache key. Pass a tuple instead of a list, a frozen dataclass instead of a
    dictionary, and arrays as ordinary arguments.
    """


class StaleInstanceError(FunctransError, ValueError):
    """The instance of a jitted method holds something that may change unnoticed.

    >>> import functrans as ft
    >>> class Model:
    ...     def __init__(self, batches):
    ...         self.w, self.batches = 2.0, batches
    ...     @ft.jit
    ...     def scaled(self, x):
    ...         return self.w * x
    >>> Model(batches=(i for i in range(3))).scaled(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.StaleInstanceError: jit of Model.scaled: self.batches is of type generator, which may...

    `self` is not an array or a pytree, so it is a constant of the compiled program, which is traced again once any
    attribute has changed. That cannot be seen of generators, open files, and other objects that neither Python nor
    `pickle` can look into. Register the class as a pytree (``@functrans.tree_util.register_dataclass``) to make its
    arrays arguments, or pass the value as an argument. With ``static_argnames="self"`` the instance stays as it was
    when traced, whatever changes later.
    """


class JaxprError(FunctransError, TypeError):
    """A program is malformed, or was given operands that do not suit it.

    >>> import numpy as np
    >>> from functrans import ir
    >>> program = ir.trace(np.sin, np.ones(3))
    >>> ir.eval_jaxpr(program, np.ones(4))
    Traceback (most recent call last):
    ...
    functrans.errors.JaxprError: eval_jaxpr of sin: input 0 is f64[4], but must be f64[3]...

    The message names the operand, or the equation and the user's line that it comes from.
    """


class JaxprTypeError(JaxprError):
    """The verifier found a malformed jaxpr: a bug in a pass or in a primitive's rule.

    >>> import numpy as np, functrans as ft
    >>> from functrans import ir
    >>> never_computed = ir.Var(ir.Aval((), np.dtype(float)))
    >>> ir.verify(ir.Jaxpr([], [], [never_computed]))
    Traceback (most recent call last):
    ...
    functrans.errors.JaxprTypeError: jaxpr 'f': output 0: variable Var:f64[] is used but not defined before...

    `functrans.ir.verify` raises it for programs of yours. From a transformation you see it only with
    ``config.verify = True``: please report that, with the program.
    """


class RewriteError(FunctransError, ValueError):
    """A pattern or a rule for programs does not make sense, or rules chase each other.

    >>> from functrans import ir
    >>> ir.Op("sine", ir.Any("x"))
    Traceback (most recent call last):
    ...
    functrans.errors.RewriteError: there is no primitive 'sine'. Nearest: sin...

    The message names the rule's line, and for a replacement of another type both types.
    """


class PicklingError(FunctransError, pickle.PicklingError, TypeError):
    """An object that belongs to this process cannot be pickled: a program, a kernel, or a traced value.

    >>> import pickle, functrans as ft
    >>> y, pullback = ft.vjp(lambda x: x**2, 3.0)
    >>> pickle.dumps(pullback)
    Traceback (most recent call last):
    ...
    functrans.errors.PicklingError: what vjp returned for <lambda> cannot be pickled...

    Send the function and its arguments, and transform or compile it there. Functions can be pickled, including those
    made by ``jit``, ``grad``, ``vmap`` and other transformations.
    """


class TapeLimitError(FunctransError, MemoryError):
    """The derivative of a loop would have to store more than ``config.tape_limit`` allows.

    Reverse mode stores the residuals of every iteration. For a ``while_loop``, or a ``fori_loop`` whose number of
    iterations is known only at run time, their size is unknown in advance:

    >>> import functrans as ft
    >>> from functrans import lax
    >>> def root(x, count):
    ...     return lax.fori_loop(0, count, lambda i, y: (y + x / y) / 2, x)
    >>> with ft.config.patch(tape_limit=1000):
    ...     ft.jit(ft.grad(root))(2.0, 100_000)
    Traceback (most recent call last):
    ...
    functrans.errors.TapeLimitError: the residuals of a loop exceed ...

    Store less per iteration (``functrans.checkpoint``), make the loop shorter, differentiate it in forward mode
    (``jvp``, ``jacfwd``), or raise the limit.
    """


class CarryTypeError(FunctransError, TypeError):
    """A loop's body returns a carry of another type than it received: shape, dtype or structure.

    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> lax.fori_loop(0, 3, lambda i, c: {"x": fnp.append(c["x"], i)}, {"x": fnp.zeros(2)})
    Traceback (most recent call last):
    ...
    functrans.errors.CarryTypeError: fori_loop of <lambda>: the carry changes its type at ['x']: f64[2] goes in...

    A compiled loop has one buffer for each array of its carry. Give the initial carry the type that the body returns
    (``fnp.zeros(n)`` at full size, written with ``.at[i].set``; ``0.0`` instead of ``np.int64(0)``), or convert in the
    body (``.astype(c.dtype)``). A Python number takes the dtype that the body gives it.
    """


class ConditionTypeError(FunctransError, TypeError):
    """A condition of ``while_loop`` or ``cond`` is not a scalar boolean.

    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> lax.while_loop(lambda x: x < 3.0, lambda x: x + 1.0, fnp.zeros(2))
    Traceback (most recent call last):
    ...
    functrans.errors.ConditionTypeError: while_loop: the condition <lambda> must return a scalar boolean, but...

    Compare numbers (``x != 0``), and reduce arrays: ``fnp.all(x < 3.0)``, ``fnp.any(x < 3.0)``. To loop over each
    element separately, map the loop: ``vmap``.
    """


class BranchTypeError(FunctransError, TypeError):
    """The branches of ``cond`` or ``switch`` return different types: structure, shape or dtype.

    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> lax.cond(True, lambda x: (x, x), lambda x: (x, x[0]), fnp.ones(2))
    Traceback (most recent call last):
    ...
    functrans.errors.BranchTypeError: cond: the branches return different types at [1]: f64[2] from true_fun...

    Which branch runs is known only at run time, so the code after it must work with either. Make the shapes equal
    (``fnp.zeros_like``), and the dtypes (``.astype``), and return the same structure from each. Python numbers take the
    dtype of the other branch.
    """


class GradientError(FunctransError, TypeError):
    """The derivative does not exist: the function is not scalar, or the argument is not a float.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.grad(lambda x: x * 2)(fnp.ones(3))
    Traceback (most recent call last):
    ...
    functrans.errors.GradientError: grad of <lambda>: it must return a scalar, but returned an array...

    Sum the result, or use ``jacrev`` or ``vjp``.

    >>> ft.grad(lambda x: x * 2)(3)
    Traceback (most recent call last):
    ...
    functrans.errors.GradientError: grad of <lambda>: argument 0 ('x') has dtype int64...

    Pass ``3.0`` or ``x.astype(float)``, or use ``argnums`` to select the float arguments.
    """


class NoRuleError(FunctransError, NotImplementedError):
    """An operation lacks a rule: functrans does not have the operation or its derivative, or it is not linear.

    >>> import numpy as np, functrans as ft
    >>> ft.grad(lambda x: np.sum(np.busday_count(x, x)))(np.ones(3))
    Traceback (most recent call last):
    ...
    functrans.errors.NoRuleError: np.busday_count of a traced value of type f64[3]...

    Use functions that functrans has; the message suggests the nearest one. For a primitive without a rule, the message
    names the file of its record.
    """


class NumbaTranslationError(FunctransError, TypeError):
    """A function of Numba's ``njit`` cannot be differentiated or batched: it uses what has no translation.

    `functrans.numba_call` translates loops, branches, arrays, numbers and tuples. It refuses ``try``, recursion,
    generators, classes, strings, lists, dicts, sets, object mode, random numbers and writes to an argument, before
    anything runs.

    >>> import numba, functrans as ft
    >>> @ft.njit
    ... def f(x):
    ...     steps = [x]
    ...     steps.append(2.0 * x)
    ...     return steps[1]
    >>> f(1.0)
    2.0
    >>> ft.grad(f)(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.NumbaTranslationError: numba_call of f: ...

    Write the function with arrays and numbers, or pass its derivative: ``numba_call(f, vjp=...)``. Plain functions of
    ``njit`` raise the same error for a traced value: wrap them in ``numba_call``.
    """
