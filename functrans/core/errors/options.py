"""Options, and names that do not exist."""

from __future__ import annotations

from .base import FunctransError


class ConfigError(FunctransError, ValueError):
    """An option was set to an invalid value, in code or by an environment variable (``FUNCTRANS_BACKEND=gpu``).

    >>> import functrans as ft
    >>> ft.config.backend = "gpu"
    Traceback (most recent call last):
    ...
    functrans.core.errors.ConfigError: config.backend must be 'llvm' or 'python', got 'gpu'...

    The message names the option and its valid values.
    """


class UnknownOptionError(FunctransError, AttributeError):
    """The option does not exist.

    >>> import functrans as ft
    >>> ft.config.strickt = True
    Traceback (most recent call last):
    ...
    functrans.core.errors.UnknownOptionError: config has no option 'strickt': did you mean 'strict'?...

    The message suggests the nearest one.
    """


class NoAttributeError(FunctransError, AttributeError):
    """A module of functrans, or a traced value, does not have this name.

    >>> import functrans.numpy as fnp
    >>> fnp.sine
    Traceback (most recent call last):
    ...
    functrans.core.errors.NoAttributeError: functrans.numpy has no 'sine'. Nearest: ...

    The message suggests the nearest existing name, or what to write instead.
    """
