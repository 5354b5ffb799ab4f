"""Functions with custom rules made of a `Spec` of `rules`, by each way to write rules."""

from __future__ import annotations

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.core.aval import Zero
from functrans.custom.custom_call import bind_rule
from functrans.custom.rule import CustomRule, Forward
from functrans.frontend.arguments import given, value_of


def bare(spec):
    """The record itself, without any front end."""
    both, again_outs = spec.options["both"], spec.options["again"]

    def fwd(values):
        return [value(y) for y in _ruled(spec, values)]

    def fwd_res(values, perturbed, again):
        found = spec.values([given(x) for x in values])
        outs = again() if again_outs else [value(found[i]) for i in spec.outs]
        saved = spec.kept(found, [given(y) for y in outs])
        return Forward(
            outs, [value(x) for x in saved.values()], tuple(saved), materialized=not spec.options["symbolic"]
        )

    def bwd(token, residuals, cts):
        saved = dict(zip(token, [given(x) for x in residuals]))
        cotangents = [None if isinstance(ct, Zero) else given(ct) for ct in cts]
        if not spec.options["symbolic"]:
            cotangents = [
                np.zeros(ct.aval.shape, ct.aval.dtype) if c is None else c for c, ct in zip(cotangents, cts)
            ]
        return [None if ct is None else value(ct) for ct in spec.pulled(saved, cotangents)]

    def jvp(values, tangents, again):
        ts = [None if isinstance(t, Zero) else given(t) for t in tangents]
        outs, moved = spec.pushed([given(x) for x in values], ts)
        outs = again() if again_outs else [value(y) for y in outs]
        return outs, [Zero(y) if t is None else value(t) for t, y in zip(moved, outs)]

    front = spec.options["front"]

    class Bare(CustomRule):
        name = "bare"
        arity = spec.count
        has_reverse = "bwd" in front or both
        has_forward = "jvp" in front or both

    Bare.fwd, Bare.fwd_res, Bare.bwd, Bare.jvp = map(staticmethod, (fwd, fwd_res, bwd, jvp))

    def apply(*xs):
        return tuple([given(y) for y in bind_rule(Bare(), [value(x) for x in xs], [fwd])])

    return apply


def _ruled(spec, values):
    found = spec.values([given(x) for x in values])
    return [found[i] for i in spec.outs]


def value(x):
    """A user's value as one of interpreters."""
    return value_of(x, lambda: "here")


def _packed(spec, xs):
    """Inputs as arguments: each its own, or all but the first in a tree."""
    return (xs[0], {"rest": list(xs[1:]), "none": None}) if spec.options["tree"] else tuple(xs)


def _unpacked(spec, args):
    return [args[0], *args[1]["rest"]] if spec.options["tree"] else list(args)


def jax_like(spec):
    """By ``custom_vjp`` or ``custom_jvp``, with both rules perhaps."""
    front, both = spec.options["front"], spec.options["both"]
    symbolic = spec.options["symbolic"]

    def fun(*args):
        return tuple(_ruled(spec, _unpacked(spec, args)))

    decorated = (ft.custom_vjp if front == "custom_vjp" else ft.custom_jvp)(fun)

    def fwd(*args):
        xs = _unpacked(spec, args)
        if symbolic:
            xs = [x.value for x in xs]
        values = spec.values(xs)
        outs = (
            decorated(*_packed(spec, xs)) if spec.options["again"] else tuple([values[i] for i in spec.outs])
        )
        return outs, spec.kept(values, outs)

    def bwd(saved, cts):
        cts = [None if isinstance(ct, Zero) else ct for ct in cts]
        return _packed(spec, spec.pulled(saved, cts))

    def jvp(primals, tangents):
        xs, ts = _unpacked(spec, primals), _unpacked(spec, tangents)
        ts = [None if isinstance(t, Zero) or fnp.asarray(x).dtype.kind == "i" else t for x, t in zip(xs, ts)]
        outs, moved = spec.pushed(xs, ts)
        return outs, moved

    if front == "custom_vjp" or both:
        decorated.defvjp(fwd, bwd, symbolic_zeros=symbolic)
    if front == "custom_jvp" or both:
        decorated.defjvp(jvp, symbolic_zeros=symbolic)
    return lambda *xs: decorated(*_packed(spec, xs))


def torch_like(spec):
    """By `Function`, with or without ``setup_context``."""
    options = spec.options
    both, front = options["both"], options["front"]
    tail = ("static", 2) if options["automatic"] else ()

    def save(ctx, values, outs):
        saved = spec.kept(values, outs)
        ctx.places = tuple(saved)
        # Some by the one way, some by the other.
        ctx.values = dict(list(saved.items())[spec.count :])
        ctx.save_for_backward(*[saved[i] for i in range(spec.count)], None)
        if options["symbolic"]:
            ctx.set_materialize_grads(False)
        if both or "jvp" in front:
            ctx.save_for_forward(*[saved[i] for i in range(spec.count)])

    def forward_a(ctx, *args):
        values = spec.values(_arguments(spec, args))
        outs = tuple([values[i] for i in spec.outs])
        save(ctx, values, outs)
        return outs

    def forward_b(*args):
        return tuple(_ruled(spec, _arguments(spec, args)))

    def setup_context(ctx, inputs, output):
        save(ctx, spec.values(_arguments(spec, inputs)), output)

    def backward(ctx, *cts):
        inputs = ctx.saved_tensors[: spec.count]
        saved = dict(enumerate(inputs)) | ctx.values
        found = spec.pulled(saved, [None if ct is None else _conj(ct) for ct in cts])
        found = [None if ct is None else _conj(ct) for ct in found]
        if options["unsummed"]:  # as a gradient that was not summed to the shape of its argument
            found = [None if ct is None else fnp.broadcast_to(0.5 * ct, (2, *ct.shape)) for ct in found]
        return (*_given_back(spec, found), *[None for _ in tail])

    def jvp(ctx, *ts):
        _, moved = spec.pushed(list(ctx.saved_tensors), _tangents(spec, ts))
        return moved

    def host(*args):
        return tuple([np.asarray(y) for y in spec.plain(*_arguments(spec, args))])

    def shape(*args):
        return tuple(ft.eval_shape(spec.plain, *_arguments(spec, args)))

    def vmap(info, in_dims, *args):
        """One example after the other."""

        def example(i, x, d):
            if d is None:
                return x
            return fnp.take(x, i, axis=d) if info.batch_size else fnp.zeros(np.delete(x.shape, d), x.dtype)

        # Of no examples at all, what one would give, without it.
        examples = range(max(info.batch_size, 1))
        rows = [drawn.apply(*[example(i, x, d) for x, d in zip(args, in_dims)]) for i in examples]
        dims = tuple([k % (y.ndim + 1) for k, y in enumerate(rows[0])])
        whole = [fnp.stack(column, axis=d) for column, d in zip(zip(*rows), dims)]
        return tuple([fnp.take(y, np.arange(info.batch_size), axis=d) for y, d in zip(whole, dims)]), dims

    members = {"jvp": jvp} if both or "jvp" in front else {}
    if both or "jvp" not in front:
        members["vjp" if spec.count % 2 else "backward"] = backward
    if "host" in front:
        members |= {"forward": host, "shape": shape, "setup_context": setup_context}
    elif options["again"]:
        members |= {"forward": forward_a}
    else:
        members |= {"forward": forward_b, "setup_context": setup_context}
    if "vmap" in front:
        members["vmap"] = vmap
    flags = {"host": True, "vmap_method": "sequential"} if "host" in front else {}
    drawn = type("Drawn", (ft.Function,), {k: staticmethod(f) for k, f in members.items()} | flags)
    return lambda *xs: drawn.apply(*_packed(spec, xs), *tail)


def _conj(x):
    return fnp.conj(x) if np.dtype(x.dtype).kind == "c" else x


def _arguments(spec, args):
    return _unpacked(spec, args) if spec.options["tree"] else list(args[: spec.count])


def _given_back(spec, gradients):
    """Gradients as arguments were."""
    if not spec.options["tree"]:
        return tuple(gradients)
    return gradients[0], {"rest": list(gradients[1:]), "none": None} if spec.count > 1 else None


def _tangents(spec, ts):
    if not spec.options["tree"]:
        return list(ts[: spec.count])
    return [ts[0], *(ts[1]["rest"] if spec.count > 1 and ts[1] is not None else [None] * (spec.count - 1))]


FRONTS = {
    "Function": torch_like,
    "Function jvp": torch_like,
    "Function host": torch_like,
    "Function vmap": torch_like,
    "bare bwd": bare,
    "bare jvp": bare,
    "custom_vjp": jax_like,
    "custom_jvp": jax_like,
}
