"""Loops of unknown length, differentiated: what is beyond the random programs of tests/properties."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.testing import check


def _spread_out(p):
    """A vector that grows until it is long."""
    return lax.while_loop(lambda s: fnp.sum(s**2) < 30.0, lambda s: s * p + fnp.roll(s, 1) * 0.3, p)[0]


def _spread_out_by_python(p):
    s = p
    while fnp.sum(s**2) < 30.0:
        s = s * p + fnp.roll(s, 1) * 0.3
    return s[0]


@pytest.mark.slow
def test_third_derivatives_add_cotangents_of_tapes():
    p = np.array([1.1, 0.7, 1.3])
    expected = ft.jacfwd(ft.jacfwd(ft.jacrev(_spread_out_by_python)))(p)
    reverse = ft.jacrev(ft.jacrev(ft.jacrev(_spread_out)))
    for f in (reverse, ft.jit(reverse), ft.jacfwd(ft.jacfwd(ft.jacrev(_spread_out)))):
        np.testing.assert_allclose(f(p), expected, rtol=1e-11, atol=1e-12)
    with ft.disable_jit():
        np.testing.assert_allclose(reverse(p), expected, rtol=1e-11, atol=1e-12)


def counting(start, stop, step, shift):
    """A function of numbers and bounds, whose first loop has a literal bound."""

    def f(x, first, last):
        def going(s):
            i, y = s
            inside = i < stop if step > 0 else i > stop
            return inside & (y[0] < 1e3)

        def body(s):
            i, y = s
            return i + step, y.at[i + shift].multiply(fnp.sin(y[i] + y[i - step]) + 0.1 * i)

        y = lax.while_loop(going, body, (first, x))[1]
        return lax.while_loop(
            lambda s: s[0] < last, lambda s: (s[0] + 2, fnp.cos(s[1]) * y[s[0]]), (0, y[0])
        )[1]

    return f


COUNTS = [(0, 12, 1, 0), (11, 0, -1, 1), (1, 12, 3, -1), (12, 1, -2, 0), (5, 5, 1, 0), (-3, -12, -4, 0)]
NUMBERS = np.linspace(0.4, 1.7, 16)


@pytest.mark.parametrize("case", COUNTS)
def test_numbers_that_count_need_no_tape(case):
    f, start = counting(*case), case[0]
    slope = ft.grad(f)
    assert "tape[]<i64[]>" not in str(ft.make_jaxpr(slope)(NUMBERS, start, 6))
    with ft.disable_jit():
        expected = slope(fnp.asarray(NUMBERS), start, 6)
    np.testing.assert_allclose(ft.jit(slope)(NUMBERS, start, 6), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("case", COUNTS[:3])
def test_second_derivatives_and_batches_of_loops_that_count(case):
    f, start, step = counting(*case), case[0], case[2]
    slope = ft.jit(ft.grad(f))
    rows = np.stack([NUMBERS, 0.5 * NUMBERS, 1.2 * NUMBERS])
    firsts = np.array([start, start + step, start])
    mapped = ft.jit(ft.vmap(slope, (0, 0, None)))(rows, firsts, 6)
    np.testing.assert_allclose(mapped, [slope(r, i, 6) for r, i in zip(rows, firsts)], rtol=1e-12)
    check(lambda x: ft.jit(f)(x, start, 6), NUMBERS, order=2)


def test_what_a_condition_says_of_a_number_bounds_the_indices_of_the_derivative():
    def sink(x):
        def insert(i, a):
            number = a[i]
            going = lambda s: (s[0] >= 0) & (s[1][s[0]] > number)
            j, a = lax.while_loop(going, lambda s: (s[0] - 1, s[1].at[s[0] + 1].set(s[1][s[0]])), (i - 1, a))
            return a.at[j + 1].set(number)

        return lax.fori_loop(1, x.shape[0], insert, x)

    x = np.random.default_rng(0).normal(size=40)
    slope = ft.grad(lambda x: fnp.sum(sink(x) * fnp.arange(40.0)))
    np.testing.assert_array_equal(ft.jit(slope)(x), np.argsort(np.argsort(x)))
    # Only the place at which the inner loop ends is checked, where it is read, zeroed and added to.
    text = ft.jit(slope).lower(x).as_text("python")
    assert text.count("status |=") <= 2
    assert "reserve" not in text


@pytest.mark.wide(2)
@pytest.mark.parametrize("backend", ["llvm", "python"])
def test_tapes_of_tapes_from_branches_that_did_not_run(backend):
    """The third derivative of a loop in a loop adds empty tapes of tapes to others."""

    def turn(x):
        return 0.8 * x + 0.2 * fnp.tanh(0.1 * fnp.sum(fnp.cos(x) * x))

    def repeated(f, n):
        return lambda x: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]

    def third(f):
        hessian = ft.hessian(lambda x: fnp.sum(f(x)))
        with ft.config.patch(backend=backend):
            return ft.vjp(hessian, np.array([0.2, -0.4]))[1](np.array([[1.0, 0.5], [-2.0, 3.0]]))[0]

    np.testing.assert_allclose(
        third(repeated(repeated(turn, 1), 2)), third(lambda x: turn(turn(x))), rtol=1e-12
    )


def test_loops_without_collectives_do_not_mind_the_name_of_the_axis():
    """Lanes whose loops differ in length have tapes of their own."""

    def powers(x, n):
        return lax.fori_loop(0, n, lambda i, s: fnp.sin(s) * x, x)

    x, n = np.array([0.3, 1.2, -0.7]), np.array([0, 5, 2])
    named = ft.vmap(lambda x, n: ft.grad(powers)(x, n) + lax.psum(0.0 * x, "i"), axis_name="i")
    expected = [ft.grad(powers)(a, int(b)) for a, b in zip(x, n)]
    np.testing.assert_allclose(named(x, n), expected, rtol=1e-13)
    np.testing.assert_allclose(ft.jit(named)(x, n), expected, rtol=1e-13)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_lanes_in_step_that_begin_with_the_same_number(wrap):
    """With collectives, lanes run one loop; those that are done keep their values, whatever these began with."""

    def f(x, n, factor):
        body = lambda i, s: (s[0] * factor, s[1] + lax.psum(x * s[0], "i"))
        return lax.fori_loop(0, n, body, (1.0, x))

    x, n = np.array([0.5, -1.25, 2.0]), np.array([3, 0, 2])
    powers, sums = np.ones(3), x.copy()
    for k in range(3):  # a lane that is done still takes part
        total = np.sum(x * powers)
        going = k < n
        powers, sums = np.where(going, powers * 2.0, powers), np.where(going, sums + total, sums)
    actual = wrap(ft.vmap(f, (0, 0, None), axis_name="i"))(x, n, 2.0)
    np.testing.assert_allclose(actual[0], powers, rtol=1e-14)
    np.testing.assert_allclose(actual[1], sums, rtol=1e-13)
