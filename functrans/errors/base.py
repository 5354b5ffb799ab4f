"""Base classes, options, and missing names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .source import Place, user_source


class FunctransError(Exception):
    """Base class of every error that functrans raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong, the actual value or shape, and how to fix it.
    source : Place, optional
        The user's line; by default the innermost frame outside functrans.

    Examples
    --------
    >>> import functrans as ft
    >>> try:
    ...     ft.grad(lambda x: x * 2)(3)
    ... except ft.errors.FunctransError as error:
    ...     print(type(error).__name__)
    GradientError
    """

    def __init__(self, message: str, source: Place | None = None):
        self.message = message
        self.source = source if source is not None else user_source()
        place = f"\n  at {self.source.describe()}" if self.source is not None else ""
        super().__init__(message + place)

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (type(self), self.message, self.source, self.args), vars(self)


def _arrived(
    kind: type[FunctransError], message: str, source: Place | None, args: tuple[Any, ...]
) -> FunctransError:
    """A pickled error from another process, with its source line there."""
    error = kind(message, source)
    error.args = args
    return error


class JAXTypeError(FunctransError, TypeError):
    """Base class of the errors that are a ``jax.errors.JAXTypeError`` in JAX: traced values in the wrong place.

    >>> import functrans as ft
    >>> try:
    ...     ft.jit(lambda x: list(range(x)))(3)
    ... except ft.errors.JAXTypeError as error:
    ...     print(type(error).__name__)
    TracerIntegerConversionError
    """


class JAXIndexError(FunctransError, IndexError):
    """Base class of the errors that are a ``jax.errors.JAXIndexError`` in JAX: traced values as indices.

    >>> import numpy as np, functrans as ft
    >>> try:
    ...     ft.jit(lambda x: x[x > 0])(np.ones(3))
    ... except ft.errors.JAXIndexError as error:
    ...     print(type(error).__name__)
    NonConcreteBooleanIndexError
    """


class JaxRuntimeError(FunctransError, RuntimeError):
    """Base class of the errors that are a ``jax.errors.JaxRuntimeError`` in JAX: a compiled program failed.

    >>> import numpy as np, functrans as ft
    >>> try:
    ...     ft.jit(lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((2,), float), x))(1.0)
    ... except ft.errors.JaxRuntimeError as error:
    ...     print(type(error).__name__)
    CallbackError
    """


class ConfigError(FunctransError, ValueError):
    """An option was set to an invalid value, in code or by an environment variable (``FUNCTRANS_BACKEND=gpu``).

    >>> import functrans as ft
    >>> ft.config.backend = "gpu"
    Traceback (most recent call last):
    ...
    functrans.errors.ConfigError: config.backend must be 'llvm' or 'python', got 'gpu'...

    The message names the option and its valid values.
    """


class UnknownOptionError(FunctransError, AttributeError):
    """No option has this name.

    >>> import functrans as ft
    >>> ft.config.strickt = True
    Traceback (most recent call last):
    ...
    functrans.errors.UnknownOptionError: config has no option 'strickt': did you mean 'strict'?...

    The message suggests the nearest one.
    """


class NoAttributeError(FunctransError, AttributeError):
    """A module of functrans, or a traced value, does not have this name.

    >>> import functrans.numpy as fnp
    >>> fnp.sine
    Traceback (most recent call last):
    ...
    functrans.errors.NoAttributeError: functrans.numpy has no 'sine'. Nearest: ...

    The message names a module that has it, suggests the nearest name, or says what to write instead.
    """

    def __init__(self, message: str, source: Place | None = None, advice: Callable[[], str] | None = None):
        super().__init__(message, source)
        self._advice = advice

    def __str__(self) -> str:
        self._complete()
        return super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        self._complete()
        return super().__reduce__()

    def _complete(self) -> None:
        """Look for advice, which loads all modules: ``hasattr``, which reads no message, need not wait for it."""
        if self._advice is not None:
            advice, self._advice = self._advice, None
            super().__init__(f"{self.message}. {advice()}", self.source)


class UnsupportedLibraryError(FunctransError, ImportError):
    """A release of Numba, llvmlite or NumPy has moved something that functrans cannot do without.

    >>> from unittest import mock
    >>> import functrans as ft
    >>> from functrans.runtime.private import numba_names
    >>> with mock.patch("numba.core.cgutils.alloca_once", None):  # as if a release had changed it
    ...     numba_names.check()
    Traceback (most recent call last):
    ...
    functrans.errors.UnsupportedLibraryError: numba ... does not have numba.core.cgutils.alloca_once as a function of...

    Install a version of the library that the message names, or a newer functrans.
    """


class MissingLibraryError(FunctransError, ImportError):
    """An optional library is not installed: ml_dtypes, which has the dtype bfloat16.

    >>> from unittest import mock
    >>> import functrans as ft
    >>> with mock.patch.dict("sys.modules", ml_dtypes=None):  # as if it were not installed
    ...     ft.bfloat16
    Traceback (most recent call last):
    ...
    functrans.errors.MissingLibraryError: bfloat16 is a dtype of the package ml_dtypes, which is not installed...

    Install it, as the message says.
    """


class JaxImportedError(FunctransError, ImportError):
    """JAX itself was imported before `functrans.as_jax`, which stands for it.

    >>> import sys, types
    >>> from unittest import mock
    >>> from functrans.jax_modules import finder
    >>> with mock.patch.object(sys, "meta_path", []), mock.patch.dict("sys.modules", jax=types.ModuleType("jax")):
    ...     finder.install()
    Traceback (most recent call last):
    ...
    functrans.errors.JaxImportedError: functrans.as_jax: JAX itself was imported before...

    Import `functrans.as_jax` first, or run ``python -m functrans.as_jax script.py``.
    """


class NoJaxModuleError(FunctransError, ModuleNotFoundError):
    """`functrans.as_jax` lacks this module of JAX, or this name in a module.

    >>> from functrans.jax_modules import finder
    >>> finder.JaxFinder().find_spec("jax.experimental.pallas")
    Traceback (most recent call last):
    ...
    functrans.errors.NoJaxModuleError: jax.experimental.pallas does not exist in functrans...

    The message says what to use instead.
    """
