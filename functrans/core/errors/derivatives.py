"""Derivatives that do not exist."""

from __future__ import annotations

from .base import FunctransError


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
