"""Lanes of a ``while_loop`` side by side."""

from __future__ import annotations

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax


def collatz(n):
    def step(state):
        n, steps = state
        return fnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda state: state[0] > 1, step, (n, 0))[1]


def collatz_in_python(n):
    steps = 0
    while n > 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


@pytest.mark.parametrize("size", [1, 16, 63, 64, 65, 80, 1000])
def test_each_lane_takes_its_own_number_of_iterations(size):
    numbers = np.arange(size)
    expected = [collatz_in_python(n) for n in numbers]
    np.testing.assert_array_equal(ft.jit(ft.vmap(collatz))(numbers), expected)
    np.testing.assert_array_equal(ft.vmap(collatz)(numbers), expected)


def test_kernel_takes_lanes_in_groups():
    text = ft.jit(ft.vmap(collatz)).lower(np.arange(100)).compile().as_text("python")
    assert "(16,)" in text
    assert "(16,)" not in ft.jit(ft.vmap(collatz)).lower(np.arange(10)).compile().as_text("python")


def halvings(x, least):
    """Divides by zero in the iteration after the last."""
    return lax.while_loop(
        lambda s: s[0] > least, lambda s: (s[0] - 1.0, s[1] * fnp.sqrt(s[0] / s[0])), (x, x)
    )[1]


def test_results_of_a_finished_lane_are_discarded():
    x = np.arange(100.0)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(ft.jit(ft.vmap(halvings, (0, None)))(x, 0.0), x)
    slope = ft.jit(ft.vmap(ft.grad(halvings), (0, None)))(x, 0.0)
    np.testing.assert_allclose(slope, np.ones(100), rtol=1e-14)
    total = ft.jit(ft.grad(lambda x: fnp.sum(ft.vmap(halvings, (0, None))(x, 0.0))))(x)
    np.testing.assert_allclose(total, np.ones(100), rtol=1e-14)


def test_operands_of_one_lane_and_of_all():
    def root(a, tolerance):
        def going(state):
            return abs(state[0] - state[1]) > tolerance

        return lax.while_loop(going, lambda s: ((s[0] + a / s[0]) / 2, s[0]), (a, 0.0))

    a = np.linspace(0.5, 50.0, 333)
    for tolerances, axis in ((1e-13, None), (np.full(333, 1e-13), 0)):
        actual, before = ft.jit(ft.vmap(root, (0, axis)))(a, tolerances)
        np.testing.assert_allclose(actual, np.sqrt(a), rtol=1e-14)
        np.testing.assert_allclose(before, np.sqrt(a), rtol=1e-6)


def test_lanes_that_do_nothing():
    f = ft.jit(ft.vmap(lambda x: lax.while_loop(lambda x: x < 0, lambda x: x + 1, x)))
    np.testing.assert_array_equal(f(np.arange(70.0)), np.arange(70.0))


def test_not_a_number_in_some_lanes():
    x = np.where(np.arange(100) % 7 == 0, np.nan, np.arange(100.0))
    f = ft.jit(ft.vmap(lambda x: lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)))
    expected = x.copy()
    while (expected > 1).any():
        expected = np.where(expected > 1, expected / 2, expected)
    np.testing.assert_array_equal(f(x), expected)


def test_tangents_go_in_step():
    power = ft.vmap(
        lambda x, n: lax.while_loop(lambda s: s[1] > 0, lambda s: (s[0] * x, s[1] - 1), (1.0, n))[0], (0, 0)
    )
    x, n = np.linspace(0.5, 1.5, 200), np.arange(200) % 9
    value, tangent = ft.jit(lambda x: ft.jvp(lambda x: power(x, n), (x,), (np.ones(200),)))(x)
    np.testing.assert_allclose(value, x**n, rtol=1e-13)
    np.testing.assert_allclose(tangent, n * x ** np.maximum(n - 1, 0), rtol=1e-13)


def with_an_array_inside(x):
    return lax.while_loop(lambda s: s < 50.0, lambda s: s * 1.5 + fnp.sum(fnp.arange(3.0) * s), x)


def with_arrays_in_the_condition(x):
    return lax.while_loop(lambda s: fnp.all(fnp.stack([s, s + 1]) < 50.0), lambda s: s * 2.0, x)


def with_a_sort(x):
    return 2 * lax.while_loop(lambda s: s < 50.0, lambda s: s + fnp.sort(fnp.stack([s, 1.0]))[1], x)


def with_a_loop_inside(x):
    return lax.while_loop(lambda s: s < 50.0, lambda s: lax.fori_loop(0, 3, lambda i, v: v * 1.2, s), x)


def beside_its_argument(x):
    """An output is no result of the loop."""
    return lax.while_loop(lambda s: s < 50.0, lambda s: s * 2.0, x), x


LANES = [
    with_an_array_inside,
    with_arrays_in_the_condition,
    with_a_sort,
    with_a_loop_inside,
    beside_its_argument,
]


@pytest.mark.parametrize("f", LANES)
def test_lanes_with_more_than_arithmetic_on_numbers(f):
    x = np.linspace(1.0, 9.0, 100)
    expected = np.transpose([f(v) for v in x])
    np.testing.assert_allclose(ft.jit(ft.vmap(f))(x), expected, rtol=1e-14)
    np.testing.assert_allclose(ft.jit(lambda x: lax.map(f, x))(x), expected, rtol=1e-14)


def test_the_backward_pass_takes_as_many_iterations_as_each_lane():
    """The body is linear, so that the backward pass needs their number alone."""
    x, steps = np.linspace(0.5, 1.5, 100), np.arange(100) % 7

    def doubled(x, n):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2.0), (0, x))[1]

    total = lambda x: fnp.sum(ft.vmap(doubled)(x, steps) ** 2)
    for wrap in (lambda g: g, ft.jit):
        np.testing.assert_allclose(wrap(ft.grad(total))(x), 2 * x * 4.0**steps, rtol=1e-14)
