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
from dataclasses import replace
from functools import partial
from typing import Any

from ..control.bodies import Mask, chosen, perturbed, zeros
from ..control.call import call_p
from ..core.aval import Aval, Zero, aval_of
from ..core.errors import CapturedTracerError, GradientError, MissingRuleError
from ..core.ir import Jaxpr
from ..core.primitive import Effect, Linear, Primitive
from ..core.trace import Trace, current_trace, eval_trace, is_abstract, tracing
from ..transforms import batch as batching
from ..transforms import jvp as forward
from ..transforms.evaluate import evaluate
from ..transforms.stage import close, stage
from . import rule as slots
from .closures import Capture, captured_tracers
from .pullback import Pull, independent, recorded_jvp, transposed_bwd
from .rule import CustomRule, Lanes, Values


def bind_rule(
    rule: CustomRule, values: Values, functions: Iterable[Any] = (), static: Iterable[Any] = ()
) -> list[Any]:
    """Apply a rule; what `functions` and `static` arguments hold of traced values becomes leading operands."""
    if current_trace.get() is not eval_trace:
        captures = captured_tracers(functions, static)
        if captures:
            rule = replace(rule, captures=tuple(captures))
            values = [*[c.tracer for c in captures], *values]
    return custom_call_p.bind(*values, rule=rule, lanes=None)


def _own(rule: CustomRule, values: Values) -> Values:
    """The operands of the rule: without the constants of its jaxpr, that `without_consts` puts in front."""
    return values[len(values) - rule.operands :]


def _impl(*args: Any, rule: CustomRule, lanes: Lanes | None, jaxpr: Jaxpr | None = None) -> list[Any]:
    if jaxpr is not None:
        return tracing(eval_trace, evaluate, jaxpr, args)
    return tracing(eval_trace, slots.fwd, rule, lanes or (), args)


def _traced(rule: CustomRule, lanes: Lanes | None, avals: Sequence[Aval]) -> Jaxpr:
    return stage(lambda *xs: slots.fwd(rule, lanes or (), xs), avals, rule.name)


def _abstract(
    *avals: Aval, rule: CustomRule, lanes: Lanes | None, jaxpr: Jaxpr | None = None
) -> tuple[Aval, ...]:
    if jaxpr is not None or rule.outs is None:
        return tuple((_traced(rule, lanes, avals) if jaxpr is None else jaxpr).out_avals)
    sizes = tuple([size for size, _ in lanes or ()])
    return tuple([a.with_shape((*sizes, *a.shape)) for a in rule.outs])


def _stage(trace: Trace, args: Values, params: dict[str, Any]) -> tuple[Values, dict[str, Any]]:
    """Trace the forward pass; tracers that it captured unseen become operands."""
    if "jaxpr" in params:
        return args, params
    rule, lanes = params["rule"], params["lanes"]
    jaxpr, captured = close(tracing(trace, _traced, rule, lanes, [aval_of(x) for x in args]))
    if captured:
        unseen = [Capture("a traced value", x) for x in captured]
        rule = replace(rule, captures=(*unseen, *rule.captures))
        lanes = lanes and tuple([(size, ((None,) * len(unseen) + dims)) for size, dims in lanes])
    return (*captured, *args), {"rule": rule, "lanes": lanes, "jaxpr": jaxpr}


# --- differentiation -----------------------------------------------------------------------------------------


def _marked(rule: CustomRule, mask: Mask, by: str) -> CustomRule:
    """The rule, which then refuses to read captured values that are being differentiated."""
    if rule.captured_constant or not any(mask[: len(rule.captures)]):
        return rule
    captures = [
        c._replace(differentiated=c.differentiated or by) if m else c for c, m in zip(rule.captures, mask)
    ]
    return replace(rule, captures=tuple(captures))


def _plain(rule: CustomRule, lanes: Lanes | None) -> Callable[..., list[Any]]:
    """What is differentiated in the place of a rule."""
    assert rule.plain is not None
    function = replace(rule, fwd=rule.plain)
    return lambda *operands: slots.fwd(function, lanes or (), operands)


def _jvp(
    primals: Values,
    tangents: Values,
    *,
    rule: CustomRule,
    lanes: Lanes | None,
    jaxpr: Jaxpr | None = None,
    by: str = "jvp",
) -> tuple[Any, Any]:
    operands, ts = list(_own(rule, primals)), _own(rule, tangents)
    mask = perturbed(ts)
    if rule.plain is not None and (rule.jvp is None or any(mask[: len(rule.captures)])):
        return forward.jvp(_plain(rule, lanes), operands, ts)
    rule = _marked(rule, mask, by)

    def again() -> list[Any]:
        return custom_call_p.bind(*operands, rule=rule, lanes=lanes)

    if not any(mask[len(rule.captures) :]):
        outs = again()
        return outs, [Zero(x) for x in outs]
    if rule.jvp is not None:
        return slots.jvp(rule, lanes or (), operands, ts, again)
    if rule.bwd is not None and rule.derive_jvp:
        found = slots.fwd_res(rule, lanes or (), operands, mask, again)
        pull = Pull.of(rule, lanes, mask, found)
        return found.outs, transposed_bwd(
            pull, operands[: pull.captured], found.residuals, pull.perturbed(ts)
        )
    raise MissingRuleError(f"forward mode through {rule.name}: {rule.no_forward}")


def _linearize(
    primals: Values, tangents: Values, *, rule: CustomRule, lanes: Lanes | None, jaxpr: Jaxpr | None = None
) -> tuple[Any, Any]:
    operands, ts = list(_own(rule, primals)), _own(rule, tangents)
    mask = perturbed(ts)
    count = len(rule.captures)
    if rule.plain is not None and (rule.bwd is None or any(mask[:count])):
        return forward.jvp(_plain(rule, lanes), operands, ts)
    if rule.bwd is None or not any(mask[count:]):
        if rule.jvp is None and any(mask[count:]):
            raise MissingRuleError(f"reverse mode through {rule.name}: {rule.no_reverse}")
        push = partial(_jvp, primals, tangents, rule=rule, lanes=lanes, by="grad")
        return recorded_jvp(rule.name, push, ts)
    rule = _marked(rule, mask, "grad")

    def again() -> list[Any]:
        return custom_call_p.bind(*operands, rule=rule, lanes=lanes)

    found = slots.fwd_res(rule, lanes or (), operands, mask, again)
    pull = Pull.of(rule, lanes, mask, found)
    residuals = found.residuals
    if found.materialized and any(is_abstract(x) for x in residuals):
        pull, residuals = pull.traced_now(operands[:count], residuals)
    known = [*operands[:count], *residuals, *(operands[count:] if rule.jvp is not None else ())]
    pushed = iter(custom_linear_p.bind(*known, *chosen(ts, mask), pull=pull))
    return found.outs, [next(pushed) if m else Zero(x) for x, m in zip(found.outs, pull.moving)]


# --- transposition -------------------------------------------------------------------------------------------


def _transpose(
    cts: Values, *args: Any, rule: CustomRule, lanes: Lanes | None, jaxpr: Jaxpr | None = None
) -> list[Any]:
    """Cotangents of operands in which the function is linear: a user's rule applied it to a tangent."""
    if rule.transpose is not None:
        operands = _own(rule, args)
        return [None] * (len(args) - len(operands)) + slots.transpose(rule, lanes or (), cts, operands)
    if rule.bwd is not None:
        operands = _own(rule, args)
        return [None] * (len(args) - len(operands)) + _transposed_by_bwd(cts, operands, rule, lanes)
    if jaxpr is None:
        jaxpr, captured = close(
            _traced(rule, lanes, [a.aval if type(a) is Linear else aval_of(a) for a in args])
        )
        return call_p.rule("transpose")(cts, *captured, *args, jaxpr=jaxpr)[len(captured) :]
    return call_p.rule("transpose")(cts, *args, jaxpr=jaxpr)


def _transposed_by_bwd(cts: Values, operands: Values, rule: CustomRule, lanes: Lanes | None) -> list[Any]:
    mask = tuple([type(x) is Linear for x in operands])
    if any(mask[: len(rule.captures)]):
        raise CapturedTracerError(f"{rule.name}: a linear value is captured; pass it as an argument")
    known = [x for x, m in zip(operands, mask) if not m]
    linear = [x.aval.strong() for x in chosen(operands, mask)]
    nonzero = perturbed(cts)

    def pulled(*values: Any) -> list[Any]:
        moving, rest = iter(values[: len(linear)]), iter(values[len(linear) :])
        ins = [next(moving) if m else next(rest) for m in mask]
        outs: list[Any] = []

        def again() -> list[Any]:
            outs[:] = custom_call_p.bind(*ins, rule=rule, lanes=lanes)
            return outs

        found = slots.fwd_res(rule, lanes or (), ins, mask, again)
        pull = Pull.of(rule, lanes, mask, found)
        everything = [next(rest) if m else Zero(a) for a, m in zip(pull.outs, nonzero)]
        given = chosen(everything, pull.moving)
        back = pull.pulled(ins[: pull.captured], found.residuals, given)
        return [zeros(a) if ct is None or type(ct) is Zero else ct for ct, a in zip(back, linear)]

    avals = [*linear, *[aval_of(x) for x in known], *[aval_of(ct) for ct in chosen(cts, nonzero)]]
    jaxpr, captured = close(stage(pulled, avals, rule.name))
    needed = independent(jaxpr, jaxpr.invars[len(captured) : len(captured) + len(linear)])
    if needed is None:
        raise GradientError(f"{rule.name} is not linear: its reverse rule reads the values of its arguments")
    found = iter(
        call_p.bind(*captured, *[zeros(a) for a in linear], *known, *chosen(cts, nonzero), jaxpr=needed)
    )
    return [next(found) if m else None for m in mask]


def _linear_transpose(cts: Values, *args: Any, pull: Pull) -> list[Any]:
    known = args[: pull.known]
    count = pull.captured
    saved = known[count : len(known) - (pull.rule.arity if pull.rule.jvp is not None else 0)]
    found = pull.pulled(known[:count], saved, cts)
    return [None] * len(known) + found


# --- batching ------------------------------------------------------------------------------------------------


def _batch(
    size: int,
    args: Values,
    dims: Sequence[int | None],
    *,
    rule: CustomRule,
    lanes: Lanes | None,
    jaxpr: Jaxpr | None = None,
) -> tuple[Any, Any]:
    operands, own = _own(rule, args), tuple(_own(rule, dims))
    if rule.vmap is not None:
        for c, d in zip(rule.captures, own):
            if d is not None:
                raise CapturedTracerError(
                    f"{rule.name}: '{c.name}' is mapped by vmap but is captured by a function with a vmap rule; "
                    "pass it as an argument, so that the rule can see its axis"
                )
        return slots.vmap(rule, size, operands, own)
    outs = custom_call_p.bind(*operands, rule=rule, lanes=((size, own), *(lanes or ())))
    return outs, (0,) * len(outs)


def _effects(*, rule: CustomRule, lanes: Lanes | None, jaxpr: Jaxpr | None = None) -> Effect:
    return Effect.NONE if jaxpr is None else jaxpr.effects


custom_call_p: Primitive = Primitive(
    "custom_call",
    _abstract,
    _impl,
    jvp=_jvp,
    linearize=_linearize,
    stage=_stage,
    transpose=_transpose,
    batch=_batch,
    effects=_effects,
    multiple=True,
    inlined=True,
    ruled=True,
)


def _pushed(pull: Pull, *args: Any) -> list[Any]:
    """Tangents of the outputs that have one: the linear map itself, by the rule's jvp or its bwd transposed."""
    known, tangents = args[: pull.known], args[pull.known :]
    rule, count = pull.rule, pull.captured
    if rule.jvp is None:
        if not rule.derive_jvp:
            raise MissingRuleError(f"forward mode through {rule.name}: {rule.no_forward}")
        found = transposed_bwd(pull, known[:count], known[count:], tangents)
    else:
        operands = [*known[:count], *known[len(known) - rule.arity :]]
        given = iter(tangents)
        ts = [next(given) if m else Zero(x) for x, m in zip(operands[count:], pull.mask)]
        _, found = slots.jvp(
            rule,
            pull.lanes,
            operands,
            [*[Zero(x) for x in operands[:count]], *ts],
            lambda: custom_call_p.bind(*operands, rule=rule, lanes=pull.lanes or None),
        )
    return [zeros(a) if type(t) is Zero else t for t, a, m in zip(found, pull.outs, pull.moving) if m]


def _linear_impl(*args: Any, pull: Pull) -> list[Any]:
    return tracing(eval_trace, _pushed, pull, *args)


#: The derivative of a rule that has a reverse rule, on the tape: to be transposed, or evaluated by ``linearize``.
custom_linear_p: Primitive = Primitive(
    "custom_linear",
    lambda *avals, pull: tuple([a for a, m in zip(pull.outs, pull.moving) if m]),
    _linear_impl,
    jvp=lambda primals, tangents, *, pull: forward.jvp(partial(_pushed, pull), primals, tangents),
    transpose=_linear_transpose,
    batch=lambda size, args, dims, *, pull: batching.batch(partial(_pushed, pull), size, args, dims),
    expand=lambda *avals, pull: stage(partial(_pushed, pull), avals, pull.rule.name),
    multiple=True,
)
