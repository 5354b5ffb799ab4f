"""The arguments of ``apply``: bound to the parameters of ``forward``, and named in messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import FunctionDefinitionError

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
