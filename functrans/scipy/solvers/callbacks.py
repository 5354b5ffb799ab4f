"""User functions called by SciPy's solvers.

SciPy calls them with numbers, but they may read traced values in their closures and in ``args``. functrans finds these
values in advance and makes them operands of the solver's `Function`; while the solver runs, numbers replace them. So
SciPy sees a function of plain numbers, and the rules see a function that they can differentiate in its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...arrays.array import unwrap
from ...core import Trace, Tracer, Zero, aval_of, concrete, current_trace, eval_trace, is_inexact, tracing
from ...core.values import ArrayLike, PyTree, Value
from ...custom.closures import Sealed, StandInTrace, captured_tracers
from ...errors import ArgumentError, CapturedTracerError, UnexpectedTracerError
from ...numpy.creation.filled import asarray
from ...primitives import ops
from ...transforms.jvp import jvp
from ...transforms.linearize import linearize
from ...transforms.transpose import backward


class Callback(Sealed):
    """A user's function and the traced values that it reads.

    Parameters
    ----------
    name : str
        The solver's name, for messages.
    fun : callable
    args : tuple
        Its further arguments.
    others : sequence
        Further functions of the same arguments, such as a Jacobian; objects that are not callable are ignored.
    """

    __slots__ = ("_captures", "args", "fun", "name")

    def __init__(
        self, name: str, fun: Callable[..., PyTree], args: ArrayLike = (), others: Sequence[Any] = ()
    ):
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

    def reading(self, operands: Sequence[ArrayLike], use: Callable[[Callable[[Any], Any]], Any]) -> PyTree:
        """Call `use` while `values` replace the operands; its argument makes a function that SciPy can call."""
        trace = StandInTrace(current_trace.get(), self._captures, operands, self.name)

        def plain(x: ArrayLike) -> Any:
            return type(x)(map(plain, x)) if type(x) in (list, tuple) else trace.lower(unwrap(x))

        def for_scipy(fun: Any) -> Any:
            return (lambda *xs: plain(fun(*xs, *self.args))) if callable(fun) else fun

        return numbers_only(self.name, lambda: use(for_scipy), trace)

    def __call__(self, operands: Sequence[ArrayLike], *xs: Any) -> Any:
        """The function's result, with numbers as arrays."""
        return self.reading(operands, lambda for_scipy: for_scipy(self.fun)(*xs))


def numbers_only(name: str, use: Callable[[], Any], trace: Trace = eval_trace) -> PyTree:
    """Let SciPy compute with numbers; all traced values that the user's function reads must be known in advance.

    Raises
    ------
    CapturedTracerError
        If the function reads another traced value.
    """
    try:
        return tracing(trace, use)
    except UnexpectedTracerError as error:
        raise CapturedTracerError(
            f"{name}: the function reads a traced value that functrans cannot see: in a global variable or an "
            "iterator. Pass it in args, or let the function read it from the enclosing function",
            error.source,
        ) from error


def as_array(x: ArrayLike) -> Any:
    """The result of a function, a number or a list of traced values, as an array."""
    if isinstance(x, Tracer):
        return x
    return asarray(x) if is_traced(x) else np.asarray(x)


def is_differentiable(x: ArrayLike) -> bool:
    """Whether a value can have a derivative."""
    return is_inexact(aval_of(x).dtype)


def pushed(
    fun: Callable[..., Sequence[Any]], values: Sequence[Value], tangents: Sequence[Value]
) -> list[Value]:
    """The tangents of the results of a function of flat values; None and `Zero` count as zeros."""
    given = [Zero(x) if t is None else t for x, t in zip(values, tangents)]
    return [ops.instantiate(t) for t in jvp(fun, values, given)[1]]


def pulled(
    fun: Callable[..., Sequence[Any]], values: Sequence[Value], mask: Sequence[bool], cts: Sequence[Value]
) -> list[Value]:
    """The cotangents of the marked values."""
    linear = linearize(fun, values, mask)
    back = backward(linear.tape, linear.tangents, cts, linear.inputs)
    return [ops.instantiate(ct) for ct, m in zip(back, mask) if m]


def is_traced(*values: ArrayLike) -> bool:
    """Whether any value is traced, or is a list or tuple that contains a traced value."""
    return any(is_traced(*x) if isinstance(x, list | tuple) else isinstance(x, Tracer) for x in values)


def known(name: str, what: str, x: ArrayLike) -> Any:
    """The numbers of an argument that has no derivative.

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
