"""Laws of functions with custom rules for derivatives or `vmap`.

Rules are compared with what they replace: derivatives with automatic differentiation of the forward pass, `vmap` with a
loop. Modes without a rule, written or derived, are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ..api.derivatives import jvp, vjp
from ..api.vmap import vmap
from ..control.call import call_p
from ..core import Eqn, Jaxpr, Primitive, Trace, current_trace, tracing
from ..core.evaluation import evaluate
from ..core.values import ArrayLike, Params, PyTree
from ..custom.custom_call import custom_call_p
from ..errors import CallbackError, MissingRuleError, NoRuleError, OnceDifferentiableError, TangentError
from ..passes.toolkit import map_subjaxprs
from . import laws as _laws
from .finite_difference import directional_derivative, jacobian
from .report import LawViolation, Margin
from .setting import Setting, Wrt, proving

#: The errors of differentiating a forward pass that runs on the host.
_UNDIFFERENTIABLE = (NoRuleError, CallbackError)


def rules_keep_values(
    f: Callable[..., Any],
    *args: PyTree,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """The forward passes of rules return the values of the function itself."""
    modes = _modes(f, args, rng, wrt)
    with proving("rules return the values of the function", "rules_keep_values", f, args, rng, wrt) as s:
        tolerance = s.tolerance(rtol, atol, 1e-12, 1e-5)
        expected = s.evaluate(s.primals)
        values = {}
        if "fwd" in modes:
            values["forward mode"] = jvp(s.smooth, tuple(s.primals), tuple(s.like(s.primals)))[0]
        if "rev" in modes:
            values["reverse mode"] = vjp(s.smooth, *s.primals)[0]
        for mode, outs in values.items():
            for k, (x, y) in enumerate(zip(outs, expected, strict=True)):
                s.report.same_type(f"{mode}, output {k}", x, y)
                s.report.close(
                    f"{mode}, output {k}", x, y, tolerance, names=("the rule gives", "the function gives")
                )


def rule_is_derivative(
    f: Callable[..., Any],
    *args: PyTree,
    order: int = 1,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Custom rules equal the derivative of the forward pass, in both modes, to first or second `order`.

    If the forward pass cannot be differentiated (it runs on the host), they are compared with finite differences, to
    first order.
    """
    modes = _modes(f, args, rng, wrt)
    title = "rule = derivative of the forward pass"
    with proving(title, "rule_is_derivative", f, args, rng, wrt) as s:
        tolerance = s.tolerance(rtol, atol, 1e-7)
        weights = s.like(s.values)
        plain = without_rules(s.smooth)
        gradients = _pulled(s.smooth, weights)
        names = ("the rule gives", "its forward pass has")
        if "rev" in modes:
            expected, errors, automatic = _reverse_oracle(s, plain, weights)
            for k, (x, y) in enumerate(zip(gradients(*s.primals), expected, strict=True)):
                where = f"reverse mode, gradient in {s.names[s.active[k]]}"
                _close(s, where, x, y, tolerance, names, errors[k])
        for where, v in s.directions() if "fwd" in modes else ():
            expected, errors, automatic = _forward_oracle(s, plain, v)
            for k, (x, y) in enumerate(zip(_pushed(s.smooth, v)(*s.primals), expected, strict=True)):
                _close(
                    s, f"forward mode, direction in {where}, output {k}", x, y, tolerance, names, errors[k]
                )
        if order > 1 and modes and automatic:
            _check_second(s, modes, weights, tolerance)


def _check_second(s: Setting, modes: tuple[str, ...], weights: Sequence[Any], tolerance: Margin) -> None:
    """Second derivatives in a direction, by the last of the modes and then by each."""
    u = s.like(s.primals)
    plain = without_rules(s.smooth)
    if "rev" in modes:
        word, first, oracle = "gradient", _pulled(s.smooth, weights), _pulled(plain, weights)
        cotangents: Sequence[Any] = u
    else:
        word, first, oracle = "tangent", _pushed(s.smooth, u), _pushed(plain, u)
        cotangents = weights
    for mode in modes:
        over, along = (_pushed, u) if mode == "fwd" else (_pulled, cotangents)
        try:
            actual, expected = over(first, along)(*s.primals), over(oracle, along)(*s.primals)
        except OnceDifferentiableError:
            return
        for k, (x, y) in enumerate(zip(actual, expected, strict=True)):
            kind = "forward" if mode == "fwd" else "reverse"
            names = ("with the rule it is", "without it is")
            _close(s, f"second order: {kind} mode of the {word}, result {k}", x, y, tolerance, names)


def duality(
    f: Callable[..., Any],
    *args: PyTree,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """The forward rule and the reverse rule agree: ``<J v, w> = <v, J^T w>``."""
    if _modes(f, args, rng, wrt) == ("fwd", "rev"):
        _laws.vjp_is_adjoint(f, *args, rng=rng, wrt=wrt, rtol=rtol, atol=atol)


def cotangents_count(
    f: Callable[..., Any],
    *args: PyTree,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """The reverse rule is linear in its cotangents, together and for each output; and gradients do not change if only
    some are needed.
    """  # fmt: skip
    title = "the reverse rule is linear in the cotangents"
    if "rev" not in _modes(f, args, rng, wrt):
        return
    with proving(title, "cotangents_count", f, args, rng, wrt) as s:
        tolerance = s.tolerance(rtol, atol, 1e-9)
        outs, pull = vjp(s.smooth, *s.primals)
        u, v = s.like(outs), s.like(outs)

        def same(where: str, actual: Sequence[Any], expected: Sequence[Any], names: tuple[str, str]) -> None:
            for k, (x, y) in enumerate(zip(actual, expected, strict=True)):
                _close(s, f"{where}, gradient in {s.names[s.active[k]]}", x, y, tolerance, names)

        for k, ct in enumerate(pull(tuple([np.zeros_like(y) for y in outs]))):
            if np.any(np.asarray(ct)):
                where = f"all cotangents are zero, gradient in {s.names[s.active[k]]}"
                s.report.close(f"{where}: backward is not multiplied by the cotangent", ct, np.zeros_like(ct))
        first, second = pull(tuple(u)), pull(tuple(v))
        mixed = pull(tuple([(2.0 * a - 0.75 * b).astype(a.dtype) for a, b in zip(u, v)]))
        expected = [2.0 * np.asarray(a) - 0.75 * np.asarray(b) for a, b in zip(first, second)]
        same("cotangents 2 u - 0.75 v", mixed, expected, ("together", "one by one"))
        for k, w in enumerate(u):
            alone = pull(tuple([w if n == k else np.zeros_like(y) for n, y in enumerate(outs)]))
            missing = vjp(_output(s.smooth, k), *s.primals)[1](w)
            names = ("the others missing", "the others zero")
            same(f"the cotangent of output {k} alone", missing, alone, names)
        for k, x in enumerate(s.primals if len(s.primals) > 1 else ()):
            (gradient,) = vjp(_argument(s, k), x)[1](tuple(u))
            where = f"only {s.names[s.active[k]]} is differentiated"
            _close(s, where, gradient, first[k], tolerance, ("the gradient is", "among others it is"))


def tangents_count(
    f: Callable[..., Any],
    *args: PyTree,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """The forward rule is linear in its tangents; a missing tangent counts as zero."""
    title = "the forward rule is linear in the tangents"
    if "fwd" not in _modes(f, args, rng, wrt):
        return
    with proving(title, "tangents_count", f, args, rng, wrt) as s:
        tolerance = s.tolerance(rtol, atol, 1e-9)

        def push(v: Sequence[Any]) -> list[np.ndarray]:
            return [np.asarray(t) for t in jvp(s.smooth, tuple(s.primals), tuple(v))[1]]

        def same(where: str, actual: Sequence[Any], expected: Sequence[Any]) -> None:
            for k, (x, y) in enumerate(zip(actual, expected, strict=True)):
                _close(s, f"{where}, output {k}", x, y, tolerance)

        u, v = s.like(s.primals), s.like(s.primals)
        first, second = push(u), push(v)
        zero = [np.zeros_like(x) for x in u]
        for k, t in enumerate(push(zero)):
            where = f"all tangents are zero, output {k}: jvp is not multiplied by the tangent"
            s.report.close(where, t, np.zeros_like(t))
        mixed = push([(2.0 * a - 0.75 * b).astype(a.dtype) for a, b in zip(u, v)])
        same("tangents 2 u - 0.75 v", mixed, [2.0 * a - 0.75 * b for a, b in zip(first, second)])
        for k in range(len(u) if len(u) > 1 else 0):
            zeros = push([t if n == k else z for n, (t, z) in enumerate(zip(u, zero))])
            alone = jvp(_argument(s, k), (s.primals[k],), (u[k],))
            same(f"only {s.names[s.active[k]]} has a tangent", alone[1], zeros)


def rules_batch(
    f: Callable[..., Any],
    *args: PyTree,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Vmap equals a loop: of the function, and of its gradient, for batch axes first, last or absent; and the gradient
    of the mapped function is that of a loop, for each batch axis.
    """  # fmt: skip
    modes = _modes(f, args, rng, wrt)
    try:
        _laws.vmap_is_loop(f, *args, rng=rng, rtol=rtol, atol=atol)
    except LawViolation as violation:
        if isinstance(violation.__cause__, MissingRuleError):  # it cannot be mapped, and raises
            return
        raise
    if "rev" in modes:
        with proving("vmap of the gradient = loop", "rules_batch", f, args, rng, wrt) as s:
            gradient = _pulled(s.smooth, s.like(s.values))
            gradient.__name__ = f"gradient of {s.report.subject}"
            primals = s.primals
        _laws.vmap_is_loop(gradient, *primals, rng=rng, rtol=rtol, atol=atol)
        with proving("gradient of vmap = loop", "rules_batch", f, args, rng, wrt) as s:
            _check_gradients_of_batches(s, s.tolerance(rtol, atol, 1e-10))


def _check_gradients_of_batches(s: Setting, tolerance: Margin) -> None:
    """Here `vmap` comes first, so a rule for it takes part in the gradient."""
    weights = s.like(s.values)
    lanes = [[_laws.neighbour(s, x) for x in s.primals] for _ in range(2)]
    own = [vjp(s.smooth, *lane)[1](tuple(weights)) for lane in lanes]
    for d in range(max([x.ndim for x in s.primals]) + 1):
        axes = tuple([min(d, x.ndim) for x in s.primals])
        stacked = [np.stack(xs, axis) for xs, axis in zip(zip(*lanes), axes)]
        pull = vjp(vmap(s.smooth, in_axes=axes), *stacked)[1]
        for k, ct in enumerate(pull(tuple([np.stack([w, w]) for w in weights]))):
            for n, row in enumerate(np.moveaxis(np.asarray(ct), axes[k], 0)):
                where = f"in_axes {axes}, lane {n}, gradient in {s.names[s.active[k]]}"
                _close(s, where, row, own[n][k], tolerance, ("mapped it is", "the loop gives"))


def rules_compile(
    f: Callable[..., Any],
    *args: PyTree,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Jit changes neither values nor gradients."""
    _laws.jit_is_eager(f, *args, rng=rng, rtol=rtol, atol=atol)
    if "rev" in _modes(f, args, rng, wrt):
        _laws.jit_and_grad_commute(f, *args, rng=rng, wrt=wrt, rtol=rtol, atol=atol)


def rules_repeat(
    f: Callable[..., Any], *args: PyTree, rng: int = 0, wrt: Wrt = None, nondet_tol: float = 0.0
) -> None:
    """Two calls of the function and its rules agree, up to `nondet_tol`."""
    modes = _modes(f, args, rng, wrt)
    with proving("repeated calls agree", "rules_repeat", f, args, rng, wrt) as s:
        weights, direction = tuple(s.like(s.values)), tuple(s.like(s.primals))
        maps: dict[str, Callable[[], Sequence[Any]]] = {"value": lambda: s.evaluate(s.primals)}
        if "rev" in modes:
            _, pull = vjp(s.smooth, *s.primals)
            maps["gradient of one forward pass"] = lambda: pull(weights)
            maps["gradient"] = lambda: vjp(s.smooth, *s.primals)[1](weights)
        if "fwd" in modes:
            maps["tangent"] = lambda: jvp(s.smooth, tuple(s.primals), direction)[1]
        for what, run in maps.items():
            for k, (x, y) in enumerate(zip(run(), run(), strict=True)):
                names = ("first", "then")
                s.report.close(f"{what} {k}", x, y, Margin(atol=nondet_tol), names=names)


# --- parts --------------------------------------------------------------------------------------------------------


def _modes(f: Callable[..., Any], args: tuple[Any, ...], rng: int, wrt: Wrt) -> tuple[str, ...]:
    """Which modes have a rule, of ``'fwd'`` and ``'rev'``."""
    with proving("the function can be differentiated", "check_custom_rule", f, args, rng, wrt) as s:
        outs = s.evaluate(s.primals)
        modes = []
        for mode, derivative in (
            ("fwd", _pushed(s.smooth, s.like(s.primals))),
            ("rev", _pulled(s.smooth, s.like(outs))),
        ):
            try:
                if s.active and outs:
                    derivative(*s.primals)
                    modes.append(mode)
            except (MissingRuleError, OnceDifferentiableError):
                # Forward mode would differentiate ``backward``.
                continue
            except TangentError:
                if mode == "fwd":
                    raise
                # Reverse mode would transpose a nonlinear jvp, which `tangents_count` reports.
        return tuple(modes)


def _pushed(f: Callable[..., Any], direction: Sequence[Any]) -> Callable[..., Any]:
    """The tangents of the results, as a function of the point."""
    return lambda *xs: jvp(f, xs, tuple(direction))[1]


def _pulled(f: Callable[..., Any], weights: Sequence[Any]) -> Callable[..., Any]:
    """The gradients, for the cotangents `weights`, as a function of the point."""
    return lambda *xs: vjp(f, *xs)[1](tuple(weights))


def _output(f: Callable[..., Any], k: int) -> Callable[..., Any]:
    return lambda *xs: f(*xs)[k]


def _argument(s: Setting, k: int) -> Callable[..., Any]:
    return lambda y: s.smooth(*s.primals[:k], y, *s.primals[k + 1 :])


def _reverse_oracle(
    s: Setting, plain: Callable[..., Any], weights: Sequence[np.ndarray]
) -> tuple[list[Any], list[Any], bool]:
    """Gradients, estimates of their errors, and whether they are exact rather than numerical."""
    try:
        return [np.asarray(g) for g in _pulled(plain, weights)(*s.primals)], [0.0] * len(s.primals), True
    except _UNDIFFERENTIABLE:
        pass

    def total(xs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(sum(np.sum(y * w).real for y, w in zip(s.evaluate(xs), weights)))]

    values, errors = jacobian(total, s.primals)
    return (
        [_paired(g, x) for g, x in zip(values[0], s.primals)],
        [
            10 * (e if x.dtype.kind != "c" else e.max(axis=-1, initial=0))
            for e, x in zip(errors[0], s.primals)
        ],
        False,
    )


def _paired(slopes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A gradient in the pairing without conjugation, from slopes in real and imaginary parts."""
    return slopes[..., 0] - 1j * slopes[..., 1] if x.dtype.kind == "c" else slopes


def _forward_oracle(
    s: Setting, plain: Callable[..., Any], v: Sequence[np.ndarray | None]
) -> tuple[list[Any], list[Any], bool]:
    try:
        tangents = [np.asarray(t) for t in jvp(plain, tuple(s.primals), tuple(v))[1]]
        return tangents, [0.0] * len(tangents), True
    except _UNDIFFERENTIABLE:
        slopes, errors = directional_derivative(s.evaluate, s.primals, v)
        return slopes, [10 * e for e in errors], False


def _close(
    s: Setting,
    where: str,
    x: ArrayLike,
    y: ArrayLike,
    tolerance: Margin,
    names: tuple[str, str] = ("got", "expected"),
    error: Any = 0.0,
) -> None:
    """Equal up to a tolerance that is relative to the largest element."""
    y = np.asarray(y)
    size = np.abs(y[np.isfinite(y)]).max(initial=0)
    error = np.maximum(np.where(np.isfinite(error), error, 0.0), tolerance.rtol * size)
    s.report.close(where, x, y, tolerance, error=error, names=names)


# --- functions without their custom rules ----------------------------------------------------------------------


def without_rules(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with its custom rules removed: functions with rules become the plain functions that compute their values.

    Rules inside the plain functions stay, and so do rules that `f` itself differentiates or maps.

    Parameters
    ----------
    f : callable

    Returns
    -------
    callable
        Computes the values of `f`. Its derivatives are those of the operations in the forward passes.
    """

    @wraps(f, updated=())
    def plain(*args: Any, **kwargs: Any) -> Any:
        return tracing(_StripTrace(current_trace.get()), lambda: f(*args, **kwargs))

    return plain


class _StripTrace(Trace):
    """Runs the forward pass where a rule is applied; passes on everything else."""

    __slots__ = ()

    def __init__(self, parent: Trace):
        self.parent = parent

    def process(self, prim: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        if prim is not custom_call_p:
            return self.parent.process(prim, args, map_subjaxprs(params, _without_rules))
        if params.get("jaxpr") is not None:
            return tracing(self.parent, evaluate, params["jaxpr"], args)
        return tracing(self.parent, params["rule"].fwd, *args)


def _without_rules(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr without the rules, including all jaxprs in it."""
    return jaxpr.derive("without rules", lambda: jaxpr.replace(eqns=list(map(_plain, jaxpr.eqns))))


def _plain(eqn: Eqn) -> Eqn:
    if eqn.primitive is custom_call_p:
        return eqn.replace(primitive=call_p, params={"jaxpr": eqn.params["jaxpr"]})
    return eqn.replace(params=map_subjaxprs(eqn.params, _without_rules))
