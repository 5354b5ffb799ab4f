"""Hooks on cotangents, and the state that carries them."""

from __future__ import annotations

from .base import FunctransError


class HookError(FunctransError, RuntimeError):
    """A hook is on a value that is not differentiated, or returned something that cannot replace a cotangent.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> def f(x):
    ...     y = ft.cotangent_hook(2.0 * x, lambda ct: ct[:1])
    ...     return fnp.sum(y * y)
    >>> ft.grad(f)(fnp.ones(3))
    Traceback (most recent call last):
    ...
    functrans.core.errors.HookError: cotangent_hook: the hook '<lambda>' has changed the size of value: it got...

    Return an array of the shape and dtype that the hook gets, or None to keep it.

    >>> ft.register_hook(fnp.ones(3), print)
    Traceback (most recent call last):
    ...
    functrans.core.errors.HookError: register_hook: cannot register a hook on a value that is not being...

    Register it inside the function that is differentiated.
    """


class BackwardStateError(FunctransError, RuntimeError):
    """A `BackwardState` was used in the forward pass, or lacks a hook that the backward pass needs.

    >>> import functrans as ft
    >>> def f(x, state):
    ...     return ft.cotangent_hook(x, state.on_x)
    >>> ft.grad(f)(1.0, ft.BackwardState())
    Traceback (most recent call last):
    ...
    functrans.core.errors.BackwardStateError: BackwardState: 'on_x' was read in the forward pass, where the state is...

    Name the hook, ``ft.cotangent_hook(x, state, "on_x")``, and set it before the backward pass: ``state.on_x = clip``.
    """
