"""Arguments of a function with rules by position, as its rules get them; and which of them are not differentiated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.arguments import shown
from ..core.errors import FunctionDefinitionError
from ..transforms.values import name_of
from .signature import POSITIONAL, signature_of


class Positions:
    """The parameters of a function by position, and which of them rules get apart, undifferentiated.

    Parameters
    ----------
    what : str
        The front end, for messages: ``"custom_vjp"``.
    fun : callable
    nondiff_argnums : int or sequence of int
    nondiff_argnames : str or sequence of str

    Attributes
    ----------
    count : int or None
        The number of positional parameters; None where it is not fixed, or not known.
    nondiff : tuple of int
        Positions in ascending order.
    """

    def __init__(
        self,
        what: str,
        fun: Callable[..., Any],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Iterable[str] = (),
    ):
        self.what = f"{what} of {name_of(fun)}"
        self._signature = signature_of(fun)
        self.names: list[str] = []
        self.count: int | None = None
        if self._signature is not None:
            parameters = self._signature.parameters.values()
            self.names = [p.name for p in parameters if p.kind in POSITIONAL]
            if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
                self.count = len(self.names)
        numbers = self._listed(nondiff_argnums, int, "nondiff_argnums must be integers")
        names = self._listed(nondiff_argnames, str, "nondiff_argnames must be strings")
        found = {self._position(i) for i in numbers} | {self._position_of(n) for n in names}
        self.nondiff = tuple(sorted(found))

    def _listed(self, given: Any, single: type, want: str) -> tuple[Any, ...]:
        if isinstance(given, single):
            return (given,)
        if not isinstance(given, Iterable) or (isinstance(given, np.ndarray) and given.ndim != 1):
            raise FunctionDefinitionError(f"{self.what}: {want}, got {shown(given)}")
        return tuple(given)

    def _position(self, i: Any) -> int:
        if not isinstance(i, int | np.integer):
            raise FunctionDefinitionError(f"{self.what}: nondiff_argnums must be integers, got {i!r}")
        i = int(i)
        at = i if i >= 0 or self.count is None else i + self.count
        if at < 0 or (self.count is not None and at >= self.count):
            raise FunctionDefinitionError(
                f"{self.what}: nondiff_argnums has {i}, but the function has {len(self.names)} positional parameters: "
                f"{', '.join(self.names) or 'none'}"
            )
        return at

    def _position_of(self, name: Any) -> int:
        if not isinstance(name, str) or name not in self.names:
            raise FunctionDefinitionError(
                f"{self.what}: nondiff_argnames has {name!r}, but its positional parameters are: "
                f"{', '.join(self.names) or 'none'}"
            )
        return self.names.index(name)

    def resolved(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in.

        Raises
        ------
        FunctionDefinitionError
            If they do not fit the signature, or one can be passed by name only.
        """
        if not kwargs and len(args) == self.count:
            return args
        found = self._bound(args, kwargs)
        if self.nondiff and self.nondiff[-1] >= len(found):
            raise FunctionDefinitionError(
                f"{self.what}: nondiff_argnums has {self.nondiff[-1]}, but it was called with {len(found)} arguments"
            )
        return found

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if self._signature is None:
            if kwargs:
                raise FunctionDefinitionError(
                    f"{self.what}: its signature is not known, so arguments by name ({', '.join(kwargs)}) have no "
                    "position; pass them by position"
                )
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise FunctionDefinitionError(f"{self.what}: {error}") from None
        if bound.kwargs:
            raise FunctionDefinitionError(
                f"{self.what}: {', '.join(bound.kwargs)} can be passed by name only, but rules get arguments by "
                "position. Make it a positional parameter (without * before it), or bind it: functools.partial"
            )
        bound.apply_defaults()
        return bound.args

    def split(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The arguments that are not differentiated, and the others."""
        if not self.nondiff:
            return (), args
        return tuple([args[i] for i in self.nondiff]), tuple(
            [x for i, x in enumerate(args) if i not in self.nondiff]
        )

    def merged(self, nondiff: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
        """The arguments in their order again."""
        if not self.nondiff:
            return others
        merged = list(others)
        for i, x in zip(self.nondiff, nondiff):
            merged.insert(i, x)
        return merged

    def name(self, position: int) -> str:
        """The parameter at a position."""
        return self.names[position] if position < len(self.names) else str(position)

    def position(self, i: int) -> int:
        """Where the i-th of the differentiated arguments stands among all."""
        for k in self.nondiff:
            i += k <= i
        return i
