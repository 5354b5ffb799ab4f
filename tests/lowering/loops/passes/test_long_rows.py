"""Products of two long matrices, as in attention, block by block of rows: no matrix of all pairs is in memory."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pair_programs import STEPS, data, kernel, program, square

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.loops import ir, queries
from functrans.lowering.loops.passes import row_blocks, row_calls
from functrans.scipy.special import softmax


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Blocks of a few rows, so that small matrices have several, and a last one that is not full."""
    monkeypatch.setattr(row_calls, "MANY", 40)
    monkeypatch.setattr(row_calls, "LARGEST", 8)
    monkeypatch.setattr(row_blocks, "LEAST_WIDE", 1)
    monkeypatch.setattr(row_blocks, "FEWEST_WIDE", 8)
    monkeypatch.setattr(row_blocks, "MOST_WIDE", 12)


def products(f, *args, threads=1):
    """The numbers of matrix products in blocks and outside of them."""
    body = kernel(f, *args, threads=threads).kernel.body
    calls = [s for s in queries.walk(body) if type(s) is ir.Call and s.routine in ("gemm", "gemv")]
    outside = sum(s in calls for s in body.statements)
    return len(calls) - outside, outside


def weights_of(scores, axis=1):
    e = np.exp(scores - scores.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def derivatives(q, k, v, weights, ct, scale):
    """What attention passes on to its operands."""
    d_weights = ct @ v.T
    d_scores = weights * (d_weights - np.sum(weights * d_weights, 1, keepdims=True))
    return scale * d_scores @ k, scale * d_scores.T @ q, weights.T @ ct


def attention(q, k, v):
    return softmax(q @ k.T / 3.0, axis=1) @ v


def with_columns(q, k, v):
    return softmax(k @ q.T / 3.0, axis=0).T @ v


def causal(q, k, v):
    i, j = fnp.arange(q.shape[0])[:, None], fnp.arange(k.shape[0])
    return softmax(fnp.where(j <= i, q @ k.T / 3.0, -fnp.inf), axis=1) @ v


SHAPES = [(131, 97), (97, 131), (101, 101)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("f", [attention, with_columns, causal])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_value_and_gradient_of_attention(f, shape, dtype, threads):
    q, k, v = data(*shape, dtype=dtype)
    scores = q.astype(float) @ k.T.astype(float) / 3.0
    if f is causal:
        scores = np.where(np.tri(*shape, dtype=bool), scores, -np.inf)
    weights = weights_of(scores)
    out = weights @ v
    tolerance = {"rtol": 1e-11, "atol": 1e-12} if dtype == "float64" else {"rtol": 2e-4, "atol": 2e-5}
    with ft.config.patch(num_threads=threads):
        np.testing.assert_allclose(ft.jit(lambda *a: f(*a))(q, k, v), out, **tolerance)
        g = ft.jit(ft.value_and_grad(square(f), argnums=(0, 1, 2)))
        value, found = g(q, k, v)
    np.testing.assert_allclose(value, np.sum(out**2) / 2, rtol=tolerance["rtol"])
    for a, b in zip(found, derivatives(q, k, v, weights, out, 1 / 3), strict=True):
        assert a.dtype == dtype
        np.testing.assert_allclose(a, b, **tolerance)
    assert products(f, q, k, v, threads=threads) == (2, 0)
    assert products(ft.value_and_grad(square(f), argnums=(0, 1, 2)), q, k, v, threads=threads) == (6, 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_bias_and_its_gradient(threads):
    """The gradient of the bias is a result: its rows are written block by block."""
    q, k, v = data()
    bias = np.random.default_rng(1).normal(size=(131, 97))

    def f(q, k, v, bias):
        return fnp.sum((softmax(q @ k.T / 3.0 + bias, axis=1) @ v) ** 2) / 2

    weights = weights_of(q @ k.T / 3 + bias)
    out = weights @ v
    with ft.config.patch(num_threads=threads):
        value, g = ft.jit(ft.value_and_grad(f, argnums=(0, 1, 2, 3)))(q, k, v, bias)
    d_weights = out @ v.T
    d_bias = weights * (d_weights - np.sum(weights * d_weights, 1, keepdims=True))
    np.testing.assert_allclose(value, np.sum(out**2) / 2, rtol=1e-12)
    for a, b in zip(g, (*derivatives(q, k, v, weights, out, 1 / 3), d_bias), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert products(ft.grad(f, argnums=(0, 1, 2)), q, k, v, bias, threads=threads) == (6, 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_projections_between_the_products(threads):
    """The values are computed after the scores: all of them are there before the first block."""
    x, _, _ = data(120)
    a, b, c = np.random.default_rng(2).normal(size=(3, 7, 7))

    def f(np_, x, a, b, c):
        scores = (x @ a) @ (x @ b).T
        e = np_.exp(scores - np_.max(scores, axis=1, keepdims=True))
        return np_.tanh((e / np_.sum(e, axis=1, keepdims=True)) @ np_.tanh(x @ c)) + x

    with ft.config.patch(num_threads=threads):
        found = ft.jit(partial(f, fnp))(x, a, b, c)
    np.testing.assert_allclose(found, f(np, x, a, b, c), rtol=1e-11)
    assert products(partial(f, fnp), x, a, b, c, threads=threads)[0] >= 2


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_needed_as_a_whole_is_written(threads):
    q, k, v = data(110, 110)

    def whole(np_, q, k, v):  # nothing is saved
        scores = q @ k.T
        return scores @ scores, np_.sort(scores, axis=None)[:3], scores @ v

    def after(np_, q, k, v):  # the scores are not kept, the exponentials are
        e = np_.exp(q @ k.T / 9)
        return e, e @ v, np_.sum(e.T @ e)

    for f in (whole, after):
        with ft.config.patch(num_threads=threads):
            found = ft.jit(partial(f, fnp))(q, k, v)
        for a, b in zip(found, f(np, q, k, v), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert products(partial(whole, fnp), q, k, v, threads=threads)[0] == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_both_axes_are_the_same_rows(threads):
    """A kernel matrix of points with themselves, that a vector multiplies; its rows or its columns are in blocks."""
    x, y, _ = data(120, 120)
    y = y[:, 0].copy()

    def f(np_, x, y):
        squares = np_.sum(x * x, axis=1)
        k = np_.exp((x @ x.T - squares[:, None] / 2 - squares / 2) / 20)
        return np_.sum(np_.tanh(k @ y) ** 2)

    def numeric(i):
        h = np.zeros_like(x)
        h[i] = 1e-5
        return (f(np, x + h, y) - f(np, x - h, y)) / 2e-5

    with ft.config.patch(num_threads=threads):
        value, g = ft.jit(ft.value_and_grad(lambda x: f(fnp, x, y)))(x)
    np.testing.assert_allclose(value, f(np, x, y), rtol=1e-11)
    for i in ((0, 0), (63, 4), (119, 6)):
        np.testing.assert_allclose(g[i], numeric(i), rtol=1e-6, atol=1e-8)
    assert products(partial(f, fnp), x, y, threads=threads)[0] >= 1


def test_sums_over_all_blocks_keep_their_digits():
    """Gradients that are sums over the rows, in single precision."""
    q, k, v = data(4_000, 64, 3, "float32")
    found = ft.jit(lambda q, k, v: fnp.exp(q @ k.T / 9).T @ fnp.exp(q))(q, k, v)
    a = np.exp(q.astype(float) @ k.T.astype(float) / 9).T @ np.exp(q.astype(float))
    np.testing.assert_allclose(found, a, rtol=3e-6)


def test_equal_bits_with_two_threads():
    q, k, v = data()
    with ft.config.patch(num_threads=2):
        f = ft.jit(ft.value_and_grad(square(attention), argnums=(0, 1, 2)))
        first = ft.tree_util.tree_leaves(f(q, k, v))
        for _ in range(20):
            for a, b in zip(first, ft.tree_util.tree_leaves(f(q, k, v)), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_grows_as_the_rows(monkeypatch, threads):
    monkeypatch.undo()

    def peak(n):
        x = ft.ShapeDtypeStruct((n, 64), float)
        with ft.config.patch(num_threads=threads):
            f = ft.jit(ft.value_and_grad(square(attention), argnums=(0, 1, 2)))
            return f.lower(x, x, x).compile().memory_analysis().temp_size_in_bytes

    small, large = peak(4096), peak(16384)
    assert large < 5 * small
    assert large < 16384**2 * 8 / 7


def compare(steps, threads, seed):
    q, k, v = data(53, 53, 4, seed=seed)
    v, y = v[:, :4].copy(), v[:, 4].copy()
    f = program(steps)
    with ft.config.patch(num_threads=threads):
        found = ft.jit(partial(f, fnp))(q, k, v, y)
        g = ft.jit(ft.grad(lambda *a: sum(map(fnp.sum, f(fnp, *a))), argnums=(0, 1, 2)))(q, k, v, y)
    for a, b in zip(found, f(np, q, k, v, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * np.max(np.abs(b), initial=1.0))
    with ft.config.patch(without={"row_blocks"}):
        expected = ft.jit(ft.grad(lambda *a: sum(map(fnp.sum, f(fnp, *a))), argnums=(0, 1, 2)))(q, k, v, y)
    for a, b in zip(g, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * np.max(np.abs(b), initial=1.0))


@settings(max_examples=10, deadline=None)
@given(STEPS, st.sampled_from([1, 2]), st.integers(0, 3))
def test_random_programs(steps, threads, seed):
    compare(steps, threads, seed)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(STEPS, st.sampled_from([1, 2]), st.integers(0, 3))
def test_many_random_programs(steps, threads, seed):
    compare(steps, threads, seed)
