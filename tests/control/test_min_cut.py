"""What a loop keeps for its backward pass: the fewest bytes, and the right numbers from them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.control.min_cut import _smallest_cut
from functrans.core.aval import Aval
from functrans.core.ir import Var


@st.composite
def networks(draw):
    """Values with sizes, what each is computed from, which must be kept if needed, and which are wanted."""
    values = [Var(Aval((draw(st.integers(0, 5)),), np.dtype("int8"))) for _ in range(draw(st.integers(1, 8)))]
    roots = {v for i, v in enumerate(values) if i == 0 or draw(st.integers(0, 3)) == 0}
    sources = {}
    for i, v in enumerate(values):
        sources[v] = [] if v in roots else [a for a in values[:i] if draw(st.booleans())] or [values[0]]
    goal = {v for v in values if draw(st.booleans())} or {values[-1]}
    return values, sources, roots, goal


def test_large_networks_end():
    for seed in range(300):
        random = np.random.default_rng(seed)
        values = [Var(Aval((int(n),), np.dtype("int8"))) for n in random.integers(0, 6, size=25)]
        roots = {v for i, v in enumerate(values) if i == 0 or random.random() < 0.25}
        sources = {
            v: [] if v in roots else [a for a in values[:i] if random.random() < 0.3] or [values[0]]
            for i, v in enumerate(values)
        }
        goal = {v for v in values if random.random() < 0.4}
        assert follows(sources, roots, goal, _smallest_cut(sources, roots, goal))


def follows(sources, roots, goal, stored):
    """Whether the goal can be computed from what is kept."""

    known = set(stored)
    for v in sources:
        if v not in roots and known.issuperset(sources[v]):
            known.add(v)
    return known.issuperset(goal)


@settings(max_examples=150, deadline=None)
@given(networks())
def test_the_cut_is_the_smallest(network):
    values, sources, roots, goal = network

    def size(stored):
        return sum(v.aval.size for v in stored)

    cut = _smallest_cut(sources, roots, goal)
    assert follows(sources, roots, goal, cut)
    subsets = (c for n in range(len(values) + 1) for c in combinations(values, n))
    assert size(cut) == min(size(c) for c in subsets if follows(sources, roots, goal, set(c)))


def stored_bytes(f, *args, length):
    """The bytes that the first scan of a gradient stacks for each iteration."""
    jaxpr = ft.make_jaxpr(ft.grad(f))(*args)
    scan = next(e for e in jaxpr.eqns if e.primitive.name == "scan")
    rows = scan.outvars[scan.params["num_carry"] :]
    return sum(v.aval.size * v.aval.dtype.itemsize for v in rows) // length


def runge_kutta(field, c, h):
    k1 = field(c)
    k2 = field(c + h / 2 * k1)
    k3 = field(c + h / 2 * k2)
    k4 = field(c + h * k3)
    return c + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lorenz(p, n=50):
    def field(c):
        x, y, z = c
        return fnp.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])

    last = lax.scan(lambda c, _: (runge_kutta(field, c, 0.01), None), fnp.ones(3), None, length=n)[0]
    return fnp.sum(last)


def test_a_step_of_arithmetic_keeps_its_carry():
    assert stored_bytes(lorenz, np.array([10.0, 28.0, 8 / 3]), length=50) == 24


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        (lambda c, w: fnp.tanh(c), 800),  # the slope from the result, which is dear
        (lambda c, w: fnp.sin(c) * w, 800),  # the slope: the cosine
        (lambda c, w: c + 0.1 * c * (1 - c) * w, 800),
        (lambda c, w: fnp.tanh(c) * fnp.exp(w), 800),  # exp(w) is the same in all iterations
        (lambda c, w: c + fnp.sum(c * c), 800),
        (lambda c, w: c * w, 0),
        (lambda c, w: c * fnp.sum(fnp.tanh(c)), 1608),  # the sum of many is kept, beside c and tanh(c)
    ],
)
def test_residuals_of_other_bodies(body, stored):
    def f(c, w):
        return fnp.sum(lax.scan(lambda c, _: (body(c, w), None), c, None, length=3)[0])

    c, w = np.linspace(0.1, 0.5, 100), np.linspace(0.5, 1.0, 100)
    assert stored_bytes(f, c, w, length=3) == stored

    def plain(c, w):
        for _ in range(3):
            c = body(c, w)
        return fnp.sum(c)

    for d in (
        ft.grad,
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.grad(lambda *a: fnp.sum(ft.grad(f)(*a) ** 2)),
    ):
        np.testing.assert_allclose(d(f)(c, w), d(plain)(c, w), rtol=1e-9, atol=1e-12)


def test_rows_that_a_scan_returns_anyway_are_stored_once():
    def f(c):
        last, ys = lax.scan(lambda c, _: (c * c, c * 1.0), c, None, length=4)
        return fnp.sum(last) + fnp.sum(ys)

    assert stored_bytes(f, np.ones(100), length=4) <= 1600
    np.testing.assert_allclose(
        ft.grad(f)(np.array([1.1])),
        ft.grad(lambda c: fnp.sum(c**16 + c + c**2 + c**4 + c**8))(np.array([1.1])),
    )
