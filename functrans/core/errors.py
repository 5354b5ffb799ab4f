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

    ``fnp.sum(x, axis=2)`` of a 2-d `x`. Axes run from ``-x.ndim`` to ``x.ndim - 1``.
    """


class DtypeError(FunctransError, TypeError):
    """A dtype that the operation does not take.

    ``fnp.bitwise_and(1.0, 2.0)``: convert with ``.astype`` first.
    """


class UnsupportedDtypeError(DtypeError):
    """A dtype that functrans has no arrays of: float16, longdouble, object, strings, dates, records.

    Convert before the call: ``x.astype(np.float32)``.
    """


class ArgumentError(FunctransError, TypeError):
    """An argument of the wrong kind: a value that is not an array, a wrong `argnums`, a bad option.

    The message names the argument by position and name and shows what was met.
    """


class ArgumentValueError(FunctransError, ValueError):
    """An argument of the right kind with a value that cannot be used.

    For example an `argnums` beyond the last argument, or `in_axes` that match no argument.
    """


class IndexOutOfBoundsError(FunctransError, IndexError):
    """An index outside the array, met eagerly or inside a compiled kernel.

    As NumPy does, functrans raises; the message names the index, the axis and its size, and your line. Where
    indices may lie outside on purpose, say what to do: ``x.at[i].get(mode="clip")`` (or ``"fill"``, ``"wrap"``),
    ``x.at[i].set(v, mode="drop")``.
    """


class InvalidIndexError(FunctransError, IndexError):
    """An index expression that does not fit the array: too many indices, a float, two ellipses, index arrays that do
    not broadcast, a boolean mask of another shape.

    ``x[0, 0, 0]`` of a 2-d `x`; ``x[1.0]``. Convert indices to integers, and count the axes of ``x.shape``.
    """


class GradientError(FunctransError, TypeError):
    """A derivative that does not exist: of a function that is not scalar, or in an argument that is not float.

    ``grad(lambda x: x * 2)(fnp.ones(3))``: the output has shape (3,). Sum it, or use ``jacrev``/``vjp``.

    ``grad(f)(3)``: 3 is an integer. Pass ``3.0``.
    """


class ConcretizationError(FunctransError, TypeError):
    """A value was needed while only its shape and dtype are known.

    Base class of the errors below. Inside ``jit`` (and for a batched value inside ``vmap``) numbers do not exist
    yet: a traced value cannot become a Python number, choose a branch, or be written into a NumPy array.
    """


class TracerBoolConversionError(ConcretizationError):
    """A traced value was used as a condition: ``if x > 0``, ``while``, ``and``, ``not``, ``x in y``.

    Choose with ``fnp.where(x > 0, a, b)``, combine with ``&``, ``|``, ``~``, or mark the argument static:
    ``jit(f, static_argnums=0)``.
    """


class TracerArrayConversionError(ConcretizationError):
    """A traced value met something that wants a plain NumPy array: ``np.array([t])``, ``np.zeros(3)[0] = t``,
    a SciPy function.

    Use the function of the same name in ``functrans.numpy`` (``fnp.stack``), or ``x.at[i].set(t)`` to write.
    """


class TracerScalarConversionError(ConcretizationError):
    """A traced value met ``float``, ``int``, ``complex``, ``round``, ``math.sin`` or ``range``.

    Use ``functrans.numpy`` functions on it, or mark the argument static.
    """


class TracerIntegerConversionError(ConcretizationError):
    """A traced value was used where Python wants an integer: an index of a list or of a plain ndarray, ``range``.

    ``X[t]`` with a plain ndarray `X`: write ``functrans.numpy.asarray(X)[t]``.
    """


class NonConcreteBooleanIndexError(ConcretizationError, IndexError):
    """A traced boolean mask as an index: the shape of the result would depend on data.

    Use ``fnp.where(mask, x, fill)``, or ``x.at[...]`` with ``fnp.where``.
    """


class UnexpectedTracerError(FunctransError, RuntimeError):
    """A traced value outlived the function it was traced in (a leak).

    It was stored in a global, a list or an attribute by a function under ``jit``, ``grad`` or ``vmap``, and used
    afterwards. Return the value from the function instead.
    """


class ImmutableArrayError(FunctransError, ValueError, TypeError):
    """An attempt to change an `Array` in place: ``x[i] = v``, ``out=x``, ``x.sort()``, ``x.flags.writeable = True``.

    Arrays of functrans never change. Write ``x = x.at[i].set(v)``, use the returned value (``y = fnp.sort(x)``), or
    take a copy that is yours: ``np.array(x)``.
    """


class StaticArgumentError(FunctransError, ValueError):
    """A static argument of ``jit`` that is not hashable, or `static_argnums` that name no argument.

    Static arguments are part of the cache key: pass a tuple instead of a list, a frozen dataclass instead of a
    dictionary, and arrays as ordinary arguments.
    """


class NoRuleError(FunctransError, NotImplementedError):
    """A primitive lacks the rule that a transformation asked for. The message names the file to open."""


class JaxprError(FunctransError, TypeError):
    """A jaxpr that is not well formed, found by the verifier: a fault in functrans or in a rule."""


class LinAlgError(FunctransError, np.linalg.LinAlgError):
    """A decomposition failed: a matrix that is not positive definite, or singular.

    Caught by ``except numpy.linalg.LinAlgError``. ``config.patch(linalg_errors="nan")`` fills the result with NaN instead.
    """


class PytreeError(FunctransError, ValueError):
    """Trees that do not fit together, or a tree that cannot be taken apart.

    ``tree_map(f, (1, 2), (1, 2, 3))``: the trees differ in structure; the message names the key path at which they
    part. ``tree_leaves({1: x, "a": y})``: keys of a dictionary must have an order; use one type of key, or an
    `OrderedDict`, which keeps its own.
    """


class ConfigError(FunctransError, ValueError):
    """A value that an option does not take: ``config.backend = "gpu"``, or ``FUNCTRANS_BACKEND=gpu``.

    The message names the option and the values allowed.
    """


class UnknownOptionError(FunctransError, AttributeError):
    """An option that does not exist: ``config.strickt = True``. The message names the nearest one."""
