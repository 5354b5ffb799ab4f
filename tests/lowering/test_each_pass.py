"""Each pass: a program that it changes, with equal results; in strict mode those that move sums change nothing."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.run.executable import KernelUnit, compile_jaxpr
from functrans.runtime.config import config
from functrans.runtime.passes import PASSES

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 1.5, 400)
M = RNG.uniform(0.5, 1.5, (40, 40))


def loss(f):
    return ft.grad(lambda x: fnp.sum(f(x) ** 2))


def recursion(x):
    return lax.fori_loop(1, 30, lambda i, a: a.at[i].set(fnp.tanh(a[i - 1] * x[i])), x)


def restored(x):
    def body(i, state):
        y, s = state
        return y.at[i].set(x[i] * s), s + fnp.sum(y * y * x)

    return lax.fori_loop(0, 7, body, (x, 0.0))[1]


def leaps(q):
    force = lambda q: fnp.tanh(M @ q) @ M

    def leap(state, _):
        q, p = state
        p = p - 0.05 * force(q)
        q = q + 0.1 * p
        return (q, p - 0.05 * force(q)), p[0]

    return lax.scan(leap, (q, q), None, length=7)[1]


def smoothed(u):
    return lax.fori_loop(0, 3, lambda t, u: u.at[1:-1].add(0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])), u)


def stencil(x):
    padded = fnp.pad(x, 1)
    return padded[2:] - 2.0 * padded[1:-1] + padded[:-2]


def halvings(x):
    return lax.while_loop(lambda v: v > 0.1, lambda v: v * 0.5, x)


def forces(x):
    d = x[:, None] - x[None, :]
    f = d / (1.0 + d * d)
    return fnp.sum(f, 0), fnp.sum(f, 1)


def guarded(x, least):
    step = lambda i, y: lax.cond(y[i] > least, lambda y: y.at[i].set(0.0), lambda y: y, y)
    return lax.fori_loop(0, 9, step, x)


def counted(x):
    step = lambda s: (s[0] + 1, s[1] * x[s[0]])
    return lax.while_loop(lambda s: s[0] < 9, step, (0, 1.0))[1]


def joined(x):
    rows = lax.scan(lambda c, a: (c + a, c * M), 0.0, x)[1]
    return lax.scan(lambda c, r: (c + fnp.sum(r), None), 0.0, rows)[0]


def read_and_written(x, i):
    y = fnp.sin(x)
    return y.at[i].set(1.0), fnp.sum(y * y)


def paths(x):
    cell = lambda i, j, y: y.at[i, j].set(y[i, j] + fnp.maximum(y[i - 1, j], y[i, j - 1]))
    return lax.fori_loop(1, 6, lambda i, y: lax.fori_loop(1, 14, lambda j, y: cell(i, j, y), y), x)


def product(x):
    element = lambda i, j, c: lax.fori_loop(0, 20, lambda k, c: c.at[i, j].add(x[i, k] * x[k, j]), c)
    return lax.fori_loop(0, 20, lambda i, c: lax.fori_loop(0, 20, lambda j, c: element(i, j, c), c), 0.0 * x)


def moved_sum(x):
    return lax.fori_loop(0, 40, lambda i, s: s + x[i] * fnp.sin(x[0]), 0.0)


#: For each pass a function and its arguments.
PROGRAMS = {
    "hoisting": (moved_sum, X),
    "read_back": (loss(recursion), X),
    "economy": (loss(lambda x: lax.scan(lambda c, a: (fnp.sin(c * a) * 0.9 + fnp.exp(a), None), 0.1, x)[0]), X[:40]),
    "rewinding": (ft.grad(restored), X),
    "counting": (ft.grad(counted), X),
    "totals": (loss(lambda x: lax.fori_loop(0, 30, lambda i, s: s + x[i] * s, 1.0)), X),
    "lanes": (ft.vmap(guarded, (0, None)), np.stack([X, X]), 1.0),
    "fused_scans": (joined, X),
    "algebra": (lambda x: x * 1.0 + (2.0 - 2.0), X),
    "carried_values": (leaps, X[:40]),
    "common": (lambda x: fnp.sin(x) + fnp.exp(fnp.sin(x)), X),
    "in_place_sums": (lambda x, i: x + fnp.zeros_like(x).at[i].add(x[3]), X, 2),
    "windows": (lambda x, i: x.at[100:300].set(x[100:300].at[i].set(2.0)), X, 5),
    "narrowing": (lambda x: lax.fori_loop(0, 5, lambda i, s: (fnp.sin(s[0]), s[1] + x[i]), (0.3, 0.0))[1], X),
    "sums_of_windows": (ft.grad(lambda x: x[0] * x[5] * x[7] * x[9] + x[2] * x[11]), X),
    "mirrored_sums": (forces, X),
    "reshapes": (lambda x: fnp.sin(fnp.reshape(fnp.exp(fnp.reshape(x, (20, 20))), (400,))), X),
    "counters": (lambda x: lax.scan(lambda c, i: (c + x[i], None), 0.0, fnp.arange(100) * 2)[0], X),
    "reads_first": (read_and_written, X, 3),
    "fusion": (lambda x: (fnp.sin(x) + 1.0, fnp.cos(x)), X),
    "sharing": (lambda x, i: (2.0 * x).at[i].set(1.0), X, 3),
    "counted_loops": (lambda x: counted(x) + 1.0, X),
    "groups": (ft.vmap(halvings), X),
    "ranges": (lambda x: lax.fori_loop(1, 400, lambda i, s: s + x[i - 1], 0.0), X),
    "interior": (stencil, X),
    "versions": (lambda x, n: lax.fori_loop(0, n, lambda i, s: s + x[2 * i], 0.0), X, 100),
    "late_reads": (smoothed, X),
    "collapsing": (lambda x: fnp.sin(x) * 2.0, X.reshape(20, 20)),
    "hand_on": (ft.grad(lambda x: paths(x)[-1, -1]), M[:6, :14]),
    "holding": (product, M[:20, :20]),
    "teams": (lambda x: fnp.sin(x) * fnp.exp(x), np.ones(1 << 20)),
    "blocks": (fnp.sum, np.ones(100_000)),
    "scratch": (lambda x: fnp.cumsum(fnp.sort(fnp.cumsum(fnp.sort(fnp.sin(x))[::-1])))[::-1] + x, X),
}  # fmt: skip


#: Those whose programs are large.
BIG = ("teams", "blocks")
#: Another pass does the same where sums may be moved.
OPTIONS = {"totals": {"strict": True}}


def compiled(f, args, **options):
    """What is compiled, and its result."""
    with config.patch(num_threads=2, checked=False, **options):
        jitted = ft.jit(lambda *args: f(*args))
        executable = compile_jaxpr(jitted.lower(*args).jaxpr).compile()
        units = [u for u in executable.steps if isinstance(u, KernelUnit)]
        return (executable.as_text(), [list(u.scratch) for u in units]), jitted(*args)


def leaves_agree(compare, *trees):
    for a, b in zip(*map(ft.tree_util.tree_leaves, trees), strict=True):
        compare(a, b)


CHECKED = [p for p in PASSES if p.stage != "code"]


@pytest.mark.parametrize("which", CHECKED, ids=lambda p: p.name)
def test_a_pass_changes_its_program_and_no_result(which):
    f, *args = PROGRAMS[which.name]
    options, off = OPTIONS.get(which.name, {}), frozenset([which.name])
    with_it, result = compiled(f, args, **options)
    without, other = compiled(f, args, without=off, **options)
    assert with_it != without
    leaves_agree(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12), result, other)
    with ft.disable_jit():
        plain = f(*map(fnp.asarray, args)) if args[0].size < 1 << 20 else result
    leaves_agree(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12), result, plain)


@pytest.mark.parametrize("which", [p for p in CHECKED if p.name not in BIG], ids=lambda p: p.name)
def test_a_pass_in_strict_mode(which):
    """Passes that move sums do nothing; results of the others are the same, bit for bit."""
    f, *args = PROGRAMS[which.name]
    with_it, result = compiled(f, args, strict=True)
    without, other = compiled(f, args, strict=True, without=frozenset([which.name]))
    if which.name in ("in_place_sums", "sums_of_windows", "mirrored_sums", "holding", "hand_on"):
        assert with_it == without
    if which.exact:
        leaves_agree(np.testing.assert_array_equal, result, other)
