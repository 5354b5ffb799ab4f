"""Typed errors. The docstring of each class is its help page: a failing program, the cause, the cure.

Every error carries the user's own line: taken from the stack where it is raised, or given as `source` when
the fault is noticed later (an index out of bounds inside a kernel).
"""

from __future__ import annotations

import numpy as np

from .source import Source, user_source


class FunctransError(Exception):
    """Base class of every error that functrans raises on purpose.

    Parameters
    ----------
    message : str
        What was wrong, what was met, how to fix it.
    source : Source, optional
        The user's line; by default the innermost frame outside functrans.

    Examples
    --------
    >>> import functrans as ft
    >>> try:
    ...     ft.grad(lambda x: x * 2)(3)
    ... except ft.errors.FunctransError as error:
    ...     print(type(error).__name__)
    GradientError
    """

    def __init__(self, message: str, source: Source | None = None):
        self.message = message
        self.source = source if source is not None else user_source()
        place = f"\n  at {self.source.describe()}" if self.source is not None else ""
        super().__init__(message + place)


class ShapeError(FunctransError, ValueError):
    """Shapes that do not fit together.

    >>> import functrans.numpy as fnp
    >>> fnp.add(fnp.ones(3), fnp.ones(4))
    Traceback (most recent call last):
    ...
    functrans.core.errors.ShapeError: add: shapes (3,) and (4,) do not broadcast...

    The message names the operation and every shape. Insert an axis (``x[:, None]``), reshape, or transpose
    one of the operands.
    """


class AxisError(FunctransError, np.exceptions.AxisError):
    """An axis that the array does not have.

    >>> import functrans.numpy as fnp
    >>> fnp.sum(fnp.ones((3, 4)), axis=2)
    Traceback (most recent call last):
    ...
    functrans.core.errors.AxisError: sum: axis 2 is out of bounds for array of dimension 2...

    Axes run from ``-x.ndim`` to ``x.ndim - 1``. Inside ``vmap`` a value has the shape of one example.
    """


class DtypeError(FunctransError, TypeError):
    """A dtype that the operation does not take.

    >>> import functrans.numpy as fnp
    >>> fnp.bitwise_and(1.0, 2.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.DtypeError: bitwise_and does not take float64 (weak), float64 (weak)...

    Convert with ``.astype`` first, or use the function for that dtype (``logical_and``).
    """


class UnsupportedDtypeError(DtypeError):
    """A dtype that functrans has no arrays of: float16, longdouble, object, strings, dates, records.

    >>> import numpy as np, functrans.numpy as fnp
    >>> fnp.asarray(np.ones(3, np.float16))
    Traceback (most recent call last):
    ...
    functrans.core.errors.UnsupportedDtypeError: asarray: argument 0 has dtype float16, which is not supported...

    Convert before the call: ``x.astype(np.float32)``.
    """


class ArgumentError(FunctransError, TypeError):
    """An argument of the wrong kind: a value that is not an array, a wrong `argnums`, a bad option.

    >>> import functrans as ft
    >>> ft.jvp(lambda x: x, 1.0, 1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.ArgumentError: jvp: primals and tangents must be tuples or lists of arguments...

    The message names the argument and shows what was met.
    """


class ArgumentValueError(FunctransError, ValueError):
    """An argument of the right kind with a value that cannot be used.

    >>> import functrans as ft
    >>> ft.grad(lambda x: x, argnums=2)(1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.ArgumentValueError: grad of <lambda>: argnums=2, but it was called with 1 positional...

    Other examples: mapped axes of different sizes in ``vmap``, an integer array to a negative power. The message says
    which values would do.
    """


class IndexOutOfBoundsError(FunctransError, IndexError):
    """An index outside the array, met while tracing or inside a compiled kernel.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.jit(lambda x, i: x[i])(fnp.arange(3.0), 5)
    Traceback (most recent call last):
    ...
    functrans.core.errors.IndexOutOfBoundsError: index 5 is out of bounds for axis 0 with size 3...

    As NumPy does, functrans raises, compiled too; the message names the index, the axis and its size, and your line.
    Where indices may lie outside on purpose, say what to do: ``x.at[i].get(mode="clip")`` (or ``"fill"``, ``"wrap"``),
    ``x.at[i].set(v, mode="drop")``.
    """


class InvalidIndexError(FunctransError, IndexError):
    """An index expression that does not fit the array: too many indices, a float, two ellipses, index arrays that do
    not broadcast, a boolean mask of another shape.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.jit(lambda x: x[0, 0])(fnp.arange(3.0))
    Traceback (most recent call last):
    ...
    functrans.core.errors.InvalidIndexError: too many indices for array: array is 1-dimensional (shape (3,))...

    Convert indices to integers, and count the axes of ``x.shape``.
    """


class GradientError(FunctransError, TypeError):
    """A derivative that does not exist: of a function that is not scalar, or in an argument that is not float.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.grad(lambda x: x * 2)(fnp.ones(3))
    Traceback (most recent call last):
    ...
    functrans.core.errors.GradientError: grad of <lambda>: it must return a scalar, but returned an array...

    Sum it, or use ``jacrev`` or ``vjp``.

    >>> ft.grad(lambda x: x * 2)(3)
    Traceback (most recent call last):
    ...
    functrans.core.errors.GradientError: grad of <lambda>: argument 0 ('x') has dtype int64...

    Pass ``3.0``, or ``x.astype(float)``; integer arguments among others are left out by ``argnums``.
    """


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
    """A traced value met ``float``, ``int``, ``complex`` or a function of the ``math`` module.

    >>> import math, functrans as ft
    >>> ft.jit(lambda x: math.sin(x))(1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.TracerScalarConversionError: float() of a traced value of type f64[]*...

    Use functions of ``functrans.numpy`` on it, ``.astype`` to change the dtype, or mark the argument static.
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


class ImmutableArrayError(FunctransError, ValueError, TypeError):
    """An attempt to change an `Array` in place: ``x[i] = v``, ``out=x``, ``x.sort()``, ``x.flags.writeable = True``.

    >>> import functrans.numpy as fnp
    >>> x = fnp.zeros(3)
    >>> x[0] = 1.0
    Traceback (most recent call last):
    ...
    functrans.core.errors.ImmutableArrayError: x[i] = v: an Array of functrans cannot be changed in place...

    Arrays of functrans never change. Write ``x = x.at[0].set(1.0)``, use the returned value (``y = np.sort(x)``), or
    take a copy that is yours: ``np.array(x)``.
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


class NoRuleError(FunctransError, NotImplementedError):
    """An operation lacks what a transformation asked of it: functrans does not have it, or its derivative, or it is
    not linear.

    >>> import numpy as np, functrans as ft
    >>> ft.grad(lambda x: np.sum(np.busday_count(x, x)))(np.ones(3))
    Traceback (most recent call last):
    ...
    functrans.core.errors.NoRuleError: np.busday_count of a traced value of type f64[3]...

    Write it with functions that there are; the message names the nearest. For a primitive without a rule the message
    names the file with its record.
    """


class NoAttributeError(FunctransError, AttributeError):
    """A name that a module of functrans, or a traced value, does not have.

    >>> import functrans.numpy as fnp
    >>> fnp.sine
    Traceback (most recent call last):
    ...
    functrans.core.errors.NoAttributeError: functrans.numpy has no 'sine'. Nearest: ...

    The message names the nearest that exists, or what to write instead.
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


class LinAlgError(FunctransError, np.linalg.LinAlgError):
    """A decomposition failed: a matrix that is not positive definite, or singular.

    >>> import numpy as np, functrans as ft, functrans.numpy as fnp
    >>> ft.jit(fnp.linalg.cholesky)(-np.eye(2))
    Traceback (most recent call last):
    ...
    functrans.core.errors.LinAlgError: cholesky: the matrix is not positive definite...

    Caught by ``except numpy.linalg.LinAlgError``. Add a small multiple of the identity; or let the result be NaN:

    >>> with ft.config.patch(linalg_errors="nan"):
    ...     bool(np.isnan(fnp.linalg.cholesky(-np.eye(2))).any())
    True
    """


class TapeLimitError(FunctransError, MemoryError):
    """The derivative of a loop would have to keep more than ``config.tape_limit`` allows.

    Reverse mode keeps what the derivative needs of every iteration. Of a ``while_loop``, or a ``fori_loop`` whose
    number of iterations is only known at run time, nobody knows beforehand how much that is:

    >>> import functrans as ft
    >>> from functrans import lax
    >>> def root(x, count):
    ...     return lax.fori_loop(0, count, lambda i, y: (y + x / y) / 2, x)
    >>> with ft.config.patch(tape_limit=1000):
    ...     ft.jit(ft.grad(root))(2.0, 100_000)
    Traceback (most recent call last):
    ...
    functrans.core.errors.TapeLimitError: what the derivative of a loop must keep of its iterations exceeds ...

    Keep less of each iteration (``functrans.checkpoint``), make the loop shorter, differentiate it in forward mode
    (``jvp``, ``jacfwd``), or raise the limit.
    """


class CarryTypeError(FunctransError, TypeError):
    """A loop whose body returns another type of carry than it was given: shape, dtype or structure.

    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> lax.fori_loop(0, 3, lambda i, c: {"x": fnp.append(c["x"], i)}, {"x": fnp.zeros(2)})
    Traceback (most recent call last):
    ...
    functrans.core.errors.CarryTypeError: fori_loop of <lambda>: the carry changes its type at ['x']: f64[2] goes in...

    A compiled loop has one place for each array of its carry. Give the first carry the type that the body returns
    (``fnp.zeros(n)`` of full size, written by ``.at[i].set``; ``0.0`` instead of ``np.int64(0)``), or convert in the
    body (``.astype(c.dtype)``). A Python number takes on the dtype that the body gives it.
    """


class ConditionTypeError(FunctransError, TypeError):
    """A condition of ``while_loop`` or ``cond`` that is not one boolean.

    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> lax.while_loop(lambda x: x < 3.0, lambda x: x + 1.0, fnp.zeros(2))
    Traceback (most recent call last):
    ...
    functrans.core.errors.ConditionTypeError: while_loop: the condition <lambda> must return a scalar boolean, but...

    Compare numbers (``x != 0``), and reduce arrays: ``fnp.all(x < 3.0)``, ``fnp.any(x < 3.0)``. To loop over each
    element on its own, map the loop: ``vmap``.
    """


class BranchTypeError(FunctransError, TypeError):
    """Branches of ``cond`` or ``switch`` that return different types: structure, shape or dtype.

    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> lax.cond(True, lambda x: (x, x), lambda x: (x, x[0]), fnp.ones(2))
    Traceback (most recent call last):
    ...
    functrans.core.errors.BranchTypeError: cond: the branches return different types at [1]: f64[2] from true_fun...

    Which branch runs is known only when it runs, so what comes after must fit either. Make shapes equal
    (``fnp.zeros_like``), dtypes too (``.astype``), and return the same structure from each. Python numbers take on the
    dtype of the other branch.
    """


class CallbackError(FunctransError, ValueError):
    """A callback that did not return what was promised, or that a transformation cannot go through.

    >>> import numpy as np, functrans as ft
    >>> promised = ft.ShapeDtypeStruct((3,), float)
    >>> ft.jit(lambda x: ft.pure_callback(lambda x: x[:2], promised, x))(np.ones(3))
    Traceback (most recent call last):
    ...
    functrans.core.errors.CallbackError: pure_callback: the callback '<lambda>' returned an array of shape (2,)...

    The message names the callback, the leaf of its result, and both types. Callbacks have no derivative:

    >>> ft.grad(lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((), float), x))(1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.CallbackError: pure_callback: the callback 'sin' has no derivative (JVP)...

    Give one by ``custom_jvp`` or ``custom_vjp``, or cut it off: ``functrans.lax.stop_gradient(x)``. Values are
    looked at by ``functrans.debug.print`` and ``functrans.debug.callback``, which derivatives pass through.
    """


class FormatError(FunctransError, ValueError, KeyError, IndexError):
    """A format string of ``debug.print`` that does not fit its arguments.

    >>> import functrans as ft
    >>> ft.debug.print("x = {x}", y=1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.FormatError: debug.print: 'x = {x}' asks for 'x', which is not given...

    Write ``debug.print("x = {x}", x=x)``, not an f-string: the numbers are not known yet where it is evaluated.
    """

    __str__ = Exception.__str__  # that of KeyError would quote the message


class PytreeError(FunctransError, ValueError):
    """Trees that do not fit together, or a tree that cannot be taken apart.

    >>> import functrans as ft
    >>> ft.tree.map(lambda x, y: x + y, (1, 2), (1, 2, 3))
    Traceback (most recent call last):
    ...
    functrans.core.errors.PytreeError: tree_map: tree 2 does not match at the root: expected a tuple of length 2...

    The message names the key path at which the trees part.

    >>> ft.tree.leaves({1: 0.0, "a": 0.0})
    Traceback (most recent call last):
    ...
    functrans.core.errors.PytreeError: the keys of the dictionary at tree cannot be sorted (types met: int, str)...

    Keys of a dictionary must have an order: use one type of key, or an `OrderedDict`, which keeps its own.
    """


class ConfigError(FunctransError, ValueError):
    """A value that an option does not take, assigned or given by an environment variable (``FUNCTRANS_BACKEND=gpu``).

    >>> import functrans as ft
    >>> ft.config.backend = "gpu"
    Traceback (most recent call last):
    ...
    functrans.core.errors.ConfigError: config.backend must be 'llvm' or 'python', got 'gpu'...

    The message names the option and the values allowed.
    """


class UnknownOptionError(FunctransError, AttributeError):
    """An option that does not exist.

    >>> import functrans as ft
    >>> ft.config.strickt = True
    Traceback (most recent call last):
    ...
    functrans.core.errors.UnknownOptionError: config has no option 'strickt': did you mean 'strict'?...

    The message names the nearest one.
    """
