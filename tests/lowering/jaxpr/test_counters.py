"""Rows and carries that count: the numbers of the iterations, in all wirings, against loops in Python."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.jaxpr.simplify import simplify

N = 7
ROWS = {
    "arange": (lambda: fnp.arange(N), np.arange(N)),
    "from": (lambda: fnp.arange(3, N + 3), np.arange(3, N + 3)),
    "plus": (lambda: 5 + fnp.arange(N), 5 + np.arange(N)),
    "minus": (lambda: fnp.arange(N) - 2, np.arange(N) - 2),
    "from a number": (lambda: 9 - fnp.arange(N), 9 - np.arange(N)),
    "times": (lambda: 3 * fnp.arange(N), 3 * np.arange(N)),
    "times and plus": (lambda: fnp.arange(N) * -2 + 5, np.arange(N) * -2 + 5),
    "plus and times": (lambda: (fnp.arange(N) + 5) * 2, (np.arange(N) + 5) * 2),
    "steps": (lambda: fnp.arange(1, 3 * N, 3), np.arange(1, 3 * N, 3)),
    "slice": (lambda: fnp.arange(N + 4)[2 : N + 2], np.arange(N + 4)[2 : N + 2]),
    "strides": (lambda: (fnp.arange(4 * N) + 1)[3::4], (np.arange(4 * N) + 1)[3::4]),
    "blocks": (lambda: fnp.arange(2 * N).reshape(N, 2), np.arange(2 * N).reshape(N, 2)),
    "cubes": (
        lambda: (2 * fnp.arange(6 * N) - 1).reshape(N, 2, 3),
        (2 * np.arange(6 * N) - 1).reshape(N, 2, 3),
    ),
    "part of blocks": (
        lambda: fnp.arange(4 * N).reshape(N, 4)[:, 1::2],
        np.arange(4 * N).reshape(N, 4)[:, 1::2],
    ),
    "floats": (lambda: fnp.arange(float(N)), np.arange(float(N))),
    "small": (lambda: fnp.arange(N, dtype=np.int32), np.arange(N, dtype=np.int32)),
    "products": (lambda: fnp.arange(N) * fnp.arange(N), np.arange(N) ** 2),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", sorted(ROWS))
def test_rows_of_numbers(name, reverse):
    rows, expected_rows = ROWS[name]

    def f(c):
        return lax.scan(lambda c, r: (2 * c + r.sum(), c * r), c, rows(), reverse=reverse)

    c, expected = 1.0, [None] * N
    for k in range(N)[::-1] if reverse else range(N):
        expected[k] = c * expected_rows[k]
        c = 2 * c + expected_rows[k].sum()
    last, found = ft.jit(f)(1.0)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(last, c)


@pytest.mark.parametrize("start", [0, 4, -3])
def test_rows_from_a_number_known_at_run_time(start):
    def f(n, x):
        return lax.scan(lambda c, i: (c + x[i - n] * i, i), 0.0, n + fnp.arange(N))

    x = np.linspace(0.3, 0.9, N)
    total, numbers = ft.jit(f)(start, x)
    np.testing.assert_allclose(total, (x * (start + np.arange(N))).sum(), rtol=1e-14)
    np.testing.assert_array_equal(numbers, start + np.arange(N))
    total, numbers = ft.jit(lambda n, x: f(n + 2, x))(start, x)
    np.testing.assert_array_equal(numbers, start + 2 + np.arange(N))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("returned", [False, True])
def test_carries_that_count(step, first, reverse, returned):
    def f(x, n):
        def body(s, r):
            i, c, j = s
            return (i + step, c + x[i % N] * r, j), c * i + j

        (i, c, j), rows = lax.scan(body, (first, 0.0, n), x, reverse=reverse)
        return (i, c, j, rows) if returned else (c, rows)

    x = np.linspace(0.3, 0.9, N)
    i, c, rows = first, 0.0, [0.0] * N
    for k in range(N)[::-1] if reverse else range(N):
        rows[k] = c * i + 11
        i, c = i + step, c + x[i % N] * x[k]
    found = ft.jit(f)(x, 11)
    expected = (i, c, 11, rows) if returned else (c, rows)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("kind", [np.int32, np.float64])
def test_other_numbers_that_grow_by_one(kind):
    def f(x):
        def body(s, r):
            i, c = s
            return (i + kind(1), c + r * i), None

        return lax.scan(body, (kind(2), 0.0), x)[0][1]

    x = np.linspace(0.3, 0.9, N)
    np.testing.assert_allclose(ft.jit(f)(x), (x * (2 + np.arange(N))).sum(), rtol=1e-14)


def test_several_counters_and_a_number_of_iterations_known_at_run_time():
    def f(n, x):
        def body(_, s):
            i, c, j = s
            return i + 1, c + x[i] * j, j + 1

        return lax.fori_loop(0, n, body, (0, 0.0, 5))[1]

    x = np.linspace(0.3, 0.9, N)
    for n in (0, 1, N):
        expected = sum(x[i] * (i + 5) for i in range(n))
        np.testing.assert_allclose(ft.jit(f)(n, x), expected, rtol=1e-14)


def test_numbers_that_count_are_not_read_from_memory():
    def sums(rows):
        return lambda x: lax.scan(lambda c, i: (c + x[i], None), 0.0, rows())[0]

    def carried(x):
        return lax.scan(lambda s, _: ((s[0] + 1, s[1] + x[s[0]]), None), (0, 0.0), None, length=N)[0][1]

    x = np.linspace(0.3, 0.9, 3 * N)
    for rows, places in [(fnp.arange, np.arange(N)), (lambda n: 3 + fnp.arange(n), 3 + np.arange(N))]:
        f = ft.jit(sums(lambda rows=rows: rows(N)))
        np.testing.assert_allclose(f(x), x[places].sum(), rtol=1e-14)
        assert "(scratch)" not in f.lower(x).as_text("python")
    np.testing.assert_allclose(ft.jit(carried)(x), x[:N].sum(), rtol=1e-14)
    lowered = ft.jit(carried).lower(x)
    assert "status |=" not in lowered.as_text("python")  # the loop bounds the index
    (scan,) = [e for e in simplify(lowered.jaxpr).eqns if e.primitive.name == "scan"]
    assert scan.params["num_carry"] == 1
