"""What a kernel's failure means: the jaxpr evaluated by NumPy, whose error names the culprit and the user's
line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..control.callback import CALLBACKS, is_from_callback
from ..core import errors
from ..core.ir import Atom, Eqn, Jaxpr, Literal
from ..core.source import Source, replayed


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
    env: dict[Atom, Any] = dict(zip(jaxpr.constvars, jaxpr.consts))
    env.update((v, np.asarray(x, v.aval.dtype)) for v, x in zip(jaxpr.invars, arrays, strict=True))

    def read(a: Atom) -> Any:
        return a.value if isinstance(a, Literal) else env[a]

    for eqn in jaxpr.eqns:
        outs = known[eqn] if eqn in known else call_host(eqn, [read(a) for a in eqn.invars])
        env.update(zip(eqn.outvars, outs))
    return [read(a) for a in jaxpr.outvars]


def call_host(eqn: Eqn, args: Sequence[Any]) -> tuple[Any, ...]:
    """One equation by NumPy, or by the user's function."""
    if eqn.primitive in CALLBACKS:
        return _call_back(eqn, args)
    try:
        with np.errstate(all="ignore"):
            outs = eqn.primitive.impl(*args, **eqn.params)
    except (errors.FunctransError, IndexError, np.linalg.LinAlgError) as error:
        if is_from_callback(error):  # of a callback inside a loop
            raise
        raise _at(error, eqn.source) from None
    return tuple(outs) if eqn.primitive.multiple else (outs,)


def _call_back(eqn: Eqn, args: Sequence[Any]) -> tuple[Any, ...]:
    """A callback of the user's: what it raises arrives as it is, with the line where it was traced."""
    token = replayed.set(eqn.source)
    try:
        return tuple(eqn.primitive.impl(*args, **eqn.params))
    finally:
        replayed.reset(token)


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
