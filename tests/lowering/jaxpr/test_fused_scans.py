"""Scans of which one reads the rows of the other: joined where nothing else needs the rows, with the same numbers."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.jaxpr.simplify import simplify
from functrans.runtime.config import config

X = np.array([0.5, -1.0, 2.0, 0.25, 1.5])
W = np.linspace(-1.0, 2.0, 40)
SEEN = []


def step(c, a):
    return c + a, c * W


def two(c, a):
    return c + a, (c * W, (c - a) * W)


def noted(c, a):
    ft.debug.callback(SEEN.append, a)
    return step(c, a)


def total(c, r):
    return c * 0.5 + fnp.sum(r * r), None


def sums(c, r):
    return c * 0.5 + fnp.sum(r), c


def passed_on(c, r):
    return c + fnp.sum(r), c * r


def pair(first=step, second=total, start=0.0, **options):
    rows = lambda x: lax.scan(first, 0.3, x, **options)[1]
    return lambda x: lax.scan(second, start, rows(x), **options)[0]


def read_elsewhere(x):
    rows = lax.scan(step, 0.3, x)[1]
    return lax.scan(total, 0.0, rows)[0], fnp.sum(rows[1:])


def returned(x):
    rows = lax.scan(step, 0.3, x)[1]
    return lax.scan(total, 0.0, rows)[0], rows


def other_way(x):
    return lax.scan(total, 0.0, lax.scan(step, 0.3, x)[1], reverse=True)[0]


def last_first(x):
    last, rows = lax.scan(step, 0.3, x)
    return lax.scan(total, fnp.sin(last), rows)[0]


def last_later(x):
    last, rows = lax.scan(step, 0.3, x)
    return lax.scan(total, 0.0, rows)[0] + fnp.sin(last)


def as_constant(x):
    rows = lax.scan(step, 0.3, x)[1]
    return lax.scan(lambda c, a: (c * a + fnp.sum(rows), None), 0.0, x)[0]


def with_input(x):
    rows = lax.scan(step, 0.3, x)[1]
    return lax.scan(lambda c, r: (c * r[1] + fnp.sum(r[0]), c), 0.1, (rows, x))


def three(x):
    rows = lax.scan(passed_on, 0.1, lax.scan(step, 0.3, x)[1])[1]
    return lax.scan(total, 0.0, rows)[0]


def one_of_two(x):
    """The second scan reads one of two kinds of rows; the other is a result."""
    one, other = lax.scan(two, 0.3, x)[1]
    return lax.scan(sums, 0.0, one), other


def both(x):
    return lax.scan(lambda c, r: (c + fnp.sum(r[0] * r[1]), None), 0.0, lax.scan(two, 0.3, x)[1])[0]


def carried(x):
    """What the first one carries is not a row."""
    last, _ = lax.scan(lambda c, a: (c * a + W, None), W, x)
    return lax.scan(total, 0.0, last[:5, None] * W)[0]


#: How many scans are left.
CASES = {
    "the rows are read once": (pair(), 1),
    "backward": (pair(reverse=True), 1),
    "unrolled": (pair(unroll=2), 1),
    "rows come out as well": (pair(second=sums), 1),
    "small rows": (pair(first=lambda c, a: (c + a, c * W[:8])), 2),
    "other directions": (other_way, 2),
    "rows are read elsewhere": (read_elsewhere, 2),
    "rows are results": (returned, 2),
    "rows are a constant": (as_constant, 2),
    "the first one calls Python": (pair(first=noted), 2),
    "the second one begins with a result": (last_first, 2),
    "a result is read later": (last_later, 1),
    "rows of the program too": (with_input, 1),
    "three scans": (three, 1),
    "one of two kinds of rows": (one_of_two, 1),
    "both kinds of rows": (both, 1),
    "a carry": (carried, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_scans(name):
    f, count = CASES[name]
    jitted = ft.jit(lambda x: f(x))
    scans = [e for e in simplify(jitted.lower(X).jaxpr, strict=False).eqns if e.primitive.name == "scan"]
    assert len(scans) == count
    with config.patch(backend="python"):
        actual = jitted(X)
    SEEN.clear()
    with ft.disable_jit():
        expected = f(fnp.asarray(X))
    for a, b in zip(*map(ft.tree_util.tree_leaves, (actual, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert len(SEEN) == (len(X) if f is CASES["the first one calls Python"][0] else 0)
