"""Options: values for the whole process, and patches of them for one context.

`config.x = v` sets the value of the process; `config.patch(x=v)` overrides it in the running thread (or task)
until the block or the call ends. Compiled functions ask for `trace_key` at each call, so it is kept ready.
"""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, overload

from .context import Override
from .errors import ConfigError, UnknownOptionError
from .locks import new_lock
from .overrides import Patch, Watch

T = TypeVar("T")


class _Store:
    """The values of the process. Apart from `Config`, whose `__getattr__` makes attributes slow to read."""

    __slots__ = ("current", "key", "lock", "patch", "values", "version", "watched")

    def __init__(self, values: dict[str, Any]):
        self.patch: ContextVar[Patch | None] = ContextVar("functrans_config_patch", default=None)
        self.current = self.patch.get
        self.values = values
        self.version = 0
        self.lock = new_lock()
        self.watched: dict[str, Watch] = {}
        self.key = self.key_with({})

    def set(self, name: str, value: Any) -> None:
        with self.lock:
            before = self.values[name]
            self.values = {**self.values, name: value}
            self.key = self.key_with({})
            self.version += 1
            if name in self.watched:
                self.watched[name].add(bool(value) - bool(before))

    def watch(self, name: str, told: Callable[[bool], None]) -> None:
        with self.lock:
            watch = self.watched[name] = Watch(told)
            watch.add(int(bool(self.values[name])))

    def patched(self, options: dict[str, Any], outer: Patch | None) -> Patch:
        """A patch inside another one, not yet in force."""
        overrides = options if outer is None else {**outer.overrides, **options}
        patch = Patch(overrides, outer)
        for name, watch in self.watched.items():
            if overrides.get(name):
                watch.follow(patch)
        return patch

    def key_with(self, overrides: dict[str, Any]) -> tuple[Any, ...]:
        values = {**self.values, **overrides}
        return tuple([values[name] for name, option in _OPTIONS.items() if option.traced])

    def trace_key(self) -> tuple[Any, ...]:
        patch = self.current()
        if patch is None:
            return self.key
        if patch.version != self.version:
            version = self.version  # read first: a change in between makes the key stale, not wrong for good
            patch.key = self.key_with(patch.overrides)
            patch.version = version
        return patch.key


class _Option(Generic[T]):
    """One option: default, check, and whether it changes what is traced or compiled."""

    def __init__(self, default: T, check: Callable[[Any], str | None], doc: str, traced: bool = True):
        self.default = default
        self.check = check
        self.traced = traced
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> _Option[T]: ...
    @overload
    def __get__(self, instance: Config, owner: type) -> T: ...
    def __get__(self, instance: Config | None, owner: type) -> T | _Option[T]:
        if instance is None:
            return self
        store = instance._store
        patch = store.current()
        if patch is not None and self.name in patch.overrides:
            return patch.overrides[self.name]
        return store.values[self.name]

    def __set__(self, instance: Config, value: T) -> None:
        instance._store.set(self.name, self.checked(value, f"config.{self.name}"))

    def checked(self, value: Any, where: str) -> T:
        """The value, if the option takes it."""
        allowed = self.check(value)
        if allowed is not None:
            raise ConfigError(f"{where} must be {allowed}, got {value!r}")
        return value

    def parsed(self, text: str) -> Any:
        """The value that an environment variable means; the text itself if it means none."""
        if isinstance(self.default, bool):
            return _BOOLEANS.get(text.strip().lower(), text)
        if isinstance(self.default, int):
            try:
                return int(text)
            except ValueError:
                return text
        return text.strip()


_BOOLEANS = {
    "1": True, "true": True, "yes": True, "on": True,
    "0": False, "false": False, "no": False, "off": False, "": False,
}  # fmt: skip


def _boolean(value: Any) -> str | None:
    return None if isinstance(value, bool) else "True or False"


def _at_least(least: int) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return None if good else f"an integer of at least {least}"

    return check


def _one_of(*choices: str) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        return None if isinstance(value, str) and value in choices else " or ".join(map(repr, choices))

    return check


class Config:
    """The options of functrans. There is one object, ``functrans.config``.

    Parameters
    ----------
    environment : mapping of str to str
        Where initial values are read from.

    Notes
    -----
    An environment variable ``FUNCTRANS_<NAME>`` (for example ``FUNCTRANS_STRICT=1``) gives the initial
    value of the option; true and false are written ``1`` and ``0``, or ``true`` and ``false``.

    Attributes
    ----------
    specialize_below : int
        Extents and strides up to this one are compiled in as literals; larger ones are run-time parameters.
        Default 16.
    strict : bool
        Compiled ``+ - * /`` and square roots equal NumPy's bit for bit: no contraction, no reordering, and scalar
        libm for all other functions. Default False.
    linalg_errors : {'raise', 'nan'}
        What a failed decomposition does: raise `numpy.linalg.LinAlgError`, or fill its result with NaN.
    backend : {'llvm', 'python'}
        What kernels are made of: LLVM inside a Numba-jitted function, or readable Python source.
    tape_limit : int
        The most bytes that reverse mode through a loop of unknown length may keep of each residual; beyond it
        `TapeLimitError` is raised. Default 4 GiB.
    disable_jit : bool
        Run everything as Python and NumPy. Default False.
    strict_ctx : bool
        An array that a `Function` assigns to an attribute of its `ctx` is an error, instead of being kept as if it had
        been saved: everything that is kept then stands in `save_for_backward`. Default False.
    debug_nans : bool
        A NaN that appears raises `NaNError`, with the operation that made it and your line: in what an operation
        outside `jit` returns, in the results of a compiled function (which is then evaluated again, equation by
        equation, to find where), and in the gradients that a rule of your own returns. Operations that only move
        numbers (indexing, ``where``, ``sort``) pass on a NaN that is there; arithmetic with it raises. Default False.
    traceback_filtering : bool
        Errors that leave a transformation, a loop, a branch or a custom rule show your frames, without those of
        functrans between them. Set it to False to see all. Default True.
    verify : bool
        Check every jaxpr between passes. Default False.
    checked : bool
        Look for writes of compiled code to memory that is not its own: every buffer of a kernel stands between guard
        words, which are looked at after each call; memory not written yet, or given up, is filled with NaN.
        `MemoryDamageError` says which kernel and which buffer. Kernels are compiled for it, arguments and results
        copied. Default False.

    Raises
    ------
    ConfigError
        When an option is set to a value that it does not take.
    UnknownOptionError
        When an option does not exist; an `AttributeError` that names the nearest one.

    Examples
    --------
    >>> with config.patch(strict=True, specialize_below=2):
    ...     config.strict, config.specialize_below
    (True, 2)
    >>> config.strict
    False
    """

    specialize_below = _Option(16, _at_least(0), "Extents up to this one are literals.")
    strict = _Option(False, _boolean, "No contraction, no reordering, scalar libm.")
    linalg_errors = _Option("raise", _one_of("raise", "nan"), "What a failed decomposition does.")
    backend = _Option("llvm", _one_of("llvm", "python"), "What kernels are made of.")
    tape_limit = _Option(1 << 32, _at_least(1), "The most bytes for what one loop keeps of its iterations.")
    disable_jit = _Option(False, _boolean, "Run everything as Python and NumPy.")
    strict_ctx = _Option(False, _boolean, "Arrays assigned to the ctx of a Function are an error.")
    debug_nans = _Option(False, _boolean, "A NaN that appears is an error.")
    traceback_filtering = _Option(True, _boolean, "Errors show the user's frames only.", traced=False)
    verify = _Option(False, _boolean, "Check every jaxpr between passes.", traced=False)
    checked = _Option(False, _boolean, "Look for writes of kernels beside their memory.")
    _store: _Store

    def __init__(self, environment: Mapping[str, str]):
        # Through the instance's dictionary: __setattr__ takes options only.
        values = {name: option.default for name, option in _OPTIONS.items()}
        for name, option in _OPTIONS.items():
            variable = f"FUNCTRANS_{name.upper()}"
            if variable in environment:
                values[name] = option.checked(
                    option.parsed(environment[variable]), f"environment variable {variable}"
                )
        self.__dict__["_store"] = _Store(values)

    def patch(self, **options: Any) -> Override:
        """Override options in this thread, for a block or for the calls of a function.

        Parameters
        ----------
        **options
            Values by name of option.

        Returns
        -------
        context manager and decorator
            May be nested and used again; the former values come back however the block ends.

        Raises
        ------
        ConfigError, UnknownOptionError
            At once, before the block is entered.

        Notes
        -----
        A thread started inside the block does not see the patch: it starts from the values of the process.
        Setting ``config.x`` inside a block that patches `x` changes the process, not the block.

        Examples
        --------
        >>> @config.patch(backend="python")
        ... def backend():
        ...     return config.backend
        >>> backend(), config.backend
        ('python', 'llvm')
        """
        checked = {
            name: self._option(name).checked(value, f"config.{name}") for name, value in options.items()
        }
        return Override(self._store.patch, functools.partial(self._store.patched, checked))

    def trace_key(self) -> tuple[Any, ...]:
        """The options that affect what is traced or compiled: part of the key of every cache."""
        return self._store.trace_key()

    def _option(self, name: str) -> _Option[Any]:
        option = _OPTIONS.get(name)
        if option is None:
            raise _unknown(name)
        return option

    def __getattr__(self, name: str) -> Any:
        raise _unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._option(name)
        object.__setattr__(self, name, value)

    def __dir__(self) -> list[str]:
        return [*_OPTIONS, "patch", "trace_key"]

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={getattr(self, name)!r}' for name in _OPTIONS)})"


def _unknown(name: str) -> UnknownOptionError:
    near = difflib.get_close_matches(name, _OPTIONS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(_OPTIONS)}"
    return UnknownOptionError(f"config has no option {name!r}: {hint}")


_OPTIONS: dict[str, _Option[Any]] = {
    name: option for name, option in vars(Config).items() if isinstance(option, _Option)
}

config = Config(os.environ)
trace_key = config._store.trace_key  # as `config.trace_key`, in half the time
#: ``watch(name, told)``: ``told(True)`` when an option begins to be on anywhere, ``told(False)`` when it ceases.
watch = config._store.watch
