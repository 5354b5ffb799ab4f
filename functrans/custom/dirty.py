"""``ctx.mark_dirty``: an output takes the place of an input, which cannot be used after the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array, wrap
from ..arrays.donation import Donation, modified
from ..core import Consumer, FunctionContractError, Source, Tracer, aval_of, consume, user_source, warn_user
from ..core.values import PyTree, Value
from ..runtime.config import config
from ..runtime.records import NamedTuple
from ..transforms.linearize import Entry, TangentTrace


class Marks(NamedTuple):
    """What ``mark_dirty`` received: inputs, and for each the output that replaces it, or None for all."""

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...] | None


def replacements(
    name: str,
    marks: Marks,
    inputs: Sequence[PyTree],
    outputs: Sequence[PyTree],
    same: Mapping[int, int],
    line: Source | None,
) -> dict[int, int]:
    """For the number of each dirty input that of the output that replaces it.

    Parameters
    ----------
    name : str
        Of the function.
    marks : Marks
    inputs, outputs : sequences of arrays
        The objects that ``forward`` and ``setup_context`` see.
    same : mapping
        Outputs that are known to be an input, by the number of the input.
    line : Source or None
        Of the error.

    Raises
    ------
    FunctionContractError
        If a marked value is not an input, or marked twice; if no output can replace it, or several can.
    """
    replaced: dict[int, int] = {}
    for n, x in enumerate(marks.inputs):
        places = [i for i, y in enumerate(inputs) if y is x]
        if not places:
            raise FunctionContractError(
                f"{name}: mark_dirty was given what is not an input of this call (its argument {n}). Mark the very "
                "objects that forward gets",
                line,
            )
        if places[0] in replaced:
            raise FunctionContractError(
                f"{name}: mark_dirty was given an input twice (its argument {n})", line
            )
        k = (
            _named(name, marks.outputs[n], outputs, line)
            if marks.outputs is not None
            else same.get(places[0])
        )
        if k is None:
            k = next((k for k, y in enumerate(outputs) if y is x), None)
        if k is None:
            k = _only_fit(
                name, x, n, [k for k in range(len(outputs)) if k not in replaced.values()], outputs, line
            )
        if k in replaced.values() or _type(outputs[k]) != _type(x):
            why = "replaces another input, too" if k in replaced.values() else f"is {_shown(outputs[k])}"
            raise FunctionContractError(
                f"{name}: mark_dirty: output {k} cannot replace the input, which is {_shown(x)}: it {why}",
                line,
            )
        replaced[places[0]] = k
    return replaced


def _named(name: str, y: Any, outputs: Sequence[Any], line: Source | None) -> int:
    for k, z in enumerate(outputs):
        if z is y:
            return k
    raise FunctionContractError(
        f"{name}: mark_dirty(x, output=y): y is not an output of this call. Name the very object that forward returns",
        line,
    )


def _only_fit(
    name: str, x: Value, n: int, left: Sequence[int], outputs: Sequence[Value], line: Source | None
) -> int:
    fits = [k for k in left if _type(outputs[k]) == _type(x)]
    if not fits:
        raise FunctionContractError(
            f"{name}: argument {n} of mark_dirty, {_shown(x)}, was not returned as output: the inputs that are "
            "modified inplace must all be outputs of the Function. No output has its shape and dtype",
            line,
        )
    if len(fits) > 1:
        raise FunctionContractError(
            f"{name}: cannot tell which output replaces argument {n} of mark_dirty: outputs "
            f"{', '.join(map(str, fits))} have its type, {_shown(x)}. Write ctx.mark_dirty(x, output=y)",
            line,
        )
    return fits[0]


def _type(x: Value) -> tuple[Any, Any]:
    aval = aval_of(x)
    return aval.shape, aval.dtype


def _shown(x: Value) -> str:
    shape, dtype = _type(x)
    return f"{dtype.name}[{','.join(map(str, shape))}]"


def warn_of_old_values(name: str, saved: Sequence[Any], marks: Marks) -> None:
    """Warn where ``setup_context`` saves a dirty input: torch would give ``backward`` the new value."""
    if any(x is y for x in marks.inputs for y in saved):
        warn_user(
            f"{name}: setup_context saves an input that it marks as dirty. backward gets its old value; save the "
            "output for the new one, which is what torch gives"
        )


# --- after the call -----------------------------------------------------------------------------------------


def hand_over(
    name: str,
    dirty: Mapping[int, int],
    arrays: Sequence[PyTree],
    outs: list[PyTree],
    place: Callable[[int], str],
) -> None:
    """Consume the dirty arguments of a call, and put outputs in memory that the user gave for them.

    Parameters
    ----------
    name : str
    dirty : mapping
        See `replacements`.
    arrays : sequence
        The arguments, as the user holds them.
    outs : list of values
        Modified.
    place : callable
        How messages call an argument.
    """
    # Outputs that are arguments themselves: their memory is about to be written to.
    outs[:] = [x.copy() if type(x) is np.ndarray and x.base is not None else x for x in outs]
    for i, k in dirty.items():
        x = arrays[i]
        if sum(y is x for y in arrays) > 1:
            raise FunctionContractError(
                f"{name}: {place(i)} is marked as dirty, but the same array is passed twice. Pass a copy in the other "
                "place"
            )
        if isinstance(x, Tracer):
            consume(x, Consumer("value", *_type(x), f"{name}.apply", user_source()))
        elif type(x) is Array and not isinstance(outs[k], Tracer):
            donation = Donation(x, f"{name}.apply", user_source())
            if donation.given is not None:
                np.copyto(donation.given, outs[k])
                outs[k] = wrap(donation.given)
            donation.finish()


def refuse_old_residuals(
    name: str, dirty: Mapping[int, int], values: Sequence[Any], trace: TangentTrace
) -> None:
    """Under ``config.dirty_residuals = 'error'``, make earlier residuals that hold a dirty input raise when read."""
    if not dirty or config.dirty_residuals != "error":
        return
    old = {id(values[i]): values[i] for i in dirty}
    for n, entry in enumerate(trace.tape):
        if any(id(a) in old for a in entry.args):
            args = [_modified(name, a) if id(a) in old else a for a in entry.args]
            trace.tape[n] = Entry(entry.primitive, tuple(args), entry.params, entry.outs)


def _modified(name: str, x: Any) -> Any:
    return modified(Consumer("value", *_type(x), f"{name}.apply", user_source()))
