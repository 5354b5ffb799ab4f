"""Put inline hooks into programs: traced again at each call, and compared.

A hook may read anything in Python, and nothing here guesses what. It is Python code that runs at each backward pass, as
outside of compiled code: on traced values, which takes as long as to run it on numbers. If its equations and arrays are
those of an earlier call, so is the program. A `jit` around the backward pass traces it once, like all other code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...core.aval import Aval
from ...core.backward_state import BackwardState, StateAval, state_of
from ...core.evaluation import evaluate
from ...core.ir import Eqn, Jaxpr, has_subjaxprs, subjaxprs
from ...core.trace import eval_trace, tracing
from ...core.values import PyTree, Value
from ...errors import BackwardStateError, ConcretizationTypeError
from ...passes.toolkit import inline, map_subjaxprs
from ...runtime.config import Config, config
from ...runtime.context import new_lock
from ...runtime.records import NamedTuple, dataclass
from ...transforms.stage import stage
from ..bodies.cache import compared
from .hook_calls import HookCall
from .inline_hooks import InlineHook, inline_hook_p


class HookSite(NamedTuple):
    """An inline hook of a program, and the types of what it is applied to."""

    hook: InlineHook
    avals: tuple[Aval, ...]

    @staticmethod
    def of(eqn: Eqn) -> HookSite:
        """That of an equation."""
        hook: InlineHook = eqn.params["hook"]
        return HookSite(hook, tuple([a.aval.strong() for a in hook.split(eqn.invars)[0]]))

    @property
    def own(self) -> Hashable:
        """A key of the hook itself, without derivatives."""
        return self.hook.call, self.operands, self.hook.traced

    @property
    def operands(self) -> tuple[Aval, ...]:
        """The types that the hook itself takes."""
        return tuple(self.hook.operands(self.avals))

    def derived(self, body: Jaxpr) -> Jaxpr:
        """What to put in, where `body` is what the hook itself computes."""
        if not self.hook.steps:
            return body
        f = self.hook.derived(lambda *values: evaluate(body, values))
        return _staged(f, self.avals, body.name)


def sites(jaxpr: Jaxpr) -> tuple[HookSite, ...]:
    """The inline hooks of a program, including its calls and loops."""
    return jaxpr.derive("inline hooks", lambda: tuple(dict.fromkeys(_sites_in(jaxpr))))


def _sites_in(jaxpr: Jaxpr) -> Iterator[HookSite]:
    for eqn in jaxpr.eqns:
        if eqn.primitive is inline_hook_p and not eqn.params["host"]:
            yield HookSite.of(eqn)
        for body in subjaxprs(eqn.params):
            yield from sites(body)


def state_among(jaxpr: Jaxpr, args: Sequence[Value]) -> BackwardState | None:
    """The state that a program receives, or that it or a call in it has captured."""
    received = [x for v, x in zip(jaxpr.invars, args) if type(v.aval) is StateAval]
    captured = jaxpr.derive("captured states", lambda: list(_states_in(jaxpr)))
    states = {id(s): s for s in map(state_of, [*received, *captured])}
    if len(states) > 1:
        raise BackwardStateError(
            f"{jaxpr.name}: a compiled function has hooks with mode='inline' of {len(states)} BackwardStates; at "
            "most one state may hold such hooks"
        )
    return next(iter(states.values()), None)


def _states_in(jaxpr: Jaxpr) -> Iterator[Any]:
    yield from [x for v, x in jaxpr.constants if type(v.aval) is StateAval]
    for eqn in jaxpr.eqns:
        for body in subjaxprs(eqn.params):
            yield from _states_in(body)


# --- tracing ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Form:
    """What the hooks of a program compute at a call; equal for calls that may share a program.

    Attributes
    ----------
    key : hashable
        The equations.
    arrays : list
        Their constants.
    bodies : callable
        ``bodies()`` gives what to put in for each site; None for a hook that runs on the host.
    """

    key: Hashable
    arrays: list[Any]
    bodies: Callable[[], dict[HookSite, Jaxpr | None]]

    def __eq__(self, other: object) -> bool:
        return type(other) is Form and self.key == other.key and all(map(_same, self.arrays, other.arrays))


class TracedHooks:
    """The inline hooks of a program.

    Parameters
    ----------
    program : sequence of HookSite
    inlined : callable
        A jaxpr without its calls.
    """

    def __init__(self, program: Sequence[HookSite], inlined: Callable[[Jaxpr], Jaxpr] = lambda jaxpr: jaxpr):
        self._inlined = inlined
        #: The first site of each hook; and for each site, which of these it has.
        self._hooks = list({site.own: site for site in reversed(program)}.values())
        places = {site.own: k for k, site in enumerate(self._hooks)}
        self._sites = [(site, places[site.own]) for site in program]
        #: The functions that need numbers: they run on the host, where each call meets them as they are.
        self._on_host: dict[HookCall, Sequence[Callable[..., Any]]] = {}

    def own(self, state: BackwardState | None) -> list[tuple[HookSite, Jaxpr | None]]:
        """The sites with what their hooks compute that are set now, each traced once; None if that needs numbers."""
        traced = [self._traced(site, state) for site in self._hooks]
        return [(site, traced[k]) for site, k in self._sites]

    def form(self, state: BackwardState | None) -> Form:
        """That of the hooks that are set now."""
        traced = [self._traced(site, state) for site in self._hooks]
        plain = [None if body is None else compared(body) for body in traced]
        applied: dict[HookSite, Jaxpr | None] = {}
        keys: list[Hashable] = []
        arrays: list[Any] = []
        for site, k in self._sites:
            body, key = traced[k], plain[k]
            if body is not None and key is None:  # a user's rule: what it does is known once it is applied
                body = applied[site] = self._applied(site, body)
                key = None if body is None else compared(body, objects=True)
            keys.append(key)
            arrays += () if body is None else body.consts

        def bodies() -> dict[HookSite, Jaxpr | None]:
            rest = [(site, traced[k]) for site, k in self._sites if site not in applied]
            return applied | {site: None if body is None else site.derived(body) for site, body in rest}

        return Form(tuple(keys), arrays, bodies)

    def _traced(self, site: HookSite, state: BackwardState | None) -> Jaxpr | None:
        call = site.hook.call
        hook = call.hook
        if site.hook.traced is not None and hook.active:
            return site.hook.traced
        functions = hook.functions(state) if hook.active else ()
        failed = self._on_host.get(call, ())
        if failed and len(failed) == len(functions) and all(f is g for f, g in zip(failed, functions)):
            return None
        try:
            return _staged(site.hook.own(state), site.operands, hook.name)
        except ConcretizationTypeError as error:
            _warn_once(site.hook, error)
            self._on_host[call] = tuple(functions)
            return None

    def _applied(self, site: HookSite, body: Jaxpr) -> Jaxpr | None:
        """The derivative of a hook that contains users' code, without calls; None if Python runs some of it."""
        whole = self._inlined(site.derived(body))
        return None if any(e.effects.on_host for e in whole.eqns) else whole


def _staged(f: Callable[..., PyTree], avals: Sequence[Aval], name: str) -> Jaxpr:
    # The option is about functions; hooks are traced at each call.
    if _no_tracing.ever_changed and config.no_tracing:
        with config.patch(no_tracing=False):
            return tracing(eval_trace, stage, f, avals, name)
    return tracing(eval_trace, stage, f, avals, name)


def _same(a: Value, b: Value) -> bool:
    if a is b:
        return True
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.dtype != b.dtype or a.shape != b.shape:
        return False
    # Constants are read-only as far as their memory goes: what lies at the same place is the same.
    at_one_place = a.base is not None and a.base is b.base and a.__array_interface__ == b.__array_interface__
    return at_one_place or a.tobytes() == b.tobytes()


_no_tracing = Config.no_tracing
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


def settled(jaxpr: Jaxpr) -> Jaxpr:
    """A program that a user's `jit` has traced: its hooks are traced with it, and are code like any other.

    Those of a state are looked up later. One with a handle may still be removed, so its equation remains.
    """
    known = [s for s in sites(jaxpr) if s.hook.call.hook.member is None and s.hook.traced is None]
    if not known:
        return jaxpr
    bodies: dict[HookSite, Jaxpr | None] = {}
    kept: dict[HookSite, Jaxpr] = {}
    for site, body in TracedHooks(known).own(None):
        if body is not None and site.hook.call.hook.removable:
            kept[site] = body
        else:
            bodies[site] = None if body is None else site.derived(body)
    return _with_traced(specialized(jaxpr, bodies), kept)


def _with_traced(jaxpr: Jaxpr, kept: dict[HookSite, Jaxpr]) -> Jaxpr:
    if not kept or not sites(jaxpr):
        return jaxpr

    def of(eqn: Eqn) -> Eqn:
        body = kept.get(HookSite.of(eqn)) if eqn.primitive is inline_hook_p else None
        if body is not None:
            return eqn.replace(params={**eqn.params, "hook": replace(eqn.params["hook"], traced=body)})
        params = map_subjaxprs(eqn.params, partial(_with_traced, kept=kept))
        return eqn if params is eqn.params else eqn.replace(params=params)

    return jaxpr.replace(eqns=[of(e) for e in jaxpr.eqns])


# --- putting them in ----------------------------------------------------------------------------------------


def specialized(jaxpr: Jaxpr, bodies: dict[HookSite, Jaxpr | None], within: bool = False) -> Jaxpr:
    """The program with the equations of inline hooks replaced by bodies, or by host calls where there is None.

    So is a hook in a loop (`within`) that holds arrays. Sites that are not in `bodies` stay.
    """

    def body_of(eqn: Eqn) -> Jaxpr | None:
        if eqn.primitive is not inline_hook_p or eqn.params["host"]:
            return None
        body = bodies.get(HookSite.of(eqn))
        if body is None or (within and any(np.ndim(c) for c in body.consts)):
            return None
        if len(body.invars) < len(eqn.invars):  # the state, which it does not read
            extra = [a.aval for a in eqn.invars[len(body.invars) :]]
            return stage(lambda *values: evaluate(body, values[: len(body.invars)]), [*body.in_avals, *extra])
        return body

    def of_body(body: Jaxpr) -> Jaxpr:
        return specialized(body, bodies, within=True) if sites(body) else body

    def left(eqn: Eqn) -> Eqn:
        if eqn.primitive is inline_hook_p:
            known = HookSite.of(eqn) in bodies
            return eqn.replace(params={**eqn.params, "host": True}) if known else eqn
        if not has_subjaxprs(eqn.params):
            return eqn
        inner = partial(specialized, bodies=bodies, within=within) if eqn.primitive.is_call else of_body
        params = map_subjaxprs(eqn.params, inner)
        return eqn if params is eqn.params else eqn.replace(params=params)

    whole = inline(jaxpr, body_of)
    return whole.replace(eqns=[left(e) for e in whole.eqns])
