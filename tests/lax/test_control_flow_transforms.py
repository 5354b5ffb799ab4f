"""Loops of `functrans.lax` under derivatives and `vmap`, with captured values and odd wiring."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.testing import check

X = np.linspace(0.1, 1.0, 7)


def same(a, b):
    """Two trees of the same structure, dtypes and values."""
    assert ft.tree.structure(a) == ft.tree.structure(b)
    for x, y in zip(ft.tree.leaves(a), ft.tree.leaves(b)):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12)


@pytest.mark.slow
def test_derivatives():
    def last(c, xs):
        return lax.scan(lambda c, x: (fnp.sin(c) * x + 0.3, c * c), c, xs)

    def counted(x):
        return lax.fori_loop(0, 4, lambda i, c: fnp.sin(c) * x + i, x)

    check(last, 0.4, X, order=2)
    check(counted, 0.4, order=2)
    check(lambda x: lax.map(lambda x: fnp.sin(x) * x, x), X, order=2)
    check(lambda x: lax.map(lambda x: fnp.sin(x) * x, x, batch_size=3), X, order=2)
    check(lambda x: lax.associative_scan(fnp.multiply, x), X, order=2)
    with ft.disable_jit():
        check(last, 0.4, X[:3], order=2)


def test_vmap_is_a_loop_over_lanes():
    rows = np.random.default_rng(1).normal(size=(5, 7))

    def run(c, xs):
        return lax.scan(lambda c, x: (0.5 * c + x, c), c, xs)

    last, ys = ft.vmap(run)(X[:5], rows)
    for i in range(5):
        same((last[i], ys[i]), run(X[i], rows[i]))
    assert_allclose(ft.vmap(run, in_axes=(None, 0))(0.1, rows)[0][2], run(0.1, rows[2])[0])
    with ft.disable_jit():
        assert_allclose(ft.vmap(run)(X[:5], rows)[1], ys)
    counts = np.array([3, 0, 5])
    power = ft.vmap(lambda n, x: lax.fori_loop(0, n, lambda i, p: p * x, 1.0))
    assert_allclose(power(counts, np.array([2.0, 3.0, 0.5])), [8.0, 1.0, 0.5**5])


@pytest.mark.slow
def test_bodies_capture_values_of_every_level():
    table = np.arange(3.0)

    def f(x, y):
        def outer(c, row):
            def inner(d, _):
                return d * x + row + fnp.sum(table) * y, d

            return lax.scan(inner, c, length=2)

        return lax.scan(outer, y, X)[0]

    def loop(x, y):
        c = y
        for row in X:
            for _ in range(2):
                c = c * x + row + np.sum(table) * y
        return c

    assert_allclose(f(0.3, 0.2), loop(0.3, 0.2))
    assert_allclose(ft.jit(f)(0.3, 0.2), loop(0.3, 0.2))
    check(f, 0.3, 0.2, order=2)
    assert_allclose(ft.vmap(f, in_axes=(0, None))(X, 0.2), [loop(x, 0.2) for x in X])
    assert_allclose(ft.jit(ft.grad(lambda x: ft.jit(f)(x, x)))(0.3), ft.grad(lambda x: loop(x, x))(0.3))


ODD = {
    "swap": lambda c, x, t: ((c[1], c[0]), c[0]),
    "swap and compute": lambda c, x, t: ((c[1] * x, c[0] + x), (c[0], c[1])),
    "captured": lambda c, x, t: ((t, c[0]), t),
    "row": lambda c, x, t: ((x * fnp.ones_like(t), c[0]), x),
    "twice": lambda c, x, t: ((c[1], c[1]), (x, x)),
    "untouched": lambda c, x, t: (c, None),
    "constants": lambda c, x, t: ((fnp.zeros_like(t), fnp.ones_like(t)), (1.0, True, 2)),
    "shifted": lambda c, x, t: ((fnp.roll(c[0], 1), fnp.concatenate([c[0][1:], c[1][:1]])), c[1][0]),
    "written": lambda c, x, t: ((c[0].at[0].set(x), c[0].at[1].add(c[1][0])), None),
}


@pytest.mark.parametrize("size", [2, 100])  # in registers, in buffers
@pytest.mark.parametrize("name", ODD)
def test_odd_wiring(name, size):
    def run(a, b, t):
        return lax.scan(lambda c, x: ODD[name](c, x, t), (a, b), X)

    a, b, t = np.random.default_rng(2).normal(size=(3, size))
    given = [x.copy() for x in (a, b, t)]
    with ft.disable_jit():
        want = run(a, b, t)
    same(run(a, b, t), want)
    same(ft.jit(run)(a, b, t), want)
    assert_array_equal([a, b, t], given)

    def total(*args):
        found = ft.tree.leaves(run(*args))
        return sum(fnp.sum(fnp.sin(y) * fnp.cos(y + 1)) for y in found if y.dtype == float)

    with ft.disable_jit():
        slopes = ft.grad(total, (0, 1, 2))(a, b, t)
    for gradient in (ft.grad(total, (0, 1, 2)), ft.jit(ft.grad(total, (0, 1, 2)))):
        for x, y in zip(gradient(a, b, t), slopes):
            assert_allclose(x, y, atol=1e-12)
