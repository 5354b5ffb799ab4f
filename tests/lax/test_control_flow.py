"""Loops over rows and counters are those of Python, for trees and weak types, in every transformation."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.testing import check

X = np.linspace(0.1, 1.0, 7)


def plain(f):
    return f


def stepped(f):
    def run(*args):
        with ft.disable_jit():
            return f(*args)

    return run


WAYS = pytest.mark.parametrize("way", [plain, ft.jit, stepped], ids=["eager", "jit", "disable_jit"])


def python_scan(f, carry, rows, reverse=False):
    """The loop in NumPy: `f` of NumPy values."""
    ys = []
    for row in rows[::-1] if reverse else rows:
        carry, y = f(carry, row)
        ys.append(y)
    return carry, np.array(ys[::-1] if reverse else ys)


def same(a, b):
    """Two trees of the same structure, dtypes and values."""
    assert ft.tree.structure(a) == ft.tree.structure(b)
    for x, y in zip(ft.tree.leaves(a), ft.tree.leaves(b)):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12)


@WAYS
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 10, True])
def test_scan_is_the_loop(way, reverse, unroll):
    def step(c, x):
        return 0.5 * c + x, c * x

    found = way(lambda c, xs: lax.scan(step, c, xs, reverse=reverse, unroll=unroll))(0.3, X)
    carry, ys = python_scan(step, 0.3, X, reverse)
    same(found, (np.float64(carry), ys))


class State(NamedTuple):
    position: object
    count: object


@WAYS
def test_trees_of_carries_rows_and_results(way):
    def step(state, row):
        new = State(state.position + row["a"] * row["b"][0], state.count + 1)
        return new, {"old": state.position, "none": None, "pair": (row["b"], state.count)}

    def run(xs):
        return lax.scan(step, State(fnp.zeros(3), 0), xs)

    last, ys = way(run)({"a": X, "b": (np.ones((7, 3)),)})
    assert isinstance(last, State)
    assert_allclose(last.position, np.full(3, X.sum()))
    assert last.count == 7
    assert last.count.dtype == np.int64
    assert set(ys) == {"old", "none", "pair"}
    assert ys["none"] is None
    assert ys["old"].shape == (7, 3)
    assert_array_equal(ys["pair"][1], np.arange(7))


@WAYS
def test_no_rows_and_no_results(way):
    total, ys = way(lambda x: lax.scan(lambda c, row: (c * x, row), 1.0, length=5))(2.0)
    assert total == 32.0
    assert ys is None
    assert way(lambda: lax.scan(lambda c, row: (None, None), None, length=3))() == (None, None)


@WAYS
def test_no_iterations(way):
    last, ys = way(lambda c, xs: lax.scan(lambda c, x: (c + x, (c, fnp.ones((2, 3)))), c, xs))(
        1.5, np.zeros(0)
    )
    assert last == 1.5
    assert ys[0].shape == (0,)
    assert ys[1].shape == (0, 2, 3)
    assert lax.scan(lambda c, x: (c, None), 1.0, length=0)[0] == 1.0


def test_results_are_arrays_of_their_own():
    init, xs = np.ones(3), np.ones((4, 3))
    last, ys = lax.scan(lambda c, x: (c, x), init, xs)
    assert isinstance(last, ft.Array)
    assert isinstance(ys, ft.Array)
    assert not np.shares_memory(last, init)
    assert not np.shares_memory(ys, xs)


@WAYS
def test_python_numbers_take_on_the_dtype_that_the_body_gives(way):
    def dtypes(step, init, xs):
        last, ys = way(lambda xs: lax.scan(step, init, xs))(xs)
        return last.dtype, ys.dtype

    f32, f64, i64 = map(np.dtype, (np.float32, np.float64, np.int64))
    assert dtypes(lambda c, x: (c + x, c), 0, X) == (f64, f64)
    assert dtypes(lambda c, x: (c + x, x), 0, X.astype(np.float32)) == (f32, f32)
    assert dtypes(lambda c, x: (c + x, x), 0.0, X.astype(np.float32)) == (f32, f32)
    assert dtypes(lambda c, x: (c * 1.5, x), 1, X) == (f64, f64)
    assert dtypes(lambda c, x: (c + 1, x), 0, X)[0] == i64
    assert dtypes(lambda c, x: (c + x, x), 0.0, X.astype(complex))[0] == np.complex128
    # What has a dtype keeps it, and gives it to numbers of its kind.
    assert dtypes(lambda c, x: (c * 1.5, x), np.float32(1), X)[0] == f32
    assert dtypes(lambda c, x: (0.0, c), np.float32(1), X) == (f32, f32)
    assert dtypes(lambda c, x: (0, c), np.int32(1), X) == (np.int32, np.int32)


@WAYS
def test_two_numbers_that_depend_on_each_other(way):
    def step(c, x):
        a, b = c
        return (b * 1, a + x), None

    (a, b), _ = way(lambda xs: lax.scan(step, (0, 0), xs))(np.ones(4, np.float32))
    assert a.dtype == b.dtype == np.float32
    assert (a, b) == (2.0, 2.0)


def test_a_number_stays_one_while_traced():
    x = np.ones(3, np.float32)
    assert ft.jit(lambda x: x * lax.fori_loop(0, 3, lambda i, c: c + 1.0, 0.0))(x).dtype == np.float32
    assert (
        ft.jit(lambda x: x * lax.scan(lambda c, _: (c + 1.0, None), np.float64(0), length=3)[0])(x).dtype
        == float
    )


@WAYS
@pytest.mark.parametrize(("lower", "upper"), [(0, 5), (2, 6), (-3, 2), (4, 4), (5, 2), (0, 1)])
def test_fori_loop_is_a_loop_over_a_range(way, lower, upper):
    def body(i, c):
        return 0.5 * c + i * i

    want = 0.25
    for i in range(lower, upper):
        want = body(i, want)
    assert_allclose(way(lambda c: lax.fori_loop(lower, upper, body, c))(0.25), want)
    assert_allclose(way(lambda n, c: lax.fori_loop(lower, n, body, c))(upper, 0.25), want)
    assert_allclose(way(lambda n, c: lax.fori_loop(n, upper, body, c))(np.int32(lower), 0.25), want)
    assert_allclose(way(lambda m, n, c: lax.fori_loop(m, n, body, c))(lower, upper, 0.25), want)


@WAYS
def test_the_counter_is_a_python_number(way):
    for bounds in [(0, 3), (np.int32(0), np.int64(3))]:
        found = way(lambda c, bounds=bounds: lax.fori_loop(*bounds, lambda i, c: c * i, c))(np.float32(1))
        assert found.dtype == np.float32
    found = way(lambda n, c: lax.fori_loop(0, n, lambda i, c: c + i, c))(np.int64(3), np.int8(1))
    assert found.dtype == np.int8
    assert found == 4
    assert_array_equal(
        way(lambda x: lax.fori_loop(0, 3, lambda i, x: x.at[i].set(i), x))(np.zeros(4)), [0, 1, 2, 0]
    )


def test_counters_need_neither_rows_nor_tapes():
    def known(x, n):
        return lax.fori_loop(2, 9, lambda i, c: fnp.sin(c) * x[i - 2] * i, x[0], unroll=2)

    def unknown(x, n):
        return lax.fori_loop(2, n, lambda i, c: fnp.sin(c) * x[i - 2] * i, x[0])

    x = fnp.linspace(-0.4, 0.7, 7)
    expected = known(x, 9), *ft.vjp(lambda x: known(x, 9), x)[1](1.0)
    for f in (known, unknown):
        text = str(ft.make_jaxpr(ft.grad(f))(x, 9))
        assert not any(rows in text for rows in ("iota", "i64[7]", "tape[]<i64[]>"))
        for a, b in zip((f(x, 9), ft.jit(ft.grad(f))(x, 9)), expected):
            assert_allclose(a, b)
    check(lambda x: ft.jit(unknown)(x, 9), x, order=2)


def test_numbers_made_in_a_body_are_made_again():
    """Rows of an inner loop are neither stacked nor read from memory in the derivative."""

    def f(x):
        def row(c, i):
            inner = lax.scan(lambda c, j: (c * x[i, j - 1] + fnp.sin(c), None), c, fnp.arange(1, 6))
            return inner[0], None

        return lax.scan(row, 1.0, fnp.arange(4))[0]

    assert "i64[4,5]" not in str(ft.make_jaxpr(ft.grad(f))(np.ones((4, 5))))
    assert "status |=" not in ft.jit(ft.grad(f)).lower(np.ones((4, 5))).as_text("python")
    check(f, np.linspace(0.1, 0.9, 20).reshape(4, 5), order=2)


def test_fori_loop_unrolls():
    for unroll in (1, 2, 4, True, False):
        assert lax.fori_loop(0, 7, lambda i, c: 2 * c + i, 0, unroll=unroll) == 120


@WAYS
@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7, 20])
def test_map_is_a_loop_over_rows(way, batch_size):
    rows = np.arange(21.0).reshape(7, 3)

    def f(tree):
        x, k = tree["x"], tree["k"]
        return {"sum": fnp.sum(x) * k, "row": x * k, "no": None}

    found = way(lambda x, k: lax.map(f, {"x": x, "k": k}, batch_size=batch_size))(rows, X)
    assert_allclose(found["sum"], rows.sum(1) * X)
    assert_allclose(found["row"], rows * X[:, None])
    assert found["no"] is None


@WAYS
def test_map_of_no_rows(way):
    assert way(lambda x: lax.map(lambda x: fnp.stack([x, x]), x))(np.zeros(0)).shape == (0, 2)


@WAYS
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33])
def test_associative_scan_of_any_length(way, n):
    x = np.random.default_rng(n).normal(size=(n, 3))
    assert_allclose(way(lambda x: lax.associative_scan(fnp.add, x))(x), np.cumsum(x, 0))
    assert_allclose(way(lambda x: lax.associative_scan(fnp.multiply, x.T, axis=1))(x), np.cumprod(x, 0).T)
    assert_allclose(
        way(lambda x: lax.associative_scan(fnp.maximum, x, reverse=True, axis=-2))(x),
        np.maximum.accumulate(x[::-1])[::-1],
    )


@WAYS
def test_associative_scan_of_trees_that_do_not_commute(way):
    a, b = X, np.cos(X)

    def combine(p, q):
        return {"a": q["a"] * p["a"], "b": q["a"] * p["b"] + q["b"]}

    found = way(lambda a, b: lax.associative_scan(combine, {"a": a, "b": b}))(a, b)["b"]
    _, want = python_scan(lambda y, row: (row[0] * y + row[1],) * 2, 0.0, list(zip(a, b)))
    assert_allclose(found, want)
    matrices = np.random.default_rng(0).normal(size=(5, 2, 2))
    found = way(lambda m: lax.associative_scan(fnp.matmul, m))(matrices)
    _, want = python_scan(lambda y, m: (y @ m, y @ m), np.eye(2), matrices)
    assert_allclose(found, want)


def test_associative_scan_keeps_dtypes_and_gives_arrays_of_their_own():
    x = np.array([True, False, True])
    assert_array_equal(lax.associative_scan(fnp.logical_and, x), [True, False, False])
    one = np.ones(1)
    assert not np.shares_memory(lax.associative_scan(fnp.add, one), one)


def test_under_disable_jit_each_iteration_is_seen():
    seen = []

    def step(c, x):
        seen.append((float(c), float(x)))
        if c > 1.0:
            return c - 1.0, True
        return c + x, False

    with ft.disable_jit():
        _, ys = lax.scan(step, 0.0, X)
    assert len(seen) == 7
    assert seen[1] == (X[0], X[1])
    assert ys.dtype == bool
    assert lax.scan(lambda c, x: (c, c), 0.0, X)[1].shape == (7,)


def test_lists_of_arrays_are_trees():
    last, ys = lax.scan(lambda c, x: [[c[0] + x[0], c[1]], x[1]], [0.0, 1.0], [X, X])
    assert isinstance(last, list)
    assert_allclose(last[0], X.sum())
    assert_allclose(ys, X)
