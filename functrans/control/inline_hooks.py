"""Hooks with ``mode="inline"``: compiled into the backward pass, as set when it is called.

While a backward pass is derived, its hook is unknown: it may be set or replaced at any time before a call. So the
equation `inline_hook` stands for "the hook, whatever it will be". Its derivatives are again this equation, with one
more step to apply to the hook: jvp, transposition or batching. Before a program runs, `specialized` replaces these
equations by those of the functions that are set; `guard` says whether another call may reuse the result.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..core.aval import Aval, Zero
from ..core.backward_state import BackwardState, StateAval, state_of
from ..core.context import new_lock
from ..core.errors import BackwardStateError, ConcretizationTypeError
from ..core.ir import Eqn, Jaxpr, has_subjaxprs, subjaxprs
from ..core.primitive import Effect, Linear, Primitive
from ..core.trace import eval_trace, tracing
from ..passes.masks import Mask, chosen, perturbed, scatter, with_zeros
from ..passes.toolkit import inline, map_subjaxprs
from ..primitives.structure.linear import batched_first, instantiate, zeros
from ..transforms.batch import batch
from ..transforms.jvp import jvp
from ..transforms.linearize import linearize
from ..transforms.stage import stage
from ..transforms.transpose import backward
from .body_cache import UserCode
from .hook_calls import HookCall

Flat = Callable[..., list[Any]]


# --- what derivatives make of a hook ------------------------------------------------------------------------


@dataclass(frozen=True)
class PushedHook:
    """Forward mode: from primals and the tangents in `mask` to results and their tangents, or to the tangents alone."""

    mask: Mask
    tangents_only: bool = False

    def avals(
        self, ins: Sequence[Aval], outs: Callable[[Sequence[Aval]], tuple[Aval, ...]]
    ) -> tuple[Aval, ...]:
        """The types of the results."""
        results = outs(ins[: len(self.mask)])
        return results if self.tangents_only else (*results, *results)

    def applied(self, f: Flat, *values: Any) -> list[Any]:
        """The derived function."""
        primals = values[: len(self.mask)]
        outs, tangents = jvp(f, primals, with_zeros(self.mask, values[len(primals) :], primals))
        out_tangents = [instantiate(t) for t in tangents]
        return out_tangents if self.tangents_only else [*outs, *out_tangents]


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

    def applied(self, f: Flat, *values: Any) -> list[Any]:
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
        lane = [
            a if d is None else a.with_shape(a.shape[:d] + a.shape[d + 1 :]) for a, d in zip(ins, self.dims)
        ]
        return tuple([a.with_shape((self.size, *a.shape)) for a in outs(lane)])

    def applied(self, f: Flat, *values: Any) -> list[Any]:
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
    """

    call: HookCall
    steps: tuple[PushedHook | PulledHook | BatchedHook, ...] = ()

    def then(self, step: PushedHook | PulledHook | BatchedHook) -> InlineHook:
        """The same with one more step."""
        return replace(self, steps=(*self.steps, step))

    def avals(self, ins: Sequence[Aval]) -> tuple[Aval, ...]:
        """The types of the results."""
        if not self.steps:
            return self.call.results(ins)
        *before, last = self.steps
        return last.avals(ins, InlineHook(self.call, tuple(before)).avals)

    def flat(self, state: BackwardState | None) -> Flat:
        """The function that it stands for, with the hooks set now."""
        f: Flat = lambda *values: self.call.direct(values, state)  # noqa: E731
        for step in self.steps:
            f = partial(step.applied, f)
        return f

    def split(self, args: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The operands, and the state."""
        count = len(args) - self.call.hook.late
        return args[:count], args[count:]

    def run(self, args: Sequence[Any]) -> list[Any]:
        """The results, computed on the host."""
        values, state = self.split(args)
        return tracing(eval_trace, self.flat(state_of(state[0]) if state else None), *values)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, hook: InlineHook, only: bool = False, **params: Any
) -> tuple[Any, Any]:
    values, state = hook.split(primals)
    ts = tangents[: len(values)]
    mask = perturbed(ts)
    outs = inline_hook_p.bind(*primals, hook=hook, **params)
    if not any(mask):
        return outs, [Zero(x) for x in outs]
    pushed = hook.then(PushedHook(mask, tangents_only=True))
    return outs, inline_hook_p.bind(*values, *chosen(ts, mask), *state, hook=pushed, **params)


def _transpose(cts: Sequence[Any], *args: Any, hook: InlineHook, **params: Any) -> list[Any]:
    values, state = hook.split(args)
    mask = tuple([type(a) is Linear for a in values])
    known = [a for a in values if type(a) is not Linear]
    avals = tuple([a.aval for a in values if type(a) is Linear])
    pulled = hook.then(PulledHook(mask, avals))
    results = inline_hook_p.bind(*known, *map(instantiate, cts), *state, hook=pulled, **params)
    return [*scatter(mask, results), *[None] * len(state)]


def _batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None], *, hook: InlineHook, **params: Any
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


# --- putting the hooks in -----------------------------------------------------------------------------------


def inline_hooks(jaxpr: Jaxpr) -> tuple[InlineHook, ...]:
    """The inline hooks of a program, including its calls and loops."""
    return jaxpr.derive("inline hooks", lambda: tuple(_hooks_in(jaxpr)))


def _hooks_in(jaxpr: Jaxpr) -> Iterator[InlineHook]:
    for eqn in jaxpr.eqns:
        if eqn.primitive is inline_hook_p:
            yield eqn.params["hook"]
        for body in subjaxprs(eqn.params):
            yield from inline_hooks(body)


def state_among(jaxpr: Jaxpr, args: Sequence[Any]) -> BackwardState | None:
    """The state that a program receives or has captured."""
    values = [*zip(jaxpr.invars, args), *jaxpr.constants]
    states = {id(s): s for s in [state_of(x) for v, x in values if type(v.aval) is StateAval]}
    if len(states) > 1:
        raise BackwardStateError(
            f"{jaxpr.name}: a compiled function has hooks with mode='inline' of {len(states)} BackwardStates; at "
            "most one state may hold such hooks"
        )
    return next(iter(states.values()), None)


def specialized(jaxpr: Jaxpr, state: BackwardState | None, within: bool = False) -> Jaxpr:
    """The program with the equations of inline hooks replaced by those of the hooks set now.

    A hook that needs numbers remains a host call; so does a hook in a loop (`within`) that holds arrays.
    """

    def body_of(eqn: Eqn) -> Jaxpr | None:
        if eqn.primitive is not inline_hook_p:
            return None
        body = _traced(eqn, state)
        return None if body is None or (within and any(np.ndim(c) for c in body.consts)) else body

    def of_body(body: Jaxpr) -> Jaxpr:
        return specialized(body, state, within=True) if inline_hooks(body) else body

    def left(eqn: Eqn) -> Eqn:
        if eqn.primitive is inline_hook_p:
            return eqn.replace(params={**eqn.params, "host": True})
        if not has_subjaxprs(eqn.params):
            return eqn
        inner = partial(specialized, state=state, within=within) if eqn.primitive.is_call else of_body
        params = map_subjaxprs(eqn.params, inner)
        return eqn if params is eqn.params else eqn.replace(params=params)

    whole = inline(jaxpr, body_of)
    return whole.replace(eqns=[left(e) for e in whole.eqns])


def _traced(eqn: Eqn, state: BackwardState | None) -> Jaxpr | None:
    hook: InlineHook = eqn.params["hook"]
    avals = [a.aval.strong() for a in eqn.invars]
    count = len(hook.split(avals)[0])
    f = hook.flat(state)
    try:
        return stage(lambda *values: f(*values[:count]), avals, hook.call.hook.name)
    except ConcretizationTypeError as error:
        _warn_once(hook, error)
        return None


_warned: set[Any] = set()
_lock = new_lock()


def _warn_once(hook: InlineHook, error: Exception) -> None:
    own = hook.call.hook
    key = getattr(own.function, "__code__", own.source)
    with _lock:
        new = key not in _warned
        _warned.add(key)
    if new:
        reason = str(error).split("\n")[0]
        warnings.warn(
            f"{own.label}: the hook '{own.name}' cannot be compiled, and runs as Python: {reason}",
            RuntimeWarning,
            stacklevel=2,
        )


# --- guards -------------------------------------------------------------------------------------------------

_VALUES = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)
_DEPTH = 8


class _Same:
    """An object compared by identity, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def guard(hooks: Sequence[InlineHook], state: BackwardState | None) -> Hashable:
    """What a program depends on in its hooks: their code, and the values in their closures, defaults and globals."""
    parts = []
    for hook in hooks:
        own = hook.call.hook
        parts.append(tuple(map(_code_key, own.functions(state))) if own.active else None)
    return tuple(parts)


def _code_key(f: Any, depth: int = _DEPTH) -> Hashable:
    """A key that is equal for functions that compute the same."""
    if isinstance(f, MethodType):
        return _code_key(f.__func__, depth - 1), _object_key(f.__self__, _names_in(f.__func__), depth)
    if isinstance(f, functools.partial):
        values, names = [*f.args, *f.keywords.values()], _names_in(f.func)
        return (
            _code_key(f.func, depth - 1),
            tuple([_value_key(x, depth - 1, names) for x in values]),
            tuple(f.keywords),
        )
    if depth <= 0:
        return _Same(f)
    if type(f) is not FunctionType:
        call = None if _is_ours(f) else _of_class(f, "__call__")
        return _code_key(MethodType(call, f), depth - 1) if type(call) is FunctionType else _Same(f)
    held = [c.cell_contents for c in f.__closure__ or () if not _is_empty(c)]
    held += [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
    names = _names(f.__code__)
    held += [f.__globals__[name] for name in names if name in f.__globals__]
    return f.__code__, tuple([_value_key(x, depth - 1, names) for x in held])


def _is_ours(x: Any) -> bool:
    """Whether it is an object of a class that has no attributes for users to change."""
    return type(x).__module__.partition(".")[0] in ("builtins", "functrans", "numpy")


def _object_key(x: Any, names: Sequence[str], depth: int) -> Hashable:
    """An object, with those of its attributes that code with these names may read, itself or by methods."""
    if depth <= 0 or _is_ours(x):
        return _Same(x)
    held, pending, own = [], list(names), getattr(x, "__dict__", {})
    for name in pending:
        value = own[name] if name in own else _of_class(x, name)
        if isinstance(value, property):
            value = value.fget
        elif isinstance(value, MemberDescriptorType):  # a slot
            value = getattr(x, name, None)
        if isinstance(value, FunctionType):
            pending += [n for n in _names(value.__code__) if n not in pending]
        held.append(_value_key(value, depth - 1, names))
    return _Same(x), tuple(held)


def _of_class(x: Any, name: str) -> Any:
    """What the class of an object defines under a name, descriptors as they are; None if there is nothing."""
    return next((vars(c)[name] for c in type(x).__mro__ if name in vars(c)), None)


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


@functools.lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[str, ...]:
    inner = [name for c in code.co_consts if isinstance(c, CodeType) for name in _names(c)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def _names_in(f: Any) -> tuple[str, ...]:
    code = getattr(f, "__code__", None)
    return () if code is None else _names(code)


def _value_key(x: Any, depth: int, names: Sequence[str] = ()) -> Hashable:
    if isinstance(x, _VALUES):
        return type(x), repr(x)
    depth = max(depth, 0)
    if isinstance(x, BackwardState) and depth:
        return _Same(x), tuple([(name, _value_key(v, depth - 1)) for name, v in x._members.items()])
    if isinstance(x, FunctionType | MethodType | functools.partial) and depth:
        return _code_key(x, depth)
    if type(x) in (tuple, list) and depth:
        return type(x), tuple([_value_key(v, depth - 1, names) for v in x])
    if type(x) is dict and depth:
        return dict, tuple([(_value_key(k, 0), _value_key(v, depth - 1, names)) for k, v in x.items()])
    if isinstance(x, ModuleType):
        return id(x), _numbers(vars(x), names)
    if isinstance(x, type):
        return _Same(x), _numbers(vars(x), names)
    return _object_key(x, names, depth)


def _numbers(attributes: Mapping[str, Any], names: Sequence[str]) -> Hashable:
    return tuple([(n, _value_key(x, 0)) for n in names if isinstance(x := attributes.get(n), _VALUES)])
