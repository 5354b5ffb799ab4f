"""Hooks on cotangents: what is attached to values, and the primitives that carry it.

::

    forward pass     x' = hook x              the identity: kernels do not see it
    tangents         t' = hook t              the identity, on the tape of reverse mode
    backward pass    ct = run_hook ct'        a host call, where it is compiled; elsewhere the function itself

Hooks belong to values: a hook stands in the primal program and in the linear one, so that second derivatives meet it
again. A hook that sees several cotangents stands where the first of its values is defined, and gives out *tokens*,
linear values that are zero; the other values take one each (`note`). The cotangent of a token is that of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..arrays.array import Array, read_only_copy, unwrap, wrap
from ..core.aval import Aval, Zero, aval_of
from ..core.backward_state import BackwardState, hook_runs, hooks_of, state_of
from ..core.context import run_with
from ..core.dtypes import is_inexact
from ..core.errors import ArgumentError, DtypeError, HookError, NoRuleError
from ..core.primitive import CallRules, Effect, Linear, Primitive
from ..core.source import Source, replayed
from ..core.trace import Tracer, current_trace, eval_trace, tracing
from ..frontend.arguments import value_of
from ..passes.masks import perturbed
from ..primitives.structure.linear import batched_first, instantiate, move_axis, zeros
from ..transforms.batch import batch
from ..transforms.stage import stage
from .body_cache import UserCode, lasting
from .callback import HOOK_NOTE, PYTHON_RANKS, Replay, made_before

Lanes = tuple[tuple[int, tuple[int | None, ...]], ...]


@dataclass(eq=False)
class Hook(UserCode):
    """One registration of a function that sees cotangents.

    Attributes
    ----------
    function : callable or None
        None where `member` names it.
    state : BackwardState or None
        Where `member` is looked up; None where the state is an operand.
    member : str or None
    mode : str
        ``"host"`` or ``"inline"``.
    source : Source or None
        The user's line.
    active : bool
        Whether it has not been removed.
    size : int
        How many values it is attached to.
    """

    function: Callable[..., Any] | None
    state: BackwardState | None
    member: str | None
    mode: str
    source: Source | None
    active: bool = True
    size: int = 1
    label = "cotangent_hook"
    #: Whether it must run behind all others of a backward pass.
    last = False
    #: Whether what it returns does not matter.
    observes = False
    #: Whether it only gets the cotangent that is complete first.
    first_only = False
    #: Whether it gets zeros for cotangents that are zero; otherwise None.
    dense = False

    @property
    def late(self) -> bool:
        """Whether the state is an operand."""
        return self.member is not None and self.state is None

    @property
    def name(self) -> str:
        """The name of the hook, for messages and printing."""
        if self.member is not None:
            return self.member
        found = getattr(self.function, "__name__", None)
        return found if isinstance(found, str) else type(self.function).__name__

    def __repr__(self) -> str:
        return self.name

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """Whether it holds nothing that dies before the process, and cannot be removed."""
        return type(self) is Hook and (self.late or (self.function is not None and lasting(self.function)))

    def _key(self) -> Hashable:
        if not self.shared:
            return id(self)
        return id(self.function), self.member, self.mode, self.source

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def functions(self, state: BackwardState | None) -> Sequence[Callable[..., Any]]:
        """The functions to call, as they are set now."""
        if self.function is not None:
            return (self.function,)
        assert self.member is not None
        found = state if self.state is None else self.state
        assert found is not None
        return hooks_of(found, self.member, self.source)

    def call(self, f: Callable[..., Any], cts: Sequence[Any]) -> Sequence[Any]:
        """What a user's function makes of the cotangents of all values: for each another one, or None to keep it."""
        return [f(cts[0])]

    def place(self, k: int) -> str:
        """How messages name the `k`-th result."""
        return ""

    def run(
        self, functions: Sequence[Callable[..., Any]], values: Sequence[Any], avals: Sequence[Aval | None]
    ) -> list[Any]:
        """The cotangents behind the hook.

        Parameters
        ----------
        functions : sequence of callables
        values : sequence
            Arrays, numbers, tracers, or None for a cotangent that is zero.
        avals : sequence of Aval
            None for a value that is not differentiated.
        """
        cts = [None if x is None else wrap(read_only_copy(x)) for x in values]
        for f in functions:
            try:
                found = run_with(hook_runs, True, self.call, f, cts)
            except Exception as error:
                self.explain(error, next(a for a in avals if a is not None))
                raise
            for k, new in enumerate(() if self.observes else found):
                aval = avals[k]
                if new is not None and cts[k] is not None and aval is not None:
                    cts[k] = self._checked(new, aval, k)
        return [unwrap(x) for x in cts]

    def explain(self, error: Exception, aval: Aval) -> None:
        """Note on an exception of the user's which hook raised it."""
        at = "" if self.source is None else f", registered\n  at {self.source.describe()}"
        error.add_note(f"{HOOK_NOTE}'{self.name}' of {_type(aval)} ({self.label}){at}")

    def _checked(self, new: Any, aval: Aval, k: int) -> Any:
        """A cotangent that a hook returned, in the type of that which it got."""
        kind = type(new)
        if kind in PYTHON_RANKS and not aval.shape and aval.dtype.kind in PYTHON_RANKS[kind]:
            return wrap(np.array(new, aval.dtype))
        if kind in PYTHON_RANKS:
            new = np.asarray(new)
        try:
            value = value_of(new, lambda: "the result")
        except (ArgumentError, DtypeError):
            self._fail(
                f"must return an array or None, but returned {str(new)[:40]!r} of type {kind.__name__}{self.place(k)}"
            )
        own = aval_of(value)
        if own.shape != aval.shape:
            self._fail(
                f"has changed the size of value: it got {_type(aval)} and returned {_type(own)}{self.place(k)}. "
                "Return an array of the shape that it gets, or None to keep that"
            )
        if own.dtype != aval.dtype and not (own.weak and own.dtype.kind == aval.dtype.kind):
            self._fail(
                f"has changed the type of value: it got {_type(aval)} and returned {_type(own)}{self.place(k)}. "
                f"Convert the result: .astype({str(aval.dtype)!r})"
            )
        if isinstance(value, Tracer):
            return value
        return new if kind is Array else wrap(read_only_copy(np.asarray(value, aval.dtype)))

    def _fail(self, problem: str) -> NoReturn:
        raise HookError(f"{self.label}: the hook '{self.name}' {problem}", self.source)


class MultiHook(Hook):
    """A hook that sees the cotangents of several values, once all of them are complete."""

    label = "register_multi_grad_hook"
    observes = True

    def call(self, f: Callable[..., Any], cts: Sequence[Any]) -> Sequence[Any]:
        """The function gets the list of cotangents."""
        f(list(cts))
        return ()


class FirstHook(Hook):
    """A hook that sees the first of several cotangents that is complete."""

    label = "register_multi_grad_hook"
    observes = True
    first_only = True

    def call(self, f: Callable[..., Any], cts: Sequence[Any]) -> Sequence[Any]:
        """The function gets the only one."""
        f(cts[0])
        return ()


class PostAccumulateHook(Hook):
    """A hook that sees the gradient of an argument when it is final."""

    label = "post_accumulate_hook"
    last = True
    observes = True

    def call(self, f: Callable[..., Any], cts: Sequence[Any]) -> Sequence[Any]:
        """The function gets the gradient, and returns None."""
        found = f(cts[0])
        if found is not None:
            self._fail(
                f"must return None, but returned an object of type {type(found).__name__}: the gradient is final. Use "
                "register_hook to replace it"
            )
        return ()


def _type(aval: Aval) -> str:
    return f"{aval.dtype}{list(aval.shape)}"


# --- running ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HookCall(UserCode):
    """A hook with what is needed to run it on the cotangents that are there.

    Attributes
    ----------
    hook : Hook
    avals : tuple of Aval
        Of all values, in the order of the hook, without mapped axes.
    given : tuple of bool
        Which of them have a cotangent among the operands; those without are None.
    passing : tuple of bool
        Which of the first ones have a result.
    lanes : Lanes
    order : tuple of int
        Where each value stands among all that the hook is attached to; the others are not differentiated.
    """

    hook: Hook
    avals: tuple[Aval, ...]
    given: tuple[bool, ...]
    passing: tuple[bool, ...]
    lanes: Lanes
    order: tuple[int, ...] = (0,)

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """As of the hook."""
        return self.hook.shared

    def results(self, operands: Sequence[Aval]) -> tuple[Aval, ...]:
        """The types of the results, which are those of operands."""
        if self.hook.observes:
            return ()
        found = iter(operands)
        return tuple([next(found) for p in self.passing if p])

    def direct(self, values: Sequence[Any], state: BackwardState | None) -> list[Any]:
        """Run it on values of the current trace; under mapped axes once, on a traced example."""
        if not self.hook.active:
            return list(values)[: len(self.results(list(map(aval_of, values))))]
        functions = self.hook.functions(state)
        return self._mapped(functions, values, [(n, self._of_given(dims)) for n, dims in self.lanes])

    def _of_given(self, dims: Sequence[int | None]) -> list[int | None]:
        return [d for d, g in zip(dims, self.given) if g]

    def _mapped(self, functions: Any, values: Sequence[Any], lanes: Sequence[tuple[int, Any]]) -> list[Any]:
        if not lanes:
            return self._once(functions, values)
        (size, dims), *inner = lanes
        outs, found = batch(lambda *xs: self._mapped(functions, xs, inner), size, values, dims)
        return [_moved_to(size, x, d, to) for x, d, to in zip(outs, found, dims)]

    def _once(self, functions: Any, values: Sequence[Any]) -> list[Any]:
        hook, given = self.hook, iter(values)
        cts: list[Any] = [None] * hook.size
        avals: list[Aval | None] = [None] * hook.size
        for place, g, aval in zip(self.order, self.given, self.avals):
            cts[place], avals[place] = next(given) if g else None, aval
        found = hook.run(functions, cts, avals)
        if hook.observes:
            return []
        return [found[place] for place, p in zip(self.order, self.passing) if p]

    def on_host(self, *operands: Any) -> list[Any]:
        """Run it on numbers, for each lane; the last operand is the state where the hook needs it."""
        log = made_before.get()
        if type(log) is Replay and log:
            return log.popleft()
        hook = self.hook
        state = None
        if hook.late:
            *operands, number = operands  # type: ignore[assignment]
            state = state_of(number)
        if not hook.active:
            return list(operands[: 0 if hook.observes else sum(self.passing)])
        functions = hook.functions(state)
        lanes = [(n, self._of_given(dims)) for n, dims in self.lanes]
        # By NumPy, as if no transformation were under way.
        return run_with(replayed, None, tracing, eval_trace, self._each_lane, functions, operands, lanes)

    def _each_lane(
        self, functions: Any, values: Sequence[Any], lanes: Sequence[tuple[int, Any]]
    ) -> list[Any]:
        if not lanes:
            return self._once(functions, values)
        (size, dims), *inner = lanes
        rows = []
        for i in range(size):
            row = [x if d is None else x[(*[slice(None)] * d, i)] for x, d in zip(values, dims)]
            rows.append(self._each_lane(functions, row, inner))
        if not size:
            return [x.copy() for x in values[: 0 if self.hook.observes else sum(self.passing)]]
        return [np.stack(column, axis=d) for column, d in zip(zip(*rows), dims)]


def _moved_to(size: int, x: Any, dim: int | None, wanted: int | None) -> Any:
    return x if wanted is None else move_axis(batched_first(size, x, dim), 0, wanted)


def _run_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: HookCall) -> tuple[Any, Any]:
    if not call.hook.observes and any(type(t) is not Zero for t in tangents):
        raise NoRuleError(
            f"{call.hook.label}: the hook '{call.hook.name}' runs as Python between two kernels, so it has no "
            'derivative: a second derivative of compiled code needs mode="inline", which compiles the hook',
            call.hook.source,
        )
    outs = run_hook_p.bind(*primals, call=call)
    return outs, [Zero(x) for x in outs]


def _run_batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None], *, call: HookCall
) -> tuple[Any, Any]:
    count = len(args) - call.hook.late
    values = [batched_first(size, x, d) for x, d in zip(args[:count], dims)]
    whole = tuple([0 if g else None for g in call.given])
    lanes = ((size, whole), *call.lanes)
    outs = run_hook_p.bind(*values, *args[count:], call=replace(call, lanes=lanes))
    return outs, (0,) * len(outs)


def _show_call(*, call: HookCall) -> str:
    lanes = f", lanes={tuple(size for size, _ in call.lanes)}" if call.lanes else ""
    return f"hook={call.hook.name}{lanes}"


#: The cotangents behind a hook, from those that it sees: in compiled code a call of Python.
run_hook_p: Primitive = Primitive(
    "run_hook",
    lambda *avals, call: call.results(avals),
    lambda *args, call: call.on_host(*args),
    jvp=_run_jvp,
    batch=_run_batch,
    effects=lambda **params: Effect.HOST,
    multiple_results=True,
    show=_show_call,
)


# --- the hook in forward programs ---------------------------------------------------------------------------


def _abstract(
    *avals: Aval, hook: Hook, tokens: tuple[Aval, ...], lanes: Lanes, order: tuple[int, ...]
) -> tuple[Aval, ...]:
    return (*avals[: len(avals) - hook.late], *tokens)


def _impl(
    *args: Any, hook: Hook, tokens: tuple[Aval, ...], lanes: Lanes, order: tuple[int, ...]
) -> list[Any]:
    return [*args[: len(args) - hook.late], *map(zeros, tokens)]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """Forward mode: tangents are not cotangents."""
    outs = hook_p.bind(*primals, **params)
    count = len(outs) - len(params["tokens"])
    return outs, [*tangents[:count], *[Zero(x) for x in outs[count:]]]


def _linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    outs = hook_p.bind(*primals, **params)
    mask = perturbed(tangents)
    if not any(mask):
        return outs, [Zero(x) for x in outs]
    # A value without a tangent stands in its own place: it gets no cotangent.
    pushed = hook_p.bind(*[x if type(t) is Zero else t for x, t in zip(primals, tangents)], **params)
    count = len(outs) - len(params["tokens"])
    return outs, [t if i >= count or mask[i] else Zero(t) for i, t in enumerate(pushed)]


def _transpose(
    cts: Sequence[Any], *args: Any, hook: Hook, tokens: tuple[Aval, ...], lanes: Lanes, order: tuple[int, ...]
) -> list[Any]:
    count = len(args) - hook.late
    linear = [type(a) is Linear for a in args[:count]]
    found: list[Any] = []
    for i, ct in enumerate(cts):
        wanted = linear[i] if i < count else is_inexact(ct.dtype)
        found.append(instantiate(ct) if wanted and (hook.dense or type(ct) is not Zero) else None)
    given = [ct is not None for ct in found]
    passing = tuple([g and m for g, m in zip(given, linear)])
    avals = [_without(lanes, aval_of(ct), i) for i, ct in enumerate(cts)]
    call = HookCall(hook, tuple(avals), tuple(given), passing, lanes, order)
    values = [ct for ct in found if ct is not None]
    state = args[count:]
    outs = _run(call, values, state)
    if hook.observes:
        return [*[ct if m else None for ct, m in zip(cts, linear)], *[None] * len(state)]
    rest = iter(outs)
    return [*[next(rest) if p else None for p in passing], *[None] * len(state)]


def _run(call: HookCall, values: Sequence[Any], state: Sequence[Any]) -> list[Any]:
    """Run a hook now, or have the program run it that is being written."""
    if not _staged():
        return call.direct(values, state[0] if state else None)
    return run_hook_p.bind(*values, *state, call=call)


def _without(lanes: Lanes, aval: Aval, i: int) -> Aval:
    """The type of one lane."""
    shape = list(aval.shape)
    for _, dims in lanes:
        d = dims[i]
        if d is not None:
            del shape[d]
    return Aval(tuple(shape), aval.dtype)


def _staged() -> bool:
    """Whether what is bound now becomes part of a program."""
    trace = current_trace.get()
    while trace is not eval_trace:
        if trace.stages:
            return True
        trace = trace.parent
    return False


def _batch(
    size: int,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    hook: Hook,
    tokens: tuple[Aval, ...],
    lanes: Lanes,
    order: tuple[int, ...],
) -> tuple[Any, Any]:
    """Each lane has a hook of its own, also where a value is the same in all."""
    count = len(args) - hook.late
    values = [batched_first(size, x, None) if d is None else x for x, d in zip(args[:count], dims)]
    where = tuple([0 if d is None else d for d in dims[:count]] + [0] * len(tokens))
    outs = hook_p.bind(
        *values,
        *args[count:],
        hook=hook,
        tokens=tuple([a.with_shape((size, *a.shape)) for a in tokens]),
        lanes=((size, where), *lanes),
        order=order,
    )
    return outs, where


def _same(*avals: Aval, **params: Any) -> Any:
    """The program of a hook in which nothing is differentiated."""
    return stage(partial(_impl, **params), avals, "hook")


def _show(*, hook: Hook, tokens: tuple[Aval, ...], lanes: Lanes, order: tuple[int, ...]) -> str:
    parts = [f"hook={hook.name}"]
    if lanes:
        parts.append(f"lanes={tuple(size for size, _ in lanes)}")
    return ", ".join(parts)


#: The operands, whose cotangents pass through a hook; and tokens. Kernels do not see it.
hook_p: Primitive = Primitive(
    "hook",
    _abstract,
    _impl,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    effects=lambda **params: Effect.HOOK,
    multiple_results=True,
    call=CallRules(opaque=True, expand=_same),
    moves_data=True,
    each_lane=True,
    show=_show,
)


def _note_linearize(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    out = note_p.bind(*primals)
    t, token = tangents
    if type(t) is Zero or type(token) is Zero:
        return out, t
    return out, note_p.bind(t, token)


def _note_batch(size: int, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
    return note_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)]), 0


#: The first operand, of which a hook sees the cotangent by that of the second, a token.
note_p: Primitive = Primitive(
    "note",
    lambda x, token: x,
    lambda x, token: x,
    jvp=lambda primals, tangents: (note_p.bind(*primals), tangents[0]),
    linearize=_note_linearize,
    transpose=lambda ct, x, token: [ct if type(a) is Linear else None for a in (x, token)],
    batch=_note_batch,
    effects=lambda **params: Effect.HOOK,
    call=CallRules(opaque=True, expand=lambda x, token: stage(lambda a, b: [a], (x, token), "note")),
    moves_data=True,
)


# --- the first of several cotangents ------------------------------------------------------------------------


def _first_linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    outs = first_p.bind(*primals, **params)
    x, token, *state = primals
    t, token_t = tangents[:2]
    if type(t) is Zero and type(token_t) is Zero:
        return outs, [Zero(o) for o in outs]
    operands = [x if type(t) is Zero else t, token if type(token_t) is Zero else token_t]
    pushed = first_p.bind(*operands, *state, **params)
    return outs, [t if type(t) is Zero else pushed[0], pushed[1]]


def _first_transpose(
    cts: Sequence[Any], x: Any, token: Any, *state: Any, hook: Hook, lanes: Lanes
) -> list[Any]:
    """The cotangent of a token is not zero if the hook has run: of values that are defined later."""
    ct, done = cts
    ran = type(done) is not Zero
    if not ran and type(ct) is not Zero and type(x) is Linear:
        _run(HookCall(hook, (_without(lanes, aval_of(ct), 0),), (True,), (True,), lanes), [ct], state)
        ran = True
    marker = zeros(token.aval) if ran and type(token) is Linear else None
    return [ct if type(x) is Linear else None, marker, *[None] * len(state)]


def _first_batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None], *, hook: Hook, lanes: Lanes
) -> tuple[Any, Any]:
    x = batched_first(size, args[0], dims[0])
    outs = first_p.bind(x, *args[1:], hook=hook, lanes=((size, (0,)), *lanes))
    return outs, (0, None)


#: The first operand, whose cotangent a hook sees unless it has seen that of a value defined later; and a token.
first_p: Primitive = Primitive(
    "first_hook",
    lambda x, token, *state, hook, lanes: (x, token.strong()),
    lambda x, token, *state, hook, lanes: [x, np.float64(token)],
    jvp=lambda primals, tangents, **params: (first_p.bind(*primals, **params), tangents[:2]),
    linearize=_first_linearize,
    transpose=_first_transpose,
    batch=_first_batch,
    effects=lambda **params: Effect.HOOK,
    multiple_results=True,
    call=CallRules(
        opaque=True, expand=lambda *avals, hook, lanes: stage(lambda x, token, *_: [x, token], avals, "hook")
    ),
    moves_data=True,
    each_lane=True,
    show=lambda *, hook, lanes: f"hook={hook.name}",
)
