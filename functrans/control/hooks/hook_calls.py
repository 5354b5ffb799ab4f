"""A hook, and how it runs: directly on values of the current trace, or as a host call in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from ...arrays.array import Array, read_only_copy, unwrap, wrap
from ...core import dtype_kind
from ...core.aval import Aval, Zero, aval_of
from ...core.backward_state import BackwardState, hook_runs, hooks_of, state_of
from ...core.debug_nans import debug_nans_active, describe, has_nan
from ...core.primitive import Effect, Primitive
from ...core.trace import Tracer, current_trace, eval_trace, tracing
from ...core.values import ArrayLike, PyTree, Tangent, Value
from ...errors import ArgumentError, DtypeError, HookError, NaNError, NoRuleError, UnexpectedTracerError
from ...errors.source import Source, replayed
from ...frontend.arguments import value_of
from ...primitives.elementwise.arithmetic import convert, convert_element_type_p
from ...primitives.structure.linear import batched_first, move_axis
from ...runtime.context import run_with
from ...runtime.records import dataclass
from ...transforms.batch import batch
from ...transforms.substituted import Capture, SubstitutedTrace
from ..bodies.cache import UserCode, lasting
from ..callbacks.callback import HOOK_NOTE, PYTHON_RANKS, Replay, made_before

Lanes = tuple[tuple[int, tuple[int | None, ...]], ...]


@dataclass(eq=False)
class Hook(UserCode):
    """One registration of a function that sees cotangents.

    Attributes
    ----------
    function : callable or None
        The function; None if `member` names it.
    state : BackwardState or None
        The state in which to look up `member`; None if the state is an operand.
    member : str or None
    mode : str
        ``"host"`` or ``"inline"``.
    source : Source or None
        The user's line.
    active : bool
        Whether it is still registered.
    size : int
        The number of values that it is attached to.
    captures : tuple of Capture
        The traced values that its function captured, which are operands of its equations.
    """

    function: Callable[..., PyTree] | None
    state: BackwardState | None
    member: str | None
    mode: str
    source: Source | None
    active: bool = True
    size: int = 1
    captures: tuple[Capture, ...] = ()
    label = "cotangent_hook"
    #: Whether it is registered for many calls, and so cannot read values of one.
    outlives = False
    #: Whether it must run after all other hooks of a backward pass.
    last = False
    #: Whether its result is ignored.
    observes = False
    #: Whether it receives only the cotangent that is complete first.
    first_only = False
    #: Whether it runs on any of its values alone, if the others are not differentiated.
    dense = False

    @property
    def late(self) -> bool:
        """Whether the state is an operand."""
        return self.member is not None and self.state is None

    @property
    def extra(self) -> int:
        """How many operands of its equations are not cotangents: what it captured, then the state."""
        return len(self.captures) + self.late

    @property
    def name(self) -> str:
        """The name of the hook, for messages and printing."""
        if self.member is not None:
            return self.member
        name = getattr(self.function, "__name__", None)
        return name if isinstance(name, str) else type(self.function).__name__

    def __repr__(self) -> str:
        return self.name

    @property
    def removable(self) -> bool:
        """Whether its registration has a handle."""
        return type(self) is not Hook

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """Whether it holds nothing that dies before the process, and cannot be removed."""
        return not self.removable and (self.late or (self.function is not None and lasting(self.function)))

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
        holder = state if self.state is None else self.state
        assert holder is not None
        return hooks_of(holder, self.member, self.source)

    def call(self, f: Callable[..., PyTree], cts: Sequence[Any]) -> Sequence[Value]:
        """Call a user's function on the cotangents of all values; it returns a new one for each, or None to keep it."""
        return [f(cts[0])]

    def place(self, k: int) -> str:
        """The name of the `k`-th result in messages."""
        return ""

    def run(
        self,
        functions: Sequence[Callable[..., Any]],
        values: Sequence[Any],
        avals: Sequence[Aval | None],
        captured: Sequence[Any] = (),
    ) -> list[Any]:
        """The cotangents after the hook.

        Parameters
        ----------
        functions : sequence of callables
        values : sequence
            Arrays, numbers, tracers, or None for a cotangent that is zero.
        avals : sequence of Aval
            None for a value that is not differentiated.
        captured : sequence
            The values of what its function captured.
        """
        cts = [None if x is None else wrap(read_only_copy(x)) for x in values]
        for f in functions:
            try:
                returned = self._called(f, cts, captured)
            except UnexpectedTracerError:
                raise self._unknown() from None
            except Exception as error:
                self.explain(error, next(a for a in avals if a is not None))
                raise
            for k, new in enumerate(() if self.observes else returned):
                aval = avals[k]
                if new is not None and cts[k] is not None and aval is not None:
                    cts[k] = self._checked(new, aval, k)
        return [unwrap(x) for x in cts]

    def _called(self, f: Callable[..., PyTree], cts: Sequence[Any], captured: Sequence[Any]) -> Sequence[Any]:
        if not self.captures:
            return run_with(hook_runs, True, self.call, f, cts)
        values = [_as_captured(c, x) for c, x in zip(self.captures, captured)]
        trace = SubstitutedTrace(current_trace.get(), self.captures, values)
        returned = run_with(hook_runs, True, tracing, trace, self.call, f, cts)
        return [trace.lower(x) for x in returned]

    def _unknown(self) -> Exception:
        """The error for a traced value that the hook read, and that was not found in it."""
        if self.outlives:
            return UnexpectedTracerError(
                f"{self.label}: the hook '{self.name}' of a block reads a traced value. It stays on the block for all "
                "calls, so it cannot read values of one forward pass. Use register_hook or cotangent_hook on an "
                "argument or the result of the call, with a hook that captures the value",
                self.source,
            )
        return UnexpectedTracerError(
            f"{self.label}: the hook '{self.name}' reads a traced value that it did not hold when it was registered. "
            "It may read values of the forward pass that its closure, its defaults, a functools.partial or the object "
            "of its method holds: assign them before you register it, and do not assign others to these variables "
            "later. functools.partial(hook, value) keeps a value",
            self.source,
        )

    def explain(self, error: Exception, aval: Aval) -> None:
        """Add a note to a user's exception that names the hook."""
        at = "" if self.source is None else f", registered\n  at {self.source.describe()}"
        error.add_note(f"{HOOK_NOTE}'{self.name}' of {_type(aval)} ({self.label}){at}")

    def _checked(self, new: ArrayLike, aval: Aval, k: int) -> Any:
        """A cotangent returned by a hook, converted to the type of the one that it received."""
        kind = type(new)
        if kind in PYTHON_RANKS and not aval.shape and dtype_kind(aval.dtype) in PYTHON_RANKS[kind]:
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
        if own.dtype != aval.dtype and not (own.weak and dtype_kind(own.dtype) == dtype_kind(aval.dtype)):
            self._fail(
                f"has changed the type of value: it got {_type(aval)} and returned {_type(own)}{self.place(k)}. "
                f"Convert the result: .astype({str(aval.dtype)!r})"
            )
        if debug_nans_active() and has_nan(value):
            raise NaNError(f"{self.label}: the hook '{self.name}' returned NaN{describe(value)}", self.source)
        if isinstance(value, Tracer):
            return convert(value, aval.dtype)
        return new if kind is Array else wrap(read_only_copy(np.asarray(value, aval.dtype)))

    def _fail(self, problem: str) -> NoReturn:
        raise HookError(f"{self.label}: the hook '{self.name}' {problem}", self.source)


class MultiHook(Hook):
    """A hook on the cotangents of several values; it runs once all of them are complete."""

    label = "register_multi_grad_hook"
    observes = True

    def call(self, f: Callable[..., PyTree], cts: Sequence[Tangent]) -> Sequence[Any]:
        """The function receives the list of cotangents."""
        f(list(cts))
        return ()


class FirstHook(Hook):
    """A hook on several values that runs on the first complete cotangent."""

    label = "register_multi_grad_hook"
    observes = True
    first_only = True

    def call(self, f: Callable[..., PyTree], cts: Sequence[Tangent]) -> Sequence[Any]:
        """The function receives this single cotangent."""
        f(cts[0])
        return ()


class PostAccumulateHook(Hook):
    """A hook on the final gradient of an argument."""

    label = "post_accumulate_hook"
    last = True
    observes = True

    def call(self, f: Callable[..., PyTree], cts: Sequence[Tangent]) -> Sequence[Any]:
        """The function receives the gradient, and returns None."""
        returned = f(cts[0])
        if returned is not None:
            self._fail(
                f"must return None, but returned an object of type {type(returned).__name__}: the gradient is final. "
                "Use register_hook to replace it"
            )
        return ()


def _as_captured(capture: Capture, x: ArrayLike) -> Any:
    """The value of a captured tracer: if that was weak, such as a Python number that `jit` traces, a weak one."""
    if not capture.tracer.aval.weak or aval_of(x).weak:
        return wrap(read_only_copy(x))
    if isinstance(x, Tracer):
        return convert_element_type_p.bind(x, dtype=x.aval.dtype, weak=True)
    return x.item()


def _type(aval: Aval) -> str:
    return f"{aval.dtype}{list(aval.shape)}"


# --- running ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HookCall(UserCode):
    """A hook with the data needed to run it on the available cotangents.

    Attributes
    ----------
    hook : Hook
    avals : tuple of Aval
        The types of all values, in the order of the hook, without mapped axes.
    given : tuple of bool
        Which of them have a cotangent among the operands; the hook receives None for the others.
    passing : tuple of bool
        Which of these have a result.
    lanes : Lanes
    order : tuple of int
        The position of each value among all that the hook is attached to; the others are not differentiated.
    """

    hook: Hook
    avals: tuple[Aval, ...]
    given: tuple[bool, ...]
    passing: tuple[bool, ...]
    lanes: Lanes
    order: tuple[int, ...] = (0,)

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """That of the hook."""
        return self.hook.shared

    def results(self, operands: Sequence[Aval]) -> tuple[Aval, ...]:
        """The types of the results, which equal those of the cotangents among the operands."""
        if self.hook.observes:
            return ()
        avals = iter(operands)
        return tuple([next(avals) for p in self.passing if p])

    def direct(self, values: Sequence[Any], state: BackwardState | None) -> list[Value]:
        """Run it on cotangents and what it captured; under mapped axes once, on a traced example."""
        if not self.hook.active:
            return list(values)[: len(self.results(list(map(aval_of, values))))]
        functions = self.hook.functions(state)
        return self._mapped(functions, values, [(n, self._of_given(dims)) for n, dims in self.lanes])

    def _of_given(self, dims: Sequence[int | None]) -> list[int | None]:
        """Where the axis is in the operands: the cotangents, and what the hook captured."""
        return [*[d for d, g in zip(dims, self.given) if g], *dims[len(self.given) :]]

    def _mapped(
        self, functions: Any, values: Sequence[Value], lanes: Sequence[tuple[int, Any]]
    ) -> list[Value]:
        if not lanes:
            return self._once(functions, values)
        (size, dims), *inner = lanes
        outs, out_dims = batch(lambda *xs: self._mapped(functions, xs, inner), size, values, dims)
        # A hook has a cotangent of each lane, so `to` is never None.
        return [move_axis(batched_first(size, x, d), 0, to) for x, d, to in zip(outs, out_dims, dims)]

    def _once(self, functions: Any, values: Sequence[Value]) -> list[Value]:
        hook, given = self.hook, iter(values)
        cts: list[Tangent] = [None] * hook.size
        avals: list[Aval | None] = [None] * hook.size
        for place, g, aval in zip(self.order, self.given, self.avals):
            cts[place], avals[place] = next(given) if g else None, aval
        new_cts = hook.run(functions, cts, avals, list(given))
        if hook.observes:
            return []
        return [new_cts[place] for place, p in zip(self.order, self.passing) if p]

    def on_host(self, *operands: Value) -> list[Value]:
        """Run it on numbers, once per lane; the last operand is the state, if the hook needs it."""
        log = made_before.get()
        if type(log) is Replay and log:
            return log.popleft()
        hook, state = self.hook, None
        if hook.late:
            *operands, number = operands  # type: ignore[assignment]
            state = state_of(number)
        if not hook.active:
            return list(operands[: 0 if hook.observes else sum(self.passing)])
        functions = hook.functions(state)
        lanes = [(n, self._of_given(dims)) for n, dims in self.lanes]
        # Evaluate with NumPy, outside any transformation.
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


def _run_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, call: HookCall
) -> tuple[Value, Tangent]:
    if not call.hook.observes and any(type(t) is not Zero for t in tangents):
        raise NoRuleError(
            f"{call.hook.label}: the hook '{call.hook.name}' runs as Python between two kernels, so it has no "
            'derivative: a second derivative of compiled code needs mode="inline", which compiles the hook',
            call.hook.source,
        )
    outs = run_hook_p.bind(*primals, call=call)
    return outs, [Zero(x) for x in outs]


def _run_transpose(cts: Sequence[Tangent], *args: Value, call: HookCall) -> Any:
    raise NoRuleError(
        f"{call.hook.label}: the hook '{call.hook.name}' runs as Python on numbers, so the backward pass that it is in "
        "cannot be transposed. Pass mode='inline', if it computes with functrans"
    )


def _run_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, call: HookCall
) -> tuple[Any, Any]:
    count = len(args) - call.hook.extra
    values = [batched_first(size, x, d) for x, d in zip(args[:count], dims)]
    whole = [0 if g else None for g in call.given]
    captured = dims[count : count + len(call.hook.captures)]
    lanes = ((size, (*whole, *captured)), *call.lanes)
    outs = run_hook_p.bind(*values, *args[count:], call=replace(call, lanes=lanes))
    return outs, (0,) * len(outs)


def _show_call(*, call: HookCall) -> str:
    lanes = f", lanes={tuple(size for size, _ in call.lanes)}" if call.lanes else ""
    return f"hook={call.hook.name}{lanes}"


#: The cotangents after a hook, from those before it: in compiled code, a call of Python.
run_hook_p: Primitive = Primitive(
    "run_hook",
    lambda *avals, call: call.results(avals),
    lambda *args, call: call.on_host(*args),
    jvp=_run_jvp,
    transpose=_run_transpose,
    batch=_run_batch,
    effects=lambda **params: Effect.HOST,
    multiple_results=True,
    show=_show_call,
)
