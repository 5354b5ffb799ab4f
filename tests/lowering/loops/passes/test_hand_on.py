"""What an iteration stores and the next one reads is handed on in a variable, whatever else is stored in the array."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X = np.random.default_rng(5).uniform(0.1, 1.0, (6, 14))


def text_of(f):
    return ft.jit(f).lower(X).as_text("python")


def paths(x):
    """The longest path through a table: each element from two neighbours."""

    def cell(i, j, y):
        return y.at[i, j].set(y[i, j] + fnp.maximum(y[i - 1, j], y[i, j - 1]))

    return lax.fori_loop(1, 6, lambda i, y: lax.fori_loop(1, 14, lambda j, y: cell(i, j, y), y), x)


def test_the_derivative_of_a_table_goes_through_variables():
    def slope(x):
        return ft.grad(lambda x: paths(x)[-1, -1])(x)

    assert re.search(r"= s\d*\n", text_of(slope))
    y = X.copy()
    for i in range(1, 6):
        for j in range(1, 14):
            y[i, j] += max(y[i - 1, j], y[i, j - 1])
    steps = np.zeros_like(X)
    i, j = 5, 13
    while i and j:  # the derivative is one along the longest path
        steps[i, j] = 1.0
        i, j = (i - 1, j) if y[i - 1, j] > y[i, j - 1] else (i, j - 1)
    steps[i, j] = 1.0
    np.testing.assert_array_equal(ft.jit(slope)(X), steps)


def test_loops_without_iterations_read_nothing():
    def f(x, n):
        def body(k, x):
            x = x.at[0, k].set(fnp.sin(x[0, k - 1]))
            return x.at[1, k].add(x[0, k])

        return lax.fori_loop(1, n, body, x)

    for n in (-3, 0, 1, 2, 14):
        with ft.disable_jit():
            expected = f(fnp.asarray(X), n)
        np.testing.assert_allclose(ft.jit(f)(X, n), expected, rtol=1e-14)


def random_recurrence(rng):
    """A loop that reads and writes elements of two rows near the one with its number."""
    reverse = bool(rng.integers(2))
    first, last = 1, int(rng.integers(9, 12))
    steps = [
        (rng.choice(["read", "add", "set"]), rng.integers(2), rng.integers(3))
        for _ in range(rng.integers(3, 6))
    ]

    def f(x):
        def body(i, k, x):
            k = last - 1 - (k - first) if reverse else k
            value = x[i, k]
            for what, row, shift in steps:
                place = i + row, k + shift
                if what == "read":
                    value = 0.5 * x[place] + 0.3 * value
                elif what == "add":
                    x = x.at[place].add(0.2 * value)
                else:
                    x = x.at[place].set(fnp.sin(value))
            return x

        return lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(first, last, lambda k, x: body(i, k, x), x), x)

    return f


def agrees(seed):
    f = random_recurrence(np.random.default_rng(seed))

    def both(x):
        value, pull = ft.vjp(f, x)
        return value, pull(fnp.cos(value))[0]

    with ft.disable_jit():
        expected = both(fnp.asarray(X))
    for found, wanted in zip(ft.jit(both)(X), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12, err_msg=f"seed {seed}")


@pytest.mark.parametrize("seed", [1, 6, 9, 11, 14, 36])
def test_random_recurrences(seed):
    agrees(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 110))
def test_more_random_recurrences(seed):
    agrees(seed)
