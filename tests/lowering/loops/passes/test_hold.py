"""Elements that loops keep in variables are those of the array, whatever else touches them."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.runtime.config import config

N = 10
X = np.random.default_rng(3).uniform(0.1, 1.0, (N, N))


def matrix_product(x):
    """A matrix product, which adds to one element."""

    def element(i, j, c):
        return lax.fori_loop(0, N, lambda k, c: c.at[i, j].add(x[i, k] * x[k, j]), c)

    return lax.fori_loop(0, N, lambda i, c: lax.fori_loop(0, N, lambda j, c: element(i, j, c), c), 0 * x)


def distances(x):
    """Floyd and Warshall: a row and an element of one array, which meet in one iteration."""

    def row(k, i, d):
        return lax.fori_loop(0, N, lambda j, d: d.at[i, j].set(fnp.minimum(d[i, j], d[i, k] + d[k, j])), d)

    return lax.fori_loop(0, N, lambda k, d: lax.fori_loop(0, N, lambda i, d: row(k, i, d), d), x)


def text_of(f):
    return ft.jit(f).lower(X).as_text("python")


@pytest.mark.parametrize(
    ("f", "parts"), [(matrix_product, 0), (distances, 1), (lambda x: ft.vjp(distances, x)[1](x)[0], 2)]
)
def test_loops_are_cut_where_an_element_is_met(f, parts):
    text = text_of(f)
    assert text.count("in range(3") == parts
    with config.patch(strict=True):
        assert text_of(f).count("in range(3") == 0
    with ft.disable_jit():
        expected = f(X)
    for backend in ("python", "llvm"):
        with config.patch(backend=backend):
            np.testing.assert_allclose(ft.jit(lambda x: f(x))(X), expected, rtol=1e-12)


def test_the_product_is_kept_in_a_variable():
    np.testing.assert_allclose(ft.jit(matrix_product)(X), X @ X, rtol=1e-13)
    assert "s = s + " in text_of(matrix_product)


def random_loop(rng):
    """A loop in two loops, which reads or adds to one element of an array, and touches a few others."""
    shift, reverse = int(rng.integers(0, 3)), bool(rng.integers(2))
    first = int(rng.integers(0, 3))
    last = first + int(rng.integers(8, 10))
    kept = rng.choice(["read", "add"]), rng.integers(2), rng.choice(["i", "j"])
    moving = [rng.choice(["k", "shifted"])] * 4 + ["k"]
    steps = [
        (rng.choice(["read", "add", "add", "set"]), rng.integers(2), rng.choice(moving))
        for _ in range(rng.integers(1, 4))
    ]
    steps.insert(rng.integers(len(steps) + 1), kept)

    def f(x):
        def body(i, j, k, x):
            k = last - 1 - (k - first) if reverse else k
            columns = {"i": i, "j": j, "k": k, "shifted": k + shift}
            value = 0.5
            for what, row, column in steps:
                place = (i, j)[row], columns[column]
                if what == "read":
                    value = 0.5 * x[place] + 0.1 * value
                elif what == "add":
                    x = x.at[place].add(0.1 * value)
                else:
                    x = x.at[place].set(fnp.sin(value))
                    value = 0.3 * value
            return x

        def inner(i, j, x):
            return lax.fori_loop(first, last, lambda k, x: body(i, j, k, x), x)

        return lax.fori_loop(0, 4, lambda i, x: lax.fori_loop(0, 4, lambda j, x: inner(i, 2 * j, x), x), x)

    return f


def agrees(seed):
    f = random_loop(np.random.default_rng(seed))

    def both(x):
        value, pull = ft.vjp(f, x)
        return value, pull(fnp.cos(value))[0]

    big = np.pad(X, ((0, 2), (0, 4)), mode="edge")
    with ft.disable_jit():
        expected = both(big)
    for found, wanted in zip(ft.jit(both)(big), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12, err_msg=f"seed {seed}")


@pytest.mark.parametrize("seed", [2, 12, 18, 60, 68, 70, 111])
def test_random_loops(seed):
    agrees(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 120))
def test_more_random_loops(seed):
    agrees(seed)
