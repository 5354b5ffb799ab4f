"""Hooks on cotangents: how they are attached to values, and the primitives that carry them.

::

    forward pass     x' = hook x              the identity: does not reach kernels
    tangents         t' = hook t              the identity, on the tape of reverse mode
    backward pass    ct = run_hook ct'        a host call in compiled code; otherwise the function itself

Hooks belong to values: a hook appears in the primal program and in the linear one, so second derivatives meet it again.
A hook on several cotangents appears where the first of its values is defined, and returns *tokens*, linear values that
are zero; each of the other values uses one (`note`). The cotangent of a token is that of its value.

Traced values that a hook captured are operands behind its own values, and residuals on the tape. In a jaxpr they may be
defined only after the hook, even computed from its result. Then the equation has a program `late` that computes them
from its results, which are there when it is linearized, and from further operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ...core.attachment import Attachment
from ...core.aval import Aval, Zero, aval_of
from ...core.dtypes import is_inexact
from ...core.evaluation import bind_equation, evaluate
from ...core.ir import Eqn, Var
from ...core.primitive import CallRules, Effect, Linear, Primitive
from ...core.trace import current_trace, is_staged
from ...errors import ConcretizationTypeError, HookError
from ...passes.masks import perturbed
from ...primitives.elementwise.arithmetic import convert_element_type_p, mul_p, neg_p, select_p, sub_p
from ...primitives.structure.linear import add_p, batched_first, instantiate, zeros
from ...transforms.attached import Late
from ...transforms.batch import batch_jaxpr
from ...transforms.linearize import TangentTrace
from ...transforms.stage import StageTrace, stage
from .hook_calls import Hook, HookCall, Lanes, run_hook_p
from .inline_hooks import InlineHook, inline_hook_p

# --- the hook in forward programs ---------------------------------------------------------------------------


def _count(args: Sequence[Any], hook: Hook, late: Late | None) -> int:
    """The number of operands whose cotangents pass through the hook; others follow."""
    return len(args) - (hook.extra if late is None else late.operands)


def _captured(late: Late | None, outs: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
    """What a hook captured, and its state, from its results and the operands behind its values."""
    if late is None:
        return others

    def visit(eqn: Eqn, values: Sequence[Any]) -> Sequence[Any]:
        # Further hooks on the same value: the value that is read has them already.
        same = eqn.primitive is hook_p and eqn.params.get("attached") and values[0] is outs[0]
        return [values[0]] if same and len(eqn.outvars) == 1 else bind_equation(eqn, values)

    return evaluate(late.program, [*outs, *others], visit)


def _batched_late(
    late: Late | None, size: int, outs: Sequence[int | None], others: Sequence[int | None]
) -> tuple[Late | None, Sequence[int | None]]:
    """The program with mapped operands, and the axes of what it computes."""
    if late is None:
        return None, others
    program, dims = batch_jaxpr(late.program, size, (*outs, *others))
    return Late(program, late.operands), dims


def _abstract(
    *avals: Aval,
    hook: Hook,
    tokens: tuple[Aval, ...],
    lanes: Lanes,
    order: tuple[int, ...],
    late: Late | None = None,
    attached: bool | str = False,
) -> tuple[Aval, ...]:
    return (*avals[: _count(avals, hook, late)], *tokens)


def _impl(
    *args: Any, hook: Hook, tokens: tuple[Aval, ...], late: Late | None = None, **params: Any
) -> list[Any]:
    return [*args[: _count(args, hook, late)], *map(zeros, tokens)]


def _below(primals: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
    """The results one level down, where the values have the hook as well.

    There it is attached again to a value that it was attached to: the derivative of the value's own equation may read
    the value (that of tanh does), and that use belongs to the total cotangent too.
    """
    trace = current_trace.get()
    if isinstance(trace, TangentTrace):
        trace = trace.parent
    values = primals[: _count(primals, params["hook"], params.get("late"))]
    alone = len(values) == 1 and not params["tokens"]
    if not (alone and params.get("attached") and type(trace) is StageTrace):
        return hook_p.bind(*primals, **params)
    lanes = params["lanes"]
    attachment = Attachment(
        hook_p,
        note_p,
        params["hook"],
        tuple(values),
        extra=tuple(_captured(params.get("late"), values, primals[1:])),
        lanes=tuple([(size, dims[:1]) for size, dims in lanes]),
        extra_lanes=tuple([dims[1:] for _, dims in lanes]),
        attached=params["attached"],
    )
    # Of several hooks on a value, the one that was registered last comes first in the program.
    trace.attached.insert(0, attachment)
    return list(values)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """Forward mode: tangents are not cotangents."""
    outs = _below(primals, params)
    count = len(outs) - len(params["tokens"])
    return outs, [*tangents[:count], *[Zero(x) for x in outs[count:]]]


def _linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    outs = _below(primals, params)
    count = len(outs) - len(params["tokens"])
    mask = perturbed(tangents[:count])
    if not any(mask):
        return outs, [Zero(x) for x in outs]
    captured = _captured(params.get("late"), outs, primals[count:])
    # A value without a tangent takes its own place: it gets no cotangent.
    own = [x if type(t) is Zero else t for x, t in zip(primals[:count], tangents)]
    pushed = hook_p.bind(*own, *captured, **{**params, "late": None})
    return outs, [t if i >= count or mask[i] else Zero(t) for i, t in enumerate(pushed)]


def _transpose(
    cts: Sequence[Any],
    *args: Any,
    hook: Hook,
    tokens: tuple[Aval, ...],
    lanes: Lanes,
    order: tuple[int, ...],
    late: Late | None = None,
    attached: bool | str = False,
) -> list[Any]:
    count = len(args) - hook.extra
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
    if (
        isinstance(attached, str)
        and values
        and not hook.observes
        and not _is_linear(call, values, args[count:])
    ):
        _refuse_copy(hook, attached)
    outs = _run(call, values, args[count:])
    rest = iter(outs)
    passed = cts if hook.observes else [next(rest) if p else None for p in passing]
    return [*[ct if m else None for ct, m in zip(passed, linear)], *[None] * hook.extra]


#: Linear in all operands together, and in one operand if the others are fixed.
_ADDITIVE, _SCALING, _CHOOSING = (add_p, sub_p, neg_p, convert_element_type_p), (mul_p,), (select_p,)


def _is_linear(call: HookCall, values: Sequence[Any], extra: Sequence[Any]) -> bool:
    """Whether a hook is certainly linear in its cotangents: then it may see them in parts."""
    if call.hook.mode != "inline" or call.hook.function is None:
        return False
    avals = [aval_of(x) for x in (*values, *extra)]
    try:
        program = stage(lambda *xs: call.direct(xs, None), avals, "hook")
    except ConcretizationTypeError:  # it branches on numbers
        return False
    linear = set(program.invars[: len(values)])
    for eqn in program.eqns:
        mask = [isinstance(x, Var) and x in linear for x in eqn.invars]
        if not any(mask):
            continue
        prim = eqn.primitive
        branches = prim in _CHOOSING and not mask[0] and all(mask[1:])
        if not ((prim in _ADDITIVE and all(mask)) or (prim in _SCALING and sum(mask) == 1) or branches):
            return False
        linear.update([v for v in eqn.outvars if is_inexact(v.aval.dtype)])  # rounding is not linear
    return all(isinstance(x, Var) and x in linear for x in program.outvars)


def _refuse_copy(hook: Hook, reader: str) -> NoReturn:
    """The cotangent of a recomputed value is only a part of the total that the hook must see."""
    raise HookError(
        f"{hook.label}: the hook '{hook.name}' is on a value from which the hook '{reader}', registered on an earlier "
        "value, computes what it captured. Compiled code computes that value twice, so in a second derivative "
        f"'{hook.name}' would see its cotangent in two parts. Capture ft.lax.stop_gradient of the value in '{reader}', "
        f"register '{reader}' on a later value, or differentiate without jit",
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
    return Aval(tuple(shape), aval.dtype)


def _batch(
    size: int,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    hook: Hook,
    tokens: tuple[Aval, ...],
    lanes: Lanes,
    order: tuple[int, ...],
    late: Late | None = None,
    attached: bool | str = False,
) -> tuple[Any, Any]:
    """Each lane has its own hook, even if a value is the same in all lanes."""
    count = _count(args, hook, late)
    values = [batched_first(size, x, None) if d is None else x for x, d in zip(args[:count], dims)]
    where = tuple([0 if d is None else d for d in dims[:count]] + [0] * len(tokens))
    late, captured = _batched_late(late, size, where, dims[count:])
    outs = hook_p.bind(
        *values,
        *args[count:],
        hook=hook,
        tokens=tuple([a.with_shape((size, *a.shape)) for a in tokens]),
        lanes=((size, (*where, *captured[: len(hook.captures)])), *lanes),
        order=order,
        late=late,
        attached=attached,
    )
    return outs, where


def _same(*avals: Aval, **params: Any) -> Any:
    """The program of a hook if nothing is differentiated."""
    return stage(partial(_impl, **params), avals, "hook")


def _show(*, hook: Hook, lanes: Lanes, **params: Any) -> str:
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
    primals: Sequence[Any], tangents: Sequence[Any], *, hook: Hook, lanes: Lanes, order: tuple[int, ...]
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


def _note_transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    return [ct if type(a) is Linear else None for a, ct in zip(args, (*cts, *cts))]


def _note_batch(
    size: int,
    args: Sequence[Any],
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


def _front(*values: Any, **params: Any) -> list[Any]:
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
    call=CallRules(opaque=True, expand=lambda *avals: stage(lambda *values: list(values), avals, "own")),
    moves_data=True,
    each_lane=True,
)


# --- the first of several cotangents ------------------------------------------------------------------------


def _first_linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    outs = first_p.bind(*primals, **params)
    x, token, *extra = primals
    t, token_t = tangents[:2]
    if type(t) is Zero and type(token_t) is Zero:
        return outs, [Zero(o) for o in outs]
    operands = [x if type(t) is Zero else t, token if type(token_t) is Zero else token_t]
    captured = _captured(params.get("late"), outs, extra)
    pushed = first_p.bind(*operands, *captured, **{**params, "late": None})
    return outs, [t if type(t) is Zero else pushed[0], pushed[1]]


def _first_transpose(
    cts: Sequence[Any],
    x: Any,
    token: Any,
    *extra: Any,
    hook: Hook,
    lanes: Lanes,
    late: Late | None = None,
) -> list[Any]:
    """The cotangent of a token is nonzero if the hook has run, which happens for values defined later."""
    ct, done = cts
    ran = type(done) is not Zero
    if not ran and type(ct) is not Zero and type(x) is Linear:
        _run(HookCall(hook, (_without(lanes, aval_of(ct), 0),), (True,), (True,), lanes), [ct], extra)
        ran = True
    marker = zeros(token.aval) if ran and type(token) is Linear else None
    return [ct if type(x) is Linear else None, marker, *[None] * len(extra)]


def _first_batch(
    size: int,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    hook: Hook,
    lanes: Lanes,
    late: Late | None = None,
) -> tuple[Any, Any]:
    x = batched_first(size, args[0], dims[0])
    late, captured = _batched_late(late, size, (0, None), dims[2:])
    lanes = ((size, (0, *captured[: len(hook.captures)])), *lanes)
    outs = first_p.bind(x, *args[1:], hook=hook, lanes=lanes, late=late)
    return outs, (0, None)


#: The first operand, whose cotangent a hook sees unless it has seen that of a value defined later; and a token.
first_p: Primitive = Primitive(
    "first_hook",
    lambda x, token, *extra, **params: (x, token.strong()),
    lambda x, token, *extra, **params: [x, np.float64(token)],
    jvp=lambda primals, tangents, **params: (first_p.bind(*primals, **params), tangents[:2]),
    linearize=_first_linearize,
    transpose=_first_transpose,
    batch=_first_batch,
    effects=lambda **params: Effect.HOOK,
    multiple_results=True,
    call=CallRules(
        opaque=True, expand=lambda *avals, **params: stage(lambda x, token, *_: [x, token], avals, "hook")
    ),
    moves_data=True,
    each_lane=True,
    show=lambda *, hook, **params: f"hook={hook.name}",
)
