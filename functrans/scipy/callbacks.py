"""Users' functions that SciPy's solvers call.

SciPy calls them with numbers, and they may read traced values: in their closures, in ``args``. These are looked for
beforehand, and become operands of the solver's `Function`; while it runs, numbers stand for them. So SciPy sees a
function of plain numbers, and the rules one that they can differentiate in its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.array import unwrap
from ..core.aval import Zero, aval_of
from ..core.dtypes import is_inexact
from ..core.errors import ArgumentError, CapturedTracerError, UnexpectedTracerError
from ..core.trace import Trace, Tracer, concrete, current_trace, eval_trace, tracing
from ..custom.closures import Sealed, StandInTrace, captured_tracers
from ..numpy.creation.filled import asarray
from ..primitives.structure.linear import instantiate
from ..transforms.jvp import jvp
from ..transforms.linearize import linearize
from ..transforms.transpose import backward


class Callback(Sealed):
    """A user's function with the traced values that it reads.

    Parameters
    ----------
    name : str
        Of the solver, for messages.
    fun : callable
    args : tuple
        Its further arguments.
    others : sequence
        Further functions of the same arguments, a Jacobian, say; what is not callable is passed over.
    """

    __slots__ = ("_captures", "args", "fun", "name")

    def __init__(self, name: str, fun: Callable[..., Any], args: Any = (), others: Sequence[Any] = ()):
        if not callable(fun):
            raise ArgumentError(f"{name}: the function must be callable, got {type(fun).__name__}")
        self.name, self.fun = name, fun
        self.args = args if isinstance(args, tuple) else (args,)
        functions = [f for f in (fun, *others) if callable(f)]
        traced = current_trace.get() is not eval_trace
        self._captures = captured_tracers(functions, [self.args]) if traced else []

    @property
    def operands(self) -> list[Tracer]:
        """The traced values that it reads."""
        return [c.tracer for c in self._captures]

    def reading(self, operands: Sequence[Any], use: Callable[[Callable[[Any], Any]], Any]) -> Any:
        """Call `use` while values stand for the operands; it is given what makes a function one for SciPy to call."""
        trace = StandInTrace(current_trace.get(), self._captures, operands, self.name)

        def plain(x: Any) -> Any:
            return type(x)(map(plain, x)) if type(x) in (list, tuple) else trace.lower(unwrap(x))

        def for_scipy(fun: Any) -> Any:
            return (lambda *xs: plain(fun(*xs, *self.args))) if callable(fun) else fun

        return numbers_only(self.name, lambda: use(for_scipy), trace)

    def __call__(self, operands: Sequence[Any], *xs: Any) -> Any:
        """What the function returns, numbers as arrays."""
        return self.reading(operands, lambda for_scipy: for_scipy(self.fun)(*xs))


def numbers_only(name: str, use: Callable[[], Any], trace: Trace = eval_trace) -> Any:
    """Let SciPy compute with numbers; what a function of the user's reads of traced values must be known before.

    Raises
    ------
    CapturedTracerError
        If there is more.
    """
    try:
        return tracing(trace, use)
    except UnexpectedTracerError as error:
        raise CapturedTracerError(
            f"{name}: the function reads a traced value that is out of sight: in a global variable, say, or an "
            "iterator. Pass it in args, or let the function read it from the function around it",
            error.source,
        ) from error


def as_array(x: Any) -> Any:
    """What a function returned as an array: it may be a number, or a list of traced values."""
    if isinstance(x, Tracer):
        return x
    return asarray(x) if is_traced(x) else np.asarray(x)


def is_moving(x: Any) -> bool:
    """Whether a value can have a derivative."""
    return is_inexact(aval_of(x).dtype)


def pushed(fun: Callable[..., Sequence[Any]], values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The tangents of what a function of flat values returns; None and `Zero` stand for zeros."""
    given = [Zero(x) if t is None else t for x, t in zip(values, tangents)]
    return [instantiate(t) for t in jvp(fun, values, given)[1]]


def pulled(
    fun: Callable[..., Sequence[Any]], values: Sequence[Any], mask: Sequence[bool], cts: Sequence[Any]
) -> list[Any]:
    """The cotangents of the values that are marked."""
    found = linearize(fun, values, mask)
    back = backward(found.tape, found.tangents, cts, found.inputs)
    return [instantiate(ct) for ct, m in zip(back, mask) if m]


def is_traced(*values: Any) -> bool:
    """Whether traced values are among some, or in lists and tuples of them."""
    return any(is_traced(*x) if isinstance(x, list | tuple) else isinstance(x, Tracer) for x in values)


def known(name: str, what: str, x: Any) -> Any:
    """The numbers of something in which there is no derivative.

    Raises
    ------
    ArgumentError
        If it is not known while tracing.
    """
    if isinstance(x, list | tuple):
        return [known(name, what, part) for part in x]
    value = concrete(x)
    if value is None:
        raise ArgumentError(
            f"{name}: {what} must be known while tracing, got a traced value of type {x.aval}"
        )
    return value


def unpatched(solver: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's own function, where `functrans.scipy.patch` has put another in its place."""
    return getattr(solver, "_unpatched", solver)
