"""Hooks on cotangents: how they are attached to values, and the primitives that carry them.

::

    forward pass     x' = hook x              the identity: does not reach kernels
    tangents         t' = hook t              the identity, on the tape of reverse mode
    backward pass    ct = run_hook ct'        a host call in compiled code; otherwise the function itself

Hooks belong to values: a hook appears in the primal program and in the linear one, so second derivatives meet it again.
A hook on several cotangents appears where the first of its values is defined, and returns *tokens*, linear values that
are zero; each of the other values uses one (`note`). The cotangent of a token is that of its value.

Traced values that a hook captured are operands behind its values, and residuals on the tape. In a jaxpr they may be
defined only after the hook, even computed from its result. Then the hook gives out a token for each, and the equation
`supply` at the end of the program takes the tokens and the values. The tape has no tokens: when `supply` is linearized,
the values become operands of the hook's entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.attachment import Attachment
from ...core.aval import Aval, Zero, aval_of
from ...core.dtypes import is_inexact
from ...core.primitive import CallRules, Effect, Linear, Primitive
from ...core.trace import Trace, current_trace, is_staged
from ...core.values import ArrayLike, Param, Params, PyTree, Tangent, Value
from ...errors import HookError
from ...passes.masks import perturbed, split
from ...primitives.structure.linear import batched_first, instantiate, zeros
from ...transforms.linearize import TangentTrace
from ...transforms.stage import StageTrace, stage
from .hook_calls import Hook, HookCall, Lanes, run_hook_p
from .inline_hooks import InlineHook, inline_hook_p

# --- the hook in forward programs ---------------------------------------------------------------------------


def _count(args: Sequence[Any], hook: Hook, later: tuple[Aval, ...]) -> int:
    """The number of operands whose cotangents pass through the hook; others follow."""
    return len(args) - hook.extra + len(later)


def _abstract(
    *avals: Aval,
    hook: Hook,
    tokens: tuple[Aval, ...],
    lanes: Lanes,
    order: tuple[int, ...],
    later: tuple[Aval, ...] = (),
    attached: bool = False,
) -> tuple[Aval, ...]:
    return (*avals[: _count(avals, hook, later)], *tokens, *later)


def _impl(
    *args: Value, hook: Hook, tokens: tuple[Aval, ...], later: tuple[Aval, ...] = (), **params: Param
) -> list[Value]:
    return [*args[: _count(args, hook, later)], *map(zeros, (*tokens, *later))]


def _below(primals: Sequence[Value], params: Params) -> Sequence[Value]:
    """The results one level down, where the values have the hook as well.

    There it is attached again to a value that it was attached to: the derivative of that value's equation may read
    the value (that of tanh does), and that use belongs to the total cotangent too.
    """
    trace, later = _trace_below(), params.get("later", ())
    values = primals[: _count(primals, params["hook"], later)]
    alone = len(values) == 1 and not params["tokens"]
    if not (alone and params.get("attached") and type(trace) is StageTrace):
        return hook_p.bind(*primals, **params)
    lanes = params["lanes"]
    tokens = [trace.input(a) for a in later]
    attachment = Attachment(
        hook_p,
        note_p,
        supply_p,
        params["hook"],
        tuple(values),
        extra=(*tokens, *primals[1:]),
        lanes=tuple([(size, dims[:1]) for size, dims in lanes]),
        extra_lanes=tuple([dims[1:] for _, dims in lanes]),
    )
    # Of several hooks on a value, the one that was registered last comes first in the program.
    trace.attached.insert(0, attachment)
    return [*values, *tokens]


def _trace_below() -> Trace:
    """The trace in which a rule binds the values, if it binds tangents in the current one."""
    trace = current_trace.get()
    return trace.parent if isinstance(trace, TangentTrace) else trace


def _jvp(primals: Sequence[Any], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
    """Forward mode: tangents are not cotangents."""
    outs = _below(primals, params)
    count = _count(primals, params["hook"], params.get("later", ()))
    return outs, [*tangents[:count], *[Zero(x) for x in outs[count:]]]


def _linearize(primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
    outs, later = _below(primals, params), params.get("later", ())
    count = _count(primals, params["hook"], later)
    mask = perturbed(tangents[:count])
    if not any(mask):
        return outs, [Zero(x) for x in outs]
    # A value without a tangent stays: it gets no cotangent.
    own = [x if type(t) is Zero else t for x, t in zip(primals[:count], tangents)]
    places, pushed = _recorded(hook_p, own, primals[count:], params)
    passed = [t if i >= count or mask[i] else Zero(t) for i, t in enumerate(pushed)]
    return outs, [*passed, *places]


def _recorded(
    primitive: Primitive, operands: Sequence[Value], extra: Sequence[Value], params: Params
) -> tuple[list[Any], Sequence[Any]]:
    """The tangents of tokens, and the results on the tape, where these take the places of operands not yet known."""
    later, trace = params.get("later", ()), current_trace.get()
    if not later:
        return [], primitive.bind(*operands, *extra, **params)
    assert isinstance(trace, TangentTrace)
    places = [trace.operand_known_later(a) for a in later]
    return places, primitive.bind(*operands, *places, *extra, **{**params, "later": ()})


def _transpose(
    cts: Sequence[Tangent],
    *args: PyTree,
    hook: Hook,
    tokens: tuple[Aval, ...],
    lanes: Lanes,
    order: tuple[int, ...],
    later: tuple[Aval, ...] = (),
    attached: bool = False,
) -> list[Value | None]:
    count = len(args) - hook.extra
    _check_supplied(hook, args[count:])
    linear = [type(a) is Linear for a in args[:count]]
    visible: list[Any] = []
    for i, ct in enumerate(cts):
        is_visible = linear[i] if i < count else is_inexact(ct.dtype)
        visible.append(instantiate(ct) if is_visible and type(ct) is not Zero else None)
    given = [ct is not None for ct in visible]
    passing = tuple([g and m for g, m in zip(given, linear)])
    avals = [_without(lanes, aval_of(ct), i) for i, ct in enumerate(cts)]
    call = HookCall(hook, tuple(avals), tuple(given), passing, lanes, order)
    values = [ct for ct in visible if ct is not None]
    outs = _run(call, values, args[count:])
    rest = iter(outs)
    passed = cts if hook.observes else [next(rest) if p else None for p in passing]
    return [*[ct if m else None for ct, m in zip(passed, linear)], *[None] * hook.extra]


def _check_supplied(hook: Hook, extra: Sequence[Any]) -> None:
    if any(type(x) is Linear for x in extra):
        raise HookError(
            f"{hook.label}: a value that the hook '{hook.name}' captured was not computed. Register it on a value "
            "that is computed after it",
            hook.source,
        )


def _run(call: HookCall, values: Sequence[Any], extra: Sequence[Any]) -> list[Any]:
    """Run a hook now, or add it to the program under construction."""
    if not is_staged():
        captured, state = extra[: len(call.hook.captures)], extra[len(call.hook.captures) :]
        return call.direct([*values, *captured], state[0] if state else None)
    if call.hook.mode == "inline":
        return inline_hook_p.bind(*values, *extra, hook=InlineHook(call), host=False)
    return run_hook_p.bind(*values, *extra, call=call)


def _without(lanes: Lanes, aval: Aval, i: int) -> Aval:
    """The type of one lane."""
    shape = list(aval.shape)
    for _, dims in lanes:
        d = dims[i]
        if d is not None:
            del shape[d]
    return aval.strong().with_shape(tuple(shape))


def _batch(
    size: int,
    args: Sequence[Value],
    dims: Sequence[int | None],
    *,
    hook: Hook,
    tokens: tuple[Aval, ...],
    lanes: Lanes,
    order: tuple[int, ...],
    later: tuple[Aval, ...] = (),
    attached: bool = False,
) -> tuple[Any, Any]:
    """Each lane has a hook, even if a value is the same in all lanes."""
    count = _count(args, hook, later)
    values = [batched_first(size, x, None) if d is None else x for x, d in zip(args[:count], dims)]
    where = tuple([0 if d is None else d for d in dims[:count]] + [0] * len((*tokens, *later)))
    captured = dims[count : len(args) - hook.late]
    outs = hook_p.bind(
        *values,
        *args[count:],
        hook=hook,
        tokens=_mapped(size, tokens),
        lanes=((size, (*where, *captured)), *lanes),
        order=order,
        later=_mapped(size, later),
        attached=attached,
    )
    return outs, where


def _mapped(size: int, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
    return tuple([a.with_shape((size, *a.shape)) for a in avals])


def _same(*avals: Aval, **params: Param) -> Any:
    """The program of a hook if nothing is differentiated."""
    return stage(partial(_impl, **params), avals, "hook")


def _show(*, hook: Hook, lanes: Lanes, **params: Param) -> str:
    parts = [f"hook={hook.name}"]
    if lanes:
        parts.append(f"lanes={tuple(size for size, _ in lanes)}")
    return ", ".join(parts)


#: The operands, whose cotangents pass through a hook; and tokens. It does not reach kernels.
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


def _note_linearize(
    primals: Sequence[Any], tangents: Sequence[Tangent], *, hook: Hook, lanes: Lanes, order: tuple[int, ...]
) -> tuple[Any, Any]:
    outs = note_p.bind(*primals, hook=hook, lanes=lanes, order=order)
    count = len(outs)
    ts, tokens = tangents[:count], tangents[count:]
    mask = perturbed(ts)
    if not any(mask):
        return outs, ts
    own = [x if type(t) is Zero else t for x, t in zip(primals, ts)]
    if type(tokens[0]) is not Zero:
        pushed = note_p.bind(*own, *tokens, hook=hook, lanes=lanes, order=order)
    elif hook.dense:  # it could replace nothing that is differentiated: it only sees these cotangents
        pushed = hook_p.bind(*own, hook=hook, tokens=(), lanes=lanes, order=order)
    else:
        return outs, ts
    return outs, [t if m else Zero(t) for t, m in zip(pushed, mask)]


def _note_transpose(cts: Sequence[Value], *args: PyTree, **params: Param) -> list[Value | None]:
    return [ct if type(a) is Linear else None for a, ct in zip(args, (*cts, *cts))]


def _note_batch(
    size: int,
    args: Sequence[Value],
    dims: Sequence[int | None],
    *,
    hook: Hook,
    lanes: Lanes,
    order: tuple[int, ...],
) -> tuple[Any, Any]:
    count = len(args) // 2
    values = [batched_first(size, x, d) for x, d in zip(args, dims)]
    lanes = ((size, (0,) * count), *lanes)
    return note_p.bind(*values, hook=hook, lanes=lanes, order=order), (0,) * count


def _front(*values: Value, **params: Param) -> list[Value]:
    return list(values[: len(values) // 2])


#: The first half of the operands; the hook sees their cotangents as those of the tokens in the second half.
note_p: Primitive = Primitive(
    "note",
    lambda *avals, **params: tuple(avals[: len(avals) // 2]),
    _front,
    jvp=lambda primals, tangents, **params: (note_p.bind(*primals, **params), tangents[: len(primals) // 2]),
    linearize=_note_linearize,
    transpose=_note_transpose,
    batch=_note_batch,
    effects=lambda **params: Effect.HOOK,
    multiple_results=True,
    call=CallRules(opaque=True, expand=lambda *avals, **params: stage(_front, avals, "note")),
    moves_data=True,
    each_lane=True,
    show=lambda *, hook, lanes, order: f"hook={hook.name}",
)


def _supply_below(primals: Sequence[Value], hooks: tuple[Hook, ...]) -> Sequence[Value]:
    """The results one level down; there the hooks that are attached again learn what they captured."""
    results, tokens, captured = _supplied(primals, hooks)
    trace, known = _trace_below(), {id(token): x for token, x in zip(tokens, captured)}
    taken: set[int] = set()
    if type(trace) is StageTrace:
        for i, a in enumerate(trace.attached):
            places = known.keys() & map(id, a.extra)
            if places:
                trace.attached[i] = a.on(a.values, [known.get(id(x), x) for x in a.extra])
                taken |= places
    left = [h for h, own in zip(hooks, _of_each(hooks, tokens)) if not (own and id(own[0]) in taken)]
    if not left:
        return results
    rest = [i for i, token in enumerate(tokens) if id(token) not in taken]
    operands = [*results, *[tokens[i] for i in rest], *[captured[i] for i in rest]]
    return supply_p.bind(*operands, hooks=tuple(left))


def _of_each(hooks: tuple[Hook, ...], values: Sequence[Value]) -> Sequence[Sequence[Any]]:
    """The values that belong to each hook."""
    return split(values, *[len(h.captures) for h in hooks])[:-1]


def _supplied(
    args: Sequence[Any], hooks: tuple[Hook, ...]
) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """The results among operands, the tokens, and the captured values."""
    count = sum([len(h.captures) for h in hooks])
    results, tokens, captured = split(args, len(args) - 2 * count, count)
    return results, tokens, captured


def _supply_jvp(
    primals: Sequence[Any], tangents: Sequence[Tangent], *, hooks: tuple[Hook, ...]
) -> tuple[Any, Any]:
    return _supply_below(primals, hooks), _supplied(tangents, hooks)[0]


def _supply_linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, hooks: tuple[Hook, ...]
) -> tuple[Any, Any]:
    trace = current_trace.get()
    ts, tokens, _ = _supplied(tangents, hooks)
    for token, x in zip(tokens, _supplied(primals, hooks)[2]):
        if isinstance(trace, TangentTrace) and type(token) is not Zero:
            trace.known_now(token, x)
    return _supply_below(primals, hooks), ts


def _supply_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, hooks: tuple[Hook, ...]
) -> tuple[Any, Any]:
    """The tokens are mapped, as each lane has its own hook."""
    results, tokens, captured = _supplied(args, hooks)
    values = [batched_first(size, x, d) for x, d in zip(captured, _supplied(dims, hooks)[2])]
    outs = supply_p.bind(*results, *tokens, *values, hooks=hooks)
    return outs, tuple(dims[: len(outs)])


def _passed(*values: Value, hooks: tuple[Hook, ...]) -> list[Value]:
    return list(_supplied(values, hooks)[0])


#: The first operands, results of a program; then the tokens of hooks, and the values that these captured.
supply_p: Primitive = Primitive(
    "supply",
    lambda *avals, hooks: tuple(_supplied(avals, hooks)[0]),
    _passed,
    jvp=_supply_jvp,
    linearize=_supply_linearize,
    batch=_supply_batch,
    effects=lambda **params: Effect.HOOK,
    multiple_results=True,
    call=CallRules(
        opaque=True, expand=lambda *avals, **params: stage(partial(_passed, **params), avals, "supply")
    ),
    moves_data=True,
    show=lambda *, hooks: f"hooks=({', '.join([h.name for h in hooks])})",
)

#: The operands, as values that only the block reads to which they are passed, or which returns them.
own_p: Primitive = Primitive(
    "own",
    lambda *avals: avals,
    lambda *values: list(values),
    jvp=lambda primals, tangents: (own_p.bind(*primals), list(tangents)),
    batch=lambda size, args, dims: (
        own_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)]),
        (0,) * len(args),
    ),
    multiple_results=True,
    call=CallRules(expand=lambda *avals: stage(lambda *values: list(values), avals, "own")),
    moves_data=True,
    each_lane=True,
)


# --- the first of several cotangents ------------------------------------------------------------------------


def _first_impl(
    x: Value, token: Any, *extra: Any, later: tuple[Aval, ...] = (), **params: Param
) -> list[Any]:
    return [x, np.float64(token), *map(zeros, later)]


def _first_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param
) -> tuple[Value, Tangent]:
    outs = first_p.bind(*primals, **params)
    return outs, [*tangents[:2], *[Zero(x) for x in outs[2:]]]


def _first_linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param
) -> tuple[Any, Any]:
    outs = first_p.bind(*primals, **params)
    x, token, *extra = primals
    t, token_t = tangents[:2]
    if type(t) is Zero and type(token_t) is Zero:
        return outs, [Zero(o) for o in outs]
    operands = [x if type(t) is Zero else t, token if type(token_t) is Zero else token_t]
    places, pushed = _recorded(first_p, operands, extra, params)
    return outs, [t if type(t) is Zero else pushed[0], pushed[1], *places]


def _first_transpose(
    cts: Sequence[Tangent],
    x: ArrayLike,
    token: Any,
    *extra: Any,
    hook: Hook,
    lanes: Lanes,
    later: tuple[Aval, ...] = (),
) -> list[Tangent]:
    """The cotangent of a token is nonzero if the hook has run, which happens for values defined later."""
    _check_supplied(hook, extra)
    ct, done = cts
    ran = type(done) is not Zero
    if not ran and type(ct) is not Zero and type(x) is Linear:
        _run(HookCall(hook, (_without(lanes, aval_of(ct), 0),), (True,), (True,), lanes), [ct], extra)
        ran = True
    marker = zeros(token.aval) if ran and type(token) is Linear else None
    return [ct if type(x) is Linear else None, marker, *[None] * len(extra)]


def _first_batch(
    size: int,
    args: Sequence[Value],
    dims: Sequence[int | None],
    *,
    hook: Hook,
    lanes: Lanes,
    later: tuple[Aval, ...] = (),
) -> tuple[Any, Any]:
    x = batched_first(size, args[0], dims[0])
    places = (0,) * len(later)
    lanes = ((size, (0, *places, *dims[2 : len(args) - hook.late])), *lanes)
    outs = first_p.bind(x, *args[1:], hook=hook, lanes=lanes, later=_mapped(size, later))
    return outs, (0, None, *places)


#: The first operand, whose cotangent a hook sees unless it has seen that of a value defined later; and a token.
first_p: Primitive = Primitive(
    "first_hook",
    lambda x, token, *extra, later=(), **params: (x, token.strong(), *later),
    _first_impl,
    jvp=_first_jvp,
    linearize=_first_linearize,
    transpose=_first_transpose,
    batch=_first_batch,
    effects=lambda **params: Effect.HOOK,
    multiple_results=True,
    call=CallRules(
        opaque=True,
        expand=lambda *avals, later=(), **params: stage(
            lambda x, token, *_: [x, token, *map(zeros, later)], avals, "hook"
        ),
    ),
    moves_data=True,
    each_lane=True,
    show=lambda *, hook, **params: f"hook={hook.name}",
)
