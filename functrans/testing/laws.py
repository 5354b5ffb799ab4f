"""The laws of transformations, each of which tests a function at a point.

Every law has the form ``law(f, *args, rng=0, ...)``: `f` takes and returns pytrees of arrays, `args` is the point,
`rng` seeds the random directions. A law that does not hold raises `LawViolation`, an `AssertionError` whose message
has the law, the direction, the largest error and a line that reproduces it. Exceptions inside a law are reported the
same way, chained.

Complex numbers pair without conjugation, as cotangents do: ``<x, y> = Re sum(x * y)``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..api.compiled.jit import jit
from ..api.derivatives import jvp, vjp
from ..api.vmap import vmap
from ..arrays.array import unwrap
from ..core import is_inexact
from ..core.values import ArrayLike, PyTree
from ..frontend.checked import checked
from ..runtime.config import config
from .complex_step import Numerical
from .report import Margin
from .setting import Setting, Wrt, pairing, proving

_MIXES = 26
"""The largest number of mixes of batched arguments: all of them for three."""


@checked
def is_smooth(f: Callable[..., Any], *args: ArrayLike, rng: int = 0, wrt: Wrt = None) -> None:
    """The function is differentiable at the point: it has no kink, step or edge of its domain there."""
    with proving("the function is differentiable", "is_smooth", f, args, rng, wrt) as s:
        for where, v in s.directions():
            if (text := s.kink(v)) is not None:
                s.report.fail(where, text)
            # It has no kinks; at poles and beyond its domain, no direction gives finite numbers.
            if s.numerical.steps.smooth:
                break


@checked
def jvp_is_slope(
    f: Callable[..., Any],
    *args: ArrayLike,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Forward mode agrees with finite differences, in all arguments together and in each alone."""
    with proving("jvp = finite differences", "jvp_is_slope", f, args, rng, wrt) as s:
        tolerance = s.tolerance(rtol, atol, 1e-7)
        for where, v in s.directions():
            slopes, errors = s.slopes(v)
            out, tangent = s.pushed(v)
            for k, (slope, error) in enumerate(zip(slopes, errors)):
                s.report.close(f"direction in {where}, value {k}", out[k], s.values[k], Margin(1e-12))
                with s.kinks_told(where, v):
                    s.report.close(
                        f"direction in {where}, output {k}",
                        tangent[k],
                        slope,
                        estimated=error,
                        names=("jvp gives", "finite differences give"),
                        hint=partial(s.argument_hint, v, k),
                        tolerance=tolerance if atol is not None else s.scaled(tolerance, slope),
                    )


@checked
def vjp_is_adjoint(
    f: Callable[..., Any],
    *args: ArrayLike,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Reverse mode is the adjoint of forward mode: ``<J v, w> = <v, J^T w>``; each output alone, too."""
    with proving("<J v, w> = <v, J^T w>", "vjp_is_adjoint", f, args, rng, wrt) as s:
        tolerance = s.tolerance(rtol, atol, 1e-9)
        outs, pull = vjp(s.smooth, *s.primals)
        everything = s.like(outs)
        weights = [everything]
        if len(outs) > 1:
            weights += [
                [w if n == k else np.zeros_like(w) for n, w in enumerate(everything)]
                for k in range(len(outs))
            ]
        gradients = [pull(tuple(w)) for w in weights]
        for i, x, ct in [(i, x, ct) for cts in gradients for i, x, ct in zip(s.active, s.primals, cts)]:
            # Types first: otherwise broadcasting hides a missing sum.
            s.report.same_type(f"the cotangent of {s.names[i]}", ct, x)
        for where, v in s.directions():
            _, tangent = s.pushed(v)
            full = [np.zeros_like(x) if d is None else d for x, d in zip(s.primals, v)]
            for w, cotangents in zip(weights, gradients):
                forward, size = pairing(tangent, w)
                backward, other = pairing(full, cotangents)
                s.report.close(
                    f"direction in {where}",
                    backward,
                    forward,
                    Margin(atol=tolerance.atol),
                    error=tolerance.rtol * max(size, other),
                    names=("<v, J^T w> is", "<J v, w> is"),
                    hint=partial(_hint, s, forward, full, w, cotangents),
                )


@checked
def vjp_is_slope(
    f: Callable[..., Any],
    *args: ArrayLike,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Reverse mode agrees with finite differences, in all arguments together and in each alone.

    `jvp_is_slope` and `vjp_is_adjoint` together say the same; this law is for reverse mode alone.
    """
    with proving("vjp = finite differences", "vjp_is_slope", f, args, rng, wrt) as s:
        tolerance = s.tolerance(rtol, atol, 1e-7)
        weights = s.like(s.values)
        gradients = vjp(s.smooth, *s.primals)[1](tuple(weights))
        for where, v in [*s.directions(), *_along(s, gradients)]:
            slopes, errors = s.slopes(v)
            full = [np.zeros_like(x) if d is None else d for x, d in zip(s.primals, v)]
            expected, size = pairing(slopes, weights)
            slope, other = pairing(full, gradients)
            error = sum(
                float(np.sum(np.where(np.isfinite(e), e, 0.0) * np.abs(w))) for e, w in zip(errors, weights)
            )
            size = max(size, other)
            with s.kinks_told(where, v):
                s.report.close(
                    f"direction in {where}",
                    slope,
                    expected,
                    Margin(atol=tolerance.atol if atol is not None else s.scaled(tolerance, size).atol),
                    error=10 * error + tolerance.rtol * size,
                    names=("the gradient gives", "finite differences give"),
                    hint=partial(_hint, s, expected, full, weights, gradients),
                )


def _hint(
    s: Setting,
    expected: float,
    v: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    gradients: Sequence[Any],
) -> str:
    """What to say of gradients whose slope in the direction `v` is not the expected one."""
    hints = s.element_hint(weights, gradients), s.conjugate_hint(expected, v, gradients)
    return "\n  ".join(filter(None, hints))


def _along(s: Setting, gradients: Sequence[Any]) -> list[tuple[str, list[np.ndarray | None]]]:
    """A direction in which no parts of the gradient cancel, if there is one."""
    uphill = [np.conj(np.asarray(g)) * s.random.uniform(0.5, 1.5, np.shape(g)) for g in gradients]
    size = max([float(np.abs(g).max(initial=0)) for g in uphill])
    if not np.isfinite(size) or size == 0:
        return []
    return [
        ("the direction of the gradient", [(g / size).astype(x.dtype) for g, x in zip(uphill, s.primals)])
    ]


@checked
def derivatives_are_linear(
    f: Callable[..., Any],
    *args: ArrayLike,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Jvp and vjp are linear in tangent and cotangent, and map zero to exactly zero."""
    with proving("derivatives are linear", "derivatives_are_linear", f, args, rng, wrt) as s:
        tolerance = s.tolerance(rtol, atol, 1e-9)
        outs, pull = vjp(s.smooth, *s.primals)
        maps = [
            ("the tangent", lambda v: jvp(s.smooth, tuple(s.primals), tuple(v))[1], s.primals),
            ("the cotangent", lambda w: pull(tuple(w)), outs),
        ]
        for where, apply, like in maps:
            u, v = s.like(like), s.like(like)
            mixed = apply([(2.0 * a - 0.75 * b).astype(a.dtype) for a, b in zip(u, v)])
            parts = zip(mixed, apply(u), apply(v), apply([np.zeros_like(a) for a in u]))
            for k, (whole, first, second, nothing) in enumerate(parts):
                first, second = np.asarray(first), np.asarray(second)
                size = max(np.abs(2.0 * first).max(initial=0), np.abs(0.75 * second).max(initial=0))
                s.report.close(
                    f"sums and multiples of {where}, result {k}",
                    whole,
                    2.0 * first - 0.75 * second,
                    error=tolerance.rtol * size,
                    tolerance=tolerance,
                )
                s.report.close(f"{where} is zero, result {k}", nothing, np.zeros_like(first))


@checked
def vmap_is_loop(
    f: Callable[..., Any],
    *args: ArrayLike,
    rng: int = 0,
    sizes: Sequence[int] = (0, 1, 3),
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Vmap equals a loop over examples, for batch axes first, last or absent, in every mix (of many: some), and between
    other axes.
    """  # fmt: skip
    with proving("vmap = loop", "vmap_is_loop", f, args, rng) as s:
        tolerance = s.tolerance(rtol, atol, 1e-10)
        places = [dict.fromkeys([None, 0, x.ndim]) for x in s.leaves]
        mixes = [
            m for m in itertools.islice(itertools.product(*places), 4096) if any(d is not None for d in m)
        ]
        if len(mixes) > _MIXES:
            mixes = [mixes[i] for i in s.random.choice(len(mixes), _MIXES, replace=False)]
        between = range(1, max([x.ndim for x in s.leaves], default=0))
        mixes += [tuple([min(d, x.ndim) for x in s.leaves]) for d in between]
        plain = [np.asarray(unwrap(y)) for y in s.flat(*s.leaves)]
        for size, mix in itertools.product(sizes, mixes):
            lanes = [[neighbour(s, x) for x in s.leaves] for _ in range(size)]
            stacked = [x if d is None else _stack([lane[i] for lane in lanes], x, d)
                       for i, (x, d) in enumerate(zip(s.leaves, mix))]  # fmt: skip
            batched = vmap(s.flat, in_axes=tuple(mix))(*stacked)
            for k, y in enumerate(plain):
                where = f"in_axes {mix}, batch of {size}, output {k}"
                s.report.same_type(where, batched[k], np.empty((size, *y.shape), y.dtype))
            for n, lane in enumerate(lanes):
                own = s.flat(
                    *[lane[i] if d is not None else x for i, (x, d) in enumerate(zip(s.leaves, mix))]
                )
                for k, y in enumerate(own):
                    where = f"in_axes {mix}, batch of {size}, lane {n}, output {k}"
                    s.report.close(
                        where, batched[k][n], y, names=("vmap gives", "the loop gives"), tolerance=tolerance
                    )


def neighbour(s: Setting, x: np.ndarray) -> np.ndarray:
    """Another value nearby; integers stay, because they may be indices."""
    if not is_inexact(x.dtype):
        return x
    return (x * (1.0 + 0.02 * s.random.uniform(-1, 1, x.shape))).astype(x.dtype)


def _stack(lanes: list[np.ndarray], like: np.ndarray, axis: int) -> np.ndarray:
    return (
        np.stack(lanes, axis) if lanes else np.zeros((*like.shape[:axis], 0, *like.shape[axis:]), like.dtype)
    )


@checked
def jit_is_eager(
    f: Callable[..., Any],
    *args: ArrayLike,
    rng: int = 0,
    backends: Sequence[str] = ("llvm", "python"),
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Kernels of every backend compute NumPy's results with NumPy's types, also for strided arguments."""
    with proving("jit = eager", "jit_is_eager", f, args, rng) as s:
        tolerance = s.tolerance(rtol, atol, 1e-12, 1e-5)
        expected = s.flat(*s.given)
        layouts = {"as given": s.given, "reversed strides": [_reversed(x) for x in s.given]}
        for backend in backends:
            with config.patch(backend=backend):
                compiled = jit(s.flat)
                for layout, leaves in layouts.items():
                    for k, (x, y) in enumerate(zip(compiled(*leaves), expected)):
                        where = f"backend {backend}, arguments {layout}, output {k}"
                        s.report.same_type(where, x, y)
                        s.report.close(
                            where, x, y, names=("the kernel gives", "NumPy gives"), tolerance=tolerance
                        )


def _reversed(x: ArrayLike) -> Any:
    """The same elements with negative strides."""
    if not isinstance(x, np.ndarray):
        return x
    every = (slice(None, None, -1),) * x.ndim
    return np.ascontiguousarray(unwrap(x)[every])[every] if x.ndim else x


@checked
def jit_and_grad_commute(
    f: Callable[..., Any],
    *args: ArrayLike,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """The gradient of a compiled function, the compiled gradient and the eager gradient are equal."""
    with proving("jit of grad = grad of jit = grad", "jit_and_grad_commute", f, args, rng, wrt) as s:
        tolerance = s.tolerance(rtol, atol, 1e-10)
        scalar = s.objective(s.like(s.values))

        def gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
            def of(*xs: ArrayLike) -> Any:
                out, pull = vjp(fun, *xs)
                return pull(np.ones((), out.dtype))

            return of

        expected = gradient(scalar)(*s.primals)
        forms = {
            "grad of jit": gradient(jit(scalar)),
            "jit of grad": jit(gradient(scalar)),
            "jit of grad of jit": jit(gradient(jit(scalar))),
        }
        for form, of in forms.items():
            for k, (x, y) in enumerate(zip(of(*s.primals), expected)):
                where = f"{form}, gradient in {s.names[s.active[k]]}"
                s.report.same_type(where, x, y)
                s.report.close(where, x, y, names=(f"{form} gives", "eager grad gives"), tolerance=tolerance)


@checked
def gradients_keep_types(f: Callable[..., Any], *args: PyTree, rng: int = 0, wrt: Wrt = None) -> None:
    """Tangents have the shapes and dtypes of outputs, cotangents those of inputs."""
    with proving("derivatives have the types of values", "gradients_keep_types", f, args, rng, wrt) as s:
        plain = s.evaluate(s.primals)
        outs, tangents = jvp(s.smooth, tuple(s.primals), tuple(s.like(s.primals)))
        vjp_outs, pull = vjp(s.smooth, *s.primals)
        for k, y in enumerate(plain):
            for what, x in (("output of jvp", outs), ("tangent", tangents), ("output of vjp", vjp_outs)):
                s.report.same_type(f"{what} {k}", x[k], y)
        for k, (x, ct) in enumerate(zip(s.primals, pull(tuple(s.like(plain))))):
            s.report.same_type(f"cotangent of {s.names[s.active[k]]}", ct, x)


@checked
def inputs_stay(f: Callable[..., Any], *args: ArrayLike, rng: int = 0, wrt: Wrt = None) -> None:
    """Arguments are never modified or aliased: changing one later changes no result and no stored vjp."""
    with proving("inputs are neither modified nor aliased", "inputs_stay", f, args, rng, wrt) as s:
        before = [x.copy() for x in s.leaves]
        mine = [x.copy() for x in s.leaves]
        primals = [mine[i] for i in s.active]
        outs, pull = vjp(s.smooth, *primals)
        weights = s.like(outs)
        cotangents = pull(tuple(weights))
        results = {
            "jit": jit(s.flat)(*mine),
            "jvp": jvp(s.smooth, tuple(primals), tuple(s.like(primals)))[0],
            "vjp": outs,
            "vmap": vmap(s.flat)(*[x[None] for x in mine]),
            "the cotangents": cotangents,
        }
        for i, x in enumerate(mine):
            s.report.close(f"{s.names[i]} after the calls", x, before[i])
            for what, ys in results.items():
                if any(np.shares_memory(x, np.asarray(y)) for y in ys):
                    s.report.fail(f"{s.names[i]} and a result of {what}", "they share memory")
        expected = [np.array(ct) for ct in cotangents]
        for x in mine:
            x[...] = 0
        for k, (x, y) in enumerate(zip(pull(tuple(weights)), expected)):
            where = f"the stored vjp, after changing the arguments, in {s.names[s.active[k]]}"
            s.report.close(where, x, y)


@checked
def hessian_is_symmetric(
    f: Callable[..., Any],
    *args: ArrayLike,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Second derivatives: forward over reverse, reverse over reverse, reverse over forward and finite differences of
    the gradient agree, and the Hessian is symmetric.
    """  # fmt: skip
    with proving("second derivatives agree", "hessian_is_symmetric", f, args, rng, wrt) as s:
        tolerance = s.tolerance(rtol, atol, 1e-6)
        weights = s.like(s.values)
        scalar = s.objective(weights)
        x, u, v = tuple(s.primals), tuple(s.like(s.primals)), tuple(s.like(s.primals))

        def gradient(fun: Callable[..., Any], *xs: ArrayLike) -> Any:
            out, pull = vjp(fun, *xs)
            return pull(np.ones((), out.dtype))

        def along(*xs: ArrayLike) -> Any:
            parts = [fnp.sum(fnp.real(g * d)) for g, d in zip(gradient(scalar, *xs), u)]
            return sum(parts[1:], start=parts[0])

        slopes, errors = Numerical(lambda *xs: vjp(s.smooth, *xs)[1](tuple(weights)), x).slopes(u)
        forms = {
            "forward over reverse": jvp(lambda *xs: gradient(scalar, *xs), x, u)[1],
            "reverse over reverse": gradient(along, *x),
            "reverse over forward": gradient(lambda *xs: jvp(scalar, xs, u)[1], *x),
        }
        for form, product in forms.items():
            for k, (slope, error) in enumerate(zip(slopes, errors)):
                s.report.close(
                    f"{form}, in {s.names[s.active[k]]}",
                    product[k],
                    slope,
                    estimated=error,
                    names=(f"{form} gives", "finite differences of the gradient give"),
                    tolerance=tolerance,
                )
        left, size = pairing(forms["forward over reverse"], v)
        right, other = pairing(jvp(lambda *xs: gradient(scalar, *xs), x, v)[1], u)
        s.report.close(
            "two random directions",
            left,
            right,
            Margin(atol=tolerance.atol),
            error=1e-3 * tolerance.rtol * max(size, other),
            names=("<H u, v> is", "<u, H v> is"),
        )
