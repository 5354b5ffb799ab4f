"""Derivatives that do not exist."""

from __future__ import annotations

from .base import FunctransError


class GradientError(FunctransError, TypeError):
    """The derivative does not exist: the function is not scalar, or the argument is not a float.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.grad(lambda x: x * 2)(fnp.ones(3))
    Traceback (most recent call last):
    ...
    functrans.core.errors.GradientError: grad of <lambda>: it must return a scalar, but returned an array...

    Sum the result, or use ``jacrev`` or ``vjp``.

    >>> ft.grad(lambda x: x * 2)(3)
    Traceback (most recent call last):
    ...
    functrans.core.errors.GradientError: grad of <lambda>: argument 0 ('x') has dtype int64...

    Pass ``3.0`` or ``x.astype(float)``, or use ``argnums`` to select the float arguments.
    """


class NoRuleError(FunctransError, NotImplementedError):
    """An operation lacks a rule: functrans does not have the operation or its derivative, or it is not linear.

    >>> import numpy as np, functrans as ft
    >>> ft.grad(lambda x: np.sum(np.busday_count(x, x)))(np.ones(3))
    Traceback (most recent call last):
    ...
    functrans.core.errors.NoRuleError: np.busday_count of a traced value of type f64[3]...

    Use functions that functrans has; the message suggests the nearest one. For a primitive without a rule, the message
    names the file of its record.
    """
