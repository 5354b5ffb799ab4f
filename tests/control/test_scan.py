"""scans as equations: one kernel, few residuals, rows and carries in odd wiring."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.evaluation import evaluate


def text_of(f, *args):
    """The kernels, without the comments that quote the user's lines."""
    lines = ft.jit(f).lower(*args).as_text("python").splitlines()
    return "\n".join([line for line in lines if not line.startswith("#")])


def test_gradient_is_one_kernel_with_two_loops():
    def f(x):
        return fnp.sum(lax.scan(lambda c, r: (fnp.sin(c) * r, None), 1.0, x)[0])

    text = text_of(ft.grad(f), np.ones(10))
    assert text.count("def ") == 1
    assert text.count("for ") == 2
    assert "host call" not in text


def test_linear_scans_keep_nothing():
    def f(x):
        return lax.scan(lambda c, r: (2.0 * c + r, None), 0.0, x)[0]

    text = text_of(ft.grad(f), np.ones(10))
    assert "(scratch)" not in text
    np.testing.assert_array_equal(ft.grad(f)(np.ones(4)), [8, 4, 2, 1])


def test_invariant_residuals_are_stored_once():
    def f(w, x):
        return lax.scan(lambda c, r: (c * fnp.exp(w) + r, None), 0.0, x)[0]

    text = text_of(ft.grad(f), 0.1, np.ones(10))
    assert text.count("exp(") == 1
    before = text[: text.index("exp(")]
    assert "for " not in before


def test_nested_scans_nest():
    def f(x):
        def outer(c, r):
            return lax.scan(lambda d, s: (fnp.sin(d * s), d), c, r)

        return lax.scan(outer, 0.5, x)

    x = np.random.default_rng(0).normal(size=(4, 3))
    c, stored = 0.5, []
    for r in x:
        for s in r:
            stored.append(c)
            c = np.sin(c * s)
    last, rows = ft.jit(f)(x)
    assert last == pytest.approx(c)
    np.testing.assert_allclose(rows, np.reshape(stored, (4, 3)))
    assert text_of(f, x).count("def ") == 1


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 3, 7, 50])
def test_order_of_rows(reverse, unroll):
    def f(x):
        return lax.scan(lambda c, r: (0.5 * c + r, c * r), 1.0, x, reverse=reverse, unroll=unroll)

    x = np.arange(7.0)
    c, rows = 1.0, np.zeros(7)
    for i in reversed(range(7)) if reverse else range(7):
        c, rows[i] = 0.5 * c + x[i], c * x[i]
    for run in (f, ft.jit(f)):
        last, actual = run(x)
        assert last == c
        np.testing.assert_array_equal(actual, rows)


def test_swapped_and_forwarded():
    def body(c, r):
        a, b, n = c
        return (b, a, n + 1), (r, a, n)

    f = ft.jit(lambda a, b, x: lax.scan(body, (a, b, 0), x))
    a, b, x = np.arange(100.0), -np.ones(100), np.arange(5.0)
    (p, q, n), (rows, firsts, counts) = f(a, b, x)
    np.testing.assert_array_equal(p, b)
    np.testing.assert_array_equal(q, a)
    assert int(n) == 5
    np.testing.assert_array_equal(rows, x)
    np.testing.assert_array_equal(firsts, [a, b, a, b, a])
    np.testing.assert_array_equal(counts, range(5))
    slope = ft.grad(lambda a: fnp.sum(f(a, b, x)[1][1]))(a)
    np.testing.assert_array_equal(slope, 3.0)


@pytest.mark.parametrize("count", [-2, 0, 1, 6])
def test_run_time_trip_count(count):
    def f(x, n):
        return lax.fori_loop(0, n, lambda i, v: fnp.sin(v) * (i + 1), x)

    x, slope = 0.3, 1.0
    for i in range(count):
        x, slope = np.sin(x) * (i + 1), slope * np.cos(x) * (i + 1)
    assert ft.jit(f)(0.3, count) == pytest.approx(x)
    for run in (
        ft.grad(f),
        ft.jit(ft.grad(f)),
        ft.grad(ft.jit(f)),
        lambda x, n: ft.vmap(ft.grad(f))(*map(np.atleast_1d, (x, n)))[0],
    ):
        assert run(0.3, count) == pytest.approx(slope)


def test_no_rows_and_no_iterations():
    last, rows = ft.jit(lambda x: lax.scan(lambda c, r: (c + r, c * 2), x, np.zeros(0)))(1.5)
    assert last == 1.5
    assert rows.shape == (0,)
    assert lax.scan(lambda c, _: (c, None), 1.0, None, length=3) == (1.0, None)
    assert ft.grad(lambda x: lax.scan(lambda c, r: (c * r, None), x, np.zeros(0))[0])(2.0) == 1.0


@pytest.mark.parametrize("loop", ["scan", "fori", "while"])
def test_what_does_not_vary_is_computed_once_also_from_a_broadcast(loop):
    """The running sum leaves the body, and with it the broadcast that it reads."""

    def step(c, a):
        return c + fnp.cumsum(fnp.full((4,), fnp.sin(a))) * fnp.flip(c)

    def f(a, c):
        if loop == "scan":
            return lax.scan(lambda c, _: (step(c, a), None), c, None, length=3)[0]
        if loop == "fori":
            return lax.fori_loop(0, 3, lambda i, c: step(c, a), c)
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, step(s[1], a)), (0, c))[1]

    a, c = 0.7, np.arange(1.0, 5.0)
    expected = c
    for _ in range(3):
        expected = expected + np.cumsum(np.full(4, np.sin(a))) * expected[::-1]
    np.testing.assert_allclose(ft.jit(f)(a, c), expected, rtol=1e-14)
    if loop != "while":
        text = text_of(f, a, c)
        assert text.index("sin") < text.index("for ")
    ft.test_util.check_grads(f, (a, c), order=1, modes=["fwd"] if loop == "while" else ["fwd", "rev"])


@pytest.mark.parametrize("count", [-3, 0, 2])
def test_inner_loops_without_iterations_leave_no_records(count):
    def f(x, n):
        def outer(c, r):
            return lax.fori_loop(0, n, lambda i, c: fnp.sin(c) * r, c), None

        return lax.scan(outer, 0.5, x)[0]

    x = np.array([1.5, -0.7, 0.9])
    c, dc = 0.5, np.zeros(3)
    for k in range(3):
        for _ in range(count):
            dc = np.cos(c) * x[k] * dc + np.sin(c) * np.eye(3)[k]
            c = np.sin(c) * x[k]
    value, grad = ft.jit(ft.value_and_grad(f))(x, count)
    np.testing.assert_allclose(value, c, rtol=1e-14)
    np.testing.assert_allclose(grad, dc, rtol=1e-13)


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_without_the_compiler(reverse):
    x = np.array([0.5, -2.0, 3.0, 1.5])
    run = lambda x: lax.scan(lambda c, a: (c + a, c * a), 1.0, x, reverse=reverse)
    cubes = lambda x: lax.scan(lambda c, a: (c + a * a * a, c), 0.0, x, reverse=reverse)[0]
    both, slope = ft.make_jaxpr(run)(x), ft.make_jaxpr(ft.grad(cubes))(x)
    with ft.disable_jit():
        last, rows = evaluate(both, [x])
        (slopes,) = evaluate(slope, [x])
    order = x[::-1] if reverse else x
    expected = order * (1.0 + np.cumsum(order) - order)
    np.testing.assert_allclose(rows, expected[::-1] if reverse else expected, rtol=1e-14)
    np.testing.assert_allclose(last, 1.0 + np.sum(x), rtol=1e-14)
    np.testing.assert_allclose(slopes, 3.0 * x * x, rtol=1e-14)


def with_rows(x, c):
    s = lax.scan(lambda c, r: (c + 1e-3 * fnp.sin(r * c), None), c, x)[0]
    return fnp.tanh(s + 1e-3 * fnp.sum(x * c))


def with_a_carry(x, c):
    s = lax.scan(lambda a, r: (fnp.sin(a * r), None), x, fnp.stack([c, c + 1, c + 2]))[0]
    return fnp.tanh(1e-3 * fnp.sum(s * x) + c)


@pytest.mark.parametrize("body", [with_rows, with_a_carry])
def test_cotangents_of_what_an_inner_loop_and_others_read(body):
    """In a loop, what others add to the cotangent of a large array is there first."""

    def f(x):
        return lax.scan(lambda c, _: (body(x, c), None), 1.0, None, length=3)[0]

    x, direction = np.linspace(0.5, 1.5, 1000), np.cos(np.arange(1000.0))
    slope = (float(f(x + 1e-5 * direction)) - float(f(x - 1e-5 * direction))) / 2e-5
    for wrap in (lambda g: g, ft.jit):
        np.testing.assert_allclose(wrap(ft.grad(f))(x) @ direction, slope, rtol=1e-6)
