"""Programs whose kernels are counted: what few programs contain, hooks, callbacks, collectives, budgets, counters."""

import numpy as np
from pass_programs import X
from work_programs import A, N, V, W, curvature_of, lanes_of, total

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.runtime.config import config

# --- numbers ------------------------------------------------------------------------------------------------


def complex_functions(x, y):
    z, w = lax.complex(x, y), lax.complex(y, x)
    single = z.astype(fnp.complex64)
    results = (
        z**w, z**3, fnp.log1p(z), fnp.expm1(w), fnp.sqrt(z), fnp.tanh(z), fnp.arcsin(w), fnp.log2(z), fnp.log10(w),
        fnp.exp2(z), fnp.maximum(z, w), fnp.minimum(z, w), z < w, z <= w, z > w, z >= w, z == w, z != w,
        fnp.log1p(single), fnp.expm1(single), fnp.exp2(single), single**single, fnp.max(z), fnp.argmin(w),
        fnp.sort(z),
    )  # fmt: skip
    return [y.real + 2.0 * y.imag if fnp.iscomplexobj(y) else y for y in results]


def powers(x, i):
    return (
        x**0, x**1, x**2, x**-1, x**5, x**-3, x**0.5, x**-0.5, x**1.5, x**2.0, x**i, 2.0**x, 1.0**x, i**2, i**3,
        fnp.float_power(i, 2), fnp.power(x, x), lax.integer_pow(x, 7), fnp.cbrt(x), fnp.reciprocal(x),
        fnp.sqrt(x) ** 2,
    )  # fmt: skip


def rounded(x, i):
    below = i - 12
    return (
        fnp.floor(x * 3), fnp.round(x, 1), fnp.trunc(-x * 2), fnp.sign(x - 1), x // 0.3, x % 0.3, fnp.fmod(-x, 0.4),
        fnp.divmod(below, 5), fnp.fmod(below, 5), below >> 1, below << 2, fnp.remainder(below, -7),
        fnp.copysign(x, -1.0), fnp.nextafter(x, 2.0), fnp.frexp(x), fnp.ldexp(x, 3), fnp.heaviside(x - 1, 0.5),
        fnp.clip(below, -3, 4), fnp.gcd(i, 6), fnp.isfinite(x), fnp.isnan(x), fnp.signbit(-x), fnp.hypot(x, 2.0),
    )  # fmt: skip


def narrow_integers(i):
    a, b = i.astype(fnp.int8), i.astype(fnp.uint16)
    return (
        a * a + 1,
        b - 3,
        a // 2,
        b << fnp.uint16(3),
        fnp.cumsum(a),
        fnp.sum(b, dtype=fnp.uint16),
        ~a,
        -b,
        a > b,
    )


def special(x):
    from functrans.scipy import special as s

    return (
        s.gammaln(x), s.digamma(x), s.polygamma(1, x), s.erf(x), s.erfc(x), s.erfinv(x - 0.6), s.ndtr(x),
        s.log_ndtr(x),
        s.expit(x), s.logit(x * 0.5), s.i0e(x), s.gammainc(2.0, x), s.xlogy(x, x), s.logsumexp(x), s.entr(x),
    )  # fmt: skip


# --- indices and rows ---------------------------------------------------------------------------------------


def spaced_rows(x):
    """Rows of integers at even distances: shifted, scaled, cut, negative, in matrices."""
    walk = lambda rows, of: lax.scan(lambda c, i: (c + fnp.sum(x[of(i)]), None), 0.0, rows)[0]
    n = fnp.arange(24)
    return (
        walk(n, lambda i: i), walk(n + 3, lambda i: i - 3), walk(n * 2, lambda i: i // 2),
        walk(5 - n[:4], lambda i: i),
        walk(n[2:20:3], lambda i: i), walk(n.reshape(4, 6), lambda i: i),
        walk((n.reshape(4, 6) * 2)[1:, ::2], lambda i: i),
        walk(2 * n[:9] + 1, lambda i: i), walk(n[::-1], lambda i: i), walk(n * n[3], lambda i: i % 24),
        walk(n[:4] + n[1], lambda i: i), walk(fnp.stack([n[:5], n[5:10]]), lambda i: i),
        walk(n[4:8] - 3, lambda i: i), walk(n[:2].reshape(2, 1), lambda i: i),
    )  # fmt: skip


def counted_carries(x, n):
    """Carries that count, or nearly: by one, by two, backwards, read at the end, as arrays, as floats."""
    over = lambda first, step, read: lax.scan(
        lambda s, a: ((step(s[0]), s[1] + read(s[0]) * a), None), (first, 0.0), x
    )
    return (
        over(0, lambda i: i + 1, lambda i: x[i])[0][1], over(3, lambda i: 1 + i, lambda i: x[i % 24])[0][1],
        over(0, lambda i: i + 2, lambda i: x[i % 5])[0][1], over(23, lambda i: i - 1, lambda i: x[i])[0][1],
        over(0, lambda i: i + 1, lambda i: x[i])[0][0], over(0.0, lambda i: i + 1, lambda i: i)[0][1],
        over(n, lambda i: i + 1, lambda i: x[i % 24])[0][1], over(n, lambda i: i, lambda i: x[i])[0][1],
        over(fnp.int32(0), lambda i: i + 1, lambda i: x[i])[0][1],
        lax.fori_loop(2, n, lambda i, s: (s[0] + 1, s[1] * x[s[0]]), (0, 1.0))[1],
        lax.scan(lambda s, a: ((s[0] + 1, s[1] + x[s[0]] * a), None), (0, 0.0), x, reverse=True)[0][1],
    )  # fmt: skip


def parts_of_parts(x, m, i):
    return (
        x[2:20][3:9:2], fnp.concatenate([x[:3], x[3:6], x[9:12]])[2:8], fnp.flip(x)[::2][1:],
        x.at[2:9].add(x[3:10]).at[4].set(0.0), x.at[i % 24].add(1.0)[3:5], m[:, 2][1:4], m.T[1][::-1],
        m[1:3, 2:4].at[0].set(1.0),
        fnp.roll(m, 1, 0)[:, ::2], fnp.pad(x[1:4], (2, 1))[1:5], fnp.reshape(m[1:3], (3, 4))[:, 1], m[i[1] % 6, ::-1],
        lax.dynamic_slice(x, (i[2],), (4,))[1:3], lax.dynamic_update_slice(x, x[:3] * 2, (i[3] - 9,)),
        fnp.diagonal(m),
        fnp.where(m > 1, m, 0.0)[2], fnp.take(m, i[:3] % 6, axis=1), m[(i[:3] % 6, i[1:4] % 6)],
        x[fnp.arange(5) * 2 + 1],
    )  # fmt: skip


def chained_sums(x, i):
    """Cotangents of many parts of one array: neighbouring, overlapping, equal, indexed, of windows of windows."""
    y = fnp.sin(x)
    z = y[3:20]
    return (
        y[0] * y[1] * y[5], y[2:6] * y[3:7], y[i[0]] * y[i[1]], z[2:5] * z[4:7], z[1] * y[i[2]], y[::3] * 2.0,
        fnp.sum(y[4:9]), fnp.concatenate([y[:2], y[5:6], y[:2]]), fnp.reshape(y, (4, 6))[1, 2:4], y[-1] * y[-2],
    )  # fmt: skip


def pairs(x, m):
    """Sums of symmetric and antisymmetric arrays along both axes."""
    d = x[:, None] - x[None, :]
    s = x[:, None] * x[None, :]
    arrays = [
        d, -d, d * d, d**3, d**2, abs(d), fnp.sign(d), fnp.cos(d), d / (1.0 + d * d), d * s, d / s,
        fnp.maximum(s, d * d),
        fnp.where(d * d > 0.1, d, 0.0), fnp.where(s > 1.0, s, d * d), fnp.exp(d), s + s.T, d * d * s,
        fnp.sin(s), d * x[:, None],
        m + m.T, m - m.T, m * m, fnp.minimum(m, m.T), fnp.exp(-d * d) * fnp.eye(6),
    ]  # fmt: skip
    return [(fnp.sum(a, 0), fnp.sum(a, 1)) for a in arrays]


def reshaped(x, m):
    a = fnp.reshape(fnp.sin(fnp.reshape(x, (4, 6))), (2, 12))
    return (
        fnp.reshape(a * 2.0, (24,)) + x, fnp.sum(fnp.reshape(m, (4, 9)), 0), fnp.ravel(m.T),
        fnp.squeeze(x[:, None] * 2.0, 1),
        fnp.expand_dims(fnp.cos(x), (0, 2)), fnp.reshape(fnp.cumsum(m, 0), (9, 4)) * 1.5,
        fnp.broadcast_to(x[:1], (3, 1)),
        fnp.reshape(fnp.transpose(fnp.reshape(x, (2, 3, 4)), (2, 0, 1)), (4, 6)),
        fnp.swapaxes(m, 0, 1).reshape(36)[::5],
        fnp.reshape(m[:, :1] * 2.0, (6,)), fnp.moveaxis(fnp.reshape(x, (2, 3, 4)), 0, -1),
    )  # fmt: skip


# --- loops --------------------------------------------------------------------------------------------------


def scans_to_join(x, m):
    """Scans of which one reads the rows of another."""
    big = fnp.reshape(fnp.tile(x, 70), (7, 240))
    rows, sums = lax.scan(lambda c, r: (c * 0.5 + r, (c * r, fnp.sum(r))), big[0], big)[1]
    first = lax.scan(lambda c, r: (c + fnp.sum(r[0] * r[1]), c), 0.0, (rows, big))
    also = lax.scan(lambda c, r: (c + r, None), 1.0, sums)[0]
    back = lax.scan(
        lambda c, r: (c * 0.9 + fnp.sum(r), None), 0.0, lax.map(fnp.exp, big * 0.1), reverse=True
    )[0]
    kept = lax.map(fnp.sin, big)
    return first, also, back, fnp.max(kept), lax.scan(lambda c, r: (c + fnp.sum(r), None), 0.0, kept)[0]


def batched_loops(x, n):
    """Loops whose lanes run differently often, with products and small arrays."""
    steps = lambda a, k: lax.fori_loop(0, k, lambda i, c: c * a + i, a)
    search = lambda a, k: lax.while_loop(
        lambda s: (s[0] < k) & (s[1] < 9.0), lambda s: (s[0] + 1, s[1] * (1 + a)), (0, a)
    )
    pair = lambda a, k: lax.while_loop(lambda s: fnp.sum(s) < k, lambda s: s * 1.5 + a, fnp.stack([a, 2 * a]))
    either = lambda a, k: lax.switch(
        k % 3, [fnp.sin, lambda a: a * a, lambda a: lax.fori_loop(0, 3, lambda i, c: c * a, a)], a
    )
    return [ft.vmap(f)(x[:6], n[:6]) for f in (steps, search, pair, either)], ft.vmap(search, (None, 0))(
        x[0], n[:5]
    )


def unrolled_scans(x, m):
    step = lambda c, a: (fnp.sin(c) * a, c + a)
    return (
        lax.scan(step, 0.3, x, unroll=3), lax.scan(step, 0.3, x, unroll=24),
        lax.scan(step, 0.3, x[:7], unroll=2, reverse=True),
        lax.scan(lambda c, _: (c * 0.5, c), m, None, 3), lax.scan(step, 0.3, x[:1]), lax.scan(step, 0.3, x[:0]),
        lax.scan(lambda c, r: (c, r * 2), None, m)[1], lax.map(lambda r: r @ r, m, batch_size=4),
    )  # fmt: skip


def chunks(x, m):
    """Checkpoints in loops and of loops."""
    step = lambda c, a: (fnp.sin(c * a) + 0.1 * c, fnp.exp(c))
    return (
        lax.scan(step, 0.3, x, checkpoint_every=5), lax.scan(step, 0.3, x, checkpoint_every=6, reverse=True),
        lax.scan(ft.checkpoint(step), 0.3, x), ft.checkpoint(lambda x: lax.scan(step, 0.2, x)[0])(x),
        lax.scan(step, 0.3, x, checkpoint_every=24), lax.fori_loop(0, 7, lambda i, c: fnp.sin(c @ m), m),
    )  # fmt: skip


def overwritten(x, i):
    """Arrays that loops write, by place, row, slice and branch, and read before and after."""
    from_left = lax.fori_loop(1, 24, lambda k, y: y.at[k].set(y[k - 1] * x[k]), x)
    swap = lambda k, y: y.at[k].set(y[23 - k]).at[23 - k].set(y[k])
    grid = fnp.reshape(x, (4, 6))
    fill = lambda k, g: g.at[k].set(g[k - 1] * 0.5 + grid[k])
    blocks = lambda k, y: lax.dynamic_update_slice(y, fnp.sin(lax.dynamic_slice(y, (3 * k,), (4,))), (3 * k,))
    guarded = lambda k, y: fnp.where(x[k] > 1, y.at[k].mul(2.0), y)
    scattered = lambda k, y: y.at[i[k]].add(y[k] * 0.1)
    last = lambda s, a: (s.at[0].set(a * s[1]).at[1].add(s[0]), s[0])
    return (
        from_left, lax.fori_loop(0, 12, swap, x), lax.fori_loop(1, 4, fill, grid), lax.fori_loop(0, 6, blocks, x),
        lax.fori_loop(0, 9, guarded, x), lax.fori_loop(0, 9, scattered, x), lax.scan(last, x[:3], x),
        lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1].at[s[0]].set(s[1][s[0] + 1] * 2)), (0, x))[1],
    )  # fmt: skip


def until_small(x, y):
    """Reverse mode through loops of unknown length, in a scan, with arrays and a counter."""
    halve = lambda a: lax.while_loop(
        lambda s: s[0] > 0.2, lambda s: (s[0] * 0.5, s[1] + fnp.sin(s[0])), (a, 0.0)
    )[1]
    newton = lambda a: lax.while_loop(lambda s: abs(s * s - a) > 1e-8, lambda s: 0.5 * (s + a / s), a)
    return lax.scan(lambda c, a: (c + halve(a) * c, newton(a)), 0.1, x), lax.while_loop(
        lambda s: fnp.sum(s) < 90.0, lambda s: s * 1.3 + y * fnp.cos(s), x
    )


# --- calls of Python, hooks, collectives ---------------------------------------------------------------------


def doubled(x):
    return np.asarray(x) * 2.0


def called(x, m):
    """Calls of Python between kernels, in loops and branches, with other shapes of the same elements."""
    pure = lambda a: ft.pure_callback(
        doubled, ft.ShapeDtypeStruct(a.shape, a.dtype), a, vmap_method="expand_dims"
    )
    one = ft.pure_callback(doubled, ft.ShapeDtypeStruct((), float), fnp.sum(x), vmap_method="sequential")
    ft.debug.print("{}", one, ordered=True)
    flat = fnp.reshape(pure(fnp.reshape(fnp.sin(x), (4, 6))), (24,))
    in_scan = lax.scan(lambda c, r: (c + pure(r)[0], c), one, m)
    in_branch = lax.cond(one > 1.0, pure, fnp.cos, x)
    in_while = lax.while_loop(lambda s: s < 9.0, pure, 1.0)
    ft.debug.callback(lambda v: None, in_while)
    lax.fori_loop(0, 3, lambda i, c: [ft.debug.callback(lambda i: None, i), c][1], 0)
    silent = lambda: ft.debug.callback(lambda: None)
    lax.scan(lambda c, a: (c, lax.cond(a > 1.0, silent, lambda: None)), 0, x)
    return (
        flat + x,
        in_scan,
        in_branch,
        in_while,
        ft.vmap(pure)(m),
        fnp.broadcast_to(one, (5,)),
        fnp.linalg.svd(m)[1],
    )


def gradient_around_calls(x):
    """Host calls in both directions, whose results both use."""

    @ft.custom_vjp
    def f(a):
        return ft.pure_callback(doubled, ft.ShapeDtypeStruct(a.shape, a.dtype), a, vmap_method="sequential")

    f.defvjp(lambda a: (f(a), a), lambda a, ct: (f(ct) * fnp.cos(a),))
    return ft.grad(
        lambda x: fnp.sum(f(fnp.sin(x)) ** 2) + lax.scan(lambda c, a: (f(c) * a, None), 0.1, x)[0]
    )(x)


def hooked(x, m):
    """Hooks on values, rows of a loop, several values and arguments; they read values,
    and lie on each other's way."""

    def f(x):
        y, s = fnp.sin(x), fnp.cos(x)
        ft.register_hook(y, lambda ct: ct * s, mode="inline")
        ft.register_hook(y, lambda ct: fnp.clip(ct, -1.0, 1.0), mode="inline")
        z = ft.cotangent_hook(y * x, lambda ct: ct / (1.0 + ct * ct), mode="inline")
        ft.register_hook(x, lambda ct: ct * z, mode="inline")

        def body(c, r):
            h = fnp.tanh(m @ c + r)
            ft.register_hook(h, lambda ct: fnp.where(h > 0.1, ct, 0.0), mode="inline")
            return h, fnp.sum(h)

        return fnp.sum(z) + fnp.sum(lax.scan(body, z[:6], m)[1])

    second = ft.grad(lambda x: fnp.sum(ft.grad(ft.jit(f))(x) ** 2))
    return ft.grad(f)(x), ft.grad(ft.jit(f))(x), ft.vmap(ft.grad(f))(fnp.stack([x, 2 * x])), second(x)


def collected(m):
    """Collectives over the rows of a matrix."""
    neighbours = [(i, (i + 1) % 6) for i in range(6)]
    groups = [[0, 1, 2], [3, 4, 5]]

    def row(r):
        return (
            lax.psum(r, "i"), lax.pmean(r * 2, "i"), lax.pmax(r, "i"), lax.pmin(r[0], "i"), lax.axis_index("i"),
            lax.all_gather(r, "i"), lax.all_gather(r, "i", axis=1), lax.ppermute(r, "i", neighbours),
            lax.all_to_all(r, "i", 0, 0), lax.psum_scatter(r, "i"), lax.psum(r, "i", axis_index_groups=groups),
            lax.pmax(r, "i", axis_index_groups=groups), lax.all_gather(r, "i", tiled=True),
            lax.pshuffle(r, "i", [5, 3, 1, 0, 2, 4]),
        )  # fmt: skip

    def walk(r):
        return lax.scan(lambda c, a: (c + lax.psum(a * c, "i"), c), r[0], r)[0], lax.fori_loop(
            0, 3, lambda k, c: lax.pmean(c * r, "i"), r
        )

    return (
        ft.vmap(row, axis_name="i")(m),
        ft.vmap(walk, axis_name="i")(m),
        ft.vmap(lambda r: lax.psum(r, "i"), axis_name="i", in_axes=1)(m),
    )


def budgeted(budget, solver):
    """Reverse mode that may keep little."""

    def f(x):
        y = fnp.exp(fnp.sin(x) * x)
        z = lax.scan(lambda c, a: (fnp.tanh(c * a) + fnp.exp(a * c), None), 0.1, y)[0]
        return fnp.sum(fnp.cos(y) * fnp.sqrt(y + z)) + fnp.sum(fnp.cumsum(y) * fnp.log(y))

    def gradient(x):
        with config.patch(activation_memory_budget=budget, memory_budget_solver=solver):
            return ft.grad(ft.jit(f))(x)

    return gradient


UNUSUAL = {
    "complex functions": (complex_functions, V, W), "powers": (powers, V, N), "rounded": (rounded, V, N),
    "narrow integers": (narrow_integers, N), "special": (special, V), "spaced rows": (spaced_rows, V),
    "counted carries": (counted_carries, V, 9), "parts of parts": (parts_of_parts, V, A, N),
    "chained sums": (chained_sums, V, N), "pairs": (pairs, V[:6], A), "reshaped": (reshaped, V, A),
    "scans to join": (scans_to_join, V, A), "batched loops": (batched_loops, V, N),
    "unrolled scans": (unrolled_scans, V, A), "chunks": (chunks, V, A), "overwritten": (overwritten, V, N),
    "until small": (until_small, V, W), "collected": (collected, A),
}  # fmt: skip
#: Not differentiable here, or integers.
PLAIN = ("narrow integers", "rounded", "special")
CURVED = ("overwritten", "chunks", "until small", "chained sums", "pairs")
MIXED = {
    **UNUSUAL,
    **{f"gradient of {k}": (ft.grad(total(f)), *args) for k, (f, *args) in UNUSUAL.items() if k not in PLAIN},
    **{f"curvature of {k}": curvature_of(*UNUSUAL[k]) for k in CURVED},
    **{f"lanes of {k}": lanes_of(*case) for k, case in UNUSUAL.items()},
    "called": (called, V, A), "lanes of calls": (ft.vmap(gradient_around_calls), np.stack([V, W])),
    "gradient around calls": (gradient_around_calls, V), "hooked": (hooked, V, A),
    **{f"budget {b} {s}": (budgeted(b, s), X) for b in (0.2, 0.6) for s in ("dp", "greedy")},
}  # fmt: skip
