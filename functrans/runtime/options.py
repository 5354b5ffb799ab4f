"""The kinds of options that `functrans.config` has: their documentation, and which values are valid."""

from __future__ import annotations

import difflib
import math
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar, overload

from ..errors import ConfigError, FunctransError, MissingLibraryError
from .unusual import unusual

T = TypeVar("T")

_BOOLEANS = {
    "1": True, "true": True, "yes": True, "on": True,
    "0": False, "false": False, "no": False, "off": False, "": False,
}  # fmt: skip


class HasOptions(Protocol):
    """What options are attributes of: `config.Config`."""

    #: `config.OptionValues`.
    _store: Any


class Option(Generic[T]):
    """One option: its default (which also gives its type), its documentation, and its valid values.

    Parameters
    ----------
    default : bool, int, float or str
    doc : str
    least, most : number
        The bounds of a number.
    choices : tuple of str
        The valid values of a string.
    shown : str
        The default in words, where it depends on the machine.
    traced : bool
        Whether it affects tracing or compilation.
    fixed : str
        Why it cannot have another value than the default, if so.
    watches_operators : bool
        Whether functrans computes operators of Arrays, not NumPy, while it has another value.

    Attributes
    ----------
    ever_changed : bool
        Whether it has ever had a value other than the default in this process. Hot code tests this first and looks up
        the value only then.
    """

    name: str

    def __init__(
        self,
        default: T,
        doc: str,
        *,
        least: float = 0,
        most: float = math.inf,
        choices: tuple[str, ...] = (),
        shown: str = "",
        traced: bool = True,
        fixed: str = "",
        watches_operators: bool = False,
    ):
        self.default = default
        self.__doc__ = doc
        self.least = least
        self.most = most
        self.choices = choices
        self.shown = shown or repr(default)
        self.traced = traced
        self.fixed = fixed
        self.watches_operators = watches_operators
        self.ever_changed = False

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Option[T]: ...
    @overload
    def __get__(self, instance: HasOptions, owner: type) -> T: ...
    def __get__(self, instance: HasOptions | None, owner: type) -> T | Option[T]:
        if instance is None:
            return self
        store = instance._store
        patch = store.current()
        if patch is not None and self.name in patch.overrides:
            return patch.overrides[self.name]
        return store.values[self.name]

    def __set__(self, instance: HasOptions, value: T) -> None:
        instance._store.set(self.name, self.checked(value))

    @property
    def allowed(self) -> str:
        """The valid values, in words."""
        if isinstance(self.default, bool):
            return "True or False"
        if isinstance(self.default, str) and not self.choices:
            return "a text"
        if self.choices:
            return " or ".join(map(repr, self.choices))
        if isinstance(self.default, float):
            return f"a number from {self.least} to {self.most}"
        return f"an integer of at least {self.least}"

    def takes(self, value: Any) -> bool:
        """Whether a value is valid."""
        kind: Any = type(self.default)
        if type(value) is not kind and not (kind is float and type(value) is int):
            return False
        if kind in (int, float):
            return self.least <= value <= self.most
        return value in self.choices if self.choices else True

    def checked(self, value: Any, where: str | None = None) -> T:
        """The value, validated; raises a `ConfigError` if it is invalid."""
        if not self.takes(value):
            raise ConfigError(f"{where or f'config.{self.name}'} must be {self.allowed}, got {value!r}")
        if self.fixed and value != self.default:
            raise ConfigError(f"{where or f'config.{self.name}'} can only be {self.default!r}: {self.fixed}")
        if value != self.default:
            self.ever_changed = True
            if self.watches_operators:
                unusual.used = True
        return value if type(value) is type(self.default) else float(value)  # type: ignore[return-value]

    def parsed(self, text: str) -> Any:
        """The value of an environment variable's text; the text itself if it has none."""
        text = text.strip()
        if isinstance(self.default, bool):
            return _BOOLEANS.get(text.lower(), text)
        try:
            return type(self.default)(text) if isinstance(self.default, int | float) else text
        except ValueError:
            return text

    def described(self) -> str:
        """Its entry in the documentation of `Config`."""
        listed = self.choices and isinstance(self.default, str)
        kind = f"{{{', '.join(map(repr, self.choices))}}}" if listed else type(self.default).__name__
        lines = textwrap.wrap(f"{self.__doc__} Default {self.shown}.", 112)
        return f"{self.name} : {kind}\n" + textwrap.indent("\n".join(lines), "    ")


class NamesOption(Option[frozenset[str]]):
    """An option whose value is a set of names, of which `choices` are all that exist."""

    @property
    def allowed(self) -> str:
        """The valid values, in words."""
        return "a set of names"

    def checked(self, value: Any, where: str | None = None) -> frozenset[str]:
        """The names; raises a `ConfigError` if one does not exist, with the nearest that does."""
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
            raise ConfigError(f"{where or f'config.{self.name}'} must be {self.allowed}, got {value!r}")
        for name in names:
            if name not in self.choices:
                near = difflib.get_close_matches(name, self.choices, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"the names are {', '.join(self.choices)}"
                raise ConfigError(f"{where or f'config.{self.name}'} has an unknown name {name!r}: {hint}")
        self.ever_changed = self.ever_changed or bool(names)
        return frozenset(names)

    def parsed(self, text: str) -> Any:
        """The names in an environment variable, with commas between them."""
        return [name for part in text.split(",") if (name := part.strip())]


class AutocastOption(Option[Any]):
    """An option whose value is one of the choices, or a list of keyword arguments of `autocast`, or one of them.

    Attributes
    ----------
    block_of : callable
        From keyword arguments to a block that can be part of a key. `arrays.autocast` fills it.
    """

    block_of: Callable[[dict[str, Any]], Any]

    def __get__(self, instance: Any, owner: type) -> Any:
        value = super().__get__(instance, owner)
        return [block.keywords() for block in value] if type(value) is tuple else value

    @property
    def allowed(self) -> str:
        """The valid values, in words."""
        return f"{', '.join(map(repr, self.choices))}, or keyword arguments of autocast: a dict, or a list of dicts"

    def checked(self, value: Any, where: str | None = None) -> Any:
        """The value, validated, in a form that can be part of a key."""
        blocks = [value] if isinstance(value, dict) else value
        if not isinstance(blocks, list | tuple) or not all(isinstance(block, dict) for block in blocks):
            return super().checked(value, where)
        self.ever_changed = True
        try:
            return tuple(map(type(self).block_of, blocks))
        except MissingLibraryError:
            raise
        except FunctransError as error:
            raise ConfigError(
                f"{where or f'config.{self.name}'} must be {self.allowed}; {error.message}"
            ) from None
