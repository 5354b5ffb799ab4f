"""The messages of `fully_shard`: rows of all ranks become whole arrays, cotangents of whole arrays become rows.

A group of parameters is one message. `gather_p` collects it where a forward or a backward pass needs it, and starts to
collect those that come next; its tangents take the same way without that (`gather_rows_p`). The cotangents of a group
are summed over ranks, and each rank gets the sum of its rows (`scatter_rows_p`).

A checkpoint never stores what `gather_p` returns: it collects it again, in the backward pass (slot `again`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..control.callbacks.callback import Replay, made_before
from ..core import INT64, Aval, Effect, Primitive, Zero
from ..core.named_axes import MeshAxes
from ..core.values import Param, PyTree
from ..primitives.structure.linear import instantiate, move_axis, shape_of
from ..runtime.records import dataclass
from .communicator import Communicator
from .shards import rows_each
from .states import MOST_EVENTS, FSDPState
from .worker import Request


@dataclass(frozen=True)
class Ways:
    """How the numbers of a message travel.

    Attributes
    ----------
    master : np.dtype
        The dtype of the rows.
    param : np.dtype
        That of the whole arrays.
    reduce : np.dtype
        That in which cotangents are summed.
    factor : float
        What the sum is multiplied by.
    """

    master: np.dtype
    param: np.dtype
    reduce: np.dtype
    factor: float


@dataclass(frozen=True, eq=False)
class Group:
    """Parameters that are collected in one message.

    Attributes
    ----------
    index : int
        Its place among all groups; that of the root is 0.
    places : tuple of int
        Which leaves of the parameters it has.
    rows : tuple of int or None
        How long their axis 0 is, as a whole; None for a number, of which all ranks have a copy.
    ways : Ways
    context : CommContext
    """

    index: int
    places: tuple[int, ...]
    rows: tuple[int | None, ...]
    ways: Ways
    context: CommContext

    @property
    def state(self) -> FSDPState:
        """What users see of it."""
        return self.context.states[self.index]

    def __repr__(self) -> str:
        return self.state.group


class CommContext:
    """What the groups of a `FullySharded` share.

    Attributes
    ----------
    axes : MeshAxes
    states : list of FSDPState
    events : list of (str, str)
        Each event with its group.
    """

    def __init__(self, axes: MeshAxes):
        self.axes = axes
        self.states: list[FSDPState] = []
        self.events: list[tuple[str, str]] = []
        self._initialized = False
        self._pass = 0
        self._backward = False
        self._collected: set[tuple[int, bool, int]] = set()
        self._started: dict[tuple[int, bool, int], tuple[Request, np.ndarray]] = {}

    @property
    def communicator(self) -> Communicator:
        """What carries the messages."""
        return self.axes.communicator

    def enter(self, event: str, state: FSDPState) -> None:
        """Note an event."""
        if len(self.events) >= MOST_EVENTS:
            del self.events[: MOST_EVENTS // 2]
        self.events.append((event, state.group))
        state.enter(event)

    def begin(self) -> int:
        """Begin a forward pass, and return its number."""
        self._settle()
        if not self._initialized:
            self._initialized = True
            self.enter("lazy_init", self.states[0])
        self._pass += 1
        self._backward = False
        self.enter("pre_forward", self.states[0])
        return self._pass

    def end_forward(self, group: Group, reshard: bool) -> None:
        """Note that a group is not needed any more, for now."""
        self.enter("post_forward", group.state)
        if reshard:
            self.enter("reshard", group.state)

    def _settle(self) -> None:
        """Wait for messages that no one has asked for: those of a pass that an error ended."""
        for request, _ in self._started.values():
            request.settle()
        self._started.clear()
        self._collected.clear()

    def _forget(self, group: Group) -> None:
        """Drop what was collected for the backward pass of a group that did not need it."""
        for key in [key for key in self._started if key[1] and key[2] == group.index]:
            self._started.pop(key)[0].settle()

    # --- messages ---------------------------------------------------------------------------------------------

    def collect(
        self,
        number: int,
        again: bool,
        message: tuple[Group, Sequence[np.ndarray]],
        following: Sequence[tuple[Group, Sequence[np.ndarray]]],
        outs: Sequence[np.ndarray],
    ) -> None:
        """Write the whole arrays of a group to `outs`, and start to collect the groups that follow."""
        group, rows = message
        key = number, again, group.index
        if key in self._collected:  # the same pass is run once more
            self._settle()
        if again:
            self._begin_backward()
            self.enter("pre_backward", group.state)
        elif not group.state.is_root:
            self.enter("pre_forward", group.state)
        self._collected.add(key)
        if key not in self._started:
            self._start(key, group, rows)
        request, whole = self._started.pop(key)
        request.wait()
        unpack(whole, group.rows, rows, outs)
        del request, whole
        for other, theirs in following:
            key = number, again, other.index
            if key not in self._collected and key not in self._started:
                self._start(key, other, theirs)

    def _begin_backward(self) -> None:
        if not self._backward:
            self._backward = True
            self.enter("pre_backward", self.states[0])

    def _start(self, key: tuple[int, bool, int], group: Group, rows: Sequence[np.ndarray]) -> None:
        self.enter("all_gather", group.state)
        send = sent(group.rows, rows, group.ways.param)
        whole = np.empty((self.axes.size, send.size), group.ways.param)
        self._started[key] = self.communicator.start("all_gather", send, whole), whole

    def reduce(
        self,
        group: Group,
        cotangents: Sequence[np.ndarray],
        outs: Sequence[np.ndarray],
        ways: Ways,
        last: bool,
    ) -> None:
        """Write the sums over ranks of this rank's rows to `outs`."""
        self._begin_backward()
        self.enter("post_backward", group.state)
        if not group.state.is_root:
            self.enter("reshard", group.state)
        self.enter("reduce_scatter", group.state)
        self._forget(group)
        reduce_rows(self.communicator, group.rows, cotangents, outs, ways)
        if last:
            self.enter("final_callback", self.states[0])
            for state in self.states:
                state.training_state = type(state.training_state).IDLE


def unpack(
    whole: np.ndarray, rows: Sequence[int | None], arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray]
) -> None:
    """Whole arrays from what all ranks sent, without padding; numbers are each rank's."""
    at = 0
    for n, x, out in zip(rows, arrays, outs, strict=True):
        if n is None:
            np.copyto(out, x, casting="unsafe")
            continue
        part = whole[:, at : at + x.size].reshape(-1, *x.shape[1:])
        np.copyto(out, part[:n])
        at += x.size


def sent(rows: Sequence[int | None], arrays: Sequence[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """What a rank sends of its rows: one flat buffer."""
    flat = [x.reshape(-1).astype(dtype, copy=False) for n, x in zip(rows, arrays) if n is not None]
    return np.concatenate([np.empty(0, dtype), *flat])


def gather_rows(
    communicator: Communicator,
    rows: Sequence[int | None],
    arrays: Sequence[np.ndarray],
    outs: Sequence[np.ndarray],
    ways: Ways,
) -> None:
    """One message: write the whole arrays to `outs`."""
    send = sent(rows, arrays, ways.param)
    whole = np.empty((communicator.size, send.size), ways.param)
    communicator.all_gather(send, whole)
    unpack(whole, rows, arrays, outs)


def reduce_rows(
    communicator: Communicator,
    rows: Sequence[int | None],
    cotangents: Sequence[np.ndarray],
    outs: Sequence[np.ndarray],
    ways: Ways,
) -> None:
    """One message: the rows of each rank, padded, and the numbers for all."""
    ranks = communicator.size
    send = np.zeros((ranks, sum([x.size for x in outs])), ways.reduce)
    at = 0
    for n, ct, out in zip(rows, cotangents, outs, strict=True):
        part = send[:, at : at + out.size]
        if n is None:
            part[:] = ct.reshape(-1)
        elif out.size:
            each, width = len(out), out.size // len(out)
            for rank in range(ranks):
                own = ct[rank * each : (rank + 1) * each]
                part[rank, : len(own) * width] = own.reshape(-1)
        at += out.size
    recv = np.empty(send.shape[1], ways.reduce)
    communicator.reduce_scatter(send, recv)
    at = 0
    for out in outs:
        np.multiply(recv[at : at + out.size].reshape(out.shape), ways.factor, out=out, casting="unsafe")
        at += out.size


# --- primitives -----------------------------------------------------------------------------------------------


def _collective(**params: Param) -> Effect:
    return Effect.COLLECTIVE


def _once(abstract: Any, into: Any) -> Any:
    """`impl` from `into`; ranks do not wait for each other again while an error is explained."""

    def impl(*arrays: Any, **params: Param) -> tuple[np.ndarray, ...]:
        log = made_before.get()
        if type(log) is Replay and log:
            return tuple(log.popleft())
        arrays = tuple([np.asarray(x, order="C") for x in arrays])
        avals = abstract(*[Aval(x.shape, x.dtype) for x in arrays], **params)
        outs = tuple([np.empty(a.shape, a.dtype) for a in avals])
        into(arrays, outs, **params)
        return outs

    return impl


def _begin(context: CommContext) -> np.int64:
    log = made_before.get()
    if type(log) is Replay and log:
        return log.popleft()[0]
    return np.int64(context.begin())


#: The number of a forward pass that begins.
begin_p: Primitive = Primitive(
    "begin_forward",
    lambda *, context: Aval((), INT64),
    lambda *, context: _begin(context),
    batch=lambda size, args, dims, *, context: (begin_p.bind(context=context), None),
    effects=_collective,
)


def _end(number: Any, *values: PyTree, group: Group, reshard: bool) -> np.int64:
    if type(made_before.get()) is not Replay:
        group.context.end_forward(group, reshard)
    return np.int64(number)


def _end_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Param) -> tuple[Any, Any]:
    number = end_p.bind(*primals, **params)
    return number, Zero(number)


#: The end of a group's forward pass: the number of the pass again, once these values are there. What is collected next
#: takes it, so that compiled programs do not collect all groups first.
end_p: Primitive = Primitive(
    "end_forward",
    lambda number, *values, group, reshard: number,
    _end,
    jvp=_end_jvp,
    batch=lambda size, args, dims, **params: (end_p.bind(*args, **params), None),
    effects=_collective,
)


def _whole_avals(group: Group, rows: Sequence[Aval], ways: Ways) -> tuple[Aval, ...]:
    whole = [x.shape if n is None else (n, *x.shape[1:]) for x, n in zip(rows, group.rows, strict=True)]
    return tuple([Aval(shape, ways.param) for shape in whole])


def _row_avals(group: Group, whole: Sequence[Aval], ways: Ways) -> tuple[Aval, ...]:
    ranks = group.context.axes.size
    rows = [
        x.shape if n is None else (rows_each(n, ranks), *x.shape[1:])
        for x, n in zip(whole, group.rows, strict=True)
    ]
    return tuple([Aval(shape, ways.master) for shape in rows])


def _batched(
    prim: Primitive, size: int, args: Sequence[Any], dims: Sequence[int | None], **params: Param
) -> Any:
    """One message for all examples: the batch axis goes last, where rows keep their place."""
    last = [x if d is None else move_axis(x, d, len(shape_of(x)) - 1) for x, d in zip(args, dims)]
    outs = prim.bind(*last, **params)
    skip = len(args) - len(outs) if prim is not gather_p else 1
    mapped = dims[skip : skip + len(outs)]
    return outs, [None if d is None else len(shape_of(x)) - 1 for x, d in zip(outs, mapped)]


def _messages(groups: Sequence[Group], arrays: Sequence[Any]) -> list[tuple[Group, Sequence[Any]]]:
    """Each group with its rows, which follow one another."""
    messages, at = [], 0
    for g in groups:
        messages.append((g, arrays[at : at + len(g.rows)]))
        at += len(g.rows)
    return messages


def _gather_abstract(number: Aval, *arrays: Aval, group: Group, **params: Param) -> tuple[Aval, ...]:
    return _whole_avals(group, arrays[: len(group.rows)], group.ways)


def _gather_into(
    arrays: Sequence[np.ndarray],
    outs: Sequence[np.ndarray],
    *,
    group: Group,
    first: bool,
    ahead: tuple[Group, ...],
    behind: tuple[Group, ...],
    again: bool,
) -> None:
    message, *others = _messages((group, *ahead, *behind), arrays[1:])
    following = others[len(ahead) :] if again else others[: len(ahead)]
    group.context.collect(int(arrays[0]), again, message, following, outs)


def _gather_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, group: Group, first: bool, **params: Param
) -> tuple[Any, Any]:
    outs = gather_p.bind(*primals, group=group, first=first, **params)
    moved = tangents[1 : 1 + len(group.rows)]
    if all(type(t) is Zero for t in moved):
        return outs, [Zero(x) for x in outs]
    return outs, gather_rows_p.bind(*map(instantiate, moved), group=group, ways=group.ways, first=first)


#: Whole arrays from a group's rows: ``(number of the pass, rows, rows of groups ahead, rows of groups behind)``.
gather_p: Primitive = Primitive(
    "gather_group",
    _gather_abstract,
    _once(_gather_abstract, _gather_into),
    into=_gather_into,
    jvp=_gather_jvp,
    batch=lambda *args, **params: _batched(gather_p, *args, **params),
    again=lambda params: {**params, "again": True},
    effects=_collective,
    multiple_results=True,
)


def _gather_rows_abstract(*rows: Aval, group: Group, ways: Ways, first: bool) -> tuple[Aval, ...]:
    return _whole_avals(group, rows, ways)


def _gather_rows_into(
    arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], *, group: Group, ways: Ways, first: bool
) -> None:
    gather_rows(group.context.communicator, group.rows, arrays, outs, ways)


def _scatter_rows_abstract(*whole: Aval, group: Group, ways: Ways, first: bool) -> tuple[Aval, ...]:
    return _row_avals(group, whole, ways)


def _scatter_rows_into(
    arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], *, group: Group, ways: Ways, first: bool
) -> None:
    group.context.reduce(group, arrays, outs, ways, first)


def _linear(name: str, abstract: Any, into: Any, transposed: Any) -> Primitive:
    prim = Primitive(
        name,
        abstract,
        _once(abstract, into),
        into=into,
        jvp=lambda primals, tangents, **params: _linear_jvp(prim, primals, tangents, **params),
        transpose=lambda cts, *args, **params: transposed().bind(*map(instantiate, cts), **params),
        batch=lambda *args, **params: _batched(prim, *args, **params),
        effects=_collective,
        multiple_results=True,
    )
    return prim


def _linear_jvp(
    prim: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **params: Param
) -> tuple[Any, Any]:
    outs = prim.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents):
        return outs, [Zero(x) for x in outs]
    return outs, prim.bind(*map(instantiate, tangents), **params)


#: The whole arrays alone; its transpose multiplies the sum over ranks by the factor of `ways`.
gather_rows_p: Primitive = _linear(
    "gather_rows", _gather_rows_abstract, _gather_rows_into, lambda: scatter_rows_p
)
#: The sums over ranks of each rank's rows, times the factor of `ways`; its transpose is `gather_rows_p`.
scatter_rows_p: Primitive = _linear(
    "scatter_rows", _scatter_rows_abstract, _scatter_rows_into, lambda: gather_rows_p
)
