"""Arguments bound to the parameters of a function, and named in messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..arrays.arguments import POSITIONAL, Parameters, shown
from ..core.errors import FunctionDefinitionError
from ..frontend.arguments import name_of

#: What users call the context.
_CONTEXTS = ("ctx", "context")


class Signature:
    """The parameters of ``forward`` without its context.

    Parameters
    ----------
    name : str
        The function's name.
    forward : callable
    takes_context : bool
        Whether its first parameter is the context.
    """

    __slots__ = ("_context", "_count", "_name", "_parameters", "_takes_context")

    def __init__(self, name: str, forward: Callable[..., Any], takes_context: bool):
        self._name = name
        self._takes_context = takes_context
        self._parameters = Parameters(forward, skip=int(takes_context))
        self._context = next(iter(Parameters(forward).names), "ctx") if takes_context else ""
        known = () if self._parameters.signature is None else self._parameters.signature.parameters.values()
        only_positional = all(p.kind in (*POSITIONAL, p.VAR_POSITIONAL) for p in known)
        #: How many positional arguments need no binding; -1: always bind.
        self._count = len(self._parameters.names) if only_positional else -1

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """All arguments in the order of the parameters, and the names of those at the end that go by keyword."""
        if not kwargs and len(args) == self._count:
            return args, ()
        try:
            bound = self._parameters.bind(args, kwargs)
        except TypeError as error:
            raise FunctionDefinitionError(f"{self._name}.apply: {error}{self._hint()}") from None
        return (*bound.args, *bound.kwargs.values()), tuple(bound.kwargs)

    def _hint(self) -> str:
        if not self._takes_context and self._parameters.names[:1] and self._parameters.names[0] in _CONTEXTS:
            return (
                ". Since setup_context is defined, forward takes no ctx: write forward(...) and save in "
                "setup_context(ctx, inputs, output), or remove setup_context"
            )
        if self._takes_context and self._context not in (*_CONTEXTS, "_"):
            return (
                f". forward takes {self._shown} after its context, which is '{self._context}', since setup_context "
                "is not defined: write forward(ctx, ...), or define setup_context(ctx, inputs, output)"
            )
        return f". forward takes {self._shown}"

    @property
    def _shown(self) -> Any:
        signature = self._parameters.signature
        return (
            "(*args)" if signature is None else signature.replace(return_annotation=inspect.Signature.empty)
        )

    def place(self, position: int, keywords: tuple[str, ...] = (), count: int = 0) -> str:
        """``argument 1 ('w')``; of `count` arguments the last ones go by the given keywords."""
        by_keyword = position - (count - len(keywords))
        if keywords and by_keyword >= 0:
            return f"argument {position} ('{keywords[by_keyword]}')"
        return self._parameters.place(position)


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
        self._parameters = Parameters(fun)
        self.names = self._parameters.names
        self.count = None if self._parameters.variadic else len(self.names)
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
        if self._parameters.signature is None:
            if kwargs:
                raise FunctionDefinitionError(
                    f"{self.what}: its signature is not known, so arguments by name ({', '.join(kwargs)}) have no "
                    "position; pass them by position"
                )
            return args
        try:
            bound = self._parameters.bind(args, kwargs)
        except TypeError as error:
            raise FunctionDefinitionError(f"{self.what}: {error}") from None
        by_name = [name for name in bound.kwargs if name in kwargs]
        if by_name:
            raise FunctionDefinitionError(
                f"{self.what}: {', '.join(by_name)} can be passed by name only, but rules get arguments by "
                "position. Make it a positional parameter (without * before it), or bind it: functools.partial"
            )
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
