"""Arguments bound to the parameters of a function, and named in messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.arguments import shown
from ..core.errors import FunctionDefinitionError
from ..transforms.values import name_of

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
#: What users call the context.
_CONTEXTS = ("ctx", "context")
_UNKNOWN = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])


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

    __slots__ = ("_context", "_count", "_name", "_names", "_signature", "_takes_context")

    def __init__(self, name: str, forward: Callable[..., Any], takes_context: bool):
        self._name = name
        self._takes_context = takes_context
        signature = signature_of(forward) or _UNKNOWN
        parameters = list(signature.parameters.values())
        if takes_context and parameters and parameters[0].kind in POSITIONAL:
            parameters = parameters[1:]
        self._signature = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
        self._names = [p.name for p in parameters if p.kind in POSITIONAL]
        self._context = next(iter(signature.parameters), "ctx") if takes_context else ""
        only_positional = all(p.kind in (*POSITIONAL, p.VAR_POSITIONAL) for p in parameters)
        #: How many positional arguments need no binding; -1: always bind.
        self._count = len(self._names) if only_positional else -1

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """All arguments in the order of the parameters, and the names of those at the end that go by keyword."""
        if not kwargs and len(args) == self._count:
            return args, ()
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise FunctionDefinitionError(f"{self._name}.apply: {error}{self._hint()}") from None
        bound.apply_defaults()
        return (*bound.args, *bound.kwargs.values()), tuple(bound.kwargs)

    def _hint(self) -> str:
        if not self._takes_context and self._names[:1] and self._names[0] in _CONTEXTS:
            return (
                ". Since setup_context is defined, forward takes no ctx: write forward(...) and save in "
                "setup_context(ctx, inputs, output), or remove setup_context"
            )
        if self._takes_context and self._context not in (*_CONTEXTS, "_"):
            return (
                f". forward takes {self._signature} after its context, which is '{self._context}', since setup_context "
                "is not defined: write forward(ctx, ...), or define setup_context(ctx, inputs, output)"
            )
        return f". forward takes {self._signature}"

    def place(self, position: int, keywords: tuple[str, ...] = (), count: int = 0) -> str:
        """``argument 1 ('w')``; of `count` arguments the last ones go by the given keywords."""
        by_keyword = position - (count - len(keywords))
        if keywords and by_keyword >= 0:
            return f"argument {position} ('{keywords[by_keyword]}')"
        if position < len(self._names):
            return f"argument {position} ('{self._names[position]}')"
        return f"argument {position}"


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    """The parameters of a function, of a ufunc its operands; None of a builtin that does not tell."""
    if isinstance(fun, np.ufunc):  # its keywords exclude each other
        names = ["x"] if fun.nin == 1 else [f"x{i + 1}" for i in range(fun.nin)]
        return inspect.Signature([inspect.Parameter(name, POSITIONAL[0]) for name in names])
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


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
