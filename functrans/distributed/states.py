"""What `fully_shard` does and when, to be looked at: events, and a state for each group of parameters."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from ..core import ArgumentValueError
from ..frontend.arguments import check_function

#: In the order in which a group meets them.
EVENTS = (
    "lazy_init", "pre_forward", "all_gather", "post_forward", "reshard", "pre_backward", "post_backward",
    "reduce_scatter", "final_callback",
)  # fmt: skip
#: As many events are kept at most; then the older half goes.
MOST_EVENTS = 100_000


class TrainingState(enum.Enum):
    """What a group is doing; see `FSDPState`."""

    IDLE = "idle"
    FORWARD = "forward"
    PRE_BACKWARD = "pre_backward"
    POST_BACKWARD = "post_backward"


_STATE_AFTER = {
    "pre_forward": TrainingState.FORWARD,
    "post_forward": TrainingState.IDLE,
    "pre_backward": TrainingState.PRE_BACKWARD,
    "post_backward": TrainingState.POST_BACKWARD,
}


class EventHandle:
    """What `FSDPState.register` returns."""

    def __init__(self, functions: dict[int, Callable[..., Any]], key: int):
        self._functions = functions
        self._key = key

    def remove(self) -> None:
        """Stop calling the function. Once is enough; more does no harm."""
        self._functions.pop(self._key, None)


class FSDPState:
    """One group of a `FullySharded`.

    Attributes
    ----------
    group : str
        Its name: the key path of its prefix, or ``"root"``.
    is_root : bool
    names : tuple of str
        The key paths of its parameters.
    training_state : TrainingState
    comm_ctx : object
        What all groups share: their communicator, and what is under way.
    """

    def __init__(self, group: str, is_root: bool, names: Sequence[str], comm_ctx: Any):
        self.group = group
        self.is_root = is_root
        self.names = tuple(names)
        self.training_state = TrainingState.IDLE
        self.comm_ctx = comm_ctx
        self._functions: dict[str, dict[int, Callable[..., Any]]] = {event: {} for event in EVENTS}
        self._count = 0

    def __repr__(self) -> str:
        return f"<FSDPState {self.group}: {len(self.names)} parameters, {self.training_state.value}>"

    def register(self, event: str, fn: Callable[[FSDPState], Any]) -> EventHandle:
        """Call ``fn(state)`` at an event of this group, in compiled code too.

        Parameters
        ----------
        event : str
            One of ``lazy_init``, ``pre_forward``, ``all_gather``, ``post_forward``, ``reshard``, ``pre_backward``,
            ``post_backward``, ``reduce_scatter``, ``final_callback``.
        fn : callable
            It must not call collectives, unless all ranks do so.

        Returns
        -------
        EventHandle
            Its ``remove()`` ends it.

        Raises
        ------
        ArgumentValueError
            If there is no such event.
        """
        if event not in self._functions:
            raise ArgumentValueError(f"register: event must be one of {', '.join(EVENTS)}, got {event!r}")
        check_function("register", fn)
        self._count += 1
        self._functions[event][self._count] = fn
        return EventHandle(self._functions[event], self._count)

    def enter(self, event: str) -> None:
        """Note an event, and call the functions that wait for it."""
        self.training_state = _STATE_AFTER.get(event, self.training_state)
        for fn in list(self._functions[event].values()):
            fn(self)
