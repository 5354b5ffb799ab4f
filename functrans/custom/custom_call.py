"""The primitive that carries a `CustomRule`, and what each transformation does with it.

::

    evaluation   fwd
    jit          fwd is traced; the equation holds it and is inlined by the lowering: a rule costs nothing
    forward mode jvp; without, bwd transposed
    reverse mode fwd_res, and `custom_linear` on the tape, whose transposition is bwd; without, jvp transposed
    vmap         vmap; without, the same equation with one lane more, in which all slots are batched

Front ends build a `CustomRule` and apply it by `bind_rule`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..arrays.autocast import ambient, autocasting
from ..control.call import call_p, effects_of_bodies
from ..core.aval import Aval, Zero, aval_of
from ..core.evaluation import evaluate
from ..core.ir import Jaxpr
from ..core.named_axes import differing, mesh_in_scope
from ..core.primitive import CallRules, Linear, Primitive
from ..core.trace import Trace, current_trace, eval_trace, is_abstract, tracing
from ..core.values import ArrayLike, Params, PyTree, Rule, Tangent, Value
from ..errors import CapturedTracerError, GradientError, MissingRuleError
from ..passes.masks import chosen, perturbed, scatter, split, with_zeros
from ..passes.toolkit import lift_tracers
from ..primitives.elementwise.arithmetic import stop_gradient_p
from ..primitives.structure.linear import instantiate, zeros
from ..runtime.module_getattr import lazy_import
from ..transforms import batch as batching
from ..transforms import jvp as forward
from ..transforms.linearize import LinearizeTrace, LinearTracer, TangentTrace
from ..transforms.stage import stage
from ..transforms.substituted import Capture
from .closures import captured_tracers
from .dirty import refuse_old_residuals
from .pullback import Pullback, independent, recorded_jvp, transposed_bwd
from .rule import Applied, CustomRule, Lane, Mask, Values, lowered

checking = lazy_import("functrans.transforms.checks")
in_mesh = lazy_import("functrans.custom.in_mesh")
varying = lazy_import("functrans.control.ranks.varying_bodies")


def bind_rule(
    rule: CustomRule, values: Values, functions: Iterable[Any] = (), static: Iterable[Any] = ()
) -> list[Value]:
    """Apply a rule; what `functions` and `static` arguments hold of traced values becomes leading operands."""
    trace = current_trace.get()
    if differing.adapt is not None and mesh_in_scope.get() is not None:
        rule = in_mesh.InMesh(rule, values)
    captures: Sequence[Capture] = ()
    if trace is not eval_trace and (functions or static):
        captures = captured_tracers(functions, static)
        if captures:
            values = [*[c.tracer for c in captures], *values]
    applied = Applied(rule, captures, (), ambient() if autocasting.used else None)
    outs = _on_tape(trace, applied, values) if type(trace) is LinearizeTrace else None
    return trace.process(custom_call_p, tuple(values), {"rule": applied}) if outs is None else outs


def _on_tape(trace: LinearizeTrace, rule: Applied, values: Values) -> list[Any] | None:
    """The short way to `_recorded`, where the tape has each tangent and the rule captured nothing; else None."""
    tape = trace.tangents
    operands, moved, mask = [], [], []
    for x in values:
        perturbed = type(x) is forward.JVPTracer and x._trace is trace
        if perturbed:
            t = x.tangent
            if type(t) is not LinearTracer or t._trace is not tape:
                return None
            moved.append(t)
        operands.append(x.primal if perturbed else x)
        mask.append(perturbed)
    if not moved or rule.captures or not rule.rule.has_reverse:
        return None
    try:  # like `run_with`, without a call
        current_trace.set(tape if tape.retain else trace.parent)
        outs, tangents = _recorded(rule, operands, moved, tuple(mask), tape)
    finally:
        current_trace.set(trace)
    return [x if type(t) is Zero else forward.JVPTracer(trace, x, t) for x, t in zip(outs, tangents)]


_CONCRETE = frozenset((np.ndarray, np.float64))


def _again(rule: Applied, operands: Values) -> list[Any]:
    """Apply the rule one level down."""
    outs = custom_call_p.bind(*operands, rule=rule)
    return [np.bool_(x) if type(x) is bool else x for x in outs]


def _impl(*args: Value, rule: Applied, jaxpr: Jaxpr | None = None) -> list[Value]:
    if jaxpr is not None:
        return tracing(eval_trace, evaluate, jaxpr, args)
    return tracing(eval_trace, rule.fwd, *args)


def _traced(rule: Applied, avals: Sequence[Aval]) -> Jaxpr:
    return stage(rule.fwd, avals, rule.name)


def _abstract(*avals: Aval, rule: Applied, jaxpr: Jaxpr | None = None) -> tuple[Aval, ...]:
    outs = rule.rule.outs
    if jaxpr is not None or outs is None:
        return tuple((_traced(rule, avals) if jaxpr is None else jaxpr).out_avals)
    sizes = tuple([lane.size for lane in rule.lanes])
    return tuple([a.with_shape((*sizes, *a.shape)) for a in outs])


def _stage(trace: Trace, args: Values, params: Params) -> tuple[Values, dict[str, Any]]:
    """Trace the forward pass; tracers that it captured unseen become operands."""
    if "jaxpr" in params:
        return args, params
    rule = params["rule"]
    jaxpr, captured = lift_tracers(tracing(trace, _traced, rule, [aval_of(x) for x in args]))
    if captured:
        rule = rule.capturing([*[Capture("a traced value", x) for x in captured], *rule.captures])
    return (*captured, *args), {"rule": rule, "jaxpr": jaxpr}


# --- differentiation -----------------------------------------------------------------------------------------


def _jvp(
    primals: Values, tangents: Values, *, rule: Applied, jaxpr: Jaxpr | None = None, by: str = "jvp"
) -> tuple[Any, Any]:
    operands, ts = rule.own(primals), rule.own(tangents)
    mask = perturbed(ts)
    slots, count = rule.rule, len(rule.captures)
    if slots.has_plain and not (slots.has_forward and not any(mask[:count])):
        return forward.jvp(rule.plain, operands, ts)
    rule = rule.marked(mask, by)
    again = partial(_again, rule, operands)
    if not any(mask[count:]):
        outs = again()
        return outs, [Zero(x) for x in outs]
    if slots.has_forward:
        return rule.jvp(operands, ts, again)
    if slots.has_reverse and slots.derive_jvp:
        outs, residuals, *_ = result = rule.fwd_res(operands, mask, again)
        pull = Pullback(rule, mask[count:], result)
        return outs, transposed_bwd(pull, operands[:count], residuals, chosen(ts[count:], pull.mask))
    raise MissingRuleError(f"forward mode through {rule.name}: {slots.no_forward}")


def _linearize(
    primals: Values, tangents: Values, *, rule: Applied, jaxpr: Jaxpr | None = None
) -> tuple[Any, Any]:
    slots, count = rule.rule, len(rule.captures)
    first = len(primals) - count - slots.arity
    operands, ts = (primals[first:], tangents[first:]) if first else (primals, tangents)
    mask = perturbed(ts)
    moving = True in mask[count:]
    if slots.has_plain and not (slots.has_reverse and True not in mask[:count]):
        return forward.jvp(rule.plain, operands, ts)
    if not (slots.has_reverse and moving):
        if moving and not slots.has_forward:
            raise MissingRuleError(f"reverse mode through {rule.name}: {slots.no_reverse}")
        push = partial(_jvp, primals, tangents, rule=rule, by="grad")
        return recorded_jvp(rule.name, push, ts)
    if count:
        rule = rule.marked(mask, "grad")
    moved = chosen(ts[count:], mask[count:])
    trace = current_trace.get()
    return _recorded(rule, operands, moved, mask, trace if type(trace) is TangentTrace else None)


def _recorded(
    rule: Applied, operands: Values, moved: Values, mask: Mask, tape: TangentTrace | None
) -> tuple[Any, Any]:
    """Outputs by the forward pass, and their tangents by an equation that transposes to the reverse rule."""
    slots, count = rule.rule, len(rule.captures)
    result = rule.fwd_res(operands, mask, partial(_again, rule, operands))
    pull = Pullback(rule, mask[count:] if count else mask, result)
    residuals = result.residuals
    concrete = _CONCRETE.issuperset(map(type, residuals))
    if not concrete and result.materialized and any(map(is_abstract, residuals)):
        residuals = pull.traced_now(operands[:count], residuals)
    args = [*operands[:count], *residuals, *(operands[count:] if slots.has_forward else ()), *moved]
    if slots.dirty and tape is not None:
        refuse_old_residuals(rule.name, slots.dirty, operands[count:], tape)
    if tape is not None and type(moved[0]) is LinearTracer and moved[0]._trace is tape:
        pushed = tape.record(custom_linear_p, args, {"pull": pull}, pull.moving_avals)
    else:
        pushed = custom_linear_p.bind(*args, pull=pull)
    if False not in pull.moving:
        return result.outs, pushed
    return result.outs, with_zeros(pull.moving, pushed, result.outs)


# --- transposition -------------------------------------------------------------------------------------------


def _transpose(cts: Values, *args: PyTree, rule: Applied, jaxpr: Jaxpr | None = None) -> list[Value | None]:
    """Cotangents of operands in which the function is linear: a user's rule applied it to a tangent."""
    if rule.rule.has_transpose or rule.rule.has_reverse:
        operands = rule.own(args)
        by = rule.transpose if rule.rule.has_transpose else partial(_transposed_by_bwd, rule)
        return [None] * (len(args) - len(operands)) + by(cts, operands)
    if jaxpr is None:
        jaxpr, captured = lift_tracers(
            _traced(rule, [a.aval if type(a) is Linear else aval_of(a) for a in args])
        )
        return call_p.rule("transpose")(cts, *captured, *args, jaxpr=jaxpr)[len(captured) :]
    return call_p.rule("transpose")(cts, *args, jaxpr=jaxpr)


def _transposed_by_bwd(rule: Applied, cts: Values, operands: Values) -> list[Tangent]:
    mask = tuple([type(x) is Linear for x in operands])
    count = len(rule.captures)
    if any(mask[:count]):
        raise CapturedTracerError(f"{rule.name}: a linear value is captured; pass it as an argument")
    known = [x for x, m in zip(operands, mask) if not m]
    linear = [x.aval.strong() for x in chosen(operands, mask)]
    nonzero = perturbed(cts)

    def pulled(*values: ArrayLike) -> list[Any]:
        own, others, given = split(values, len(linear), len(known))
        rest = iter(others)
        ins = scatter(mask, own, [None if m else next(rest) for m in mask])
        result = rule.fwd_res(ins, mask, partial(_again, rule, ins))
        pull = Pullback(rule, mask[count:], result)
        moving = chosen(with_zeros(nonzero, given, pull.outs), pull.moving)
        return list(map(instantiate, pull.pulled(ins[:count], result.residuals, moving), linear))

    avals = [*linear, *[aval_of(x) for x in known], *[aval_of(ct) for ct in chosen(cts, nonzero)]]
    jaxpr, captured = lift_tracers(stage(pulled, avals, rule.name))
    needed = independent(jaxpr, jaxpr.invars[len(captured) : len(captured) + len(linear)])
    if needed is None:
        raise GradientError(f"{rule.name} is not linear: its reverse rule reads the values of its arguments")
    outs = call_p.bind(*captured, *map(zeros, linear), *known, *chosen(cts, nonzero), jaxpr=needed)
    return scatter(mask, outs)


def _linear_transpose(cts: Values, *args: PyTree, pull: Pullback) -> list[Tangent]:
    count = pull.captured
    back = pull.pulled(args[:count] if count else (), args[count : count + pull.residuals], cts)
    return [None] * pull.known + back


# --- errors as values ----------------------------------------------------------------------------------------


class _Unchecked(CustomRule):
    """A rule whose functions do not raise, and do not return the state of their checks."""

    def __init__(self, rule: CustomRule, categories: tuple[str, ...]):
        for name, value in vars(CustomRule).items():
            if name.startswith("_"):
                continue
            own = getattr(rule, name)
            setattr(self, name, partial(_unchecked, categories, own) if callable(value) else own)
        self.name, self.arity = rule.name, rule.arity


def _unchecked(categories: tuple[str, ...], slot: Callable[..., Any], *args: PyTree) -> Any:
    trace = checking.CheckTrace(current_trace.get(), categories)
    return lowered(tracing(trace, slot, *args), trace)


def _checked(
    check: Rule, args: Values, *, rule: Applied, jaxpr: Jaxpr | None = None
) -> tuple[list[Any], Any]:
    """The state by the traced forward pass, and the results by the rule, so that it still decides derivatives."""
    params: Params = {"rule": rule} if jaxpr is None else {"rule": rule, "jaxpr": jaxpr}
    args, params = _stage(current_trace.get(), args, params)
    inner = check(params["jaxpr"])
    if not inner.errors.checks:
        return custom_call_p.bind(*args, **params), inner.errors
    fixed = [stop_gradient_p.bind(x) for x in args]
    _, errors = inner.separate(call_p.bind(*fixed, jaxpr=inner.jaxpr))
    applied = params["rule"]
    unchecked = _Unchecked(applied.rule, inner.categories)
    quiet = Applied(unchecked, applied.captures, applied.lanes, applied.autocast)
    return custom_call_p.bind(*args, rule=quiet, jaxpr=inner.quiet), errors


def _linear_checked(check: Rule, args: Values, *, pull: Pullback) -> tuple[list[Any], Any]:
    jaxpr, captured = lift_tracers(stage(partial(_pushed, pull), [aval_of(x) for x in args], pull.name))
    inner = check(jaxpr)
    if not inner.errors.checks:
        return custom_linear_p.bind(*args, pull=pull), inner.errors
    return inner.separate(call_p.bind(*captured, *args, jaxpr=inner.jaxpr))


# --- batching ------------------------------------------------------------------------------------------------


def _batch(
    size: int, args: Values, dims: Sequence[int | None], *, rule: Applied, jaxpr: Jaxpr | None = None
) -> tuple[Any, Any]:
    operands, own = rule.own(args), tuple(rule.own(dims))
    if rule.rule.has_vmap:
        for c, d in zip(rule.captures, own):
            if d is not None:
                raise CapturedTracerError(
                    f"{rule.name}: '{c.name}' is mapped by vmap but is captured by a function with a vmap rule; "
                    "pass it as an argument, so that the rule can see its axis"
                )
        return rule.vmap(size, operands, own)
    lane = Lane(size, own, [])
    outs = custom_call_p.bind(*operands, rule=rule.over((lane, *rule.lanes)))
    return batching.shared_results(size, outs, lane.shared)


custom_call_p: Primitive = Primitive(
    "custom_call",
    _abstract,
    _impl,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    effects=effects_of_bodies,
    multiple_results=True,
    call=CallRules(opaque=True, trace=_stage),
    checked=_checked,
    vary=lambda axes, params: varying.of_call(axes, params),
)


def _pushed(pull: Pullback, *args: ArrayLike) -> list[Value]:
    """Tangents of the outputs that have one: the linear map itself, by the rule's jvp or its bwd transposed."""
    known, tangents = args[: pull.known], args[pull.known :]
    rule, count = pull.rule, pull.captured
    if not rule.rule.has_forward:
        if not rule.rule.derive_jvp:
            raise MissingRuleError(f"forward mode through {rule.name}: {rule.rule.no_forward}")
        pushed: Values = transposed_bwd(pull, known[:count], known[count:], tangents)
    else:
        operands = [*known[:count], *known[count + pull.residuals :]]
        ts = with_zeros((*[False] * count, *pull.mask), tangents, operands)
        _, pushed = rule.jvp(operands, ts, partial(_again, rule, operands))
    return [instantiate(t, a) for t, a, m in zip(pushed, pull.outs, pull.moving) if m]


def _linear_impl(*args: Value, pull: Pullback) -> list[Value]:
    return tracing(eval_trace, _pushed, pull, *args)


#: The derivative of a rule that has a reverse rule, on the tape: to be transposed, or evaluated by ``linearize``.
custom_linear_p: Primitive = Primitive(
    "custom_linear",
    lambda *avals, pull: pull.moving_avals,
    _linear_impl,
    jvp=lambda primals, tangents, *, pull: forward.jvp(partial(_pushed, pull), primals, tangents),
    transpose=_linear_transpose,
    batch=lambda size, args, dims, *, pull: batching.batch(partial(_pushed, pull), size, args, dims),
    checked=_linear_checked,
    call=CallRules(opaque=True, expand=lambda *avals, pull: stage(partial(_pushed, pull), avals, pull.name)),
    multiple_results=True,
    vary=lambda axes, params: (axes, params),
)
