"""Explain a kernel's failure: NumPy evaluates the jaxpr again, and its error names the cause and the user's line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from traceback import format_exception_only
from types import MappingProxyType
from typing import Any

import numpy as np

from ... import errors
from ...control.callbacks.callback import CALLBACKS, is_from_callback, made_before
from ...control.hooks.hook_calls import run_hook_p
from ...control.hooks.inline_hooks import inline_hook_p
from ...core import (
    Eqn,
    Jaxpr,
    Source,
    Tape,
    has_jax_semantics,
    has_subjaxprs,
    replayed,
    run_quietly,
    run_with,
)
from ...core.evaluation import evaluate
from ...core.values import Value
from ...primitives.checks import check_p
from ...runtime.config import config

_CALLS_OF_USERS = CALLBACKS | {run_hook_p, inline_hook_p}


def evaluate_on_host(
    jaxpr: Jaxpr, arrays: Sequence[Value], known: Mapping[Eqn, Sequence[Any]] = MappingProxyType({})
) -> list[Value]:
    """The outputs of a jaxpr without calls, computed by its primitives' NumPy functions.

    Parameters
    ----------
    jaxpr : Jaxpr
    arrays : sequence
        Its inputs.
    The outputs of host calls that were already made; these are not repeated.
        The outputs of the host calls that were made already; they are not made again.

    Raises
    ------
    FunctransError
        Any error that an equation raises, with the user's line of that equation.
    """

    def visit(eqn: Eqn, args: list[Value]) -> Sequence[Value]:
        return known[eqn] if eqn in known else call_host(eqn, args)

    return evaluate(jaxpr, inputs(jaxpr, arrays), visit)


def inputs(jaxpr: Jaxpr, arrays: Sequence[Value]) -> list[Value]:
    """The arguments, converted to the dtypes of the inputs."""
    pairs = zip(jaxpr.in_avals, arrays, strict=True)
    return [x if isinstance(x, Tape) else np.asarray(x, a.dtype) for a, x in pairs]


def call_host(eqn: Eqn, args: Sequence[Value]) -> tuple[Value, ...]:
    """One equation, computed by NumPy or by the user's function."""
    if eqn.primitive in _CALLS_OF_USERS:
        return _call_back(eqn, args)
    # Run a loop as Python: as a kernel it would fail again.
    has_body = has_subjaxprs(eqn.params)
    impl = partial(eqn.primitive.impl_for(args), *args, **eqn.params)
    try:
        outs = run_quietly(config.patch(disable_jit=True)(impl) if has_body else impl)
    except (errors.FunctransError, IndexError, np.linalg.LinAlgError) as error:
        if is_from_callback(error):  # raised by a callback inside a loop
            _raise_as_jax(error, eqn)
            raise
        located = has_body or eqn.primitive is check_p
        if located and isinstance(error, errors.FunctransError) and error.source is not None:
            raise  # it already names the line in the body, or that of the check
        raise _at(error, eqn.source) from None
    return tuple(outs) if eqn.primitive.multiple_results else (outs,)


def call_host_into(eqn: Eqn, arrays: Sequence[Any], outs: Sequence[Any]) -> None:
    """One equation that writes its results to memory of the kernel (slot `into`)."""
    assert eqn.primitive.into is not None
    try:
        eqn.primitive.into(arrays, outs, **eqn.params)
    except errors.FunctransError as error:
        raise _at(error, eqn.source) from None


def out_of_memory(jaxpr: Jaxpr, error: MemoryError) -> MemoryError:
    """The error for a failed allocation, with the line of the largest array that the program makes."""
    if is_from_callback(error) or isinstance(error, errors.FunctransError):
        return error
    made = [(v.aval.size * v.aval.dtype.itemsize, v.aval, e) for e in jaxpr.eqns for v in e.outvars]
    if not made:
        return errors.ArrayTooLargeError(f"{jaxpr.name}: {error}")
    size, aval, eqn = max(made, key=lambda x: x[0])
    return errors.ArrayTooLargeError(
        f"{jaxpr.name}: a call ran out of memory ({error}); the largest array that it computes is "
        f"of {eqn.primitive.name}, {aval}, {size:,} bytes",
        eqn.source,
    )


def _call_back(eqn: Eqn, args: Sequence[Value]) -> tuple[Value, ...]:
    """A user's callback: its exceptions propagate, with the line where it was traced."""
    impl = partial(eqn.primitive.impl, *args, **eqn.params)
    try:
        return tuple(run_with(replayed, eqn.source, run_with, made_before, None, impl))
    except Exception as error:
        _raise_as_jax(error, eqn)
        raise


def _raise_as_jax(error: Exception, eqn: Eqn) -> None:
    """With `config.jax_semantics`, what a callback in a compiled program raises is a `JaxRuntimeError`.

    Its message has the kind and the text of the error, which libraries look for.
    """
    if has_jax_semantics():
        text = format_exception_only(error)[0].strip()
        raise errors.CallbackError(f"a callback raised {text}", eqn.source) from error


def _at(error: Exception, source: Source | None) -> Exception:
    """The same error, located at the line where the equation was traced."""
    if source is None:
        return error
    kind = type(error)
    message = str(error)
    if isinstance(error, errors.FunctransError):
        if error.source is not None:
            message = message.removesuffix(f"\n  at {error.source.describe()}")
    elif isinstance(error, np.linalg.LinAlgError):
        kind = errors.LinAlgError
    else:
        kind = errors.IndexOutOfBoundsError
    return kind(message, source)
