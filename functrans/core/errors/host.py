"""Calls of Python from inside compiled programs."""

from __future__ import annotations

from .base import FunctransError


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
