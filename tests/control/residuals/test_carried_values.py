"""What an iteration computes from its carry, and the one before computed from the same numbers, is carried."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.control.residuals.carried_values import repeated_values
from functrans.lowering.jaxpr.simplify import simplify

rng = np.random.default_rng(0)
MATRIX, START = rng.normal(size=(5, 5)) / 3, rng.normal(size=5)


def force(q):
    return fnp.tanh(MATRIX @ q) @ MATRIX


def leap(state, _):
    q, p = state
    p = p - 0.05 * force(q)
    q = q + 0.1 * p
    return (q, p - 0.05 * force(q)), p[0]


def leaps(q, p, n=7, **options):
    return lax.scan(leap, (q, p), None, length=n, **options)


def body_and_outside(f, *args):
    """The names of the equations in the first scan's body, and of those beside it."""
    jaxpr = simplify(ft.jit(f).lower(*args).jaxpr)
    (scan,) = [e for e in jaxpr.eqns if e.primitive.name == "scan"]
    names = [e.primitive.name for e in scan.params["jaxpr"].eqns]
    return scan, names, [e.primitive.name for e in jaxpr.eqns]


def in_python(f, *args):
    with ft.disable_jit():
        return f(*args)


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"unroll": 3}, {"n": 0}, {"n": 1}])
def test_the_force_at_the_end_of_a_leap_is_that_at_the_start_of_the_next(options):
    def f(q, p):
        return leaps(q, p, **options)

    scan, inside, outside = body_and_outside(f, START, START)
    assert inside.count("dot_general") == 2
    assert outside.count("dot_general") == 2
    assert scan.params["num_carry"] == 3
    for strict in (False, True):
        with ft.config.patch(strict=strict):
            (q, p), rows = ft.jit(f)(START, START)
        (q0, p0), rows0 = in_python(f, START, START)
        np.testing.assert_allclose(q, q0, rtol=1e-13)
        np.testing.assert_allclose(p, p0, rtol=1e-13)
        np.testing.assert_allclose(rows, rows0, rtol=1e-13)


def test_derivatives_lanes_and_outer_loops():
    def last(q, p):
        return leaps(q, p)[0][0]

    def loss(q):
        def again(q, _):
            return last(q, fnp.sin(q)), None

        return fnp.sum(lax.scan(again, q, None, length=3)[0] ** 2)

    expected = [(loss(START + 1e-5 * e) - loss(START - 1e-5 * e)) / 2e-5 for e in np.eye(5)]
    np.testing.assert_allclose(ft.jit(ft.grad(loss))(START), expected, rtol=1e-6)
    many = rng.normal(size=(3, 5))
    np.testing.assert_allclose(
        ft.jit(ft.vmap(last))(many, many), [in_python(last, q, q) for q in many], rtol=1e-12
    )


def test_cheap_values_are_computed_again():
    def step(x, _):
        y = x + 2.0 * x
        return y, y + 2.0 * y

    scan, _, _ = body_and_outside(lambda x: lax.scan(step, x, None, length=4), START)
    assert scan.params["num_carry"] == 1


def test_what_depends_on_a_row_is_not_the_same_in_the_next_iteration():
    def step(x, r):
        y = x + fnp.sin(x) * r
        return y, fnp.exp(y * r) + fnp.exp(x * r)

    rows = np.linspace(0, 1, 4)
    scan, names, _ = body_and_outside(lambda x: lax.scan(step, x, rows), 0.5)
    assert names.count("exp") == 2
    assert scan.params["num_carry"] == 1


def test_what_may_raise_stays():
    table = fnp.arange(4.0)

    def step(i, _):
        j = (i + 1) % 4
        return j, fnp.exp(table[i]) + fnp.exp(table[j])

    f = ft.jit(lambda i: lax.scan(step, i, None, length=5)[1])
    np.testing.assert_allclose(f(0), [np.exp(k % 4) + np.exp((k + 1) % 4) for k in range(5)])
    none = ft.jit(lambda i: lax.scan(step, i, None, length=0)[1])
    assert none(9).shape == (0,)


def test_a_carry_that_swaps():
    """The value of one part of the carry is that of the other part one iteration later."""

    def step(state, _):
        x, y = state
        return (y, x), fnp.exp(x) - 2 * fnp.exp(y)

    f = ft.jit(lambda x, y: lax.scan(step, (x, y), None, length=5))
    x, y = START, START[::-1].copy()
    rows = [np.exp(x) - 2 * np.exp(y), np.exp(y) - 2 * np.exp(x)]
    (a, b), out = f(x, y)
    np.testing.assert_array_equal(a, y)
    np.testing.assert_array_equal(b, x)
    np.testing.assert_allclose(out, [rows[i % 2] for i in range(5)], rtol=1e-14)


def test_checked_kernels():
    with ft.config.patch(checked=True, verify=True):
        (q, _), _ = ft.jit(lambda q, p: leaps(q, p, n=5))(START, START)
    np.testing.assert_allclose(q, in_python(lambda q: leaps(q, q, n=5)[0][0], START), rtol=1e-13)


def test_weak_numbers_are_computed_again():
    """A carry is never weak: the type of what is computed from it would change."""

    def step(x, _):
        y = 0.5 * x + 1
        return y, y**1.7 - 2 * x**1.7

    def f(x):
        return lax.scan(step, x, None, length=4)

    scan, names, _ = body_and_outside(f, 0.5)
    assert (scan.params["num_carry"], names.count("pow")) == (1, 2)
    scan, names, _ = body_and_outside(f, np.float64(0.5))
    assert (scan.params["num_carry"], names.count("pow")) == (2, 1)
    (x, rows), (x0, rows0) = ft.jit(f)(0.5), in_python(f, 0.5)
    np.testing.assert_allclose(x, x0, rtol=1e-14)
    np.testing.assert_allclose(rows, rows0, rtol=1e-14)


def test_which_values_are_carried():
    """Those that cost more than arithmetic, and that something reads which is not computed at the start itself."""

    def body(c, d):
        dear, cheap, both = fnp.sin(c), c + 1.0, fnp.cos(c) * 2.0
        after = c * d  # the next `c`, of which `dear` and `cheap` are computed again
        return after, fnp.sin(after) + (after + 1.0) + fnp.cos(after) * 2.0 + cheap + both, dear

    jaxpr = ft.make_jaxpr(body)(START, START).jaxpr
    names = {v: e.primitive.name for e in jaxpr.eqns for v in e.outvars}
    assert [names[v] for v, _ in repeated_values(jaxpr, 0, 1)] == ["sin", "mul"]
