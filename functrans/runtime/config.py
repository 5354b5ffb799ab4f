"""Options: values for the whole process, and overrides for one context.

`config.x = v` sets the value for the process; `config.patch(x=v)` overrides it in the running thread (or task) until
the block or the call ends. Options that affect tracing or compilation are part of `trace_key`, and so of the key
of every cache.

`option_list` has the options.
"""

from __future__ import annotations

import functools
import os
import textwrap
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from ..errors import ConfigError, UnknownOptionError
from .context import Override, new_lock
from .jax_options import check_bits, implied, option_named
from .option_list import OPTIONS, OptionList
from .passes import PASSES, Pass

#: The most trace keys of which each is one object.
_MOST_KEYS = 1024


class Patch:
    """The overrides of a context, including outer ones, and their trace key until the process's values change."""

    __slots__ = ("key", "outer", "overrides", "version")

    def __init__(self, overrides: dict[str, Any], outer: Patch | None):
        self.overrides: dict[str, Any] = overrides if outer is None else {**outer.overrides, **overrides}
        self.outer = outer
        self.version = -1
        self.key: tuple[Any, ...] = ()


class OptionValues:
    """The values of the process. Separate from `Config`, whose `__getattr__` makes attribute access slow."""

    __slots__ = ("_keys", "current", "key", "lock", "patch", "values", "version")

    def __init__(self, values: dict[str, Any]):
        self.patch: ContextVar[Patch | None] = ContextVar("functrans_config_patch", default=None)
        self.current = self.patch.get
        self.values = values
        self.version = 0
        self.lock = new_lock()
        self._keys: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # equal keys are one object
        self.key = self.key_with({})

    def set(self, name: str, value: Any) -> None:
        """Set the value for the process."""
        with self.lock:
            key = self.key_with({name: value})
            # Python runs no signal handler, and no other thread, between assignments that call nothing.
            self.values, self.key, self.version = {**self.values, name: value}, key, self.version + 1

    def key_with(self, overrides: dict[str, Any]) -> tuple[Any, ...]:
        """The trace key under these overrides."""
        values = {**self.values, **overrides}
        key = tuple([values[name] for name, option in OPTIONS.items() if option.traced])
        key = (*key, values.get("autocast"))  # no option: `arrays.autocast` overrides it
        if values.get("timed"):  # no option: a profile is open
            key = (*key, "timed")
        if len(self._keys) >= _MOST_KEYS:  # a program that tries thousands of values of an option
            self._keys.clear()
        return self._keys.setdefault(key, key)

    def trace_key(self) -> tuple[Any, ...]:
        """The trace key of this context, cached because compiled functions need it at every call."""
        patch = self.current()
        if patch is None:
            return self.key
        if patch.version != self.version:
            version = self.version  # read first: a concurrent change makes the key stale, but not forever
            patch.key = self.key_with(patch.overrides)
            patch.version = version
        return patch.key

    def program_key(self) -> tuple[Any, ...]:
        """The trace key without what only kernels depend on: whether they are timed."""
        key = self.trace_key()
        return key[:-1] if key[-1] == "timed" else key


class Config(OptionList):
    """The options of functrans, as ``functrans.config``.

    Parameters
    ----------
    environment : mapping of str to str
        The source of initial values.

    Notes
    -----
    An environment variable ``FUNCTRANS_<NAME>`` (for example ``FUNCTRANS_STRICT=1``) gives the initial
    value of the option; true and false are written ``1`` and ``0``, or ``true`` and ``false``.

    Attributes
    ----------
    {options}

    Raises
    ------
    ConfigError
        If an option is set to an invalid value.
    UnknownOptionError
        If the option does not exist. It is an `AttributeError`, and names the nearest option.

    Examples
    --------
    >>> with config.patch(strict=True, specialize_below=2):
    ...     config.strict, config.specialize_below
    (True, 2)
    >>> config.strict
    False
    """

    _store: OptionValues

    def __init__(self, environment: Mapping[str, str]):
        values = {}
        for name, option in OPTIONS.items():
            variable = f"FUNCTRANS_{name.upper()}"
            text = environment.get(variable)
            where = f"environment variable {variable}"
            values[name] = option.default if text is None else option.checked(option.parsed(text), where)
        if values["jax_semantics"]:
            follow = implied(OPTIONS["jax_semantics"], True)
            values |= {n: v for n, v in follow.items() if f"FUNCTRANS_{n.upper()}" not in environment}
        check_bits(values)
        self.__dict__["_store"] = OptionValues(values)  # __setattr__ takes options only

    def patch(self, **options: Any) -> Override:
        """Override options in this thread, within a block or during the calls of a function.

        Parameters
        ----------
        **options
            New values by option name.

        Returns
        -------
        context manager and decorator
            May be nested and reused. The previous values return however the block ends.

        Raises
        ------
        ConfigError, UnknownOptionError
            Immediately, before the block is entered.

        Notes
        -----
        A thread started inside the block does not see the patch: it uses the values of the process.
        Setting ``config.x`` inside a block that patches `x` changes the process, not the block.

        Examples
        --------
        >>> @config.patch(backend="python")
        ... def backend():
        ...     return config.backend
        >>> backend(), config.backend
        ('python', 'llvm')
        """
        overrides: dict[str, Any] = {}
        for name, value in options.items():
            overrides |= implied(option_named(name), value)
        for name, value in options.items():
            option = option_named(name)
            overrides[option.name] = option.checked(value)
        check_bits({**self._values(), **overrides})
        return Override(self._store.patch, functools.partial(Patch, overrides))

    def update(self, name: str, value: Any) -> None:
        """Set an option for the process, by its name here or in JAX.

        Parameters
        ----------
        name : str
            With or without the prefix ``jax_``.
        value
            A valid value.

        Raises
        ------
        ConfigError
            If the option does not exist (the message names the nearest one), or the value is invalid.

        Examples
        --------
        >>> config.update("jax_debug_nans", True)
        >>> config.debug_nans, config.jax_debug_nans
        (True, True)
        >>> config.update("debug_nans", False)
        """
        try:
            option = option_named(name)
        except UnknownOptionError as error:
            raise ConfigError(error.message) from None
        if option.name == "default_matmul_precision" and value is None:
            value = ""
        setattr(self, option.name, value)

    def read(self, name: str) -> Any:
        """The value of an option, by its name here or in JAX.

        Examples
        --------
        >>> config.read("jax_enable_x64")
        True
        """
        return getattr(self, option_named(name).name)

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The optimisations, in the order in which they run; `without` turns them off by name.

        Examples
        --------
        >>> [p.name for p in config.passes if p.stage == "schedule"]
        ['reads_first', 'fusion', 'mirrored_pairs', 'sharing']
        >>> with config.patch(without={"fusion", "sharing"}):
        ...     sorted(config.without)
        ['fusion', 'sharing']
        """
        return PASSES

    def runs(self, which: Pass) -> bool:
        """Whether an optimisation is on."""
        return which.name not in self.without

    def trace_key(self) -> tuple[Any, ...]:
        """The values of the options that affect tracing or compilation: part of the key of every cache."""
        return self._store.trace_key()

    def __getattr__(self, name: str) -> Any:
        option = option_named(name)
        if option.name != name:  # JAX's name of it
            return getattr(self, option.name)
        raise AttributeError(name)  # a half-built object, which is being copied

    def __setattr__(self, name: str, value: Any) -> None:
        option = option_named(name)
        follow = implied(option, value)
        check_bits({**self._store.values, **follow, option.name: value})
        object.__setattr__(self, option.name, value)
        for other, its_value in follow.items():
            object.__setattr__(self, other, its_value)

    def _values(self) -> dict[str, Any]:
        """The values of all options in this context."""
        patch = self._store.current()
        return self._store.values if patch is None else {**self._store.values, **patch.overrides}

    def __dir__(self) -> list[str]:
        return [*OPTIONS, "passes", "patch", "read", "runs", "trace_key", "update"]

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={getattr(self, name)!r}' for name in OPTIONS)})"


def _documented(doc: str) -> str:
    """The docstring with all options; until CPython 3.12 docstrings are indented as they stand in the source."""
    (line,) = [line for line in doc.splitlines() if line.endswith("{options}")]
    options = "\n".join(option.described() for option in OPTIONS.values())
    return doc.replace(line, textwrap.indent(options, line.removesuffix("{options}")))


if Config.__doc__ is not None:  # `python -OO` drops it
    Config.__doc__ = _documented(Config.__doc__)


config = Config(os.environ)
option_values = config._store
trace_key = option_values.trace_key  # the same as `config.trace_key`, in half the time
program_key = option_values.program_key


def is_timed() -> bool:
    """Whether kernels that are compiled now count their time."""
    return bool(config._store.values.get("timed"))


def set_timed(value: bool) -> None:
    """Let kernels count their time from now on, in all threads, or no more: these have programs of their own."""
    config._store.set("timed", value)
