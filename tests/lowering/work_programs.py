"""Programs whose kernels are counted: of each kind of dtype, memory, loop and branch some, with their derivatives."""

import numpy as np
from pass_programs import M, X

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.experimental import checkify
from functrans.experimental.jet import jet

V, W = X[:24], X[30:54]
A = M[:6, :6]
N = np.arange(24) * 5 % 24
BIG = np.broadcast_to(1.0, 60_000)


def total(f):
    """The sum of the inexact results, each through a sine, so that no two cotangents are equal."""

    def scalar(*args):
        leaves = ft.tree_util.tree_leaves(f(*args))
        return sum(fnp.sum(fnp.sin(y)) for y in leaves if np.issubdtype(y.dtype, np.inexact))

    return scalar


# --- dtypes -------------------------------------------------------------------------------------------------


def halves(x):
    h = x.astype(fnp.float16)
    scanned = lax.scan(lambda c, a: (c * a * fnp.float16(0.5) + c / (1 + c), c), fnp.float16(0.5), h)[1]
    return scanned, (h + fnp.exp(h)).astype(fnp.float32), fnp.where(h > 1, h, -h), fnp.max(h)


def integers(i):
    narrow, wide, bits = i.astype(fnp.int8), i.astype(fnp.int32), i.astype(fnp.uint32)
    mixed = (bits << fnp.uint32(3)) ^ (bits >> fnp.uint32(2)) | ~bits & fnp.uint32(255)
    quotients = wide // 3 + wide % 5 - abs(wide - 7)
    return narrow * narrow, mixed, quotients, fnp.sum(i.astype(fnp.uint8)), fnp.minimum(i, 4) ** 2


def hashed(i):
    """Mostly 32-bit integers beside doubles, as random numbers are."""

    def mix(x):
        for n in (13, 15, 26, 6):
            x = (x ^ (x << fnp.uint32(n))) * fnp.uint32(2654435761) + (x >> fnp.uint32(32 - n))
        return x

    return mix(i.astype(fnp.uint32)).astype(fnp.float64) * 2.0**-32


def logic(x, y):
    above, near = x > y, abs(x - y) < 0.3
    return (
        fnp.any(above & ~near),
        fnp.all(above | near),
        fnp.sum(above ^ near),
        fnp.minimum(above, near),
        above == near,
    )


def complexes(x, y):
    z = lax.complex(x, y)
    steps = lax.scan(lambda c, a: (c * a / abs(a), fnp.conj(c)), 1j + 0 * z[0], z)[1]
    return fnp.abs(fnp.exp(z) * z.imag - steps), fnp.angle(z), fnp.where(x > y, z, z[::-1]).real


def singles(x):
    y = x.astype(fnp.float32)
    return (
        fnp.cumsum(y * y[::-1]),
        fnp.sum(y, dtype=fnp.float64),
        fnp.power(y, 3),
        fnp.sqrt(y) * fnp.float32(2),
    )


# --- which loops share memory and indices -------------------------------------------------------------------


def axes(m):
    shifted = m - fnp.mean(m, axis=0)
    rows, columns = fnp.sum(shifted, 1), fnp.max(shifted.T, axis=1)
    return shifted / (1 + abs(rows[:, None])), columns * rows, fnp.argmin(m, axis=0), fnp.cumsum(m.T, axis=1)


def consumers(x, y):
    shared = fnp.exp(x) * y
    short = shared[:5] * y[3:8]
    return shared + 1, fnp.sum(shared * x), fnp.roll(shared, 3), short, shared[::-1] * shared, fnp.prod(short)


def tiny(x):
    one, none, number = x[:1], x[:0], x[3]
    return (
        one + x,
        fnp.sum(none),
        fnp.concatenate([none, one, x[2:4]]),
        number * one,
        fnp.reshape(number, (1, 1)) * x[:3],
    )


def joined(x, y):
    both = fnp.stack([x, y], 1)
    return (
        fnp.concatenate([both[1:], both[:3] * 2]),
        fnp.pad(both, ((1, 0), (0, 2)), constant_values=2),
        fnp.flip(both, 1),
    )


def places(x, i):
    far = i * 2 - 5
    return (
        x.at[far].get(mode="fill", fill_value=-1.0), x.at[far].add(x[i], mode="drop"), x.at[i].mul(2.0),
        x.at[i[:5]].max(1.2), fnp.take(x, far, mode="clip"), fnp.take_along_axis(x, i, 0), x.at[2:9:3].set(0.5),
    )  # fmt: skip


def rectangles(m, i):
    part = lax.dynamic_slice(m, (i[3], i[7]), (2, 3))
    written = lax.dynamic_update_slice(fnp.sin(m), part * 2, (i[1], 0))
    return written, fnp.tensordot(part, m[:3], 1), m.at[i[2]].set(m[:, 0]), fnp.tril(m) + fnp.triu(m, 1).T


def ordered(x, i):
    return (
        fnp.argsort(x),
        fnp.sort(x)[i],
        lax.top_k(x, 3),
        fnp.searchsorted(fnp.sort(x), x[:4]),
        fnp.median(x),
    )


def grouped(x, i):
    sums = ft.ops.segment_sum(x, i % 4, 4)
    return sums[i % 4] * x, ft.ops.segment_max(x, i % 3, 3), fnp.bincount(i % 5, length=5), fnp.cumprod(x)


def windowed(x, y):
    return (
        fnp.convolve(x, y[:5], "same"),
        fnp.interp(x, fnp.sort(y), y),
        lax.associative_scan(fnp.multiply, x),
        fnp.gradient(x),
    )


def solved(a, b):
    spd = a @ a.T + 6 * fnp.eye(6)
    root = fnp.linalg.cholesky(spd)
    return (
        fnp.linalg.solve(spd, b[:6]),
        root,
        fnp.linalg.slogdet(spd)[1],
        fnp.einsum("ij,jk,k->i", a, root, b[:6]),
    )


# --- loops and branches -------------------------------------------------------------------------------------


def exchanged(x, y):
    """A carry of three arrays that take each other's place, one of them changed."""
    step = lambda i, s: (s[1], s[2].at[i].add(s[0][i] * 2), s[0])
    return lax.fori_loop(0, 7, step, (x, y, x * y))


def passed_on(x, y):
    """Carries of the same type: one kept, one copied from another, two that are equal at first."""
    return lax.scan(lambda s, a: ((s[0], s[0] * a, s[1], fnp.sin(s[3])), s[2][0]), (x, x, y, y), W[:5])


def chosen(x, n):
    branches = [lambda x: x * 2, lambda x: x.at[1].set(x[0]), lambda x: fnp.cumsum(x), lambda x: x]
    return lax.switch(n, branches, x), lax.cond(n > 1, lambda x: (x[0], x), lambda x: (x[1], -x), x)


def nested_choices(x, y):
    def step(c, a):
        inner = lambda c: lax.cond(c < 2, lambda c: c * a + y[1], fnp.sin, c)
        return lax.cond(a > 1, inner, lambda c: c - 0.1, c), c * a

    return lax.scan(step, 0.3, x)


def uneven(x, n):
    """Loops with run-time bounds in each other, short ones, and one that nothing enters."""
    rows = lambda i, s: lax.fori_loop(i, n, lambda j, s: s + x[i] * x[j], s)
    short = lax.fori_loop(0, 3, lambda i, y: y.at[i + 1].add(y[i]), x)
    return lax.fori_loop(0, n, rows, 0.0), short, lax.fori_loop(4, 4, lambda i, s: s + 1.0, x[0])


def until(x, y):
    """A search with two conditions, whose carry has an array."""
    going = lambda s: (s[0] < x.size) & (fnp.sum(s[1]) < 30.0)
    return lax.while_loop(
        going, lambda s: (s[0] + 1, s[1].at[s[0]].mul(x[s[0]] + 1), s[2] + s[1][s[0]]), (0, y, 0.0)
    )


def reversed_rows(m, y):
    step = lambda c, r: (c * r[0][:24] + r[1], (c[::2], r[0][0]))
    return lax.scan(step, y, (0.05 * fnp.cumsum(m[:, :24], 1), m[:, 1]), reverse=True)


def summed_rows(m):
    inner = lambda c, r: (c + fnp.sin(r) * c, c)
    return ft.vmap(lambda r: lax.scan(inner, 1.0, r, unroll=2))(m), lax.map(lambda r: fnp.max(r) * r[0], m)


@ft.custom_jvp
def gentle(x):
    return fnp.where(x > 1, 2 * x - 1, x * x)


gentle.defjvp(lambda p, t: (gentle(*p), fnp.minimum(2 * p[0], 2) * t[0]))


def with_rules(x, y):
    step = ft.checkpoint(lambda c, a: (gentle(c) * 0.5 + a, fnp.exp(-c)))
    return lax.scan(step, 0.2, x), gentle(lax.stop_gradient(x) * y), ft.jit(gentle)(y)


def restored(x, y):
    """Elements are overwritten in a branch in a loop in a loop."""

    def write(i, j, s):
        return lax.cond(
            s[0][j] > 1, lambda a, t: (a.at[j].mul(y[i]), t + a[j]), lambda a, t: (a, t * y[j]), *s
        )

    return lax.fori_loop(0, 4, lambda i, s: lax.fori_loop(i, 9, lambda j, s: write(i, j, s), s), (x, 0.0))


def partly_read(x, y):
    """Loops of which rows, carries or constants are not read, some or none of them."""
    rows = lax.scan(lambda c, a: ((c[0] + a, c[1] * a), (c[0], c[1] * y[0])), (0.1, 0.2), x)[1][0]
    ends = lax.scan(lambda c, r: ((c[0] * r[0], c[1] + r[1]), r[0]), (x[0], x[1]), (x, y))[0][0]
    unread = lax.scan(lambda c, r: (c + r[0] * y[1], c), 0.1, (x, y))
    last = lax.fori_loop(0, 5, lambda i, s: (s[0] + x[i], s[1] * s[1], s[2]), (0.1, y, x))
    least = lax.while_loop(lambda s: s[0] < y[1], lambda s: (s[0] + x[0], s[1] * y, s[2] + x), (0.1, y, x))[2]
    return rows, ends, unread, last[0], last[2], least


def counting_loops(x, n):
    """Loops that count in several dtypes, both ways, to an end that is included or not, or is an array's."""
    least = fnp.minimum(n, 7)
    single = lax.while_loop(lambda s: s[0] < 3.5, lambda s: (s[0] + 1, s[1] * x[0]), (fnp.float32(0), 1.0))
    narrow = lax.while_loop(lambda s: s[0] < least, lambda s: (s[0] + 1, s[1] + x[s[0]]), (fnp.int32(0), 0.0))
    down = lax.while_loop(lambda s: s[0] >= 2, lambda s: (s[0] - 1, s[1] + x[s[0]]), (n, 0.0))
    mirrored = lax.while_loop(lambda s: n > s[0], lambda s: (s[0] + 1, s[1] * x[s[0]]), (1, 1.0))
    leaps = lax.while_loop(lambda s: s[0] <= n, lambda s: (s[0] + 2, s[1] + x[s[0]]), (0, 0.0))
    vector = lax.while_loop(lambda s: fnp.all(s[0] < 9), lambda s: (s[0] + 1, s[1] * 2), (fnp.arange(3), x))
    return single[1], narrow[1], down[1], mirrored[1], leaps[1], vector[1]


BASE = {
    "halves": (halves, V), "integers": (integers, N), "hashed": (hashed, N), "logic": (logic, V, W),
    "complexes": (complexes, V, W), "singles": (singles, V), "axes": (axes, A), "consumers": (consumers, V, W),
    "tiny": (tiny, V), "joined": (joined, V, W), "places": (places, V, N), "rectangles": (rectangles, A, N % 3),
    "ordered": (ordered, V, N), "grouped": (grouped, V, N), "windowed": (windowed, V, W), "solved": (solved, A, V),
    "exchanged": (exchanged, V, W), "passed on": (passed_on, V, W), "chosen": (chosen, V, 2),
    "nested choices": (nested_choices, V, W), "uneven": (uneven, V, 9), "until": (until, V, W),
    "reversed rows": (reversed_rows, M[:7], V), "summed rows": (summed_rows, A), "with rules": (with_rules, V, W),
    "restored": (restored, V, W), "partly read": (partly_read, V, W), "counting loops": (counting_loops, V, 9),
}  # fmt: skip


def lanes_of(f, *args):
    """Three lanes of the first argument."""
    first = np.stack([args[0], args[0][::-1], args[0] * 1])
    return ft.vmap(f, (0, *[None] * (len(args) - 1))), first, *args[1:]


EXACT = ("integers", "hashed", "logic")
VARIANTS = {
    **BASE,
    **{f"lanes of {k}": lanes_of(*case) for k, case in BASE.items()},
    **{f"gradient of {k}": (ft.grad(total(f)), *args) for k, (f, *args) in BASE.items() if k not in EXACT},
}

# --- other transformations, which are only traced and lowered ------------------------------------------------


def _along(x):
    return np.cos(np.arange(x.size)).reshape(x.shape)


def _tangent(f, x, *rest):
    return (lambda x, t, *rest: ft.jvp(lambda x: f(x, *rest), (x,), (t,))), x, _along(x), *rest


def curvature_of(f, x, *rest):
    return (
        (lambda x, t, *rest: ft.jvp(lambda x: ft.grad(total(f))(x, *rest), (x,), (t,))),
        x,
        _along(x),
        *rest,
    )


def _series(f, x, *rest):
    series = [[_along(x), np.zeros_like(x)]]
    return (lambda x, *rest: jet(lambda x: total(f)(x, *rest), (x,), series)), x, *rest


def _checks(f, *args):
    return checkify.checkify(f, errors=checkify.all_checks), *args


def _gradients_of_lanes(f, *args):
    mapped, *operands = lanes_of(f, *args)
    return ft.grad(total(mapped)), *operands


OF_FLOATS = {k: case for k, case in BASE.items() if k not in EXACT}
TRANSFORMED = {
    **{f"tangent of {k}": _tangent(*case) for k, case in OF_FLOATS.items()},
    **{f"curvature of {k}": curvature_of(*case) for k, case in OF_FLOATS.items()},
    **{f"gradient of lanes of {k}": _gradients_of_lanes(*case) for k, case in OF_FLOATS.items()},
    **{f"series of {k}": _series(*case) for k, case in OF_FLOATS.items()},
    **{f"checks of {k}": _checks(*case) for k, case in BASE.items()},
}

# --- large arrays, which are only lowered ---------------------------------------------------------------------


def parts(x, i):
    """Windows of a large array: most of it, little of it, at run-time places, and of a reshaped part."""
    most, little = x[100:], fnp.sin(x[7:40])
    inside = fnp.reshape(x[:1600], (40, 40))[3:9, 2:7]
    return (
        fnp.sum(most * most),
        little,
        lax.dynamic_slice(x, (i,), (50,)) ** 2,
        inside * 2,
        x.at[5].set(little[0]),
    )


def turned(x, y):
    """Large carries that take each other's place, and one that small pieces of others change."""
    changed = lax.fori_loop(
        0, 9, lambda i, s: (s[1], s[0].at[i].set(s[1][0] * 2), s[2] * 0.5), (x, y, x[:50])
    )
    ring = lax.fori_loop(0, 9, lambda i, s: (s[1], s[2], s[0]), (x, y, x + y))
    return changed, ring, lax.scan(lambda s, a: ((s[1], s[0] * a + s[1]), None), (x, y), V)[0]


def kept(x, n):
    """Scratch memory that lives across kernels' loops, and a large array that a branch writes."""
    a = fnp.cumsum(fnp.sort(x))
    b = lax.cond(n > 3, lambda a: a.at[n].set(0.0), lambda a: a, a)
    return fnp.sort(b[::-1]) + a, lax.fori_loop(0, n, lambda i, s: s + b[i] * x[2 * i], 0.0)


def branches(x):
    """Rows whose work is in a branch alone."""
    row = lambda a: lax.cond(a[0] > 1.0, lambda a: fnp.sum(fnp.sin(a) * fnp.exp(a)), lambda a: a[1], a)
    return lax.map(row, x)


LARGE = {
    "branches in teams": (branches, np.broadcast_to(1.0, (3000, 40))),
    "parts": (parts, BIG, 5), "turned": (turned, BIG, BIG), "kept": (kept, BIG, 4),
    "gradient of parts": (ft.grad(total(parts)), BIG, 5),
    "gradient of turned": (ft.grad(total(turned)), BIG, BIG),
    "gradient of kept": (ft.grad(total(kept)), BIG, 4),
    "tangent of parts": (lambda x, i: ft.jvp(lambda x: parts(x, i), (x,), (x,)), BIG, 5),
}  # fmt: skip
