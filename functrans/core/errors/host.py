"""Calls of Python from inside compiled programs."""

from __future__ import annotations

from .base import FunctransError


class CallbackError(FunctransError, ValueError):
    """A callback did not return what was declared, or a transformation cannot go through it.

    >>> import numpy as np, functrans as ft
    >>> declared = ft.ShapeDtypeStruct((3,), float)
    >>> ft.jit(lambda x: ft.pure_callback(lambda x: x[:2], declared, x))(np.ones(3))
    Traceback (most recent call last):
    ...
    functrans.core.errors.CallbackError: pure_callback: the callback '<lambda>' returned an array of shape (2,)...

    The message names the callback, the leaf of its result, and both types. Callbacks have no derivative:

    >>> ft.grad(lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((), float), x))(1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.CallbackError: pure_callback: the callback 'sin' has no derivative (JVP)...

    Define one with ``custom_jvp`` or ``custom_vjp``, or stop the derivative: ``functrans.lax.stop_gradient(x)``. To
    inspect values, use ``functrans.debug.print`` and ``functrans.debug.callback``, which derivatives pass through.
    """


class FormatError(FunctransError, ValueError, KeyError, IndexError):
    """A format string of ``debug.print`` does not match its arguments.

    >>> import functrans as ft
    >>> ft.debug.print("x = {x}", y=1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.FormatError: debug.print: 'x = {x}' asks for 'x', which is missing...

    Write ``debug.print("x = {x}", x=x)``, not an f-string, which is evaluated before the numbers are known.
    """

    __str__ = Exception.__str__  # that of KeyError would quote the message
