"""Hooks with ``mode="inline"``: compiled into the backward pass, as set when it is called.

While a backward pass is derived, its hook is unknown: it may be set or replaced at any time before a call. So the
equation `inline_hook` stands for "the hook, whatever it will be". Its derivatives are again this equation, with one
more step to apply to the hook: jvp, transposition or batching. When a program is called, its hooks are traced and put
in; see `traced_hooks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...core.aval import Aval, Zero
from ...core.backward_state import BackwardState, state_of
from ...core.ir import Jaxpr
from ...core.primitive import Effect, Linear, Primitive
from ...core.trace import eval_trace, tracing
from ...core.values import Param, PyTree, Tangent, Value
from ...passes.masks import Mask, chosen, perturbed, scatter, with_zeros
from ...primitives.structure.linear import batched_first, instantiate, zeros
from ...runtime.records import dataclass
from ...transforms.batch import batch
from ...transforms.jvp import jvp
from ...transforms.linearize import linearize
from ...transforms.transpose import backward
from ..bodies.cache import UserCode
from .hook_calls import HookCall

Flat = Callable[..., list[Any]]


# --- what derivatives make of a hook ------------------------------------------------------------------------


@dataclass(frozen=True)
class PushedHook:
    """Forward mode: from primals and the tangents in `mask` to the tangents of the results."""

    mask: Mask

    def avals(
        self, ins: Sequence[Aval], outs: Callable[[Sequence[Aval]], tuple[Aval, ...]]
    ) -> tuple[Aval, ...]:
        """The types of the results."""
        return outs(self.operands(ins))

    def operands(self, ins: Sequence[Aval]) -> Sequence[Aval]:
        """The types that the function itself takes."""
        return ins[: len(self.mask)]

    def applied(self, f: Flat, *values: Value) -> list[Value]:
        """The derived function."""
        primals = values[: len(self.mask)]
        _, tangents = jvp(f, primals, with_zeros(self.mask, values[len(primals) :], primals))
        return [instantiate(t) for t in tangents]


@dataclass(frozen=True)
class PulledHook:
    """Reverse mode in the operands in `mask`, in which the function is linear: from the others and cotangents."""

    mask: Mask
    linear: tuple[Aval, ...]

    def avals(
        self, ins: Sequence[Aval], outs: Callable[[Sequence[Aval]], tuple[Aval, ...]]
    ) -> tuple[Aval, ...]:
        """The types of the results."""
        return self.linear

    def operands(self, ins: Sequence[Aval]) -> Sequence[Aval]:
        """The types that the function itself takes."""
        known, points = iter(ins), iter(self.linear)
        return [next(points) if m else next(known) for m in self.mask]

    def applied(self, f: Flat, *values: Value) -> list[Value]:
        """The derived function."""
        known, points = iter(values), iter(self.linear)
        primals = [zeros(next(points)) if m else next(known) for m in self.mask]
        linearized = linearize(f, primals, self.mask, distinct=False)
        cts = backward(linearized.tape, linearized.tangents, list(known), linearized.inputs)
        return [instantiate(ct) for ct, m in zip(cts, self.mask) if m]


@dataclass(frozen=True)
class BatchedHook:
    """Batching over an axis of the operands; the results have it in front."""

    size: int
    dims: tuple[int | None, ...]

    def avals(
        self, ins: Sequence[Aval], outs: Callable[[Sequence[Aval]], tuple[Aval, ...]]
    ) -> tuple[Aval, ...]:
        """The types of the results."""
        return tuple([a.with_shape((self.size, *a.shape)) for a in outs(self.operands(ins))])

    def operands(self, ins: Sequence[Aval]) -> Sequence[Aval]:
        """The types that the function itself takes."""
        return [
            a if d is None else a.with_shape(a.shape[:d] + a.shape[d + 1 :]) for a, d in zip(ins, self.dims)
        ]

    def applied(self, f: Flat, *values: Value) -> list[Any]:
        """The derived function."""
        outs, dims = batch(f, self.size, values, self.dims)
        return [batched_first(self.size, x, d) for x, d in zip(outs, dims)]


@dataclass(frozen=True)
class InlineHook(UserCode):
    """A hook, with the derivatives to take of it.

    Attributes
    ----------
    call : HookCall
    steps : tuple of PushedHook, PulledHook or BatchedHook
        The steps, in the order of application.
    traced : Jaxpr or None
        What the hook computes, where a `jit` around the backward pass has traced it.
    """

    call: HookCall
    steps: tuple[PushedHook | PulledHook | BatchedHook, ...] = ()
    traced: Jaxpr | None = None

    def then(self, step: PushedHook | PulledHook | BatchedHook) -> InlineHook:
        """The same with one more step."""
        return replace(self, steps=(*self.steps, step))

    def avals(self, ins: Sequence[Aval]) -> tuple[Aval, ...]:
        """The types of the results."""
        if not self.steps:
            return self.call.results(ins)
        *before, last = self.steps
        return last.avals(ins, InlineHook(self.call, tuple(before)).avals)

    def operands(self, ins: Sequence[Aval]) -> Sequence[Aval]:
        """The types that the hook itself takes, of those that the equation takes."""
        for step in reversed(self.steps):
            ins = step.operands(ins)
        return ins

    def own(self, state: BackwardState | None) -> Flat:
        """The hook itself, as set now."""
        return lambda *values: self.call.direct(values, state)

    def derived(self, f: Flat) -> Flat:
        """What the equation stands for, where `f` is the hook itself."""
        for step in self.steps:
            f = partial(step.applied, f)
        return f

    def split(self, args: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The operands, and the state."""
        count = len(args) - self.call.hook.late
        return args[:count], args[count:]

    def run(self, args: Sequence[Value]) -> list[Value]:
        """The results, computed on the host."""
        values, state = self.split(args)
        f = self.derived(self.own(state_of(state[0]) if state else None))
        return tracing(eval_trace, f, *values)


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, hook: InlineHook, **params: Param
) -> tuple[Any, Tangent]:
    values, state = hook.split(primals)
    ts = tangents[: len(values)]
    mask = perturbed(ts)
    outs = inline_hook_p.bind(*primals, hook=hook, **params)
    if not any(mask):
        return outs, [Zero(x) for x in outs]
    pushed = hook.then(PushedHook(mask))
    return outs, inline_hook_p.bind(*values, *chosen(ts, mask), *state, hook=pushed, **params)


def _transpose(cts: Sequence[Tangent], *args: PyTree, hook: InlineHook, **params: Param) -> list[Tangent]:
    values, state = hook.split(args)
    mask = tuple([type(a) is Linear for a in values])
    known = [a for a in values if type(a) is not Linear]
    avals = tuple([a.aval for a in values if type(a) is Linear])
    pulled = hook.then(PulledHook(mask, avals))
    results = inline_hook_p.bind(*known, *map(instantiate, cts), *state, hook=pulled, **params)
    return [*scatter(mask, results), *[None] * len(state)]


def _batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, hook: InlineHook, **params: Param
) -> tuple[Any, Any]:
    values, _ = hook.split(args)
    batched = hook.then(BatchedHook(size, tuple(dims[: len(values)])))
    outs = inline_hook_p.bind(*args, hook=batched, **params)
    return outs, (0,) * len(outs)


#: Apply a hook, or its derivative, to cotangents; on the host (`host`) if it cannot be compiled.
inline_hook_p: Primitive = Primitive(
    "inline_hook",
    lambda *avals, hook, host: hook.avals(hook.split(avals)[0]),
    lambda *args, hook, host: hook.run(args),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    effects=lambda *, hook, host: Effect.HOST if host else Effect.HOOK,
    multiple_results=True,
    show=lambda *, hook, host: ", ".join(
        [
            f"hook={hook.call.hook.name}",
            *[type(s).__name__.removesuffix("Hook").lower() for s in hook.steps],
            *["host"] * host,
        ]
    ),
)
