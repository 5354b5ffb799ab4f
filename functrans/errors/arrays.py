"""Arrays and pytrees: shapes, dtypes, indices, arguments."""

from __future__ import annotations

import numpy as np

from .base import FunctransError


class ShapeError(FunctransError, ValueError, TypeError):
    """The shapes of the operands do not match.

    >>> import functrans.numpy as fnp
    >>> fnp.add(fnp.ones(3), fnp.ones(4))
    Traceback (most recent call last):
    ...
    functrans.errors.ShapeError: add: shapes (3,) and (4,) do not broadcast...

    The message names the operation and every shape. Insert an axis (``x[:, None]``), reshape, or transpose
    one of the operands.
    """


class AxisError(FunctransError, np.exceptions.AxisError):
    """The array does not have this axis.

    >>> import functrans.numpy as fnp
    >>> fnp.sum(fnp.ones((3, 4)), axis=2)
    Traceback (most recent call last):
    ...
    functrans.errors.AxisError: sum: axis 2 is out of bounds for array of dimension 2...

    Axes run from ``-x.ndim`` to ``x.ndim - 1``. Inside ``vmap`` a value has the shape of one example.
    """


class DtypeError(FunctransError, TypeError):
    """The operation does not accept this dtype.

    >>> import functrans.numpy as fnp
    >>> fnp.bitwise_and(1.0, 2.0)
    Traceback (most recent call last):
    ...
    functrans.errors.DtypeError: bitwise_and does not take float64 (weak), float64 (weak)...

    Convert with ``.astype`` first, or use the function for that dtype (``logical_and``).
    """


class UnsupportedDtypeError(DtypeError):
    """functrans does not support arrays of this dtype: longdouble, object, strings, dates, records.

    >>> import numpy as np, functrans.numpy as fnp
    >>> fnp.asarray(np.ones(3, np.longdouble))
    Traceback (most recent call last):
    ...
    functrans.errors.UnsupportedDtypeError: asarray: argument 0 has dtype float128, which is not supported...

    Convert before the call: ``x.astype(np.float64)``.
    """


class ArgumentError(FunctransError, TypeError, ValueError):
    """An argument has the wrong type: a value that is not an array, a wrong `argnums`, a bad option.

    >>> import functrans as ft
    >>> ft.jvp(lambda x: x, 1.0, 1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.ArgumentError: jvp: primals must be a sequence of values, got 1.0 of type float...

    The message names the argument and shows its value.
    """


class ArgumentValueError(FunctransError, ValueError, TypeError):
    """An argument has the right type but an invalid value.

    >>> import functrans as ft
    >>> ft.grad(lambda x: x, argnums=2)(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.ArgumentValueError: grad of <lambda>: argnums=2, but it was called with 1 positional...

    Other examples: mapped axes of different sizes in ``vmap``, an integer array to a negative power. The message says
    which values are valid.
    """


class IntegerRangeError(FunctransError, OverflowError):
    """A Python integer does not fit the dtype of the operation.

    >>> import functrans.numpy as fnp
    >>> fnp.abs(2**70)
    Traceback (most recent call last):
    ...
    functrans.errors.IntegerRangeError: absolute: argument 0: the Python integer 1180591620717411303424 does not...

    NumPy stores such numbers as Python objects, which functrans does not support. Write a float (``2.0**70``).
    """


class ArrayTooLargeError(FunctransError, MemoryError, ValueError):
    """An array has too many elements to fit in memory.

    >>> import functrans.numpy as fnp
    >>> fnp.zeros((2**40, 2**20))
    Traceback (most recent call last):
    ...
    functrans.errors.ArrayTooLargeError: zeros: array is too big; `arr.size * arr.dtype.itemsize` is larger...

    Usually a size was computed incorrectly; the message shows the shape.
    """


class StaleValueError(FunctransError, RuntimeError):
    """A value was donated to a call, and is used again.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> step = ft.jit(lambda x: x - 0.1, donate_argnums=0)
    >>> x = fnp.ones(3)
    >>> y = step(x)
    >>> x + y
    Traceback (most recent call last):
    ...
    functrans.errors.StaleValueError: Array float64[3] was donated to <lambda> and may not...

    The memory of a donated `Array` belongs to the result. Use what the call returns, usually under the same name
    (``x = step(x)``). If you need the old values as well, donate a copy: ``step(fnp.array(x))``.
    """


class InplaceModificationError(FunctransError, RuntimeError):
    """A derivative needs a value that was donated after it had been saved, under ``config.dirty_residuals = 'error'``.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Double(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = 2.0 * x
    ...         ctx.mark_dirty(x, output=y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return 2.0 * g
    >>> def f(a):
    ...     b = a * a  # its derivative needs a
    ...     return fnp.sum(b * Double.apply(a))
    >>> ft.grad(f)(fnp.ones(2))
    Array([6., 6.])
    >>> with ft.config.patch(dirty_residuals="error"):
    ...     ft.grad(f)(fnp.ones(2))
    Traceback (most recent call last):
    ...
    functrans.errors.InplaceModificationError: one of the variables needed for gradient computation has been...

    The default, ``'copy'``, keeps the old value, and the gradient is right. The error shows where the same program
    would fail in torch.
    """


class IndexOutOfBoundsError(FunctransError, IndexError):
    """An index is outside the array, while tracing or inside a compiled kernel.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.jit(lambda x, i: x[i])(fnp.arange(3.0), 5)
    Traceback (most recent call last):
    ...
    functrans.errors.IndexOutOfBoundsError: index 5 is out of bounds for axis 0 with size 3...

    Like NumPy, functrans raises, in compiled code too. The message names the index, the axis and its size, and shows
    your line. If indices may be out of bounds on purpose, choose a mode: ``x.at[i].get(mode="clip")`` (or ``"fill"``,
    ``"wrap"``), ``x.at[i].set(v, mode="drop")``.
    """


class InvalidIndexError(FunctransError, IndexError):
    """An index expression does not match the array: too many indices, a float, two ellipses, index arrays that do not
    broadcast, a boolean mask of another shape.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.jit(lambda x: x[0, 0])(fnp.arange(3.0))
    Traceback (most recent call last):
    ...
    functrans.errors.InvalidIndexError: too many indices for array: array is 1-dimensional (shape (3,))...

    Convert indices to integers, and count the axes of ``x.shape``.
    """


class ImmutableArrayError(FunctransError, ValueError, TypeError):
    """Code tried to change an `Array` in place: ``x[i] = v``, ``out=x``, ``x.sort()``, ``x.flags.writeable = True``.

    >>> import functrans.numpy as fnp
    >>> x = fnp.zeros(3)
    >>> x[0] = 1.0
    Traceback (most recent call last):
    ...
    functrans.errors.ImmutableArrayError: x[i] = v: an Array of functrans cannot be changed in place...

    Arrays of functrans are immutable. Write ``x = x.at[0].set(1.0)``, use the returned value (``y = np.sort(x)``), or
    make a writable copy: ``np.array(x)``.
    """


class PytreeError(FunctransError, ValueError):
    """Pytrees have different structures, or a pytree cannot be flattened.

    >>> import functrans as ft
    >>> ft.tree.map(lambda x, y: x + y, (1, 2), (1, 2, 3))
    Traceback (most recent call last):
    ...
    functrans.errors.PytreeError: tree_map: tree 2 does not match at the root: expected a tuple of length 2...

    The message names the key path at which the pytrees differ.

    >>> ft.tree.leaves({1: 0.0, "a": 0.0})
    Traceback (most recent call last):
    ...
    functrans.errors.PytreeError: the keys of the dictionary at tree cannot be sorted (types met: int, str)...

    The keys of a dictionary must be sortable: use keys of one type, or an `OrderedDict`, which keeps its own order.
    """
