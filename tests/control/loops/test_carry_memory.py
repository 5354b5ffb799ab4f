"""The memory of large carries: written over, or in two places in turn."""

from __future__ import annotations

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

START = np.random.default_rng(0).normal(size=50)


def spread(u, np=fnp):
    return np.concatenate([u[:1], u[1:-1] + 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:]), u[-1:]])


def in_python(u, times):
    for _ in range(times):
        u = spread(u, np)
    return u


@pytest.mark.parametrize("times", [0, 1, 2, 3, 10, 11])
def test_a_carry_in_two_places(times):
    expected = in_python(START, times)
    known = ft.jit(lambda u: lax.fori_loop(0, times, lambda _, u: spread(u), u))
    np.testing.assert_allclose(known(START), expected, rtol=1e-14)
    unknown = ft.jit(lambda u, n: lax.fori_loop(0, n, lambda _, u: spread(u), u))
    np.testing.assert_allclose(unknown(START, times), expected, rtol=1e-14)
    waiting = ft.jit(
        lambda u, n: lax.while_loop(lambda s: s[1] < n, lambda s: (spread(s[0]), s[1] + 1), (u, 0))[0]
    )
    np.testing.assert_allclose(waiting(START, times), expected, rtol=1e-14)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 3])
def test_with_rows_in_both_directions(reverse, unroll):
    rows = np.random.default_rng(1).normal(size=(7, 50))

    def step(u, row):
        return spread(u) + row, u

    last, stored = ft.jit(lambda u, rows: lax.scan(step, u, rows, reverse=reverse, unroll=unroll))(
        START, rows
    )
    u, expected = START, []
    for row in rows[::-1] if reverse else rows:
        expected.append(u)
        u = spread(u, np) + row
    np.testing.assert_allclose(last, u, rtol=1e-14)
    np.testing.assert_allclose(stored, expected[::-1] if reverse else expected, rtol=1e-14)


def test_kernel_does_not_copy_the_carry():
    text = (
        ft.jit(lambda u: lax.fori_loop(0, 9, lambda _, u: spread(u), u))
        .lower(START)
        .compile()
        .as_text("python")
    )
    assert "float64[2,n" in text
    assert "next" not in text
    over = ft.jit(lambda u: lax.fori_loop(0, 9, lambda i, u: u.at[i].set(2.0), u)).lower(START).compile()
    assert "float64[2,n" not in over.as_text("python")


def edges(u, i, np=fnp):
    """Two writes, and a smoothing that reads neighbours: the writes need no copy if the result goes elsewhere."""
    first, last = u[-1], u[0]
    if np is fnp:
        return spread(u.at[0].set(first + i).at[-1].set(last - i))
    u = u.copy()
    u[0], u[-1] = first + i, last - i
    return spread(u, np)


@pytest.mark.parametrize("times", [0, 1, 6, 7])
def test_writes_in_the_place_that_the_next_carry_leaves(times):
    u = START
    for i in range(times):
        u = edges(u, i, np)
    known = ft.jit(lambda u: lax.fori_loop(0, times, lambda i, u: edges(u, i), u))
    text = known.lower(START).as_text("python")
    assert times < 2 or ("float64[2,n" in text and ".reshape(" not in text)
    np.testing.assert_allclose(known(START), u, rtol=1e-13)
    waiting = ft.jit(
        lambda u, n: lax.while_loop(lambda s: s[1] < n, lambda s: (edges(*s), s[1] + 1), (u, 0))[0]
    )
    np.testing.assert_allclose(waiting(START, times), u, rtol=1e-13)


def test_a_carry_that_is_read_later_is_not_written_over():
    def step(i, state):
        u, v = state
        return edges(u, i), spread(v.at[1].set(u[3])) + u[::-1]

    actual = ft.jit(lambda u: lax.fori_loop(0, 5, step, (u, 2 * u)))(START)
    u, v = START, 2 * START
    for i in range(5):
        w = v.copy()
        w[1] = u[3]
        u, v = edges(u, i, np), spread(w, np) + u[::-1]
    for x, y in zip(actual, (u, v), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)


def test_carries_of_both_kinds():
    def step(i, state):
        u, v, w = state
        return spread(u) + v, v.at[i].add(1.0), w + u[0]

    actual = ft.jit(lambda u: lax.fori_loop(0, 9, step, (u, fnp.zeros(50), 0.0)))(START)
    u, v, w = START, np.zeros(50), 0.0
    for i in range(9):
        u, w = spread(u, np) + v, w + u[0]
        v = v.copy()
        v[i] += 1.0
    for x, y in zip(actual, (u, v, w), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14)


def test_values_that_change_places():
    other = START + 1
    f = ft.jit(lambda a, b: lax.fori_loop(0, 5, lambda _, s: (s[1], s[0]), (a, b)))
    for x, y in zip(f(START, other), (other, START), strict=True):
        np.testing.assert_array_equal(x, y)


def test_gradient():
    weights = np.arange(50.0)
    slope = ft.jit(ft.grad(lambda u: fnp.sum(weights * lax.fori_loop(0, 6, lambda _, u: spread(u) ** 2, u))))
    unrolled = ft.grad(lambda u: fnp.sum(weights * _squared(u)))
    np.testing.assert_allclose(slope(START), unrolled(START), rtol=1e-12)


def _squared(u):
    for _ in range(6):
        u = spread(u) ** 2
    return u


OTHERS = np.random.default_rng(2).normal(size=(3, 50))

#: Bodies whose carries hand their values on, from three arrays and the number of the iteration.
HANDED_ON = {
    "swapped": lambda s, i: (s[1], s[0], s[2]),
    "swapped, one written": lambda s, i: (s[1].at[i].set(s[0][i] + 1), s[0], s[2]),
    "three in a circle": lambda s, i: (s[1], s[2], s[0]),
    "three in a circle, written": lambda s, i: (s[1], s[2], s[0].at[i].add(s[1][i + 1])),
    "two before": lambda s, i: (s[1], 2 * s[1] - 0.5 * s[0], s[2].at[i].set(s[0][i])),
    "three before": lambda s, i: (s[1], s[2], s[0] + 0.1 * s[2]),
    "neighbours of two before": lambda s, i: (s[1], spread(s[1]) - 0.5 * s[0][::-1], s[2]),
    "one twice": lambda s, i: (s[1], s[2] + s[0], s[1]),
    "one for all": lambda s, i: (s[2], s[2], s[2].at[i].add(s[0][i])),
}


@pytest.mark.parametrize("step", HANDED_ON.values(), ids=list(HANDED_ON))
def test_carries_that_become_others(step):
    def loops(arrays, n):
        def steps(s, i):
            return step(s, i), s[0][i]

        counted = lax.scan(steps, tuple(arrays), fnp.arange(7), unroll=3)
        waiting = lax.while_loop(
            lambda s: s[1] < n, lambda s: (step(s[0], s[1]), s[1] + 1), (tuple(arrays), 0)
        )
        return counted, waiting

    got = ft.jit(loops)(OTHERS, 4)
    with ft.disable_jit():
        expected = loops(fnp.asarray(OTHERS), 4)
    for x, y in zip(ft.tree_util.tree_leaves(got), ft.tree_util.tree_leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)


@pytest.mark.parametrize("name", ["swapped, one written", "three in a circle, written", "two before"])
def test_a_step_does_not_copy_what_it_hands_on(name):
    f = ft.jit(lambda s: lax.fori_loop(0, 9, lambda i, s: HANDED_ON[name](s, i), s))
    text = f.lower(tuple(OTHERS)).compile().as_text("python")
    _, _, body = text.partition("in range(9)")
    written, _, _ = body.partition("s = ")
    assert written.count(" = work[") <= 3
    assert "next" not in text
    assert written.count("for ") == (name == "two before")
