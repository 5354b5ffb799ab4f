"""Loops and branches."""

from __future__ import annotations

from .base import FunctransError


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
    functrans.core.errors.TapeLimitError: what the derivative of a loop must keep of its iterations exceeds ...

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
    functrans.core.errors.CarryTypeError: fori_loop of <lambda>: the carry changes its type at ['x']: f64[2] goes in...

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
    functrans.core.errors.ConditionTypeError: while_loop: the condition <lambda> must return a scalar boolean, but...

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
    functrans.core.errors.BranchTypeError: cond: the branches return different types at [1]: f64[2] from true_fun...

    Which branch runs is known only at run time, so the code after it must work with either. Make the shapes equal
    (``fnp.zeros_like``), and the dtypes (``.astype``), and return the same structure from each. Python numbers take the
    dtype of the other branch.
    """
