"""Arguments bound to the parameters of a user's function, and those that a decorator's options list.

`RuledFunction` is the base class of decorators whose functions take rules: it binds their arguments to positions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..arrays.arguments import Parameters, shown
from ..core import Bound, FunctionDefinitionError, FunctransError, Portable
from ..core.values import PyTree, Value
from .arguments import check_function, flatten_values, name_of
from .pytree import PyTreeDef
from .pytree.nodes import KeyPath, keystr


def listed(
    where: str, option: str, given: Any, kind: type[int] | type[str], error: type[FunctransError]
) -> tuple[Any, ...]:
    """The integers or names in an option; a single one counts as a list of one, None as an empty list.

    Raises
    ------
    error
        If the option contains anything else.
    """
    if given is None:
        return ()
    one = isinstance(given, kind) or not isinstance(given, Iterable)
    values = (given,) if one or (isinstance(given, np.ndarray) and given.ndim != 1) else tuple(given)
    for x in values:
        if not isinstance(x, kind if kind is str else int | np.integer) or isinstance(x, bool):
            what = "strings" if kind is str else "integers"
            raise error(f"{where}: {option} must be {what}, got {shown(x)}")
    return values if kind is str else tuple(map(int, values))


class Binder:
    """Binds arguments to the parameters of a function.

    Parameters
    ----------
    where : str
        The start of messages: ``"custom_vjp of f"``.
    fun : callable
    error : type
        The class of errors to raise.
    skip : int
        How many leading positional parameters to leave out.
    hint : callable, optional
        Returns an addition to messages about arguments that do not match.

    Attributes
    ----------
    parameters : Parameters
    names : list of str
        The names of the positional parameters.
    count : int or None
        Their number; None if it varies or is unknown.
    """

    def __init__(
        self,
        where: str,
        fun: Callable[..., PyTree],
        error: type[FunctransError],
        skip: int = 0,
        hint: Callable[[], str] = str,
    ):
        self.where = where
        self.error = error
        self.parameters = Parameters(fun, skip)
        self.names = self.parameters.names
        self.count = None if self.parameters.variadic else len(self.names)
        self._hint = hint
        signature = self.parameters.signature
        known = () if signature is None else signature.parameters.values()
        needs_names = any(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in known)
        #: The number of positional arguments that need no binding; -1 to always bind.
        self._complete = -1 if needs_names else len(self.names)

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """All arguments in the order of the parameters, and the names of the trailing keyword arguments."""
        if not kwargs and len(args) == self._complete:
            return args, ()
        try:
            bound = self.parameters.bind(args, kwargs)
        except TypeError as error:
            hint = self._hint()
            if self.parameters.signature is None:
                hint += ". Its signature is unknown: pass all arguments by position"
            raise self.error(f"{self.where}: {error}{hint}") from None
        return (*bound.args, *bound.kwargs.values()), tuple(bound.kwargs)

    def position(self, option: str, i: int) -> int:
        """The position of a parameter that an option names by number; negative numbers count from the end."""
        at = i if i >= 0 or self.count is None else i + self.count
        if at < 0 or (self.count is not None and at >= self.count):
            raise self.error(
                f"{self.where}: {option} has {i}, but the function has {len(self.names)} positional parameters: "
                f"{', '.join(self.names) or 'none'}"
            )
        return at

    def check_name(self, option: str, name: str, known: Iterable[str]) -> None:
        """Raise if an option names an unknown parameter."""
        if name not in known:
            raise self.error(
                f"{self.where}: {option} has {name!r}, but its parameters are: {', '.join(known) or 'none'}"
            )


class Positions(Binder):
    """A function whose arguments are all passed by position, some of them separately.

    Parameters
    ----------
    what : str
        The front end, for messages: ``"custom_vjp"``.
    fun : callable
    The arguments to pass separately, by position.
        Which arguments are passed on apart.
    argnames : str or sequence of str

    Attributes
    ----------
    apart : tuple of int
        The positions of these arguments, in ascending order.
    """

    def __init__(
        self,
        what: str,
        fun: Callable[..., PyTree],
        argnums: int | Sequence[int] = (),
        argnames: str | Iterable[str] = (),
    ):
        super().__init__(f"{what} of {name_of(fun)}", fun, FunctionDefinitionError)
        numbers = listed(self.where, "nondiff_argnums", argnums, int, self.error)
        names = listed(self.where, "nondiff_argnames", argnames, str, self.error)
        for name in names:
            self.check_name("nondiff_argnames", name, self.names)
        positions = {self.position("nondiff_argnums", i) for i in numbers}
        self.apart = tuple(sorted(positions.union(map(self.names.index, names))))

    def resolved(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with defaults.

        Raises
        ------
        FunctionDefinitionError
            If they do not match the signature, or if one is keyword-only.
        """
        values, keywords = self.bound(args, kwargs)
        if keywords:
            by_name = [name for name in keywords if name in kwargs]
            if by_name:
                raise self.error(
                    f"{self.where}: {', '.join(by_name)} can be passed by name only, but rules get arguments by "
                    "position. Make it a positional parameter (without * before it), or bind it: functools.partial"
                )
            values = values[: -len(keywords)]
        if self.apart and self.apart[-1] >= len(values):
            raise self.error(
                f"{self.where}: nondiff_argnums has {self.apart[-1]}, but it was called with {len(values)} arguments"
            )
        return values

    def split(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The separate arguments, and the others."""
        if not self.apart:
            return (), args
        others = tuple([x for i, x in enumerate(args) if i not in self.apart])
        return tuple([args[i] for i in self.apart]), others

    def merged(self, apart: Sequence[Any], others: Sequence[Value]) -> Sequence[Any]:
        """The arguments in their original order."""
        if not self.apart:
            return others
        merged = list(others)
        for i, x in zip(self.apart, apart):
            merged.insert(i, x)
        return merged

    def name(self, position: int) -> str:
        """The parameter at a position."""
        return self.names[position] if position < len(self.names) else str(position)

    def place(self, i: int) -> str:
        """The name of the i-th argument that is not separate, for messages: ``argument 1 ('w')``."""
        for k in self.apart:
            i += k <= i
        return self.parameters.place(i)


class RuledFunction(Portable):
    """A function with rules: a decorator of functions and methods."""

    #: The front end.
    _front: ClassVar[str]
    #: Methods of a function inside, which takes other rules.
    _of_function_inside: ClassVar[frozenset[str]]
    _positions: Positions

    def _wrap(self, fun: Callable[..., PyTree], *apart: Any) -> None:
        """Take on the name of a function, and its parameters; some arguments go apart (see `Positions`)."""
        check_function(self._front, fun)
        functools.update_wrapper(self, fun, updated=())  # type: ignore[arg-type]
        self._positions = Positions(self._front, fun, *apart)

    def _flattened(self, args: Sequence[Any]) -> tuple[list[Any], PyTreeDef]:
        """The leaves of the arguments that are not apart, as values."""
        return flatten_values(args, self._place)

    def _place(self, path: KeyPath) -> str:
        return f"{self._positions.where}: {self._positions.place(path[0].idx)}{keystr(path[1:])}"

    def __getattr__(self, name: str) -> Any:
        """The methods of a function inside: ``def_vmap`` of a `custom_vmap` in a `custom_vjp`, and the reverse."""
        if name in self._of_function_inside:
            return getattr(self.__wrapped__, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The method of an instance, which is the first argument of the function and its rules."""
        return self if instance is None else Bound.of(self, instance)

    def __repr__(self) -> str:
        return f"<{self._positions.where}>"
