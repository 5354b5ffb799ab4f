"""What a kernel's failure means: the jaxpr evaluated by NumPy, whose error names the culprit and the user's
line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ...control.callback import CALLBACKS, is_from_callback, made_before
from ...core import errors
from ...core.aval import Aval
from ...core.config import config
from ...core.context import run_quietly, run_with
from ...core.ir import Atom, Eqn, Jaxpr, Literal, subjaxprs
from ...core.source import Source, replayed
from ...core.tape import Tape


def evaluate(
    jaxpr: Jaxpr, arrays: Sequence[Any], known: Mapping[Eqn, Sequence[Any]] = MappingProxyType({})
) -> list[Any]:
    """The outputs of a jaxpr without calls, by its primitives' NumPy functions.

    Parameters
    ----------
    jaxpr : Jaxpr
    arrays : sequence
        Its inputs.
    known : mapping
        The outputs of the host calls that were made already; they are not made again.

    Raises
    ------
    FunctransError
        Whatever an equation raises, with the line of the user's code that the equation came from.
    """
    env = inputs(jaxpr, arrays)

    def read(a: Atom) -> Any:
        return a.value if isinstance(a, Literal) else env[a]

    for eqn in jaxpr.eqns:
        outs = known[eqn] if eqn in known else call_host(eqn, [read(a) for a in eqn.invars])
        env.update(zip(eqn.outvars, outs))
    return [read(a) for a in jaxpr.outvars]


def inputs(jaxpr: Jaxpr, arrays: Sequence[Any]) -> dict[Atom, Any]:
    """The values of constants and inputs."""
    env: dict[Atom, Any] = dict(zip(jaxpr.constvars, jaxpr.consts))
    env.update((v, _value(x, v.aval)) for v, x in zip(jaxpr.invars, arrays, strict=True))
    return env


def _value(x: Any, aval: Aval) -> Any:
    return x if isinstance(x, Tape) else np.asarray(x, aval.dtype)


def call_host(eqn: Eqn, args: Sequence[Any]) -> tuple[Any, ...]:
    """One equation by NumPy, or by the user's function."""
    if eqn.primitive in CALLBACKS:
        return _call_back(eqn, args)
    # A loop as Python: as a kernel it would fail as it did.
    has_body = any(True for _ in subjaxprs(eqn.params))
    impl = partial(eqn.primitive.impl, *args, **eqn.params)
    try:
        outs = run_quietly(config.patch(disable_jit=True)(impl) if has_body else impl)
    except (errors.FunctransError, IndexError, np.linalg.LinAlgError) as error:
        if is_from_callback(error):  # of a callback inside a loop
            raise
        if has_body and isinstance(error, errors.FunctransError) and error.source is not None:
            raise  # it names the line of the body
        raise _at(error, eqn.source) from None
    return tuple(outs) if eqn.primitive.multiple else (outs,)


def _call_back(eqn: Eqn, args: Sequence[Any]) -> tuple[Any, ...]:
    """A callback of the user's: what it raises arrives as it is, with the line where it was traced."""
    impl = partial(eqn.primitive.impl, *args, **eqn.params)
    return tuple(run_with(replayed, eqn.source, run_with, made_before, None, impl))


def _at(error: Exception, source: Source | None) -> Exception:
    """The same error, told at the line where the equation was traced."""
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
