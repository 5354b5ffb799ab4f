"""Compare the autocast where a pullback is called with what the custom rules of a compiled function assume."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..arrays.autocast import ambient
from ..core import AutocastError, Jaxpr, is_staged, subjaxprs, warn_user
from ..runtime.config import config
from .linearize import Entry


def compare_autocast(tape: Sequence[Entry]) -> None:
    """Warn or raise, as ``config.check_backward_autocast`` says, before a tape is run backward.

    Raises
    ------
    AutocastError
    """
    if config.check_backward_autocast == "off" or is_staged():
        return
    here = ambient()
    for entry in tape:
        for jaxpr in subjaxprs(entry.params):
            for assumed, name in _assumptions(jaxpr):
                if assumed != here:
                    _report(name, assumed, here)


def _assumptions(jaxpr: Jaxpr) -> list[tuple[Any, str]]:
    """What the reverse rules in a program assume, with their names."""

    def found() -> Iterator[tuple[Any, str]]:
        for eqn in jaxpr.eqns:
            for value in eqn.params.values():
                assumed = getattr(value, "assumed_autocast", None)
                if assumed is not None:
                    yield assumed
            for inner in subjaxprs(eqn.params):
                yield from _assumptions(inner)

    return jaxpr.derive("autocast of reverse rules", lambda: list(found()))


def _report(name: str, assumed: Any, here: Any) -> None:
    message = (
        f"{name} was traced for {_shown(assumed)}, but the pullback is called under {_shown(here)}. Call it under the "
        "same autocast; or set config.backward_pass_autocast before the forward pass to what holds here; or decorate "
        "the rule's backward by functrans.custom_bwd"
    )
    if config.check_backward_autocast == "error":
        raise AutocastError(message)
    warn_user(message)


def _shown(state: Any) -> str:
    if state is None:
        return "no autocast"
    rules = f", rules={dict(state.rules)}" if state.rules else ""
    return f"autocast({state.dtype.name!r}{rules})"
