"""Options, and names that do not exist."""

from __future__ import annotations

from .base import FunctransError


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


class NoAttributeError(FunctransError, AttributeError):
    """A name that a module of functrans, or a traced value, does not have.

    >>> import functrans.numpy as fnp
    >>> fnp.sine
    Traceback (most recent call last):
    ...
    functrans.core.errors.NoAttributeError: functrans.numpy has no 'sine'. Nearest: ...

    The message names the nearest that exists, or what to write instead.
    """
