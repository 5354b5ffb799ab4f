"""Loops whose branches write arrays: a step of the program and of its gradient costs the same for larger arrays."""

import numpy as np
import pytest
from numba import njit

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.testing.finite_difference import directional_derivative

#: From this size on the arrays are large.
N = 70
FIRST, STEPS = 4, 60
A = 0.7


def flags(n):
    """Numbers of both signs."""
    return np.random.default_rng(3).normal(size=n)


# --- the branches of a step ---------------------------------------------------------------------------------


def captured(t, h, r, a):
    h = h.at[t].set(a * h[t - 1])
    return lax.cond(r[t] < 0, lambda: h.at[t].set(h[t] + r[t]), lambda: h)


def captured_by_one(t, h, r, a):
    return lax.cond(
        r[t] < 0, lambda k: k.at[t].set(h[t - 1] * a + r[t]), lambda k: k.at[t].set(h[t - 1] * 0.5), h
    )


def given_twice(t, h, r, a):
    return lax.cond(r[t] < 0, lambda h, k: h.at[t].set(k[t - 1] * a + r[t]), lambda h, k: k, h, h)


def nested(t, h, r, a):
    positive = lambda: lax.cond(r[t] > 0.5, lambda: h.at[t - 1].multiply(a), lambda: h.at[t].add(r[t]))
    negative = lambda: lax.cond(r[t] < -0.5, lambda: h.at[t].set(h[t - 1] * a), lambda: h)
    return lax.cond(r[t] < 0, negative, positive)


def switch(t, h, r, a):
    branches = [lambda: h.at[t].set(h[t - 1] * a), lambda: h, lambda: h.at[t].set(r[t] * h[t - 2])]
    return lax.switch(t % 3, branches)


def slices(t, h, r, a):
    def write():
        piece = lax.dynamic_slice(h, (t - 3,), (3,))
        return lax.dynamic_update_slice(h, piece * a + r[t], (t - 3,))

    return lax.cond(r[t] < 0, write, lambda: h)


def read_in_each_branch(t, h, r, a):
    """No operation outside of the branches reads the array: its cotangent begins inside of them."""
    return lax.cond(
        r[t] < 0,
        lambda h: h.at[t].set(fnp.cos(h[t - 1] * a + h[t - 2] * h[t - 3])),
        lambda h: h.at[t].set(fnp.sin(h[t - 1] * h[t - 1])),
        h,
    )


def in_a_call(t, h, r, a):
    return ft.jit(lambda h: lax.cond(r[t] < 0, lambda: h.at[t].set(h[t - 1] * a + r[t]), lambda: h))(h)


def in_a_checkpoint(t, h, r, a):
    def f(h):
        return lax.cond(r[t] < 0, lambda: h.at[t].set(fnp.sin(h[t - 1]) * a), lambda: h.at[t].set(h[t - 2]))

    return ft.checkpoint(f)(h)


def in_a_common_branch(t, h, r, a):
    """The outer branch is the same for all lanes of a batch, the inner one is not."""
    own = lambda: lax.cond(r[t] < 0, lambda: h.at[t].set(h[t - 1] * a), lambda: h)
    return lax.cond(t % 2 == 0, own, lambda: h.at[t].set(r[t]))


def in_an_inner_loop(t, h, r, a):
    def body(j, h):
        return lax.cond(r[t - j] < 0, lambda: h.at[t - j].add(h[t - 1] * a), lambda: h)

    return lax.fori_loop(0, 3, body, h)


BRANCHES = [
    captured,
    captured_by_one,
    given_twice,
    nested,
    switch,
    slices,
    read_in_each_branch,
    in_a_call,
    in_a_checkpoint,
    in_a_common_branch,
    in_an_inner_loop,
]

# --- the loop around them -----------------------------------------------------------------------------------


def counted(step, r, a):
    return lax.fori_loop(FIRST, FIRST + STEPS, lambda t, h: step(t, h, r, a), fnp.ones(len(r)))


def scanned(step, r, a):
    return lax.scan(
        lambda h, t: (step(t, h, r, a), None), fnp.ones(len(r)), fnp.arange(FIRST, FIRST + STEPS)
    )[0]


def waiting(step, r, a):
    return lax.while_loop(
        lambda s: s[0] < FIRST + STEPS, lambda s: (s[0] + 1, step(*s, r, a)), (FIRST, fnp.ones(len(r)))
    )[1]


def in_lanes(step, r, a):
    return ft.vmap(lambda r: counted(step, r, a))(fnp.stack([r, -r, 0.5 * r]))


LOOPS = [counted, scanned, waiting, in_lanes]


def loss(f):
    return lambda r, a: fnp.sum(fnp.sin(f(r, a)))


def check_cost(f, whole_cost, lanes=1):
    """The array is read and written a few times, not once in each step."""
    for g in (f, ft.grad(loss(f), (0, 1))):
        small, large = [whole_cost(g, flags(n), A) for n in (N, 2 * N)]
        assert large - small < 0.8 * lanes * N * STEPS


def check_numbers(f, plain):
    """Beside the same computed by Python, and its derivative beside differences of that."""
    r = flags(N)
    np.testing.assert_allclose(ft.jit(f)(r, A), plain(r, A), rtol=1e-12)
    direction = [np.random.default_rng(4).normal(size=N), np.array(0.3)]
    total = lambda x: [np.sum(np.sin(plain(*x)))]
    (slope,), (error,) = directional_derivative(total, [r, np.array(A)], direction)
    found = ft.jit(ft.grad(loss(f), (0, 1)))(r, A)
    along = sum(np.sum(g * v) for g, v in zip(found, direction, strict=True))
    assert abs(along - slope) < 1e-7 * (1 + abs(slope)) + 10 * error


@pytest.mark.wide(11)
@pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("step", BRANCHES, ids=lambda f: f.__name__)
def test_a_whole_costs_the_same_for_larger_arrays(step, loop, whole_cost):
    check_cost(lambda r, a: loop(step, r, a), whole_cost, 3 if loop is in_lanes else 1)


@pytest.mark.wide(11)
@pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("step", BRANCHES, ids=lambda f: f.__name__)
def test_branches_that_write(step, loop):
    f = lambda r, a: loop(step, r, a)

    def plain(r, a):
        with ft.disable_jit():
            return np.asarray(f(r, a))

    check_numbers(f, plain)


def test_a_branch_of_two_arrays_that_writes_one(whole_cost):
    def f(r, a):
        def step(t, s):
            h, g = s
            return lax.cond(
                r[t] < 0,
                lambda: (h.at[t].set(g[t - 1] * a), g),
                lambda: (h, g.at[t].set(h[t - 1] * r[t])),
            )

        return sum(lax.fori_loop(FIRST, FIRST + STEPS, step, (fnp.ones(len(r)), r * 1.0)))

    check_cost(f, whole_cost)


@pytest.mark.parametrize("lanes", [1, 3])
def test_arrays_that_swap_places_and_are_written(lanes, whole_cost):
    """Backward, each cotangent becomes the other, and both are changed."""

    def alone(r, a):
        def step(t, s):
            h, g = s
            return g.at[t].set(h[t - 1] * a + r[t]), h

        return sum(lax.fori_loop(FIRST, FIRST + STEPS, step, (fnp.ones(len(r)), r * 1.0)))

    def f(r, a):
        return alone(r, a) if lanes == 1 else ft.vmap(alone, (0, None))(fnp.stack([r, -r, 0.5 * r]), a)

    def plain(r, a):
        with ft.disable_jit():
            return np.asarray(f(r, a))

    check_cost(f, whole_cost, lanes)
    check_numbers(f, plain)


# --- the same in Numba's Python -----------------------------------------------------------------------------


@njit
def garch(r, a):
    """With leverage."""
    h = np.ones(r.shape[0])
    for t in range(FIRST, FIRST + STEPS):
        h[t] = 0.1 + a * r[t - 1] ** 2 + 0.3 * h[t - 1]
        if r[t] < 0:
            h[t] = h[t] + a * r[t] ** 2
    return h


@njit
def some_paths(r, a):
    h = r.copy()
    for t in range(FIRST, FIRST + STEPS):
        if r[t] < -0.5:
            h[t] = a * r[t] + 0.3 * h[t - 1]
        elif r[t] < 0:
            a = a * 0.9
        elif r[t] < 0.5:
            if h[t - 1] > 0:
                h[t - 1] = h[t - 1] * a
            h[t] = r[t] * h[t - 1]
    return h * a


@njit
def two_arrays(r, a):
    h, g = np.ones(r.shape[0]), np.ones(r.shape[0])
    for t in range(FIRST, FIRST + STEPS):
        if r[t] < 0:
            h[t] = a * r[t] + 0.3 * h[t - 1] * g[t - 1]
            g[t] = h[t] * a
        elif r[t] < 1:
            g[t] = a * g[t - 1] + h[t - 1]
    return h + g


@njit
def rows_and_slices(r, a):
    h, g = np.ones((r.shape[0], 4)), np.ones(r.shape[0])
    for t in range(FIRST, FIRST + STEPS):
        h[t] = a * h[t - 1]
        if r[t] < 0:
            h[t] = h[t] * 0.5 + r[t]
        elif r[t] < 0.5:
            row = h[t]
            row[1] = h[t - 1, 1] * a
        else:
            g[t - 3 : t] = g[t - 3 : t] * a + r[t]
    return h[:, 1] + g


@njit
def waits(r, a):
    h = np.ones(r.shape[0])
    t = FIRST
    while t < FIRST + STEPS:
        if r[t] < 0:
            h[t] = a * h[t - 1] + r[t]
            t += 1
        else:
            h[t] = h[t - 1] * 0.9
            t += 2
    return h


@njit
def jumps(r, a):
    h = np.ones(r.shape[0])
    for t in range(FIRST, FIRST + STEPS):
        if r[t] > 1:
            continue
        h[t] = a * h[t - 1] + r[t]
        if h[t] > 9:
            break
        for j in range(3):
            if r[t - j] < 0:
                h[t] = h[t] + r[t - j] * a
                break
    return h


@njit
def change(h, t, a, x):
    if x < 0:
        h[t] = a * h[t - 1] + x


@njit
def calls(r, a):
    h = np.ones(r.shape[0])
    for t in range(FIRST, FIRST + STEPS):
        change(h, t, a, r[t])
        if r[t] > 0.5:
            change(h, t, a, -r[t])
        if h[t] > 9:
            return h
    return h * 2


NJIT = [garch, some_paths, two_arrays, rows_and_slices, waits, jumps, calls]


@pytest.mark.wide(3)
@pytest.mark.parametrize("lanes", [False, True], ids=["alone", "lanes"])
@pytest.mark.parametrize("f", NJIT, ids=lambda f: f.__name__)
def test_a_step_of_njit_code_costs_the_same_for_larger_arrays(f, lanes, whole_cost):
    translated = lambda r, a: ft.numba_call(f)(r, a)
    if lanes:
        together = lambda r, a: ft.vmap(translated, (0, None))(fnp.stack([r, -r, 0.5 * r]), a)
        check_cost(together, whole_cost, 3)
    else:
        check_cost(translated, whole_cost)
        check_numbers(translated, lambda r, a: f(r, float(a)))
