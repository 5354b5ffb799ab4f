"""Residuals that the last array of a loop still has: right for every order of reads and writes, and not stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.control.residuals import read_back
from functrans.core import subjaxprs
from functrans.lowering.run.executable import compile_jaxpr

N = 30
X, Y = np.random.default_rng(0).uniform(0.5, 1.5, (2, N))


def recursion(x, y):
    """The derivative reads what an iteration wrote."""
    return lax.fori_loop(1, N, lambda i, a: a.at[i].set(fnp.tanh(a[i - 1] * x[i])), y)


def rows_that_count(x, y):
    """The places are rows of a scan."""
    return lax.scan(lambda a, i: (a.at[i].set(a[i - 1] * a[i - 2] * x[i]), None), y, fnp.arange(2, N))[0]


def backward(x, y):
    """From the end, by negative indices that are carried."""

    def step(state, v):
        i, a = state
        return (i - 1, a.at[i].set(v / (1 + a[i + 1] ** 2))), None

    return lax.scan(step, (-2, y), x[1:])[0][1]


def in_chunks(x, y):
    """With checkpoints, which need not run a chunk again, nor the array at its start."""

    def step(a, i):
        return a.at[i].set(fnp.tanh(a[i - 1]) * x[i]), None

    return lax.scan(step, y, fnp.arange(2, N), checkpoint_every=7, reverse=False)[0]


def waiting(x, y):
    """A loop of unknown trip count."""

    def step(state):
        i, a = state
        a = a.at[i + 1].set(a[i] * a[i - 1])
        return i + 2, a.at[i + 2].set(x[i] / a[i + 1])

    return lax.while_loop(lambda s: (s[0] < N - 2) & (s[1][s[0]] < 1e9), step, (1, y))[1]


def in_a_branch(x, y):
    def step(i, a):
        return lax.cond(x[i] > 1, lambda a: a.at[i].set(x[i] / (1 + a[i - 1])), lambda a: a, a)

    return lax.fori_loop(1, N, step, y)


def in_lanes(x, y):
    return ft.vmap(recursion, (0, None))(fnp.stack([x, 2 * x]), y)


def lu(x, y):
    """An LU decomposition: a row is read again in each iteration of two loops inside."""

    def column(k, a):
        def row(i, a):
            factor = a[i, k] / a[k, k]
            update = lambda j, a: a.at[i, j].add(-factor * a[k, j])
            return lax.fori_loop(k + 1, 5, update, a.at[i, k].set(factor))

        return lax.fori_loop(k + 1, 5, row, a)

    return lax.fori_loop(0, 4, column, fnp.reshape(fnp.sin(9 * x[:25]), (5, 5)) + 9 * fnp.eye(5) + y[0])


def cholesky(x, y):
    """Elements are read in a loop that does not carry the array."""
    n = 5

    def row(i, a):
        def element(j, a):
            rest = lax.fori_loop(0, j, lambda m, s: s - a[i, m] * a[j, m], a[i, j])
            return a.at[i, j].set(rest / a[j, j])

        a = lax.fori_loop(0, i, element, a)
        rest = lax.fori_loop(0, i, lambda m, s: s - a[i, m] ** 2, a[i, i])
        return a.at[i, i].set(fnp.sqrt(rest))

    return lax.fori_loop(0, n, row, fnp.reshape(x[:25], (5, 5)) + 9 * fnp.eye(n) * y[0])


def once(x, y):
    """The outer loop marks what the inner one writes, so that one does not keep its last array as well."""

    def step(i, state):
        s, a = state
        s = fnp.tanh(s + x[i])
        return s, a.at[i].set(s)

    return lax.fori_loop(0, 1, lambda _, state: lax.fori_loop(0, N, step, state), (y[0], y))[1]


#: Programs that read all from their last arrays; the values that each iteration of any loop of theirs stores otherwise.
READ_BACK: list[Callable[..., Any]] = [
    recursion,
    rows_that_count,
    backward,
    in_chunks,
    waiting,
    in_a_branch,
    in_lanes,
    lu,
    cholesky,
    once,
]


def overwritten(x, y):
    """Three places in turn."""
    return lax.fori_loop(1, N, lambda i, a: a.at[i % 3].set(a[(i - 1) % 3] * a[(i + 1) % 3] * x[i]), y)


def wrapped(x, y):
    """The first iteration reads the last element, which the last one overwrites."""
    return lax.fori_loop(0, N, lambda i, a: a.at[i].set(a[i - 1] ** 2 * x[i]), y)


def in_place(x, y):
    """An element is read where it is overwritten, and written twice."""

    def step(i, a):
        a = a.at[i].set(fnp.exp(a[i] * x[i]))
        return a.at[i].set(a[i] * a[i - 1])

    return lax.fori_loop(1, N, step, 0.1 * y)


def dropped(x, y):
    """Some writes are not done, and some change another element than the one that is read."""

    def step(i, a):
        a = a.at[2 * i].set(fnp.tanh(a[i] * x[i]), mode="drop")
        return a.at[i + N - 4].set(a[2] ** 2, mode="clip")

    return lax.fori_loop(0, N, step, y)


def swept_twice(x, y):
    """The inner loop overwrites what the outer one's iterations before have read."""
    sweep = lambda i, a: a.at[i].set(fnp.sin(a[i - 1]) * x[i] + a[i] ** 2)
    return lax.fori_loop(0, 3, lambda t, a: lax.fori_loop(1, N, sweep, a), y)


def old_version(x, y):
    """An element is read from the array as it was before a write that comes first in the program."""

    def step(i, a):
        new = a.at[i].set(x[i] * a[i - 1])
        return new.at[i - 1].set(new[i] * a[i] * a[i - 1])

    return lax.fori_loop(1, N, step, y)


def several_places(x, y):
    """Rows of rows: each iteration writes four elements, of which the next one overwrites some."""

    def few(a, i):
        r = a[i]
        return a.at[i + 1].set(fnp.sin(r) * r * x[i]), None

    rows = np.arange(24).reshape(2, 3, 4)
    return lax.scan(lambda a, rows: lax.scan(few, a, rows), y, rows)[0]


def looked_up(x, y):
    """Indices are read back, too, from an array of integers that the loop writes."""

    def step(i, state):
        places, a = state
        places = places.at[i].set((2 * places[i - 1] + 1) % 4)
        j = places[i] + 1
        v = a[i - 1, j] * fnp.sin(a[i - 1, places[i - 1] + 1])
        return places, a.at[i, j].set(v * x[i] * a[i, j])

    first = fnp.asarray(np.eye(1, 6, dtype=int)[0])
    return lax.fori_loop(1, 6, step, (first, fnp.reshape(y, (6, 5))))[1]


def in_any_order(x, y):
    """The places are rows that do not count; later iterations write what earlier ones have read."""
    places = np.array([3, 2, 3, 1, 2, 5, 4, 5, 1, 3])
    step = lambda a, row: (a.at[row[0]].set(fnp.tanh(a[row[0] - 1] * row[1] + a[0])), None)
    return lax.scan(step, y, (places, x[:10]))[0]


NOT_ALL = [
    overwritten,
    wrapped,
    in_place,
    dropped,
    swept_twice,
    old_version,
    several_places,
    looked_up,
    in_any_order,
]


def slope(f, point, direction, eps=1e-6):
    ahead, behind = ([x + s * eps * d for x, d in zip(point, direction)] for s in (1, -1))
    return (float(f(*ahead)) - float(f(*behind))) / (2 * eps)


@pytest.mark.parametrize("f", [*READ_BACK, *NOT_ALL])
def test_gradients_against_finite_differences_and_forward_mode(f):
    def loss(x, y):
        return fnp.sum(fnp.cos(f(x, y)))

    direction = tuple(np.random.default_rng(1).normal(size=(2, N)))
    compiled = ft.jit(loss)
    _, forward = ft.jit(lambda *p: ft.jvp(loss, p, direction))(X, Y)
    np.testing.assert_allclose(forward, slope(compiled, (X, Y), direction), rtol=1e-5)
    for gradient in (ft.jit(ft.grad(loss, (0, 1)))(X, Y), ft.vjp(compiled, X, Y)[1](1.0)):
        backward = sum(float(np.sum(g * d)) for g, d in zip(gradient, direction))
        np.testing.assert_allclose(backward, forward, rtol=1e-11)


@pytest.mark.parametrize("f", [recursion, lu, in_a_branch, swept_twice])
def test_second_derivatives(f):
    direction = tuple(np.random.default_rng(2).normal(size=(2, N)))

    def along(x, y):
        return ft.jvp(lambda x, y: fnp.sum(fnp.cos(f(x, y))), (x, y), direction)[1]

    def of_gradient(x, y):
        gradient = ft.grad(lambda x, y: fnp.sum(fnp.cos(f(x, y))), (0, 1))
        return ft.jvp(gradient, (x, y), direction)[1]

    for a, b in zip(ft.jit(ft.grad(along, (0, 1)))(X, Y), ft.jit(of_gradient)(X, Y)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def stored(f):
    """What the loops of a gradient's forward pass store for the backward pass: rows and tapes of floats."""
    jaxpr = (
        compile_jaxpr(ft.make_jaxpr(ft.grad(lambda x, y: fnp.sum(f(x, y)), (0, 1)))(X, Y))
        .compile()
        .simplified
    )
    rows: list[Any] = []

    def search(jaxpr):
        for e in jaxpr.eqns:
            if e.primitive.name in ("scan", "while") and not e.params.get("reverse", False):
                carried = e.params.get("num_carry")
                rows.extend(e.outvars[carried:] if carried is not None else e.outvars[len(e.outvars) :])
            for body in subjaxprs(e.params):
                search(body)

    search(jaxpr)
    return [v.aval for v in rows if v.aval.dtype.kind == "f"]


@pytest.mark.parametrize("f", READ_BACK)
def test_what_the_last_array_has_is_not_stored(f):
    assert stored(f) == []
    text = ft.jit(ft.grad(lambda x, y: fnp.sum(f(x, y)))).lower(X, Y).as_text("python")
    assert "records(" not in re.sub("(?m)^#.*$", "", text)  # without the user's lines


@pytest.mark.parametrize("f", [*NOT_ALL[:3], in_any_order])
def test_what_is_overwritten_is_stored(f):
    assert stored(f) != []


def test_each_of_several_runs_keeps_its_last_array():
    def f(x, y):
        return lax.map(lambda s: lu(s * x, y), fnp.linspace(1.0, 2.0, 3))

    assert [a.shape for a in stored(f)] == [(3, 5, 5)]


def test_few_elements_of_a_large_array_are_stored_instead_of_it():
    def f(x):
        return lax.fori_loop(1, 4, lambda i, a: a.at[i].set(fnp.tanh(a[i - 1])), x)

    x = np.linspace(0.0, 1.0, 10_000)
    _, pull = ft.vjp(ft.jit(lambda x: fnp.sum(f(x)[:4])), x)
    assert pull.residual_bytes < 100


def test_a_loop_of_unknown_length_counts_as_long():
    """Its iterations may write all of an array, so that is what the backward pass keeps, and no tape."""

    def f(x):
        step = lambda s: (s[0] + 1, s[1].at[s[0]].set(fnp.tanh(s[1][s[0] - 1])))
        return lax.while_loop(lambda s: (s[0] < 1000) & (s[1][s[0] - 1] < 1e9), step, (1, x))[1]

    x = np.linspace(0.0, 1.0, 1000)
    text = ft.jit(ft.grad(lambda x: fnp.sum(f(x)))).lower(x).as_text("python")
    assert "records(" not in re.sub("(?m)^#.*$", "", text)  # without the user's lines
    assert ft.vjp(ft.jit(lambda x: fnp.sum(f(x))), x)[1].residual_bytes < 2 * x.nbytes


# --- random programs ----------------------------------------------------------------------------------------

#: An index: the factors of the counters of three loops, and a number.
factors = st.sampled_from(
    [(1, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0), (1, -1, 0), (-1, 0, 0), (0, 2, 0), (1, 1, 0)]
)
indices = st.tuples(factors, st.sampled_from([0, 0, -1, 1, -2, 2, 7]))
modes = st.sampled_from([None, None, "drop", "clip", "wrap"])
#: A statement ``y[a, b] = f(y[c, d], y[e, f], x)``: how it writes, the place and the two places it reads.
writes = st.tuples(
    st.just("write"),
    st.sampled_from(["set", "set", "set", "add", "multiply"]),
    modes,
    *[st.tuples(indices, indices)] * 3,
)
#: A loop: from a number or a counter, so many times, backward or not, known before it runs or not.
SIZE = (11, 9)


def statements(depth):
    inner = writes if depth == 3 else st.one_of(writes, loops(depth + 1), branches(depth + 1))
    return st.lists(inner, min_size=1, max_size=2)


def loops(depth):
    kind = st.sampled_from(["fori", "fori", "reverse", "dynamic", "while"])
    return st.tuples(
        st.just("loop"),
        kind,
        st.integers(0, 3),
        st.sampled_from([3, 4, 5, 1, 0]),
        st.booleans(),
        statements(depth),
    )


def branches(depth):
    return st.tuples(st.just("branch"), st.integers(2, 3), statements(depth))


def run(program, y, x, count):
    """The array after a program, of which `count` is the number 4, known or not."""
    return _block(program, y, x, count, ())


def _block(block, y, x, count, counters):
    for statement in block:
        y = {"write": _write, "loop": _loop, "branch": _branch}[statement[0]](
            statement, y, x, count, counters
        )
    return y


def _place(pair, counters):
    return tuple(sum(n * c for n, c in zip(factors, counters)) + number for factors, number in pair)


def _write(statement, y, x, count, counters):
    _, how, mode, *places = statement
    target, first, second = [_place(p, counters) for p in places]
    read = {"mode": "fill", "fill_value": 0.25} if mode == "drop" else {"mode": mode} if mode else {}
    a, b = y.at[first].get(**read), y.at[second].get(**read)
    v = fnp.sin(1.3 * a + 0.7) * fnp.cos(b * x[0]) + 0.2 * a * b + x[1]
    return getattr(y.at[target], how)(v, **({} if mode is None else {"mode": mode}))


def _loop(statement, y, x, count, counters):
    _, kind, start, length, follows, block = statement
    if follows and counters:
        start = counters[-1] + start
    if kind == "reverse":
        numbers = start + fnp.arange(length)
        return lax.scan(
            lambda y, i: (_block(block, y, x, count, (*counters, i)), None), y, numbers, reverse=True
        )[0]
    stop = start + (count - 4 + length if kind != "fori" else length)
    if kind == "while":

        def step(state):
            i, y = state
            return i + 1, _block(block, y, x, count, (*counters, i))

        return lax.while_loop(lambda state: state[0] < stop, step, (start, y))[1]
    return lax.fori_loop(start, stop, lambda i, y: _block(block, y, x, count, (*counters, i)), y)


def _branch(statement, y, x, count, counters):
    _, every, block = statement
    number = counters[-1] if counters else count
    return lax.cond(number % every == 0, lambda y: _block(block, y, x, count, counters), lambda y: y, y)


def check(program, seed=0):
    rng = np.random.default_rng(seed)
    y, x, w = rng.normal(size=SIZE), rng.normal(size=2), rng.normal(size=SIZE)
    dy, dx = rng.normal(size=SIZE), rng.normal(size=2)

    def f(y, x, count):
        return fnp.sum(w * run(program, y, x, count))

    try:
        _, tangent = ft.jit(lambda y, x, n: ft.jvp(lambda y, x: f(y, x, n), (y, x), (dy, dx)))(y, x, 4)
    except IndexError:
        return
    for gradient in (
        ft.jit(ft.grad(f, argnums=(0, 1)))(y, x, 4),
        ft.vjp(ft.jit(f), y, x, 4)[1](1.0)[:2],
        ft.jit(ft.vmap(ft.grad(f, argnums=(0, 1)), in_axes=(0, None, None)))(np.stack([y, y]), x, 4),
    ):
        gy, gx = gradient
        gy, gx = (gy[1], gx[1]) if gy.ndim == 3 else (gy, gx)
        np.testing.assert_allclose(np.sum(gy * dy) + np.sum(gx * dx), tangent, rtol=1e-9, atol=1e-9)


@pytest.fixture
def always(monkeypatch):
    """Read back even if the array is large compared to what is read."""
    monkeypatch.setattr(read_back, "SHARES", {"once": 0.0, "in a loop": 0.0})


QUIET = list(HealthCheck)


@settings(max_examples=4, deadline=None, suppress_health_check=QUIET)
@given(st.lists(loops(1), min_size=1, max_size=1))
def test_random_loops(always, program):
    check(program)


@pytest.mark.slow
@settings(max_examples=14, deadline=None, suppress_health_check=QUIET)
@given(st.lists(loops(1), min_size=1, max_size=2), st.integers(0, 99))
def test_many_random_loops(always, program, seed):
    check(program, seed)
